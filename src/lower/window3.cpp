// Attributes of convolution and pooling nodes as a three-dimensional window. See window3.h.
#include "lower/window3.h"

#include <algorithm>

namespace gaf {

bool Window3::padded(size_t d) const {
  if (!before[d].is(0)) return true;
  if (!in[d].is_num() || !out[d].is_num()) return !after[d].is(0);
  return reach(d, out[d].num()) > in[d].num();
}

bool Window3::pointwise() const {
  for (size_t d = 0; d < 3; d++)
    if (kernel[d] != 1 || stride[d] != 1 || !before[d].is(0) || !after[d].is(0)) return false;
  return true;
}

std::optional<Window3> window3_of(const Graph& g, const Node& n) {
  Window3 w;
  const Dims& data = g.type(n.args[0]).dims;
  if (data.size() < 3 || data.size() > 5) return std::nullopt;
  w.dims = data.size() - 2;
  w.channels_last = channels_last(n);
  std::vector<int64_t> kernel = attr_ints(n, "kernel_shape");
  if (kernel.empty() && n.args.size() > 1) {
    const Dims& weights = g.type(n.args[1]).dims;
    for (size_t d = 2; d < weights.size(); d++) {
      if (!weights[d].is_num()) return std::nullopt;
      kernel.push_back(weights[d].num());
    }
  }
  if (kernel.size() != w.dims) return std::nullopt;
  const Dims in = spatial_dims(n, data), out = spatial_dims(n, n.types[0].dims);
  const Window own = window_of(n, in, kernel, attr_int(n, "ceil_mode", 0) != 0);
  for (size_t i = 0; i < w.dims; i++) {
    size_t d = 3 - w.dims + i;
    w.kernel[d] = own.kernel[i], w.stride[d] = own.strides[i], w.dilation[d] = own.dilations[i];
    w.before[d] = own.pads[i], w.after[d] = own.pads[i + w.dims];
    w.in[d] = in[i], w.out[d] = out[i];
  }
  return w;
}

Dims five(const Dims& dims, const Window3& w) {
  Dims d = dims;
  d.insert(d.begin() + (w.channels_last ? 1 : 2), 3 - w.dims, Expr(1));
  return d;
}

Space five_space(const Dims& result, const Window3& w) {
  Space s;
  s.dims = result;
  s.merge.assign(result.size(), 1);
  s.merge.insert(s.merge.begin() + (w.channels_last ? 1 : 2), 3 - w.dims, 0);
  return s;
}

}  // namespace gaf
