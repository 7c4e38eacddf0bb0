// What the templates for targets that work on tiles share: cores with explicit memories and copies between them
// (KERNEL_IR 8, column 910B), told from register machines by what the target has, never by its name. Here is the price
// of a candidate text, and which candidates fit. Knows kernels and targets, no graphs.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "ir/kernel.h"
#include "lower/lowering.h"

namespace gaf {

// Vector statements work on tiles of a local memory, not on registers.
inline bool works_on_tiles(const Target& t) { return t.map_dst != Mem::reg; }

inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Tile sizes worth trying for `n` rows or columns in steps of `unit`: some round numbers up to `most`, and each of them
// balanced, so that the last tile is not a sliver.
std::vector<int64_t> tile_sizes(int64_t n, int64_t unit, int64_t most);

// How the pipes of a candidate overlap: what the analysis leaves to whoever wrote the text.
struct Overlap {
  double steps = 1;          // loads of one par iteration that follow each other through a ring
  bool stores_wait = false;  // the accumulator has one slot: computing waits for the store
};
struct Candidate {
  kir::Kernel kernel;
  double us = 0;                // predicted: the busiest pipe or memory, and the first load and last store
  std::map<Mem, int64_t> peak;  // bytes of each memory
};
// Prices the legalised text on all cores.
Candidate price_candidate(kir::Kernel k, const Target& t, const Overlap& o);
// Memories that fusion fills (ub, l1) up to `share` of their size, those of `mma` wholly.
bool fits(const Candidate& c, const Target& t, double share);
// The memory that the candidate overfills most, for messages: "needs 200.0 KiB of ub, there are 184.0 KiB".
std::string overfill(const Candidate& c, const Target& t);

// Rectangle rows x columns of a 2-D parameter.
inline kir::Ref block(int buf, Expr r, Expr nr, Expr c, Expr nc) {
  return kir::Builder::at(buf, {{std::move(r), std::move(nr), 1}, {std::move(c), std::move(nc), 1}});
}
// Extent of tile number i of size `tile` over n: the size, or what is left.
Expr tile_extent(const Expr& i, int64_t tile, int64_t n);

// Dims as numbers; nothing if one is free.
std::optional<std::vector<int64_t>> static_dims(const Dims& d);

// Templates for such targets.
Attempt lower_tiled_row(const Graph& fn, const Target& t);
Attempt lower_tiled_contraction(const Graph& fn, const Target& t);

}  // namespace gaf
