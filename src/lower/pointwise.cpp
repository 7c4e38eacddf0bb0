// Pointwise and data movement: every output is written once, by vector statements over the innermost dim of a space whose
// dims have been merged as far as all operands run on. Views, Gather, Concat, Pad and Tile are index maps of the operands,
// so a kernel that only moves data and one that computes on the way are the same loops.
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

// Writes one box of a group of outputs.
std::optional<Verdict> write_box(Lowering& l, Box& box, const OutputGroup& group) {
  std::vector<Access> accesses;
  {
    std::vector<kir::Slice> all(box.space.dims.size(), kir::Slice{0, Expr(1)});
    TileBody probe(l, all, 1, 1, &box.space);
    for (size_t o : group.outputs)
      if (std::optional<Verdict> why = probe.refuse(l.output_sink(o).value)) return why;
    accesses = probe.leaf_accesses();
  }
  for (size_t o : group.outputs) accesses.push_back(*l.through(l.output_sink(o).access, nullptr, &box.space));
  merge_space(box, accesses);

  const size_t rank = box.sides.size(), col = rank - 1;
  Dims extents;
  for (const Box::Side& s : box.sides) extents.push_back(s.hi - s.lo);
  const Expr n = extents[col];
  extents.pop_back();
  const int64_t step = column_step(n, row_width(l.target(), widest(l.fn())), l.target().lanes);
  const int64_t expected = std::max<int64_t>(1, l.expect(n));

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
    nest(l, extents, expected, [&](const std::vector<Expr>& at) {
      write(at, [&](const ColumnBody& body) { columns(l, n, step, body); });
    });
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
