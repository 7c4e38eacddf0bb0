// reduce: chunks of a row are combined lane by lane, then one tree folds the lanes. Elements outside the valid extents
// count as the op's neutral element. f16 and bf16 are summed in f32.
#include <algorithm>

#include "base/error.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

namespace {
DType summed_in(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }
}  // namespace

Val Emitter::combine(const Reduce& m, DType t, Val a, Val b) { return a ? scalar(m.op, t, {a, b}) : b; }

Val Emitter::lanes_together(const Reduce& m, DType t, Val v) {
  for (int n = ir_.type(v).lanes; n > 1; n /= 2) v = combine(m, t, slice(v, 0, n / 2), slice(v, n / 2, n / 2));
  return v;
}

// Columns c..c+n of row r, what does not exist replaced.
Val Emitter::reduce_chunk(const Reduce& m, Operand& src, int64_t r, int64_t c, int64_t n) {
  const DType t = summed_in(src.type);
  Val v = convert(fetch(src, r, c, n), src.type, t);
  Lanes l;
  if (!src.reg && src.window.columns_left)
    l.hi = ir_.sub(src.window.columns_left, ir_.i64(c));
  else if (src.ncols && syms_.range(*src.ncols).lo < c + n)
    l.hi = ir_.sub(syms_.value(*src.ncols), ir_.i64(c));
  else if (c + n > src.cols)
    l.hi = ir_.i64(src.cols - c);
  Val none = constant(t, neutral(m.op), n);
  if (l.hi) v = ir_.select(n == 1 ? ir_.icmp(Pred::gt, l.hi, ir_.i64(0)) : lane_mask(n, l, ir_.type(v).e), v, none);
  if (m.axis != 1 && src.nrows && syms_.range(*src.nrows).lo <= r)
    v = ir_.select(ir_.icmp(Pred::lt, ir_.i64(r), syms_.value(*src.nrows)), v, none);
  return v;
}

// One row to one scalar.
Val Emitter::reduce_row(const Reduce& m, Operand& src, int64_t r) {
  const DType t = summed_in(src.type);
  const int64_t lanes = src.reg ? tiles_.at(src.part.tile).lanes : chunk(src.cols);
  if (!src.reg && src.cols > 16 * lanes) {  // a long row in memory: a loop, then the tail
    Val n = syms_.value(src.window.ncols), full = ir_.sub(n, ir_.and_(n, ir_.i64(lanes - 1)));
    auto part = [&](Val c, Val left) {
      Operand o = src;
      o.window = moved(src.window, nullptr, c), o.window.columns_left = left, o.loaded.clear();
      return reduce_chunk(m, o, r, 0, lanes);
    };
    Vals acc = {constant(t, neutral(m.op), lanes)};
    acc = loop_if_any(ir_.i64(0), full, lanes, acc,
                      [&](Val c, const Vals& v) { return Vals{combine(m, t, v[0], part(c, ir_.i64(lanes)))}; });
    acc = branch(
        ir_.icmp(Pred::lt, full, n), [&] { return Vals{combine(m, t, acc[0], part(full, ir_.sub(n, full)))}; },
        [&] { return acc; });
    return lanes_together(m, t, acc[0]);
  }
  std::map<int64_t, Val> by_width;
  auto take = [&](int64_t c, int64_t n) {
    Val& acc = by_width[n];
    acc = combine(m, t, acc, reduce_chunk(m, src, r, c, n));
  };
  if (src.reg)
    for_chunks(src.part, take);
  else
    for_chunks(0, src.cols, lanes, src.cols, take);
  Val all = nullptr;
  for (auto it = by_width.rbegin(); it != by_width.rend(); ++it)
    all = combine(m, t, all, lanes_together(m, t, it->second));
  return all;
}

void Emitter::put(const Ref& dst, int64_t r, int64_t c, int64_t n, Val v) {
  if (in_reg(dst))
    set_valid(part(dst), dst.at.empty(), r, c, n, v);
  else
    store(window(dst), r, c, n, v);
}

void Emitter::emit(const Reduce& m) {
  Operand src = operand(Arg{m.src}, DType::f32);
  const DType t = summed_in(src.type), out = type_of(k_, m.dst);
  const std::optional<Expr> nrows = src.nrows, ncols = src.ncols;
  if (m.axis == 1) {
    Vals rows;
    for (int64_t r = 0; r < src.rows; r++) rows.push_back(convert(reduce_row(m, src, r), t, out));
    for (size_t r = 0; r < rows.size(); r++) put(m.dst, static_cast<int64_t>(r), 0, 1, rows[r]);
  } else if (m.axis == 2) {
    Val all = nullptr;
    for (int64_t r = 0; r < src.rows; r++) {
      Val row = reduce_row(m, src, r);
      if (src.nrows && syms_.range(*src.nrows).lo <= r)
        row = ir_.select(ir_.icmp(Pred::lt, ir_.i64(r), syms_.value(*src.nrows)), row, constant(t, neutral(m.op), 1));
      all = combine(m, t, all, row);
    }
    put(m.dst, 0, 0, 1, convert(all, t, out));
  } else {
    const int64_t lanes = src.reg ? tiles_.at(src.part.tile).lanes : chunk(src.cols);
    struct Out {
      int64_t c, n;
      Val v;
    };
    std::vector<Out> done;
    auto columns = [&](int64_t c, int64_t n) {
      Val acc = nullptr;
      if (!src.reg && src.rows > 16 && !src.window.inner && !src.window.padded) {
        acc = constant(t, neutral(m.op), n);
        acc = loop_if_any(ir_.i64(0), syms_.value(src.window.nrows), 1, {acc}, [&](Val i, const Vals& v) {
          Operand o = src;
          o.window = moved(src.window, i, nullptr), o.window.row_bound = {}, o.rows = 1, o.nrows.reset(),
          o.loaded.clear();
          return Vals{combine(m, t, v[0], reduce_chunk(m, o, 0, c, n))};
        })[0];
      } else {
        for (int64_t r = 0; r < src.rows; r++) acc = combine(m, t, acc, reduce_chunk(m, src, r, c, n));
      }
      done.push_back({c, n, convert(acc, t, out)});
    };
    if (src.reg)
      for_chunks(src.part, columns);
    else
      for_chunks(0, src.cols, lanes, src.cols, columns);
    for (const Out& o : done) put(m.dst, 0, o.c, o.n, o.v);
  }
  if (in_reg(m.dst) && m.dst.at.empty()) {
    RegTile& d = tiles_.at(m.dst.id);
    d.rows = m.axis == 1 ? nrows : std::nullopt;
    d.cols = m.axis == 0 ? ncols : std::nullopt;
  }
}

}  // namespace gaf::cpu
