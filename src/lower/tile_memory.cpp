// The memory side of TileBody: rectangles of accesses on the tile at hand, loads with gathered and computed indices,
// what a ragged tile leaves valid. Knows accesses and slices; which values are asked for is tile_body.cpp's.
#include <utility>

#include "lower/lowering.h"

namespace gaf {

using kir::S;

std::vector<bool> TileBody::ranged() const {
  std::vector<bool> r;
  for (const kir::Slice& s : at_) r.push_back(s.n.has_value());
  return r;
}

bool TileBody::varies(const Access& a, const std::vector<bool>& dims) const {
  for (size_t i = 0; i < dims.size(); i++) {
    if (!dims[i] || i + a.dims.size() < dims.size()) continue;
    const size_t d = i + a.dims.size() - dims.size();
    if (!a.strides[d].is(0) && !a.dims[d].is(1)) return true;
    for (const Indirect& x : a.indirect)
      if (varies(*x.index, dims)) return true;
  }
  return false;
}

kir::Ref TileBody::rectangle(const Access& a, std::span<const Expr> indices) {
  const size_t rank = at_.size();
  int row = -1;  // the only row dim
  for (size_t i = 0; i < rank; i++)
    if (at_[i].n && static_cast<int>(i) != col_dim_) row = row < 0 ? static_cast<int>(i) : static_cast<int>(rank);
  if (row < 0 || row == static_cast<int>(rank) || rows_ == 1 || cols_ == 1 || a.dims.size() != rank)
    return l_.ref(a, at_, indices);
  const size_t r = static_cast<size_t>(row), c = static_cast<size_t>(col_dim_);
  if (!a.strides[r].is(1) || a.strides[c].is(1) || a.strides[c].is(0) || a.dims[c].is(1))
    return l_.ref(a, at_, indices);
  std::vector<int64_t> perm;
  for (size_t i = 0; i < rank; i++) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[r], perm[c]);
  std::vector<kir::Slice> at = at_;
  std::swap(at[r], at[c]);
  kir::Ref ref = l_.ref(*transpose(a, perm), at, indices);
  ref.transposed = true;
  return ref;
}

TileBody::Operand TileBody::load(const Access& a, DType t, std::span<const Expr> indices) {
  for (const Indirect& i : a.indirect)
    if (varies(*i.index, ranged())) return load_gathered(a, t);
  Operand o;
  std::vector<bool> rows = ranged(), cols(rows.size(), false);
  if (col_dim_ >= 0) rows[static_cast<size_t>(col_dim_)] = false, cols[static_cast<size_t>(col_dim_)] = true;
  o.rows = varies(a, rows) && rows_ > 1;
  o.cols = varies(a, cols) && cols_ > 1;
  o.type = t;
  kir::Ref r = rectangle(a, indices);
  const size_t back = static_cast<size_t>(col_dim_ >= 0 ? at_.size() - static_cast<size_t>(col_dim_) : 0);
  const bool unit = !o.cols || a.strides[a.strides.size() - back].is(1);
  const bool ragged = (o.rows && ragged_rows_) || (o.cols && ragged_cols_);
  if (ragged || !unit || t == DType::b1) {
    kir::Ref tile = fresh(t, o.rows, o.cols);
    // 1 for integers, so that lanes beyond the extent may be divided by
    l_.b.copy(tile, std::move(r), ragged ? std::optional<double>(is_int(t) ? 1 : 0) : std::nullopt);
    o.arg = std::move(tile);
  } else {
    o.arg = std::move(r);
  }
  return compute_type(t) == t ? o : emit(S::cast, compute_type(t), {o});
}

TileBody::Operand TileBody::expr_tile(const Expr& e, DType type) {
  Operand o;
  o.type = type;
  if (e.is_num()) {
    o.arg = static_cast<double>(e.num());
  } else {
    kir::Ref t = fresh(type, false, false);
    l_.b.put({kir::Iota{t, e, 0}});
    o.arg = std::move(t);
  }
  return o;
}

// The index varies within the rectangle: addresses are computed on a tile and gathered from the flat buffer.
TileBody::Operand TileBody::load_gathered(const Access& a, DType t) {
  const kir::Buf& buf = l_.b.k.bufs[static_cast<size_t>(a.buf)];
  const int flat = l_.view(a.buf, {product(buf.shape)}, {1}, 0);
  std::optional<Operand> sum;
  auto add = [&](Operand o) { sum = sum ? emit(S::add, DType::i32, {*sum, std::move(o)}) : std::move(o); };
  for (const Indirect& i : a.indirect) {
    Operand k = converted(load(*i.index, l_.b.k.bufs[static_cast<size_t>(i.index->buf)].type, {}), DType::i32);
    k.reuse = false;
    const Operand extent = expr_tile(i.extent), last = expr_tile(i.extent - 1);
    Operand zero;
    zero.arg = 0.0, zero.type = DType::i32;
    Operand negative = emit(S::lt, DType::b1, {k, zero});
    Operand up = emit(S::add, DType::i32, {k, extent});
    k = emit(S::select, DType::i32, {negative, up, k});
    k = emit(S::max, DType::i32, {zero, k});
    k = emit(S::min, DType::i32, {last, k});
    if (!i.stride.is(1)) k = emit(S::mul, DType::i32, {k, expr_tile(i.stride)});
    add(std::move(k));
  }
  Expr base = a.offset;
  for (size_t d = 0; d < a.dims.size(); d++) {
    const size_t i = d + at_.size() - a.dims.size();
    Expr start = at_[i].at;
    if (!a.window.empty()) start = start - a.window[d].start;
    base += start * a.strides[d];
    if (!at_[i].n || a.strides[d].is(0)) continue;
    const bool col = static_cast<int>(i) == col_dim_;
    Operand steps;
    steps.type = DType::i32, steps.rows = !col, steps.cols = col;
    kir::Ref number = fresh(DType::i32, !col, col);
    l_.b.put({kir::Iota{number, 0, col ? 1 : 0}});
    steps.arg = std::move(number);
    steps.reuse = true;
    if (!a.strides[d].is(1)) steps = emit(S::mul, DType::i32, {steps, expr_tile(a.strides[d])});
    add(std::move(steps));
  }
  if (!base.is(0)) add(expr_tile(base));
  Operand o;
  o.rows = sum->rows, o.cols = sum->cols, o.type = t, o.reuse = true;
  kir::Ref dst = fresh(t, o.rows, o.cols);
  l_.b.put({kir::Gather{dst, kir::Builder::at(flat, {{0, product(buf.shape)}}), std::get<kir::Ref>(sum->arg)}});
  o.arg = std::move(dst);
  return compute_type(t) == t ? o : emit(S::cast, compute_type(t), {o});
}

kir::Ref TileBody::cut(const kir::Ref& tile) const {
  if (!ragged()) return tile;
  const auto [r, c] = kir::extents(l_.b.k, tile);
  auto first = [&](size_t i) { return tile.at.size() == 2 ? tile.at[i].at : Expr(0); };  // it may be a part itself
  // One row or column in a body of several is the same for all of them.
  return kir::Builder::part(tile, first(0), r.is(1) && rows_ > 1 ? Expr(1) : n_rows_, first(1),
                            c.is(1) && cols_ > 1 ? Expr(1) : n_cols_);
}

}  // namespace gaf
