// Loops that the templates of this folder share: column loops with their tails, and loop nests cut into units of work
// for the threads. Knows extents and how much work a unit should hold; knows nothing of graphs or values.
#pragma once
#include <functional>

#include "lower/lowering.h"

namespace gaf {

inline constexpr int64_t kUnitElements = 4096;  // 16 KiB of f32: below this a unit of work is not worth handing out

// Columns of a vector statement: `lanes` where that leaves a tail of less than a tile, else a divisor of n near it.
int64_t column_step(const Expr& n, int64_t lanes, int64_t vector);

// Lanes of a row kernel over values of these widths.
int64_t row_width(const Target& t, int widest_bytes);

// body(slice, capacity) for tiles that cover 0..n. Tiles are whole except the last: of its own width where n is a
// number, cut by an extent where it is not.
using ColumnBody = std::function<void(const kir::Slice& cols, int64_t capacity)>;
void columns(Lowering& l, const Expr& n, int64_t step, const ColumnBody& body);
// The same for the tiles of block u of `block` columns (a multiple of step).
void column_block(Lowering& l, const Expr& n, int64_t step, int64_t block, const Expr& u, const ColumnBody& body);

// A nest over 0..extent of each axis (outermost first) whose innermost body does `work` elements. Axes are given to the
// threads as long as a unit keeps about kUnitElements; what is left runs in sequence. body gets one index per axis.
void nest(Lowering& l, const Dims& extents, int64_t work, const std::function<void(std::vector<Expr>)>& body);

}  // namespace gaf
