// Pointwise and data movement: every output is written once, by vector statements over the innermost dim of a space
// whose dims have been merged as far as all operands run on. Views, Gather, Concat, Pad and Tile are index maps of the
// operands, so a kernel that only moves data and one that computes on the way are the same loops.
#include <algorithm>

#include "lower/nest.h"
#include "lower/space.h"

namespace gaf {

namespace {

int widest(const Graph& g) {
  int w = 4;
  for (const Node& n : g.nodes)
    if (n.op != "constant")
      for (const Type& t : n.types) w = std::max(w, bytes(compute_type(t.dtype)));
  return w;
}

std::vector<kir::Slice> unranged(size_t rank) { return std::vector<kir::Slice>(rank, kir::Slice{0}); }

// The dim whose elements lie side by side in some operand or result while those of the columns do not.
std::optional<size_t> turned_dim(Lowering& l, std::span<const Access> accesses, const Box& box) {
  const Dims merged = box.space.merged();
  const size_t col = merged.size() - 1;
  for (const Access& whole : accesses) {
    const std::optional<Access> a = box.space.merge.empty() ? whole : reshape(whole, merged);
    if (!a || a->strides[col].is(0) || a->strides[col].is(1) || merged[col].is(1)) continue;
    for (size_t d = 0; d < col; d++)
      if (a->strides[d].is(1) && l.expect(merged[d]) >= 4 && l.expect(merged[col]) >= 2) return d;
  }
  return {};
}

// Square tiles of rows (dim `turned`) and columns, so that what is turned is read or written in whole vectors and
// transposed in registers. One body: tiles at the ends are cut by extents.
void write_turned(Lowering& l, Box& box, const OutputGroup& group, size_t turned) {
  const size_t rank = box.sides.size(), col = rank - 1;
  const int64_t side = std::max<int64_t>(8, l.target().lanes);
  Dims extents;
  for (const Box::Side& s : box.sides) extents.push_back(s.hi - s.lo);
  auto capacity = [&](size_t d) { return extents[d].is_num() ? std::min(side, extents[d].num()) : side; };
  const int64_t rows = capacity(turned), cols = capacity(col);
  auto span = [&](size_t d, const Expr& tile, int64_t n) {
    const bool even = extents[d].is_num() && extents[d].num() % n == 0;
    return kir::Slice{box.sides[d].lo + tile * n, even ? Expr(n) : min(Expr(n), extents[d] - tile * n)};
  };
  Dims tiles = extents;
  tiles[turned] = ceildiv(extents[turned], rows);
  tiles[col] = ceildiv(extents[col], cols);
  nest(l, tiles, rows * cols, [&](const std::vector<Expr>& i) {
    std::vector<kir::Slice> at = unranged(rank);
    for (size_t d = 0; d < rank; d++) at[d].at = box.sides[d].lo + i[d];
    at[turned] = span(turned, i[turned], rows);
    at[col] = span(col, i[col], cols);
    TileBody body(l, at, rows, cols, &box.space);
    for (size_t o : group.outputs) body.store_output(o);
  });
}

// Writes one box of a group of outputs.
std::optional<Verdict> write_box(Lowering& l, Box& box, const OutputGroup& group) {
  auto values = [&] {
    std::vector<Value> v;
    for (size_t o : group.outputs) v.push_back(l.output_sink(o).value);
    return v;
  }();
  std::vector<Access> accesses;
  auto refused = [&]() -> std::optional<Verdict> {
    const std::vector<kir::Slice> all(box.space.merged().size(), kir::Slice{0, Expr(1)});
    TileBody probe(l, all, 1, 1, &box.space);
    for (Value v : values)
      if (std::optional<Verdict> why = probe.refuse(v)) return why;
    accesses = probe.leaf_accesses();
    return {};
  };
  if (std::optional<Verdict> why = refused()) {
    std::optional<Dims> fine = box.space.piece.empty() ? finer_dims(l, group.dims, values) : std::nullopt;
    if (!fine) return why;
    box.space.fine = std::move(*fine);
    box.sides.clear();
    for (const Expr& d : box.space.fine) box.sides.push_back({0, d});
    if ((why = refused())) return why;
  }
  for (size_t o : group.outputs) {
    std::optional<Access> a = l.through(l.output_sink(o).access, nullptr, &box.space);
    if (!a) return Verdict::no("iteration-mismatch", "an output is no strided view over the kernel's dims");
    accesses.push_back(std::move(*a));
  }
  merge_space(box, accesses);

  const size_t rank = box.sides.size(), col = rank - 1;
  Dims extents;
  for (const Box::Side& s : box.sides) extents.push_back(s.hi - s.lo);
  const Expr n = extents[col];
  extents.pop_back();
  const int64_t step = column_step(n, row_width(l.target(), widest(l.fn())), l.target().lanes);
  const int64_t expected = std::max<int64_t>(1, l.expect(n));

  if (const std::optional<size_t> turned = turned_dim(l, accesses, box)) {
    const Dims merged = box.space.merged();
    const Expr &n = merged[*turned], &c = merged.back();
    if (c.is_num() && c.num() * 2 <= l.target().lanes && l.expect(n) > c.num()) {
      // few columns (the channels of an image): lanes run along the other dim
      for (size_t d = 0; d < box.sides.size(); d++) box.space.order.push_back(static_cast<int64_t>(d));
      std::swap(box.space.order[*turned], box.space.order.back());
      std::swap(box.sides[*turned], box.sides.back());
    }
    write_turned(l, box, group, *turned);
    return {};
  }
  auto write = [&](const std::vector<Expr>& outer_at, const std::function<void(const ColumnBody&)>& loop) {
    std::vector<kir::Slice> at = unranged(rank);
    for (size_t d = 0; d < col; d++) at[d].at = box.sides[d].lo + outer_at[d];
    TileBody outer(l, at, 1, 1, &box.space);
    at[col].n = Expr(step);
    TileBody inner(l, at, 1, step, &box.space);
    for (size_t o : group.outputs) inner.hoist(outer, l.output_sink(o).value);
    loop([&](const kir::Slice& c, int64_t capacity) {
      at[col] = {box.sides[col].lo + c.at, c.n};
      TileBody body = inner.moved(at, 1, capacity);
      for (size_t o : group.outputs) body.store_output(o);
    });
  };
  // long rows are cut into units as well
  if (expected >= 3 * kUnitElements || (rank == 1 && expected >= 2 * kUnitElements)) {
    int64_t block = std::clamp<int64_t>(expected / 16, kUnitElements, 4 * kUnitElements) / step * step;
    if (n.is_num() && n.num() % step == 0)  // tiles that divide leave no short unit
      for (int64_t b = block; b >= block / 2; b -= step)
        if (n.num() % b == 0) {
          block = b;
          break;
        }
    Dims units = extents;
    units.push_back(ceildiv(n, block));
    nest(l, units, block, [&](std::vector<Expr> at) {
      const Expr u = at.back();
      at.pop_back();
      write(at, [&](const ColumnBody& body) { column_block(l, n, step, block, u, body); });
    });
  } else {
    nest(l, extents, expected,
         [&](const std::vector<Expr>& at) { write(at, [&](const ColumnBody& body) { columns(l, n, step, body); }); });
  }
  return {};
}

Attempt elementwise(const Graph& fn, const Target& t, std::string_view name) {
  Lowering l(fn, t);
  if (!only_elementwise(l.fn())) return {};
  for (const OutputGroup& group : output_groups(l)) {
    std::vector<Value> values;
    for (size_t o : group.outputs) values.push_back(l.output_sink(o).value);
    auto boxes = cut_boxes(l, group.dims, values);
    if (auto* why = std::get_if<Verdict>(&boxes)) return std::move(*why);
    for (Box& box : std::get<std::vector<Box>>(boxes))
      if (std::optional<Verdict> why = write_box(l, box, group)) return std::move(*why);
  }
  return l.finish(name);
}

}  // namespace

Attempt lower_pointwise(const Graph& fn, const Target& t) { return elementwise(fn, t, "pointwise"); }

Attempt lower_move(const Graph& fn, const Target& t) {
  if (!has_move(fn)) return {};
  return elementwise(fn, t, "copy");
}

}  // namespace gaf
