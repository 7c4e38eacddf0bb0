// Windows of convolutions and pools: kernel size, strides, dilations and pads of a node, with auto_pad resolved, for
// symbolic sizes (inference) and for numbers (evaluation). Spatial dims are those between batch and channel.
#pragma once
#include <vector>

#include "ops/eval_util.h"
#include "ops/infer_util.h"

namespace gaf {

struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  Dims pads;  // begin of each spatial dim, then end of each
  Dims out;   // spatial dims of the result
};
inline bool channels_last(const Node& n) { return attr_str(n, "layout", "") == "NHWC"; }
// Spatial dims of a data type: between batch and channel by the node's layout.
Dims spatial_dims(const Node& n, const Dims& data);
Dim channel_dim(const Node& n, const Dims& data);
Dims with_spatial(const Node& n, Dim batch, Dim channels, const Dims& spatial);  // in the node's layout

// kernel: from the weights, or attr kernel_shape. `ceil`: pools with ceil_mode. UserError if attributes do not fit.
Window window_of(const Node& n, const Dims& spatial, std::vector<int64_t> kernel, bool ceil);

struct FixedWindow {
  Ints kernel, strides, dilations, begin, out;
};
FixedWindow fixed_window(const Node& n, const Ints& spatial, Ints kernel, bool ceil);

}  // namespace gaf
