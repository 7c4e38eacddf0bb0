// Register tiles: a row is one or more vector values. Reading a part is a shuffle, writing a part replaces or blends
// values; a column [R,1] is scalars. Never an alloca: what is live is for the register allocator to see.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

// Four registers' worth interleaves enough independent chains for polynomials, and LLVM splits it without loss; what is
// no power of two is cut into single registers, the last one padded.
int64_t Emitter::chunk(int64_t cols) const {
  const auto n = static_cast<uint64_t>(cols);
  if (std::has_single_bit(n)) return std::min<int64_t>(cols, 4 * t_.lanes);
  return std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(n)), t_.lanes);
}
int64_t Emitter::tile_lanes(int id) const {
  const Tile& x = tile(id);
  if (!accumulators_.count(id)) return chunk(x.cols);
  const int64_t reg = std::max<int64_t>(1, t_.vector_bytes() / std::max(4, gaf::bytes(x.type)));
  return std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x.cols))), reg);
}

void Emitter::declare(int id) {
  const Tile& x = tile(id);
  if (x.mem != Mem::reg) {
    GAF_CHECK(x.mem == Mem::scratch && x.at >= 0) << "tile " << x.name << " has no place in scratch";
    return;
  }
  RegTile g;
  g.lanes = tile_lanes(id);
  g.chunks = (x.cols + g.lanes - 1) / g.lanes;
  g.v.assign(static_cast<size_t>(x.rows * g.chunks), ir_.undef(vec(x.type, g.lanes)));
  tiles_[id] = std::move(g);
}

Part Emitter::part(const Ref& r) {
  const Tile& x = tile(r.id);
  GAF_CHECK(tiles_.count(r.id)) << "tile " << x.name << " is used outside its block";
  const RegTile& g = tiles_.at(r.id);
  Part p{r.id, 0, 0, x.rows, x.cols, g.rows, g.cols};
  if (r.at.empty()) return p;
  GAF_CHECK(r.at.size() == 2) << "a part of tile " << x.name << " has two indices";
  auto fixed = [&](const Expr& e) {
    const auto n = syms_.number(syms_.known(e));
    GAF_CHECK(n) << "register tile " << x.name << " needs constant indices";
    return *n;
  };
  auto extent = [&](const Slice& s, int64_t& n, std::optional<Expr>& valid) {
    GAF_CHECK(s.step == 1) << "a step inside register tile " << x.name;
    valid.reset();
    if (!s.n)
      n = 1;
    else if (const auto k = syms_.number(syms_.known(*s.n)))
      n = *k;
    else
      n = capacity(*s.n), valid = syms_.known(*s.n);
  };
  p.r = fixed(r.at[0].at), p.c = fixed(r.at[1].at);
  extent(r.at[0], p.rows, p.nrows);
  extent(r.at[1], p.cols, p.ncols);
  p.rows = std::min(p.rows, x.rows - p.r), p.cols = std::min(p.cols, x.cols - p.c);
  return p;
}

Val Emitter::slice(Val v, int64_t from, int64_t n) {
  const int have = ir_.type(v).lanes;
  if (from == 0 && n == have) return v;
  if (n == 1) return ir_.extract(v, static_cast<int>(from));
  std::vector<int> mask;
  for (int64_t i = 0; i < n; i++) mask.push_back(from + i < have ? static_cast<int>(from + i) : -1);
  return ir_.shuffle(v, nullptr, mask);
}

Val Emitter::get(int id, int64_t r, int64_t c, int64_t n) {
  const RegTile& x = tiles_.at(id);
  const int64_t first = c / x.lanes, last = std::min((c + n - 1) / x.lanes, x.chunks - 1);
  if (x.lanes == 1 && n == 1) return x.v[static_cast<size_t>(r * x.chunks + c)];
  Vals v;
  for (int64_t i = first; i <= last; i++) v.push_back(x.v[static_cast<size_t>(r * x.chunks + i)]);
  while (v.size() > 1) {  // joined in pairs
    if (v.size() % 2) v.push_back(ir_.undef(ir_.type(v[0])));
    Vals joined;
    for (size_t i = 0; i < v.size(); i += 2) {
      std::vector<int> mask;
      for (int j = 0; j < 2 * ir_.type(v[i]).lanes; j++) mask.push_back(j);
      joined.push_back(ir_.shuffle(v[i], v[i + 1], mask));
    }
    v = std::move(joined);
  }
  return slice(v[0], c - first * x.lanes, n);
}

void Emitter::set(int id, int64_t r, int64_t c, int64_t n, Val v) {
  RegTile& x = tiles_.at(id);
  const int64_t capacity = tile(id).cols;
  for (int64_t i = c / x.lanes; i * x.lanes < std::min(c + n, capacity); i++) {
    Val& d = x.v[static_cast<size_t>(r * x.chunks + i)];
    const int64_t lo = std::max(c, i * x.lanes), hi = std::min(c + n, (i + 1) * x.lanes), m = hi - lo;
    if (m == x.lanes || (lo == i * x.lanes && hi >= capacity)) {  // all of it that is not padding
      d = slice(v, lo - c, x.lanes);
      continue;
    }
    if (m == 1) {
      d = ir_.insert(d, slice(v, lo - c, 1), static_cast<int>(lo - i * x.lanes));
      continue;
    }
    Val grown = slice(slice(v, lo - c, m), 0, x.lanes);
    std::vector<int> mix;
    for (int64_t j = 0; j < x.lanes; j++) {
      const int64_t e = i * x.lanes + j;
      mix.push_back(static_cast<int>(e >= lo && e < hi ? x.lanes + e - lo : j));
    }
    d = ir_.shuffle(d, grown, mix);
  }
}

// The pieces in which columns c..c+cols of values of `lanes` lanes are best handled: whole values where they are
// aligned, the last one with its padding, powers of two elsewhere.
void Emitter::for_chunks(int64_t c, int64_t cols, int64_t lanes, int64_t capacity,
                         const std::function<void(int64_t, int64_t)>& f) const {
  const int64_t end = c + cols;
  while (c < end) {
    int64_t n = std::min(lanes, end - c);
    if (c % lanes == 0 && (n == lanes || end == capacity))
      n = lanes;
    else
      n = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(n, lanes - c % lanes))));
    f(c, n);
    c += n;
  }
}
void Emitter::for_chunks(const Part& p, const std::function<void(int64_t, int64_t)>& f) const {
  for_chunks(p.c, p.cols, tiles_.at(p.tile).lanes, tile(p.tile).cols, [&](int64_t c, int64_t n) { f(c - p.c, n); });
}

// A part written with run-time extents keeps what lies outside them; a whole tile just becomes shorter.
void Emitter::set_valid(const Part& p, bool whole, int64_t r, int64_t c, int64_t n, Val v) {
  if (!whole && (p.nrows || p.ncols)) {
    Val old = get(p.tile, p.r + r, p.c + c, n);
    if (p.ncols) {
      Lanes l;
      l.hi = ir_.sub(syms_.value(*p.ncols), ir_.i64(c));
      v = ir_.select(lane_mask(n, l, ir_.type(v).e), v, old);
    }
    if (p.nrows) v = ir_.select(ir_.icmp(Pred::lt, ir_.i64(r), syms_.value(*p.nrows)), v, old);
  }
  set(p.tile, p.r + r, p.c + c, n, v);
}

}  // namespace gaf::cpu
