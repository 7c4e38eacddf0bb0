// Convolutions. Weights are [O, I/group, k...] (ConvTranspose [I, O/group, k...]) in every layout; data is [N, C,
// spatial...] or, with layout="NHWC", [N, spatial..., C]. Evaluation runs channels-first with the last spatial dim
// innermost.
#include <fmt/format.h>

#include "ops/rows.h"
#include "ops/window.h"

namespace gaf {

namespace {

void infer_conv(InferContext& c) {
  need_same_dtype(c);
  const Type &x = c.arg(0), &w = c.arg(1);
  if (x.dims.size() < 3)
    c.fail("GAF3101",
           fmt::format("input of rank {}; batch, channels and spatial dimensions are needed", x.dims.size()));
  need_rank(c, 1, x.dims.size());
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < w.dims.size(); i++) {
    if (!w.dims[i].is_num()) c.fail("GAF3101", "the size of the kernel is not known");
    kernel.push_back(w.dims[i].num());
  }
  if (c.node.attrs.contains("kernel_shape") && attr_ints(c.node, "kernel_shape") != kernel)
    c.fail("GAF3101", "kernel_shape differs from the weights");
  const Dim channels = channel_dim(c.node, x.dims);
  const int64_t group = attr_int(c.node, "group", 1);
  if (group < 1) c.fail("GAF3101", fmt::format("group={}", group));
  if (channels.is_num() && w.dims[1].is_num() && channels.num() != w.dims[1].num() * group)
    c.fail("GAF3101", fmt::format("input has {} channels, the weights take {} in {} groups", channels.num(),
                                  w.dims[1].num() * group, group));
  if (w.dims[0].is_num() && w.dims[0].num() % group)
    c.fail("GAF3101", fmt::format("{} output channels in {} groups", w.dims[0].num(), group));
  need_vector(c, 2, w.dims[0]);
  const Window win = window_of(c.node, spatial_dims(c.node, x.dims), kernel, false);
  c.types = {{x.dtype, with_spatial(c.node, x.dims[0], w.dims[0], win.out)}};
}

Ints spatial_of(const Tensor& t) { return Ints(t.dims.begin() + 2, t.dims.end()); }

// Output indices o of one dim for which o * stride + offset is inside [0, size).
std::pair<int64_t, int64_t> inside(int64_t offset, int64_t stride, int64_t size, int64_t outs) {
  int64_t lo = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  int64_t hi = offset >= size ? 0 : (size - 1 - offset) / stride + 1;
  return {lo, std::max(lo, std::min(hi, outs))};
}

// Spatial dims of one point tell nothing, and a long innermost dim is what makes the loops fast.
void drop_points(Ints& in, Ints& kernel, FixedWindow& w) {
  for (size_t d = in.size(); d-- > 0 && in.size() > 1;) {
    if (in[d] != 1 || kernel[d] != 1 || w.out[d] != 1 || w.begin[d] != 0) continue;
    for (Ints* v : {&in, &kernel, &w.kernel, &w.strides, &w.dilations, &w.begin, &w.out})
      v->erase(v->begin() + static_cast<ptrdiff_t>(d));
  }
}

void eval_conv(EvalContext& c) {
  Tensor x = arg(c, 0);
  if (channels_last(c.node)) x = transposed(x, channels_first_perm(x.dims.size()));
  const Tensor& w = arg(c, 1);
  Ints in = spatial_of(x), kernel = spatial_of(w);
  FixedWindow win = fixed_window(c.node, in, kernel, false);
  Ints dims{x.dims[0], w.dims[0]};
  dims.insert(dims.end(), win.out.begin(), win.out.end());
  drop_points(in, kernel, win);
  const size_t last = in.size() - 1;
  const int64_t batch = x.dims[0], channels = x.dims[1], outs = w.dims[0], per_group = w.dims[1];
  const int64_t group = attr_int(c.node, "group", 1);
  if (channels != per_group * group)
    fail(c, "GAF3101", fmt::format("input has {} channels, the weights take {}", channels, per_group * group));
  const int64_t in_size = numel(in), out_size = numel(win.out), taps = numel(kernel), width = win.out[last];
  const std::vector<double> data = elements<double>(x), weights = elements<double>(w);
  const std::vector<double> bias =
      has(c, 2) ? elements<double>(arg_of(c, 2, outs)) : std::vector<double>(static_cast<size_t>(outs), 0.0);
  std::vector<double> out(static_cast<size_t>(batch * outs * out_size));
  const Ints in_strides = strides_of(in);
  const Ints lines(win.out.begin(), win.out.end() - 1), outer_kernel(kernel.begin(), kernel.end() - 1);
  const Ints line_index = strides_of(lines), tap_index = strides_of(outer_kernel);
  for (int64_t b = 0; b < batch; b++)
    for (int64_t o = 0; o < outs; o++) {
      double* plane = out.data() + (b * outs + o) * out_size;
      std::fill(plane, plane + out_size, bias[static_cast<size_t>(o)]);
      const int64_t first = o / (outs / group) * per_group;
      for (int64_t i = 0; i < per_group; i++) {
        const double* source = data.data() + (b * channels + first + i) * in_size;
        const double* tap_weights = weights.data() + (o * per_group + i) * taps;
        for (int64_t line = 0; line < numel(lines); line++)
          for (int64_t tap = 0; tap < numel(outer_kernel); tap++) {
            int64_t at = 0;
            bool hit = true;
            for (size_t d = 0; d < last && hit; d++) {
              const int64_t y = line / line_index[d] % lines[d], k = tap / tap_index[d] % outer_kernel[d];
              const int64_t pos = y * win.strides[d] - win.begin[d] + k * win.dilations[d];
              hit = pos >= 0 && pos < in[d];
              at += pos * in_strides[d];
            }
            if (!hit) continue;
            for (int64_t k = 0; k < kernel[last]; k++) {
              const double f = tap_weights[tap * kernel[last] + k];
              const int64_t offset = k * win.dilations[last] - win.begin[last], stride = win.strides[last];
              const auto [lo, hi] = inside(offset, stride, in[last], width);
              double* acc = plane + line * width;
              const double* from = source + at + offset;
              if (stride == 1) {
                for (int64_t p = lo; p < hi; p++) acc[p] += f * from[p];
              } else {
                for (int64_t p = lo; p < hi; p++) acc[p] += f * from[p * stride];
              }
            }
          }
      }
    }
  Tensor y = tensor_of(x.dtype, dims, out);
  c.results = {channels_last(c.node) ? transposed(y, channels_last_perm(dims.size())) : y};
}

// ---- ConvTranspose: out = stride * (in - 1) + output_padding + reach - pads, or output_shape ----

struct Deconv {
  std::vector<int64_t> kernel, strides, dilations;
  Dims begin, out;
};

Deconv deconv_of(const Node& n, const Dims& spatial, std::vector<int64_t> kernel) {
  const size_t rank = spatial.size();
  Deconv d{std::move(kernel), attr_ints(n, "strides", Ints(rank, 1)), attr_ints(n, "dilations", Ints(rank, 1)), {}, {}};
  const Ints extra = attr_ints(n, "output_padding", Ints(rank, 0)), pads = attr_ints(n, "pads", Ints(2 * rank, 0));
  Ints wanted = attr_ints(n, "output_shape");
  if (wanted.size() > rank) wanted.erase(wanted.begin(), wanted.end() - static_cast<ptrdiff_t>(rank));
  const std::string auto_pad = attr_str(n, "auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (d.kernel.size() != rank || d.strides.size() != rank || d.dilations.size() != rank || extra.size() != rank ||
      pads.size() != 2 * rank)
    throw UserError("GAF3101", fmt::format("strides, dilations or pads do not fit {} spatial dimensions", rank))
        .at(n.name, n.op);
  for (size_t i = 0; i < rank; i++) {
    if (d.kernel[i] < 1 || d.strides[i] < 1 || d.dilations[i] < 1)
      throw UserError("GAF3101", "kernel_shape, strides and dilations must be positive").at(n.name, n.op);
    const Expr full =
        Expr(d.strides[i]) * (spatial[i] - Expr(1)) + Expr(extra[i] + (d.kernel[i] - 1) * d.dilations[i] + 1);
    if (!wanted.empty() || same) {
      const Expr out = wanted.empty() ? spatial[i] * Expr(d.strides[i]) : Expr(wanted[i]);
      const Expr total = max(Expr(0), full - out), half = floordiv(total, Expr(2));
      d.begin.push_back(auto_pad == "SAME_UPPER" ? half : total - half);
      d.out.push_back(out);
    } else {
      const bool valid = auto_pad == "VALID";
      d.begin.emplace_back(valid ? 0 : pads[i]);
      d.out.push_back(valid ? full : full - Expr(pads[i] + pads[rank + i]));
    }
  }
  return d;
}

void infer_conv_transpose(InferContext& c) {
  need_same_dtype(c);
  const Type &x = c.arg(0), &w = c.arg(1);
  if (x.dims.size() < 3) c.fail("GAF3101", "batch, channels and spatial dimensions are needed");
  need_rank(c, 1, x.dims.size());
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < w.dims.size(); i++) {
    if (!w.dims[i].is_num()) c.fail("GAF3101", "the size of the kernel is not known");
    kernel.push_back(w.dims[i].num());
  }
  const int64_t group = attr_int(c.node, "group", 1);
  const Dim channels = channel_dim(c.node, x.dims);
  if (group < 1 || (channels.is_num() && channels.num() % group))
    c.fail("GAF3101", fmt::format("input channels in {} groups", group));
  if (channels.is_num() && w.dims[0].is_num() && channels != w.dims[0])
    c.fail("GAF3101", fmt::format("input has {} channels, the weights take {}", channels.num(), w.dims[0].num()));
  need_vector(c, 2, w.dims[1] * Expr(group));
  const Deconv d = deconv_of(c.node, spatial_dims(c.node, x.dims), kernel);
  c.types = {{x.dtype, with_spatial(c.node, x.dims[0], w.dims[1] * Expr(attr_int(c.node, "group", 1)), d.out)}};
}

void eval_conv_transpose(EvalContext& c) {
  Tensor x = arg(c, 0);
  if (channels_last(c.node)) x = transposed(x, channels_first_perm(x.dims.size()));
  const Tensor& w = arg(c, 1);
  const Ints in = spatial_of(x), kernel = spatial_of(w);
  if (x.dims[1] != w.dims[0])
    fail(c, "GAF3101", fmt::format("input has {} channels, the weights take {}", x.dims[1], w.dims[0]));
  const Deconv win = deconv_of(c.node, Dims(in.begin(), in.end()), kernel);
  Ints spatial;
  for (const Expr& e : win.out) spatial.push_back(e.num());
  const int64_t group = attr_int(c.node, "group", 1), batch = x.dims[0], channels = x.dims[1], per_group = w.dims[1];
  const int64_t outs = per_group * group, in_size = numel(in), out_size = numel(spatial), taps = numel(kernel);
  const std::vector<double> data = elements<double>(x), weights = elements<double>(w);
  const std::vector<double> bias =
      has(c, 2) ? elements<double>(arg_of(c, 2, outs)) : std::vector<double>(static_cast<size_t>(outs), 0.0);
  std::vector<double> out(static_cast<size_t>(batch * outs * out_size));
  for (size_t i = 0; i < out.size(); i++) out[i] = bias[i / static_cast<size_t>(out_size) % static_cast<size_t>(outs)];
  const Ints in_strides = strides_of(in), out_strides = strides_of(spatial), tap_strides = strides_of(kernel);
  for (int64_t p = 0; p < in_size; p++)
    for (int64_t k = 0; k < taps; k++) {
      int64_t at = 0;
      bool hit = true;
      for (size_t d = 0; d < in.size() && hit; d++) {
        const int64_t pos = p / in_strides[d] % in[d] * win.strides[d] +
                            k / tap_strides[d] % kernel[d] * win.dilations[d] - win.begin[d].num();
        hit = pos >= 0 && pos < spatial[d];
        at += pos * out_strides[d];
      }
      if (!hit) continue;
      for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < channels; i++) {
          const double v = data[static_cast<size_t>((b * channels + i) * in_size + p)];
          const int64_t first = i / (channels / group) * per_group;
          for (int64_t o = 0; o < per_group; o++)
            out[static_cast<size_t>((b * outs + first + o) * out_size + at)] +=
                v * weights[static_cast<size_t>((i * per_group + o) * taps + k)];
        }
    }
  Ints dims{batch, outs};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  Tensor y = tensor_of(x.dtype, dims, out);
  c.results = {channels_last(c.node) ? transposed(y, channels_last_perm(dims.size())) : y};
}

const OpRow kRows[] = {
    {.name = "Conv",
     .friendly = "Conv",
     .kind = OpKind::conv,
     .min_args = 2,
     .max_args = 3,
     .infer = infer_conv,
     .eval = eval_conv,
     .ulp = 32,
     .cheap = false},
    {.name = "ConvTranspose",
     .friendly = "ConvTranspose",
     .kind = OpKind::conv,
     .min_args = 2,
     .max_args = 3,
     .infer = infer_conv_transpose,
     .eval = eval_conv_transpose,
     .ulp = 32,
     .cheap = false},
};

}  // namespace

std::span<const OpRow> conv_rows() { return kRows; }

}  // namespace gaf
