// copy from memory to memory: rows as vectors, `else` as runs of the constant beside the run that exists, transposes in
// 8x8 blocks, and element by element where strides leave nothing better.
#include <algorithm>

#include "base/error.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

Val Emitter::in_bound(Val i, const Bound& b) {
  Val all = nullptr;
  if (b.hi) all = ir_.icmp(Pred::lt, i, syms_.value(*b.hi));
  if (b.lo) {
    Val low = ir_.icmp(Pred::ge, i, syms_.value(*b.lo));
    all = all ? ir_.and_(all, low) : low;
  }
  return all;
}

void Emitter::copy_memory(const Copy& c) {
  Window d = window(c.dst), s = window(c.src, c.pad.has_value());
  GAF_CHECK(d.type == s.type) << "a copy between memories changes the type";
  const double pad = c.pad.value_or(0);
  if (d.nrows != s.nrows && d.ncols != s.ncols && d.nrows == s.ncols && d.ncols == s.nrows && !c.pad) s = flipped(s);
  if (c.pad && !s.inner) {  // a shorter source
    if (!s.row_bound.hi && s.nrows != d.nrows) s.row_bound.hi = s.nrows;
    if (!s.col_bound.hi && s.ncols != d.ncols) s.col_bound.hi = s.ncols;
  }
  if (!unit(d.col, d.type) && unit(d.row, d.type) && !s.inner && !d.inner) d = flipped(d), s = flipped(s);
  GAF_CHECK(c.pad || (d.nrows == s.nrows && d.ncols == s.ncols) || (d.rows == s.rows && d.cols == s.cols))
      << "copy of other shape: " << print_ref(k_, c.dst) << " = " << print_ref(k_, c.src);
  if (!unit(s.col, s.type) && unit(s.row, s.type) && unit(d.col, d.type) && !s.inner && !d.inner && s.cols > 1)
    return transpose_memory(d, s, c.pad);
  copy_rows(d, s, pad);
}

void Emitter::copy_rows(const Window& d0, const Window& s0, double pad) {
  Window d = d0, s = s0;
  const int64_t size = gaf::bytes(d.type), inner = s.inner ? s.inner : d.inner;
  GAF_CHECK(!s.inner || !d.inner || s.inner == d.inner) << "a copy between rows of different strides";
  if (inner) {  // rows in two steps: the outer index here, the inner as ordinary rows
    const Expr n = d.inner ? d.nouter : s.padded ? floordiv(d.nrows, Expr(inner)) : s.nouter;
    const Bound outer = s.outer_bound;
    auto without = [&](Window w) {
      w.outer = w.inner ? w.outer : Stride{w.row.n * inner, w.row.v ? times(ir_.i64(inner), w.row) : nullptr};
      w.inner = 0, w.rows = inner, w.nrows = inner, w.outer_bound = {};
      return w;
    };
    d = without(d), s = without(s);
    repeat(n, 1, 1, [&](Val q, std::optional<int64_t>) {
      Window dq = d, sq = s;
      dq.base = ir_.offset(d.base, times(q, d.outer)), sq.base = ir_.offset(s.base, times(q, s.outer));
      if (Val in = s.padded ? in_bound(q, outer) : nullptr) sq.exists = sq.exists ? ir_.and_(sq.exists, in) : in;
      copy_rows(dq, sq, pad);
    });
    return;
  }
  if (s.exists) {
    Window in = s;
    in.exists = nullptr;
    branch(
        s.exists, [&] { return copy_rows(d, in, pad), Vals{}; },
        [&] {
          repeat(d.nrows, 1, 1, [&](Val r, std::optional<int64_t>) {
            fill_run(moved(d, r, nullptr), ir_.i64(0), syms_.value(d.ncols), pad);
          });
          return Vals{};
        });
    return;
  }
  const bool same_cols = s.ncols.is_num() && d.ncols == s.ncols && !s.col_bound.lo && !s.col_bound.hi;
  const bool contiguous = unit(s.col, s.type) && unit(d.col, d.type) && same_cols && !s.row.v && !d.row.v &&
                          s.row.n == s.cols * size && d.row.n == d.cols * size;
  if (contiguous && d.rows > 1) {  // one long row
    auto joined = [&](Window w) {
      w.ncols = w.nrows * w.ncols, w.cols *= w.rows;
      auto scaled = [&](const std::optional<Expr>& e) { return e ? std::optional(*e * Expr(d0.cols)) : std::nullopt; };
      w.col_bound = {scaled(w.row_bound.lo), scaled(w.row_bound.hi)};
      w.rows = 1, w.nrows = 1, w.row = {}, w.row_bound = {};
      return w;
    };
    return copy_row(joined(d), joined(s), pad);
  }
  repeat(d.nrows, 1, 4, [&](Val r, std::optional<int64_t>) {
    Window dr = moved(d, r, nullptr), sr = moved(s, r, nullptr);
    dr.row_bound = sr.row_bound = {};
    Val in = s.padded ? in_bound(r, s.row_bound) : nullptr;
    if (!in) return copy_row(dr, sr, pad);
    branch(
        in, [&] { return copy_row(dr, sr, pad), Vals{}; },
        [&] { return fill_run(dr, ir_.i64(0), syms_.value(d.ncols), pad), Vals{}; });
  });
}

// One row; with `else` the part of it that exists lies between two runs of the constant.
void Emitter::copy_row(const Window& d, const Window& s, double pad) {
  Val n = syms_.value(d.ncols);
  if (!s.padded) return copy_run(d, s, ir_.i64(0), n);
  Val lo = ir_.i64(0), hi = n;
  if (s.col_bound.hi) hi = ir_.smax(ir_.smin(syms_.value(*s.col_bound.hi), n), ir_.i64(0));
  if (s.col_bound.lo) lo = ir_.smin(ir_.smax(syms_.value(*s.col_bound.lo), ir_.i64(0)), hi);
  if (ir_.constant(lo) != std::optional<int64_t>(0)) fill_run(d, ir_.i64(0), lo, pad);
  copy_run(d, s, lo, hi);
  if (hi != n) fill_run(d, hi, n, pad);
}

void Emitter::copy_run(const Window& d0, const Window& s0, Val from, Val to) {
  Window d = d0, s = s0;
  d.padded = s.padded = false;
  d.col_bound = s.col_bound = {};
  const bool vectors = unit(d.col, d.type) && (unit(s.col, s.type) || (s.col.n == 0 && !s.col.v));
  const auto first = ir_.constant(from), end = ir_.constant(to);
  if (vectors && first == 0 && end && *end <= 8 * chunk(d.cols)) {
    for_chunks(0, *end, chunk(d.cols), -1, [&](int64_t c, int64_t n) { store(d, 0, c, n, load(s, 0, c, n)); });
    return;
  }
  const int64_t lanes = vectors ? 2 * t_.vector_bytes() / gaf::bytes(d.type) : 1;
  Val full = lanes == 1 ? to : ir_.add(from, ir_.and_(ir_.sub(to, from), ir_.i64(-lanes)));
  auto part = [&](Val c, int64_t n, Val left) {
    Window dc = moved(d, nullptr, c), sc = moved(s, nullptr, c);
    dc.columns_left = sc.columns_left = left;
    store(dc, 0, 0, n, load(sc, 0, 0, n));
  };
  loop_if_any(from, full, lanes, {}, [&](Val c, const Vals&) { return part(c, lanes, nullptr), Vals{}; });
  if (lanes == 1) return;
  if (native_mask(memory_elem(d.type)))
    when(ir_.icmp(Pred::lt, full, to), [&] { part(full, lanes, ir_.sub(to, full)); });
  else
    loop_if_any(full, to, 1, {}, [&](Val c, const Vals&) { return part(c, 1, nullptr), Vals{}; });
}

void Emitter::fill_run(const Window& d0, Val from, Val to, double v) {
  Window d = d0;
  d.col_bound = {};
  const int64_t lanes = unit(d.col, d.type) ? t_.vector_bytes() / gaf::bytes(d.type) : 1;
  Val full = lanes == 1 ? to : ir_.add(from, ir_.and_(ir_.sub(to, from), ir_.i64(-lanes)));
  auto part = [&](Val c, int64_t n) { store(moved(d, nullptr, c), 0, 0, n, constant(d.type, v, n)); };
  loop_if_any(from, full, lanes, {}, [&](Val c, const Vals&) { return part(c, lanes), Vals{}; });
  if (lanes > 1) loop_if_any(full, to, 1, {}, [&](Val c, const Vals&) { return part(c, 1), Vals{}; });
}

// d(r, c) = s(r, c), where s runs along its rows and d along its columns.
void Emitter::transpose_memory(const Window& d0, const Window& s0, std::optional<double> pad) {
  Window d = d0, s = s0;
  Expr nrows = d.nrows, ncols = d.ncols, row0 = 0, col0 = 0;
  if (pad) {  // the constant everywhere if anything is missing, then what exists
    Val complete = s.exists;
    auto also = [&](Val c) { complete = complete ? ir_.and_(complete, c) : c; };
    auto shrink = [&](Expr& first, Expr& n, const Bound& b) {
      if (b.hi) n = min(n, max(*b.hi, Expr(0)));
      if (b.lo) first = max(*b.lo, Expr(0)), n = max(n - first, Expr(0));
    };
    shrink(row0, nrows, s.row_bound);
    shrink(col0, ncols, s.col_bound);
    if (!(nrows == d.nrows)) also(ir_.icmp(Pred::eq, syms_.value(nrows), syms_.value(d.nrows)));
    if (!(ncols == d.ncols)) also(ir_.icmp(Pred::eq, syms_.value(ncols), syms_.value(d.ncols)));
    if (complete)
      when(ir_.not_(complete), [&] {
        repeat(d.nrows, 1, 1, [&](Val r, std::optional<int64_t>) {
          fill_run(moved(d, r, nullptr), ir_.i64(0), syms_.value(d.ncols), *pad);
        });
      });
  }
  d.row_bound = d.col_bound = s.row_bound = s.col_bound = {};
  s.padded = false;
  const Val down = row0.is(0) ? nullptr : syms_.value(row0), right = col0.is(0) ? nullptr : syms_.value(col0);
  d = moved(d, down, right), s = moved(s, down, right);
  Val exists = s.exists;
  s.exists = nullptr;
  auto all = [&] {
    if (gaf::bytes(s.type) != 4) return copy_elements(d, s, nrows, ncols);
    Val rows = syms_.value(nrows), cols = syms_.value(ncols), r8 = ir_.and_(rows, ir_.i64(-8)),
        c8 = ir_.and_(cols, ir_.i64(-8));
    s.rows = s.cols = d.rows = d.cols = std::max<int64_t>(8, std::max(d.rows, d.cols));
    const Window f = flipped(s);
    loop_if_any(ir_.i64(0), r8, 8, {}, [&](Val r, const Vals&) {
      loop_if_any(ir_.i64(0), c8, 8, {}, [&](Val c, const Vals&) {
        const Window from = moved(f, c, r), to = moved(d, r, c);
        Vals v;
        for (int64_t j = 0; j < 8; j++) v.push_back(load(from, j, 0, 8));
        transpose8(v);
        for (int64_t i = 0; i < 8; i++) store(to, i, 0, 8, v[static_cast<size_t>(i)]);
        return Vals{};
      });
      return Vals{};
    });
    auto edge = [&](Val rlo, Val rhi, Val clo, Val chi) {
      loop_if_any(rlo, rhi, 1, {}, [&](Val r, const Vals&) {
        loop_if_any(clo, chi, 1, {}, [&](Val c, const Vals&) {
          return store(moved(d, r, c), 0, 0, 1, load(moved(s, r, c), 0, 0, 1)), Vals{};
        });
        return Vals{};
      });
    };
    if (syms_.range(nrows) != syms_.range(nrows - mod(nrows, Expr(8)))) edge(r8, rows, ir_.i64(0), c8);
    if (syms_.range(ncols) != syms_.range(ncols - mod(ncols, Expr(8)))) edge(ir_.i64(0), rows, c8, cols);
  };
  if (exists)
    when(exists, all);
  else
    all();
}

void Emitter::copy_elements(const Window& d, const Window& s, const Expr& nrows, const Expr& ncols) {
  repeat(nrows, 1, 1, [&](Val r, std::optional<int64_t>) {
    repeat(ncols, 1, 1,
           [&](Val c, std::optional<int64_t>) { store(moved(d, r, c), 0, 0, 1, load(moved(s, r, c), 0, 0, 1)); });
  });
}

}  // namespace gaf::cpu
