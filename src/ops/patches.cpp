// Ops around windows that are not pools or convolutions: LRN, MaxUnpool, Col2Im, CenterCropPad, DeformConv; and Det.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/eval_util.h"
#include "ops/expand.h"
#include "ops/infer_util.h"
#include "ops/rows.h"
#include "ops/window.h"

namespace gaf {

namespace {

// ---- LRN: x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta ----

void infer_lrn(InferContext& c) {
  if (c.arg(0).dims.size() < 2 || attr_int(c.node, "size", 1) < 1)
    c.fail("GAF3101", "channels and a positive size are needed");
  c.types = {c.arg(0)};
}

void eval_lrn(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const int64_t size = attr_int(c.node, "size", 1), channels = x.dims[1],
                inner = numel(Ints(x.dims.begin() + 2, x.dims.end()));
  const double alpha = attr_float(c.node, "alpha", 1e-4), beta = attr_float(c.node, "beta", 0.75),
               bias = attr_float(c.node, "bias", 1);
  const std::vector<double> v = elements<double>(x);
  std::vector<double> out(v.size());
  for (size_t i = 0; i < v.size(); i++) {
    const auto at = static_cast<int64_t>(i);
    const int64_t ch = at / inner % channels, lo = std::max<int64_t>(0, ch - (size - 1) / 2),
                  hi = std::min(channels - 1, ch + size / 2);
    double sum = 0;
    for (int64_t k = lo; k <= hi; k++) sum += std::pow(v[static_cast<size_t>(at + (k - ch) * inner)], 2);
    out[i] = v[i] / std::pow(bias + alpha / static_cast<double>(size) * sum, beta);
  }
  c.results = {tensor_of(x.dtype, x.dims, out)};
}

// ---- MaxUnpool ----

Dims unpooled(const Node& n, const Dims& x) {
  const Ints kernel = attr_ints(n, "kernel_shape");
  const size_t rank = kernel.size();
  const Ints strides = attr_ints(n, "strides", Ints(rank, 1)), pads = attr_ints(n, "pads", Ints(2 * rank, 0));
  if (x.size() != rank + 2 || strides.size() != rank || pads.size() != 2 * rank)
    throw UserError("GAF3101", "kernel_shape, strides or pads do not fit the input").at(n.name, n.op);
  Dims out{x[0], x[1]};
  for (size_t i = 0; i < rank; i++)
    out.push_back((x[i + 2] - Expr(1)) * Expr(strides[i]) + Expr(kernel[i] - pads[i] - pads[rank + i]));
  return out;
}
void infer_max_unpool(InferContext& c) {
  Dims out = unpooled(c.node, c.arg(0).dims);
  if (c.has_arg(2)) out = c.value(2) ? *c.value(2) : fresh_dims(c, out.size());
  c.types = {{c.arg(0).dtype, out}};
}
void eval_max_unpool(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  Ints natural;  // the size that the indices are about
  for (const Expr& e : unpooled(c.node, Dims(x.dims.begin(), x.dims.end()))) natural.push_back(e.num());
  const Ints dims = has(c, 2) ? elements<int64_t>(arg(c, 2)) : natural;
  if (dims.size() != natural.size()) fail(c, "GAF3101", "output_shape does not have the rank of the input");
  const Ints at = elements<int64_t>(arg_of(c, 1, x.numel()));
  const std::vector<double> v = elements<double>(x);
  std::vector<double> out(static_cast<size_t>(numel(dims)), 0.0);
  const Ints from = strides_of(natural), to = strides_of(dims);
  for (size_t i = 0; i < v.size(); i++) {
    if (at[i] < 0 || at[i] >= numel(natural))
      fail(c, "GAF6001", fmt::format("index {} out of range [0,{})", at[i], numel(natural)));
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); d++) {
      const int64_t p = at[i] / from[d] % natural[d];
      if (p >= dims[d]) fail(c, "GAF6001", fmt::format("index {} out of range [0,{})", p, dims[d]));
      offset += p * to[d];
    }
    out[static_cast<size_t>(offset)] = v[i];
  }
  c.results = {tensor_of(x.dtype, dims, out)};
}

// ---- Col2Im ----

void infer_col2im(InferContext& c) {
  const auto image = known_ints(c, 1), block = known_ints(c, 2);
  const auto rank = known_rank(c, 1);
  if (!rank) c.fail("GAF3101", "the rank of the image is only known at run time");
  Dims out{c.arg(0).dims[0]};
  out.push_back(block ? floordiv(c.arg(0).dims[1], Expr(numel(*block))) : fresh_dim(c));
  for (size_t i = 0; i < static_cast<size_t>(*rank); i++) out.push_back(image ? Expr((*image)[i]) : fresh_dim(c));
  c.types = {{c.arg(0).dtype, out}};
}
void eval_col2im(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Ints image = elements<int64_t>(arg(c, 1)), block = elements<int64_t>(arg(c, 2));
  if (image.size() != block.size() || x.dims.size() != 3 || numel(block) < 1 || x.dims[1] % numel(block))
    fail(c, "GAF3101", "image_shape and block_shape do not fit the input");
  const FixedWindow w = fixed_window(c.node, image, block, false);
  const int64_t taps = numel(block), channels = x.dims[1] / taps, places = x.dims[2], plane = numel(image);
  if (places != numel(w.out)) fail(c, "GAF3101", fmt::format("{} columns, the windows make {}", places, numel(w.out)));
  const std::vector<double> v = elements<double>(x);
  std::vector<double> out(static_cast<size_t>(x.dims[0] * channels * plane), 0.0);
  const Ints image_strides = strides_of(image), block_strides = strides_of(block), out_strides = strides_of(w.out);
  for (int64_t p = 0; p < places; p++)
    for (int64_t k = 0; k < taps; k++) {
      int64_t at = 0;
      bool hit = true;
      for (size_t d = 0; d < image.size(); d++) {
        const int64_t pos = p / out_strides[d] % w.out[d] * w.strides[d] - w.begin[d] +
                            k / block_strides[d] % block[d] * w.dilations[d];
        hit = hit && pos >= 0 && pos < image[d];
        at += pos * image_strides[d];
      }
      for (int64_t b = 0; b < x.dims[0] * channels && hit; b++)
        out[static_cast<size_t>(b * plane + at)] += v[static_cast<size_t>((b * taps + k) * places + p)];
    }
  Ints dims{x.dims[0], channels};
  dims.insert(dims.end(), image.begin(), image.end());
  c.results = {tensor_of(x.dtype, dims, out)};
}

// ---- CenterCropPad ----

void infer_centre(InferContext& c) {
  Type out = c.arg(0);
  const auto& shape = c.value(1);
  const Ints axes = attr_ints(c.node, "axes", axes_from(0, out.dims.size()));
  for (size_t i = 0; i < axes.size(); i++)
    out.dims[static_cast<size_t>(normal_axis(c, axes[i], out.dims.size()))] =
        shape && i < shape->size() ? (*shape)[i] : fresh_dim(c);
  c.types = {out};
}
void eval_centre(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Ints shape = elements<int64_t>(arg(c, 1)), axes = attr_ints(c.node, "axes", axes_from(0, x.dims.size()));
  if (shape.size() != axes.size()) fail(c, "GAF3101", fmt::format("{} sizes for {} axes", shape.size(), axes.size()));
  Ints dims = x.dims, common = x.dims;
  int64_t from = 0, to = 0;
  const Ints in_strides = strides_of(x.dims);
  for (size_t i = 0; i < axes.size(); i++) dims[static_cast<size_t>(normal_axis(c, axes[i], x.dims.size()))] = shape[i];
  const Ints out_strides = strides_of(dims);
  for (size_t d = 0; d < dims.size(); d++) {
    common[d] = std::min(dims[d], x.dims[d]);
    from += (x.dims[d] - common[d]) / 2 * in_strides[d];
    to += (dims[d] - common[d]) / 2 * out_strides[d];
  }
  Tensor out = Tensor::make(x.dtype, dims);
  strided_store(out, strided_copy(x, common, in_strides, from), out_strides, to);
  c.results = {out};
}

// ---- DeformConv: a convolution whose taps are moved by `offset` and weighed by `mask`, 2-D ----

void infer_deform_conv(InferContext& c) {
  const Type &x = c.arg(0), &w = c.arg(1);
  need_rank(c, 0, 4);
  need_rank(c, 1, 4);
  if (!w.dims[2].is_num() || !w.dims[3].is_num()) c.fail("GAF3101", "the size of the kernel is not known");
  const Window win = window_of(c.node, {x.dims[2], x.dims[3]}, {w.dims[2].num(), w.dims[3].num()}, false);
  c.types = {{x.dtype, {x.dims[0], w.dims[0], win.out[0], win.out[1]}}};
}

double bilinear_or_zero(const double* plane, int64_t h, int64_t w, double y, double x) {
  const auto y0 = static_cast<int64_t>(std::floor(y)), x0 = static_cast<int64_t>(std::floor(x));
  double sum = 0;
  for (int64_t dy = 0; dy < 2; dy++)
    for (int64_t dx = 0; dx < 2; dx++) {
      const int64_t i = y0 + dy, j = x0 + dx;
      if (i < 0 || i >= h || j < 0 || j >= w) continue;
      sum +=
          (1 - std::fabs(y - static_cast<double>(i))) * (1 - std::fabs(x - static_cast<double>(j))) * plane[i * w + j];
    }
  return sum;
}

void eval_deform_conv(EvalContext& c) {
  const Tensor &x = arg(c, 0), &w = arg(c, 1), &offset = arg(c, 2);
  const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3], outs = w.dims[0], per_group = w.dims[1],
                kh = w.dims[2], kw = w.dims[3];
  const int64_t group = attr_int(c.node, "group", 1), offset_group = attr_int(c.node, "offset_group", 1),
                taps = kh * kw;
  const FixedWindow win = fixed_window(c.node, {height, width}, {kh, kw}, false);
  const int64_t oh = win.out[0], ow = win.out[1];
  if (group < 1 || offset_group < 1 || channels % offset_group || outs % group || per_group * group != channels)
    fail(c, "GAF3101", "the groups do not divide the channels");
  const int64_t places = x.dims[0] * offset_group * taps * oh * ow;
  arg_of(c, 2, 2 * places);
  if (has(c, 3)) arg_of(c, 3, outs);
  if (has(c, 4)) arg_of(c, 4, places);
  const auto xs = elements<double>(x), ws = elements<double>(w), moves = elements<double>(offset);
  const auto bias = has(c, 3) ? elements<double>(arg(c, 3)) : std::vector<double>(static_cast<size_t>(outs), 0.0);
  const auto mask = has(c, 4) ? elements<double>(arg(c, 4)) : std::vector<double>{};
  std::vector<double> out;
  for (int64_t b = 0; b < x.dims[0]; b++)
    for (int64_t o = 0; o < outs; o++)
      for (int64_t y = 0; y < oh; y++)
        for (int64_t q = 0; q < ow; q++) {
          double acc = bias[static_cast<size_t>(o)];
          for (int64_t i = 0; i < per_group; i++) {
            const int64_t ch = o / (outs / group) * per_group + i, og = ch / (channels / offset_group);
            for (int64_t k = 0; k < taps; k++) {
              auto moved = [&](int64_t axis) {
                return moves[static_cast<size_t>((((b * offset_group + og) * taps + k) * 2 + axis) * oh * ow + y * ow +
                                                 q)];
              };
              const double py =
                  static_cast<double>(y * win.strides[0] - win.begin[0] + k / kw * win.dilations[0]) + moved(0);
              const double px =
                  static_cast<double>(q * win.strides[1] - win.begin[1] + k % kw * win.dilations[1]) + moved(1);
              const double m =
                  mask.empty() ? 1
                               : mask[static_cast<size_t>(((b * offset_group + og) * taps + k) * oh * ow + y * ow + q)];
              acc += m * ws[static_cast<size_t>((o * per_group + i) * taps + k)] *
                     bilinear_or_zero(xs.data() + (b * channels + ch) * height * width, height, width, py, px);
            }
          }
          out.push_back(acc);
        }
  c.results = {tensor_of(x.dtype, {x.dims[0], outs, oh, ow}, out)};
}

// ---- Det ----

void infer_det(InferContext& c) {
  const Dims& d = c.arg(0).dims;
  if (d.size() < 2) c.fail("GAF3101", "a matrix is needed");
  c.types = {{c.arg(0).dtype, Dims(d.begin(), d.end() - 2)}};
}
void eval_det(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const int64_t n = x.dims.back();
  if (x.dims[x.dims.size() - 2] != n) fail(c, "GAF3101", "the matrix is not square");
  std::vector<double> all = elements<double>(x), out;
  for (int64_t m = 0; n && m < x.numel() / (n * n); m++) {
    double* a = all.data() + m * n * n;
    double det = 1;
    for (int64_t i = 0; i < n; i++) {  // elimination with the largest pivot
      int64_t best = i;
      for (int64_t r = i + 1; r < n; r++)
        if (std::fabs(a[r * n + i]) > std::fabs(a[best * n + i])) best = r;
      if (best != i) {
        det = -det;
        for (int64_t k = 0; k < n; k++) std::swap(a[i * n + k], a[best * n + k]);
      }
      det *= a[i * n + i];
      for (int64_t r = i + 1; r < n && a[i * n + i] != 0; r++) {
        const double f = a[r * n + i] / a[i * n + i];
        for (int64_t k = i; k < n; k++) a[r * n + k] -= f * a[i * n + k];
      }
    }
    out.push_back(det);
  }
  c.results = {tensor_of(x.dtype, Ints(x.dims.begin(), x.dims.end() - 2), out)};
}

OpRow other(std::string_view name, int min_args, int max_args, void (*infer)(InferContext&),
            void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = min_args,
          .max_args = max_args,
          .infer = infer,
          .eval = eval,
          .ulp = 64,
          .cheap = false};
}

const OpRow kRows[] = {
    other("LRN", 1, 1, infer_lrn, eval_lrn),
    other("MaxUnpool", 2, 3, infer_max_unpool, eval_max_unpool),
    other("Col2Im", 3, 3, infer_col2im, eval_col2im),
    other("CenterCropPad", 2, 2, infer_centre, eval_centre),
    other("DeformConv", 3, 5, infer_deform_conv, eval_deform_conv),
    other("Det", 1, 1, infer_det, eval_det),
};

}  // namespace

std::span<const OpRow> patch_rows() { return kRows; }

}  // namespace gaf
