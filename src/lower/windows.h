// Loops of kernels that slide a window over channels-last data with channels in the vector lanes (depthwise
// convolution, pooling): a run of output pixels is one register tile where no tap leaves the input, single pixels with
// clipped taps elsewhere. Knows windows and tiles; what a tap computes is the caller's.
#pragma once
#include <functional>

#include "lower/anchor.h"
#include "lower/window3.h"

namespace gaf {

struct Taps {
  std::array<Expr, 3> first, end;  // taps inside the input, per spatial dim
};
struct WindowOps {
  double start = 0;  // initial value of the accumulator
  // acc <- acc and the tap (kd, kh, kw) of the pixels x; channels are those of the data
  std::function<void(const kir::Ref& acc, const kir::Ref& x, const std::array<Expr, 3>& tap,
                     const kir::Slice& channels)>
      tap;
  // after the last tap of output position `at`; `taps` are those that were taken
  std::function<void(const kir::Ref& acc, const std::array<Expr, 3>& at, const Taps& taps)> end;
};
// Writes the whole kernel; x is [N, D, H, W, C] with unit stride in C, the space five_space's.
void slide(Lowering& l, uint32_t anchor, const Space& space, const Window3& w, const Access& x, const WindowOps& ops);

}  // namespace gaf
