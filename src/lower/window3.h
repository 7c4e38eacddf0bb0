// The sliding window of a convolution or pooling node, always with three spatial dims (missing ones are 1, in front),
// so that 1-D, 2-D and 3-D are one template. Reads attributes and shapes; emits nothing.
#pragma once
#include <array>
#include <optional>

#include "lower/lowering.h"
#include "ops/window.h"

namespace gaf {

struct Window3 {
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<Expr, 3> before{0, 0, 0}, after{0, 0, 0};  // SAME padding of a free size is an expression of it
  std::array<Expr, 3> in{1, 1, 1}, out{1, 1, 1};
  size_t dims = 2;  // spatial dims of the node
  bool channels_last = true;

  // First input position of output position o (may be negative: padding).
  Expr first(size_t d, const Expr& o) const { return o * stride[d] - before[d]; }
  // Input positions that n outputs in a row touch.
  int64_t reach(size_t d, int64_t n) const { return (n - 1) * stride[d] + (kernel[d] - 1) * dilation[d] + 1; }
  bool padded(size_t d) const;  // does any window leave the input?
  bool pointwise() const;       // 1x1, stride 1, no padding
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// Nothing if the node has no such window: other than 1 to 3 spatial dims, or a kernel of unknown size.
std::optional<Window3> window3_of(const Graph& g, const Node& n);

// Data dims as [N, D, H, W, C] (channels last) or [N, C, D, H, W].
Dims five(const Dims& dims, const Window3& w);
// The space of the node's result with those five dims.
Space five_space(const Dims& result, const Window3& w);

}  // namespace gaf
