// What the text says of each tile's contents at a point: its valid extents, and whether anything was written. Extents
// are decided by the text, never by run-time values: an extent that is the number 1 broadcasts, any other does not.
#pragma once
#include <span>
#include <vector>

#include "ir/kernel.h"

namespace gaf::kir {

struct Shape {
  Expr rows = 1, cols = 1;
  bool known = true;  // false: paths to this point disagree
};

struct TileState {
  bool live = false;     // inside the block that declares it
  bool written = false;  // something may have been written
  Shape valid;
  int depth = 0;  // blocks around the declaration
};

// Rows and columns of a reference as read; a whole tile has its valid extents.
Shape shape_of(const Kernel& k, std::span<const TileState> tiles, const Ref& r);
// Extents of what the statement writes. A dimension that no operand gives is the destination's own.
Shape result_shape(const Kernel& k, std::span<const TileState> tiles, const Stmt& s);
// The same after the statement, loops and branches included.
void apply(const Kernel& k, const Stmt& s, std::vector<TileState>& tiles);
// States at the head of a loop body, of the first or of any later iteration.
void enter_loop(const Kernel& k, const For& f, std::vector<TileState>& tiles);
// `other` is another path to the same point.
void merge(std::vector<TileState>& tiles, const std::vector<TileState>& other);
// Extents over symbols that have gone out of scope are not known any more.
void drop_symbols(const For& f, std::vector<TileState>& tiles);

}  // namespace gaf::kir
