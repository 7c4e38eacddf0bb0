// See window.h. Formulas: ONNX Conv, MaxPool, AveragePool.
#include "ops/window.h"

#include <fmt/format.h>

namespace gaf {

Dims spatial_dims(const Node& n, const Dims& data) {
  return channels_last(n) ? Dims(data.begin() + 1, data.end() - 1) : Dims(data.begin() + 2, data.end());
}

Dim channel_dim(const Node& n, const Dims& data) { return channels_last(n) ? data.back() : data[1]; }

Dims with_spatial(const Node& n, Dim batch, Dim channels, const Dims& spatial) {
  Dims out{batch};
  if (!channels_last(n)) out.push_back(channels);
  out.insert(out.end(), spatial.begin(), spatial.end());
  if (channels_last(n)) out.push_back(channels);
  return out;
}

static constexpr int64_t kMost = 1 << 20;  // of one dim of a window

Window window_of(const Node& n, const Dims& spatial, std::vector<int64_t> kernel, bool ceil) {
  const size_t rank = spatial.size();
  auto bad = [&](const std::string& what) { throw UserError("GAF3101", what).at(n.name, n.op); };
  Window w;
  w.kernel = std::move(kernel);
  w.strides = attr_ints(n, "strides", std::vector<int64_t>(rank, 1));
  w.dilations = attr_ints(n, "dilations", std::vector<int64_t>(rank, 1));
  w.pads = n.attrs.contains("pads") ? attr_exprs(n, "pads") : Dims(2 * rank, Expr(0));
  if (w.kernel.size() != rank || w.strides.size() != rank || w.dilations.size() != rank || w.pads.size() != 2 * rank)
    bad(fmt::format("kernel_shape, strides, dilations or pads do not fit {} spatial dimensions", rank));
  for (size_t i = 0; i < rank; i++) {
    if (w.kernel[i] > kMost || w.strides[i] > kMost || w.dilations[i] > kMost)
      bad(fmt::format("kernel_shape, strides or dilations beyond {}", kMost));
    if (w.kernel[i] < 1 || w.strides[i] < 1 || w.dilations[i] < 1)
      bad("kernel_shape, strides and dilations must be positive");
  }
  const std::string auto_pad = attr_str(n, "auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (auto_pad == "VALID") w.pads = Dims(2 * rank, Expr(0));
  for (size_t i = 0; i < rank; i++) {
    const Expr reach((w.kernel[i] - 1) * w.dilations[i] + 1), stride(w.strides[i]);
    if (same) {
      const Expr out = ceildiv(spatial[i], stride);
      const Expr total = max(Expr(0), (out - Expr(1)) * stride + reach - spatial[i]);
      const Expr half = floordiv(total, Expr(2));
      w.pads[i] = auto_pad == "SAME_UPPER" ? half : total - half;
      w.pads[rank + i] = total - w.pads[i];
      w.out.push_back(out);
      continue;
    }
    const Expr room = spatial[i] + w.pads[i] + w.pads[rank + i] - reach;
    if (room.is_num() && room.num() < 0)
      bad(fmt::format("a window of {} does not fit spatial dimension {} with its padding", reach.num(), i));
    Expr out = (ceil ? ceildiv(room, stride) : floordiv(room, stride)) + Expr(1);
    // a window of ceil mode may not start in the padding at the end
    if (ceil) out = min(out, floordiv(spatial[i] + w.pads[i] - Expr(1), stride) + Expr(1));
    w.out.push_back(out);
  }
  return w;
}

FixedWindow fixed_window(const Node& n, const Ints& spatial, Ints kernel, bool ceil) {
  Window w = window_of(n, Dims(spatial.begin(), spatial.end()), std::move(kernel), ceil);
  FixedWindow f{w.kernel, w.strides, w.dilations, {}, {}};
  for (size_t i = 0; i < spatial.size(); i++) {
    GAF_CHECK(w.pads[i].is_num() && w.out[i].is_num()) << "window of '" << n.name << "' is not bound to numbers";
    f.begin.push_back(w.pads[i].num());
    f.out.push_back(w.out[i].num());
  }
  return f;
}

}  // namespace gaf
