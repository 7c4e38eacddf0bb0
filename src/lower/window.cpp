// Attributes of convolution and pooling nodes as a three-dimensional window. See window.h.
#include "lower/window.h"

#include <algorithm>

namespace gaf {

bool Window::padded(size_t d) const {
  if (before[d] > 0) return true;
  if (!in[d].is_num() || !out[d].is_num()) return after[d] > 0;
  return reach(d, out[d].num()) > in[d].num();
}

bool Window::pointwise() const {
  for (size_t d = 0; d < 3; d++)
    if (kernel[d] != 1 || stride[d] != 1 || before[d] || after[d]) return false;
  return true;
}

std::optional<Window> window_of(const Graph& g, const Node& n) {
  Window w;
  const Dims& data = g.type(n.args[0]).dims;
  if (data.size() < 3 || data.size() > 5) return std::nullopt;
  w.dims = data.size() - 2;
  w.channels_last = attr_str(n, "layout", "NCHW") == "NHWC";
  std::vector<int64_t> kernel = attr_ints(n, "kernel_shape");
  if (kernel.empty() && n.args.size() > 1) {
    const Dims& weights = g.type(n.args[1]).dims;
    for (size_t d = 2; d < weights.size(); d++) {
      if (!weights[d].is_num()) return std::nullopt;
      kernel.push_back(weights[d].num());
    }
  }
  if (kernel.size() != w.dims) return std::nullopt;
  std::vector<int64_t> one(w.dims, 1), zero(2 * w.dims, 0);
  std::vector<int64_t> stride = attr_ints(n, "strides", one), dilation = attr_ints(n, "dilations", one), pads = attr_ints(n, "pads", zero);
  std::string fill = attr_str(n, "auto_pad", "NOTSET");
  const Dims& result = n.types[0].dims;
  size_t lead = 3 - w.dims, at = w.channels_last ? 1 : 2;
  for (size_t i = 0; i < w.dims; i++) {
    size_t d = lead + i;
    w.kernel[d] = kernel[i], w.stride[d] = stride[i], w.dilation[d] = dilation[i];
    w.in[d] = data[at + i], w.out[d] = result[at + i];
    if (fill == "NOTSET" || fill.empty()) {
      w.before[d] = pads[i], w.after[d] = pads[i + w.dims];
    } else if (fill != "VALID") {
      if (!w.in[d].is_num() || !w.out[d].is_num()) return std::nullopt;
      int64_t total = std::max<int64_t>(0, w.reach(d, w.out[d].num()) - w.in[d].num());
      w.before[d] = fill == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.after[d] = total - w.before[d];
    }
  }
  return w;
}

Dims five(const Dims& dims, const Window& w) {
  Dims d = dims;
  d.insert(d.begin() + (w.channels_last ? 1 : 2), 3 - w.dims, Expr(1));
  return d;
}

Space five_space(const Dims& result, const Window& w) {
  Space s;
  s.dims = result;
  s.merge.assign(result.size(), 1);
  s.merge.insert(s.merge.begin() + (w.channels_last ? 1 : 2), 3 - w.dims, 0);
  return s;
}

}  // namespace gaf
