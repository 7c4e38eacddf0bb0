// copy with a register tile on one side or both. Rows go chunk by chunk; ^T of 4-byte elements goes through 8x8 blocks
// of shuffles, with masked loads at ragged edges.
#include <algorithm>

#include "base/error.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

void Emitter::emit(const Copy& c) {
  GAF_CHECK(!c.relu) << "`post relu` on a CPU";
  if (in_reg(c.dst))
    copy_to_reg(c);
  else if (in_reg(c.src))
    copy_from_reg(c);
  else
    copy_memory(c);
}

Window Emitter::flipped(Window w) {
  GAF_CHECK(!w.inner) << "rows with two strides cannot be columns";
  std::swap(w.rows, w.cols), std::swap(w.nrows, w.ncols), std::swap(w.row, w.col);
  w.row_bound.lo.swap(w.col_bound.lo), w.row_bound.hi.swap(w.col_bound.hi);
  return w;
}

// Intervals can overstate a run-time extent: a rectangle is no larger than the tile it is copied from or to.
void Emitter::fit(Window& w, int64_t rows, int64_t cols) const {
  if (!syms_.number(w.nrows) && !w.inner) w.rows = std::min(w.rows, rows);
  if (!syms_.number(w.ncols)) w.cols = std::min(w.cols, cols);
}

void Emitter::copy_to_reg(const Copy& c) {
  const Part d = part(c.dst);
  const bool whole = c.dst.at.empty();
  const DType to = tile(c.dst.id).type;
  struct Out {
    int64_t r, c, n;
    Val v;
  };
  std::vector<Out> out;
  std::optional<Expr> nrows, ncols;
  auto fewer = [&](const Expr& n, int64_t than) {  // valid extents to note
    const auto known = syms_.number(n);
    return known && *known >= than ? std::nullopt : std::optional(n);
  };
  if (in_reg(c.src)) {
    Part s = part(c.src);
    GAF_CHECK(!c.pad) << "`else` of a register tile";
    const DType from = tile(c.src.id).type;
    const bool turned =
        c.src.transposed != c.dst.transposed || (s.rows != d.rows && s.rows == d.cols && s.cols == d.rows);
    if (turned) {
      for (int64_t r = 0; r < std::min(d.rows, s.cols); r++)
        for (int64_t i = 0; i < std::min(d.cols, s.rows); i++)
          out.push_back({r, i, 1, convert(get(s.tile, s.r + i, s.c + r, 1), from, to)});
      s.nrows.swap(s.ncols);
      std::swap(s.rows, s.cols);
    } else {
      for (int64_t r = 0; r < std::min(d.rows, s.rows); r++)
        for_chunks(d, [&](int64_t i, int64_t n) {
          out.push_back({r, i, n, convert(get(s.tile, s.r + r, s.c + i, n), from, to)});
        });
    }
    nrows = s.nrows ? s.nrows : fewer(s.rows, d.rows), ncols = s.ncols ? s.ncols : fewer(s.cols, d.cols);
  } else {
    Window s = window(c.src, c.pad.has_value());
    if (c.dst.transposed) s = flipped(s);
    if (s.rows != d.rows && s.cols != d.cols && s.rows * s.cols == d.rows * d.cols && (s.rows == 1 || s.cols == 1))
      s = flipped(s);
    if (!c.pad) fit(s, d.rows, d.cols);
    GAF_CHECK(c.pad || (s.rows <= d.rows && s.cols <= d.cols))
        << "copy of other shape: " << print_ref(k_, c.dst) << " = " << print_ref(k_, c.src);
    if (!c.pad) nrows = fewer(s.nrows, d.rows), ncols = fewer(s.ncols, d.cols);
    if (!transpose_to_reg(c, d, s)) {
      for (int64_t r = 0; r < (c.pad ? d.rows : std::min(d.rows, s.rows)); r++)
        for_chunks(d, [&](int64_t i, int64_t n) {
          Val v = r >= s.rows ? constant(s.type, *c.pad, n) : load(s, r, i, n, c.pad.value_or(0));
          out.push_back({r, i, n, convert(v, s.type, to)});
        });
    }
  }
  for (const Out& o : out) set_valid(d, whole, o.r, o.c, o.n, o.v);
  if (whole) tiles_.at(c.dst.id).rows = nrows, tiles_.at(c.dst.id).cols = ncols;
}

void Emitter::copy_from_reg(const Copy& c) {
  GAF_CHECK(!c.pad) << "`else` of a register tile";
  const Part s = part(c.src);
  Window d = window(c.dst);
  if (c.src.transposed) d = flipped(d);
  if ((s.rows != d.rows || s.cols != d.cols) && s.rows == d.cols && s.cols == d.rows) d = flipped(d);
  fit(d, s.rows, s.cols);
  GAF_CHECK(s.rows >= d.rows && s.cols >= d.cols)
      << "copy of other shape: " << print_ref(k_, c.dst) << " = " << print_ref(k_, c.src);
  if (transpose_from_reg(s, d)) return;
  const DType from = tile(c.src.id).type;
  const int64_t lanes = tiles_.at(c.src.id).lanes;
  for (int64_t r = 0; r < d.rows; r++) {
    auto row = [&] {
      for_chunks(s.c, d.cols, lanes, tile(c.src.id).cols, [&](int64_t at, int64_t n) {
        const int64_t i = at - s.c;
        Lanes l;
        if (s.ncols && !d.col_bound.hi) l.hi = ir_.sub(syms_.value(*s.ncols), ir_.i64(i));
        store(d, r, i, n, convert(get(c.src.id, s.r + r, at, n), from, d.type), l);
      });
    };
    if (s.nrows && !d.row_bound.hi && syms_.range(*s.nrows).lo <= r)
      when(ir_.icmp(Pred::lt, ir_.i64(r), syms_.value(*s.nrows)), row);
    else
      row();
  }
}

// Reads along the direction that is contiguous in memory. d[r, c] = s(r, c); s.row is the unit stride.
bool Emitter::transpose_to_reg(const Copy& c, const Part& d, const Window& s) {
  if (gaf::bytes(s.type) != 4 || !unit(s.row, s.type) || unit(s.col, s.type) || s.inner || d.rows < 4 || d.cols < 2)
    return false;
  const Window f = flipped(s);  // f(c, r): rows of the source as they lie
  const double pad = c.pad.value_or(0);
  for (int64_t r0 = 0; r0 < d.rows; r0 += 8)
    for (int64_t c0 = 0; c0 < d.cols; c0 += 8) {
      Vals v;
      for (int64_t j = 0; j < 8; j++)
        v.push_back(c0 + j >= f.rows ? constant(s.type, pad, 8) : load(f, c0 + j, r0, 8, pad));
      transpose8(v);
      const int64_t n = std::min<int64_t>(8, d.cols - c0);
      for (int64_t i = 0; i < std::min<int64_t>(8, d.rows - r0); i++)
        set_valid(d, c.dst.at.empty(), r0 + i, c0, n,
                  convert(slice(v[static_cast<size_t>(i)], 0, n), s.type, tile(d.tile).type));
    }
  return true;
}
bool Emitter::transpose_from_reg(const Part& s, const Window& d) {
  if (gaf::bytes(d.type) != 4 || !unit(d.row, d.type) || unit(d.col, d.type) || d.inner || d.rows < 4 || d.cols < 4 ||
      s.nrows || s.ncols)
    return false;
  const Window f = flipped(d);
  for (int64_t r0 = 0; r0 < d.rows; r0 += 8)
    for (int64_t c0 = 0; c0 < d.cols; c0 += 8) {
      const int64_t n = std::min<int64_t>(8, d.cols - c0);
      Vals v;
      for (int64_t i = 0; i < 8; i++) {
        Val x = r0 + i < d.rows ? get(s.tile, s.r + r0 + i, s.c + c0, n) : ir_.undef(vec(d.type, n));
        v.push_back(n == 8 ? x : slice(n == 1 ? ir_.splat(x, 2) : x, 0, 8));
      }
      transpose8(v);
      for (int64_t j = 0; j < n; j++) store(f, c0 + j, r0, 8, v[static_cast<size_t>(j)]);
    }
  return true;
}

// v[i] = row i of 8 lanes becomes column i: interleave pairs, then quads, then halves.
void Emitter::transpose8(Vals& v) {
  static constexpr int kPairs[2][8] = {{0, 8, 1, 9, 4, 12, 5, 13}, {2, 10, 3, 11, 6, 14, 7, 15}};
  static constexpr int kQuads[2][8] = {{0, 1, 8, 9, 4, 5, 12, 13}, {2, 3, 10, 11, 6, 7, 14, 15}};
  static constexpr int kHalves[2][8] = {{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}};
  Vals a(8), b(8);
  for (size_t i = 0; i < 8; i++) a[i] = ir_.shuffle(v[i / 2 * 2], v[i / 2 * 2 + 1], kPairs[i % 2]);
  // a[2i + h]: columns {2h, 2h+1, 2h+4, 2h+5} of rows 2i and 2i+1
  for (size_t half = 0; half < 2; half++)
    for (size_t h = 0; h < 2; h++)
      for (size_t q = 0; q < 2; q++)
        b[4 * half + 2 * h + q] = ir_.shuffle(a[4 * half + h], a[4 * half + 2 + h], kQuads[q]);
  // b[4 * half + j]: columns j and j + 4 of rows 4 * half .. 4 * half + 3
  for (size_t j = 0; j < 4; j++) {
    v[j] = ir_.shuffle(b[j], b[4 + j], kHalves[0]);
    v[4 + j] = ir_.shuffle(b[j], b[4 + j], kHalves[1]);
  }
}

}  // namespace gaf::cpu
