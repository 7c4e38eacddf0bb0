// Register tile choice by measured costs, and row splitting. See tiles.h.
#include "lower/tiles.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace gaf {

int max_tile_rows(const Target& t, int vecs) {
  // One register stays free where there are 32 (addresses of masks, ISA.md "tile rule"); without FMA the product needs
  // one.
  int usable = t.max_regs - (t.max_regs > 16 ? 1 : 0) - (t.fma ? 0 : 1);
  return std::max(1, (usable - vecs - 1) / vecs);
}

namespace {

// Cycles per K step of one tile: FMAs plus what streaming a row of b costs (fit of ISA.md's tile table, 88-99 % of
// peak). A tile one vector wide folds its broadcasts into the FMAs and is bound by loads.
double step_cycles(const Target& t, int64_t rows, int vecs) {
  double fmas = static_cast<double>(rows * vecs) / t.fma_per_cycle;
  double latency = 4;  // dependent FMAs: fewer than 8 accumulators cannot fill two pipes
  double load = vecs == 1 && rows > 8 ? 0.14 * static_cast<double>(rows) : 0;
  return std::max(fmas, latency) + 0.6 + 0.1 * vecs + load;
}

// Cycles per K step of all rows, in tiles of `tile` rows and one row less.
double column_cycles(const Target& t, int64_t rows, int tile, int vecs) {
  int64_t n = (rows + tile - 1) / tile, big = rows - n * (tile - 1);
  if (big < 0) return 1e30;  // would need three sizes
  double c = static_cast<double>(big) * step_cycles(t, tile, vecs);
  if (n > big) c += static_cast<double>(n - big) * step_cycles(t, tile - 1, vecs);
  return n > big && big > 0 ? c * 1.04 : c;  // a second body: twice the compile time
}

}  // namespace

RegTile pick_tile(const Target& t, std::optional<int64_t> rows, std::optional<int64_t> cols, int most_rows) {
  RegTile best{t.tile_rows, t.tile_vecs * t.lanes};
  if (!rows && !cols) return best;
  double least = 1e300;
  for (int vecs : {t.tile_vecs, 4, 3, 2, 1}) {
    int most = std::min(most_rows, max_tile_rows(t, vecs)), width = vecs * t.lanes;
    double panels = cols ? std::ceil(static_cast<double>(*cols) / width) : 1.0 / width;
    if (!rows) {  // symbolic: the largest tile whose rows are a multiple of 4 where there is one
      int r = most >= 4 && vecs != t.tile_vecs ? most / 4 * 4 : std::min(most, t.tile_rows);
      double c = panels * step_cycles(t, r, vecs) / r;
      if (c < least * 0.995) least = c, best = {r, width};
      continue;
    }
    for (int r = static_cast<int>(std::min<int64_t>(most, *rows)); r >= 1; r--) {
      double c = panels * column_cycles(t, *rows, r, vecs);
      if (c < least * 0.995) least = c, best = {r, width};
    }
  }
  return best;
}

RegTile pick_pixels(const Target& t, int64_t pixels, int64_t cols) {
  RegTile best;
  double least = 1e300;
  for (int vecs : {t.tile_vecs, 4, 3, 2, 1}) {
    int width = vecs * t.lanes;
    double panels = std::ceil(static_cast<double>(cols) / width);
    for (int r = static_cast<int>(std::min<int64_t>(max_tile_rows(t, vecs), pixels)); r >= 1; r--) {
      int64_t tiles = (pixels + r - 1) / r;
      double c = panels * static_cast<double>(tiles) * step_cycles(t, r, vecs) * (pixels % r ? 1.02 : 1);
      if (c < least * 0.995) least = c, best = {r, width};
    }
  }
  return best;
}

int64_t divisor_at_most(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; d--)
    if (n % d == 0) return d;
  return 1;
}

int64_t k_block(int64_t k, int64_t most) {
  if (k <= most + most / 4) return k;
  for (int64_t blocks = (k + most - 1) / most; blocks <= 4 * ((k + most - 1) / most); blocks++)
    if (k % blocks == 0) return k / blocks;
  return k;
}

RowPlan plan_rows(const Expr& rows, int tile, int64_t block_rows, int64_t min_blocks) {
  RowPlan p;
  p.rows = rows, p.tile = tile;
  int64_t fit = std::max<int64_t>(1, block_rows / tile);  // tiles a block may have
  if (!rows.is_num()) {
    p.capacity = fit * tile;
    p.blocks = ceildiv(rows, p.capacity);
    return p;
  }
  int64_t m = rows.num(), n = (m + tile - 1) / tile;
  p.big = m - n * (tile - 1), p.small = n - p.big;
  GAF_CHECK(p.big >= 0) << m << " rows in tiles of " << tile;
  int64_t blocks = std::max((n + fit - 1) / fit, std::min(min_blocks, n));
  for (int64_t b = blocks; b <= blocks + blocks / 2 + 1 && b <= n;
       b++)  // a count that divides the tiles, if one is near
    if (p.big % b == 0 && p.small % b == 0) {
      blocks = b;
      break;
    }
  p.blocks = blocks;
  p.big_block = (p.big + blocks - 1) / blocks, p.small_block = (p.small + blocks - 1) / blocks;
  p.capacity = p.big_block * tile + p.small_block * (tile - 1);
  return p;
}

std::vector<RowRun> RowPlan::runs(const Expr& block) const {
  std::vector<RowRun> out;
  if (rows.is_num()) {
    auto add = [&](int r, int64_t first, int64_t count, int64_t per, int64_t offset) {
      if (count == 0) return;
      bool equal = per * blocks.num() == count;
      out.push_back({r, first + block * (per * r), equal ? Expr(per) : min(Expr(per), count - block * per), offset});
    };
    add(tile, 0, big, big_block, 0);
    add(tile - 1, big * tile, small, small_block, big_block * tile);
    return out;
  }
  Expr start = block * capacity, n = min(Expr(capacity), rows - start), done = 0;
  for (int r : {tile, 4, 1}) {
    if (r != tile && r >= tile) continue;
    Expr rest = done.is(0) ? n : max(Expr(0), n - done);  // never negative; said for the verifier
    Expr count = r == 1 ? n - done : floordiv(rest, r);
    out.push_back({r, start + done, count, done});
    done = done + count * r;
  }
  return out;
}

}  // namespace gaf
