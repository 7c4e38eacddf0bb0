// 3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3): a 4x4 square of input gives a 2x2 square of outputs by 16
// products a channel pair instead of 36. For each of the 16 places in the square, the products of all squares are one
// matrix product. Sums and differences come before and behind: the error stays within a few roundings of the direct
// sum's. Needs sizes that are numbers; borders and odd sizes are cut when results are stored.
#pragma once
#include "lower/window3.h"

namespace gaf {

struct WinogradConv {
  uint32_t anchor;  // the Conv
  const Window3& w;
  const Access& x;     // the input as [N, D, H, W, C]
  const Space& space;  // of the result, five dims
  int64_t in, out;     // channels; one group
};

// Writes it, if it can be written this way and that is faster than summing the nine taps; says whether it did.
bool emit_winograd(Lowering& l, const WinogradConv& c);

}  // namespace gaf
