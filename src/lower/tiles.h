// Register tiles and how rows are split into them: the numbers of the contraction-like templates (contraction, conv,
// attention). Knows vector registers and unit costs of a target, nothing of graphs or kernels.
#pragma once
#include <optional>
#include <vector>

#include "base/expr.h"
#include "base/target.h"

namespace gaf {

struct RegTile {
  int rows = 1, cols = 1;  // accumulators: rows x cols f32 values
};

// Most rows of a tile `vecs` vectors wide: accumulators, one row of b and one broadcast of a must stay in registers.
int max_tile_rows(const Target& t, int vecs);
// The cheapest register tile for rows x cols of result by the measured costs of ISA.md ("Register tile"); unknown rows
// (symbolic) or columns give the target's default. Prefers rows that divide: one tile body compiles in half the time.
// `most_rows`: no tile has more.
RegTile pick_tile(const Target& t, std::optional<int64_t> rows, std::optional<int64_t> cols, int most_rows = 64);
// The same where every tile has the same rows and the last one computes rows that are thrown away (pixels of an image
// row).
RegTile pick_pixels(const Target& t, int64_t pixels, int64_t cols);

// `count` tiles of `rows` rows each from row `first` on; `offset`: that row within the block's own storage.
struct RowRun {
  int rows;
  Expr first, count, offset;
};
// Rows in tiles of `tile` rows, in equal blocks. A static rest makes the last tiles one row less; a symbolic one is
// tiles of 4 and of 1 row at the end of each block.
struct RowPlan {
  Expr rows;
  int tile = 1;
  Expr blocks = 1;                         // at least 1
  int64_t capacity = 1;                    // rows of storage that any block needs
  int64_t big = 0, small = 0;              // static: tiles of `tile` rows and of one less,
  int64_t big_block = 0, small_block = 0;  // and how many of them a block has
  std::vector<RowRun> runs(const Expr& block) const;
};
// Blocks of at most `block_rows` rows, and at least `min_blocks` of them if there are that many tiles.
RowPlan plan_rows(const Expr& rows, int tile, int64_t block_rows, int64_t min_blocks);

// The largest divisor of n that is at most `most`.
int64_t divisor_at_most(int64_t n, int64_t most);
// Equal blocks of a static K: the block length (a divisor of k, at most about `most`), or k itself if it has none.
int64_t k_block(int64_t k, int64_t most);

}  // namespace gaf
