// Resize and Upsample: every mode is separable, so each axis gets a table of weighted source positions, applied one
// axis after the other. Formulas: ONNX Resize.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/eval_util.h"
#include "ops/expand.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

struct Spec {
  std::vector<double> scales, roi;  // as given, for `axes`
  std::optional<Dims> sizes;
  Ints axes;
};

std::vector<double> float_list(const Node& n, const char* key) {
  auto it = n.attrs.find(key);
  if (it == n.attrs.end()) return {};
  if (const auto* v = std::get_if<std::vector<double>>(&it->second)) return *v;
  if (const auto* v = std::get_if<std::vector<int64_t>>(&it->second)) return {v->begin(), v->end()};
  throw UserError("GAF3101", fmt::format("attribute '{}' is no list of numbers", key)).at(n.name, n.op);
}

Ints axes_of(const Node& n, size_t rank) {
  Ints axes = attr_ints(n, "axes", axes_from(0, rank));
  for (int64_t& a : axes) {
    if (a < 0) a += static_cast<int64_t>(rank);
    if (a < 0 || a >= static_cast<int64_t>(rank))
      throw UserError("GAF3101", fmt::format("an axis is outside a tensor of rank {}", rank)).at(n.name, n.op);
  }
  return axes;
}

bool old_form(const Node& n, int opset) { return n.op == "Upsample" || opset < 11; }

// ---- sizes ----

// floor(dim * scale), exact for symbolic dims where the scale is a small fraction.
std::optional<Dim> scaled(const Dim& dim, double scale) {
  if (dim.is_num()) return Expr(static_cast<int64_t>(std::floor(static_cast<double>(dim.num()) * scale + 1e-9)));
  for (int64_t q = 1; q <= 64; q++) {
    const double p = scale * static_cast<double>(q);
    if (std::fabs(p - std::round(p)) < 1e-6) return floordiv(dim * Expr(static_cast<int64_t>(std::round(p))), Expr(q));
  }
  return std::nullopt;
}

void infer_resize(InferContext& c) {
  const Type& x = c.arg(0);
  const size_t rank = x.dims.size();
  Type out = x;
  Spec s;
  s.axes = axes_of(c.node, rank);
  s.scales = float_list(c.node, "scales");
  const size_t scales_at = old_form(c.node, c.opset) && c.args.size() == 2 ? 1 : 2;
  if (s.scales.empty() && c.has_arg(scales_at) && c.constants[scales_at])
    for (int64_t i = 0; i < c.constants[scales_at]->numel(); i++) s.scales.push_back(c.constants[scales_at]->get(i));
  if (given(c, "sizes", 3)) s.sizes = list_of(c, "sizes", 3);
  auto check = [&](size_t n) {
    if (n != s.axes.size()) c.fail("GAF3101", fmt::format("{} scales or sizes for {} axes", n, s.axes.size()));
  };
  const std::string policy = attr_str(c.node, "keep_aspect_ratio_policy", "stretch");
  if (given(c, "sizes", 3)) {
    if (s.sizes) check(s.sizes->size());
    double keep = 0;
    for (size_t i = 0; i < s.axes.size() && policy != "stretch" && s.sizes; i++) {
      const Dim &from = x.dims[static_cast<size_t>(s.axes[i])], &to = (*s.sizes)[i];
      if (!from.is_num() || !to.is_num()) c.fail("GAF3101", "keep_aspect_ratio_policy needs known sizes");
      if (from.is(0)) c.fail("GAF3101", "an empty dimension is resized");
      const double ratio = static_cast<double>(to.num()) / static_cast<double>(from.num());
      keep = i == 0 ? ratio : policy == "not_larger" ? std::min(keep, ratio) : std::max(keep, ratio);
    }
    for (size_t i = 0; i < s.axes.size(); i++) {
      Dim& d = out.dims[static_cast<size_t>(s.axes[i])];
      if (!s.sizes)
        d = fresh_dim(c);
      else if (policy == "stretch")
        d = (*s.sizes)[i];
      else
        d = static_cast<int64_t>(std::floor(static_cast<double>(d.num()) * keep + 0.5));
    }
  } else if (!s.scales.empty()) {
    check(s.scales.size());
    std::vector<double> roi = float_list(c.node, "roi");
    if (roi.empty() && c.args.size() > 1 && scales_at == 2 && c.constants[1])
      for (int64_t i = 0; i < c.constants[1]->numel(); i++) roi.push_back(c.constants[1]->get(i));
    const bool crop =
        attr_str(c.node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" && !roi.empty();
    for (size_t i = 0; i < s.axes.size(); i++) {
      Dim& d = out.dims[static_cast<size_t>(s.axes[i])];
      const double part = crop ? roi[s.axes.size() + i] - roi[i] : 1;
      const auto size = scaled(d, s.scales[i] * part);
      d = size ? *size : fresh_dim(c);
    }
  } else {
    for (int64_t a : s.axes) out.dims[static_cast<size_t>(a)] = fresh_dim(c);
  }
  c.types = {out};
}

// ---- one axis: which source elements make each result element ----

struct Taps {
  std::vector<std::pair<int64_t, double>> source;
  bool outside = false;  // tf_crop_and_resize: the extrapolation value
};

struct Sampling {
  std::string mode, transform, nearest;
  double cubic_a, scale, roi_start = 0, roi_end = 1;
  bool exclude_outside, antialias;
};

double source_position(const Sampling& s, double x, double in, double out) {
  const double exact = s.scale * in;  // the result's size before rounding
  if (s.transform == "asymmetric") return x / s.scale;
  if (s.transform == "align_corners") return exact == 1 ? 0 : x * (in - 1) / (exact - 1);
  if (s.transform == "pytorch_half_pixel") return out == 1 ? -0.5 : (x + 0.5) / s.scale - 0.5;
  if (s.transform == "tf_half_pixel_for_nn") return (x + 0.5) / s.scale;
  if (s.transform == "half_pixel_symmetric") return in / 2 * (1 - out / exact) + (x + 0.5) / s.scale - 0.5;
  if (s.transform == "tf_crop_and_resize") {
    if (out == 1) return 0.5 * (s.roi_start + s.roi_end) * (in - 1);
    return s.roi_start * (in - 1) + x * (s.roi_end - s.roi_start) * (in - 1) / (out - 1);
  }
  return (x + 0.5) / s.scale - 0.5;
}

// Weight of a source element at distance d (in source elements).
double kernel(const Sampling& s, double d) {
  d = std::fabs(d);
  if (s.mode == "linear") return std::max(0.0, 1 - d);
  const double a = s.cubic_a;
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

Taps taps_at(const Sampling& s, int64_t o, int64_t in, int64_t out) {
  Taps t;
  const double x = source_position(s, static_cast<double>(o), static_cast<double>(in), static_cast<double>(out));
  t.outside = s.transform == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(in - 1));
  const auto left = static_cast<int64_t>(std::floor(x));
  const double ratio = x - static_cast<double>(left);
  auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i, 0, in - 1); };
  if (s.mode == "nearest") {
    bool up = ratio > 0.5;
    if (s.nearest == "round_prefer_ceil") up = ratio >= 0.5;
    if (s.nearest == "floor") up = false;
    if (s.nearest == "ceil") up = ratio > 0;
    t.source = {{clamped(up ? left + 1 : left), 1.0}};
    return t;
  }
  const double shrink = s.antialias ? std::min(s.scale, 1.0) : 1.0;  // a smaller result averages over a wider window
  const double reach = (s.mode == "linear" ? 1 : 2) / shrink;
  double sum = 0;
  for (auto i = static_cast<int64_t>(std::ceil(x - reach)); static_cast<double>(i) <= x + reach; i++) {
    const double w = kernel(s, (static_cast<double>(i) - x) * shrink);
    if (w == 0 || (s.exclude_outside && (i < 0 || i >= in))) continue;
    t.source.emplace_back(clamped(i), w);
    sum += w;
  }
  if (s.antialias || s.exclude_outside)
    for (auto& [i, w] : t.source) w /= sum;
  return t;
}

void eval_resize(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const size_t rank = x.dims.size();
  const Ints axes = axes_of(c.node, rank);
  const bool old = old_form(c.node, c.opset);
  const size_t scales_at = old && c.args.size() == 2 ? 1 : 2;
  std::vector<double> scales = float_list(c.node, "scales"), roi = float_list(c.node, "roi");
  if (scales.empty() && has(c, scales_at)) scales = elements<double>(arg(c, scales_at));
  if (roi.empty() && scales_at == 2 && has(c, 1)) roi = elements<double>(arg(c, 1));
  Ints sizes = list_of(c, "sizes", 3);
  Sampling base;
  base.mode = attr_str(c.node, "mode", "nearest");
  if (base.mode == "bilinear") base.mode = "linear";
  base.transform = attr_str(c.node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  base.nearest = attr_str(c.node, "nearest_mode", old ? "floor" : "round_prefer_floor");
  base.cubic_a = attr_float(c.node, "cubic_coeff_a", -0.75);
  base.exclude_outside = attr_int(c.node, "exclude_outside", 0) != 0;
  base.antialias = attr_int(c.node, "antialias", 0) != 0;
  const double beyond = attr_float(c.node, "extrapolation_value", 0);
  const std::string policy = attr_str(c.node, "keep_aspect_ratio_policy", "stretch");
  if (sizes.size() != axes.size() && scales.size() != axes.size())
    fail(c, "GAF3101", "scales or sizes do not fit the axes");
  if (!sizes.empty()) {
    scales.clear();
    for (size_t i = 0; i < axes.size(); i++)
      scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(x.dims[static_cast<size_t>(axes[i])]));
    if (policy != "stretch") {
      const double keep = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                                 : *std::max_element(scales.begin(), scales.end());
      for (size_t i = 0; i < axes.size(); i++) {
        scales[i] = keep;
        sizes[i] =
            static_cast<int64_t>(std::floor(static_cast<double>(x.dims[static_cast<size_t>(axes[i])]) * keep + 0.5));
      }
    }
  }
  std::vector<double> data = elements<double>(x);
  Ints dims = x.dims;
  std::vector<std::vector<bool>> outside(rank);
  for (size_t i = 0; i < axes.size(); i++) {
    const auto axis = static_cast<size_t>(axes[i]);
    Sampling s = base;
    s.scale = scales[i];
    if (s.transform == "tf_crop_and_resize" && roi.size() == 2 * axes.size())
      s.roi_start = roi[i], s.roi_end = roi[axes.size() + i];
    const int64_t in = dims[axis];
    if (in == 0 || !(s.scale > 0)) fail(c, "GAF3101", "an empty dimension, or one with a scale that is not positive");
    const double part = s.transform == "tf_crop_and_resize" ? s.roi_end - s.roi_start : 1;
    const int64_t out =
        sizes.empty() ? static_cast<int64_t>(std::floor(static_cast<double>(in) * s.scale * part + 1e-9)) : sizes[i];
    if (out == in && s.scale == 1 && part == 1) continue;
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d < rank; d++) (d < axis ? outer : inner) *= d == axis ? 1 : dims[d];
    std::vector<double> next(static_cast<size_t>(outer * out * inner), 0.0);
    outside[axis].resize(static_cast<size_t>(out));
    for (int64_t o = 0; o < out; o++) {
      const Taps t = taps_at(s, o, in, out);
      outside[axis][static_cast<size_t>(o)] = t.outside;
      for (int64_t a = 0; a < outer; a++) {
        double* to = next.data() + (a * out + o) * inner;
        for (auto [k, w] : t.source) {
          const double* from = data.data() + (a * in + k) * inner;
          for (int64_t b = 0; b < inner; b++) to[b] += w * from[b];
        }
      }
    }
    data = std::move(next);
    dims[axis] = out;
  }
  const Ints strides = strides_of(dims);
  for (size_t d = 0; d < rank; d++)
    for (size_t i = 0; i < data.size() && !outside[d].empty(); i++)
      if (outside[d][static_cast<size_t>(static_cast<int64_t>(i) / strides[d] % dims[d])]) data[i] = beyond;
  c.results = {tensor_of(x.dtype, dims, data)};
}

const OpRow kRows[] = {
    {.name = "Resize",
     .friendly = "Resize",
     .kind = OpKind::move,
     .min_args = 1,
     .max_args = 4,
     .infer = infer_resize,
     .eval = eval_resize},
    {.name = "Upsample",
     .friendly = "Upsample",
     .kind = OpKind::move,
     .min_args = 1,
     .max_args = 2,
     .infer = infer_resize,
     .eval = eval_resize},
};

}  // namespace

std::span<const OpRow> resize_rows() { return kRows; }

}  // namespace gaf
