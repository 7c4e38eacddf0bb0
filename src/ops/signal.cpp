// Signal processing: DFT, STFT, window functions and the mel matrix, by their definitions (no fast transform).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

constexpr double kPi = 3.14159265358979323846;

// out[k] of `bins` bins of a transform of n points; in: (re, im) pairs; n of them, missing ones are zero.
void transform(const std::vector<double>& in, int64_t n, int64_t bins, bool inverse, std::vector<double>& out) {
  out.assign(static_cast<size_t>(2 * bins), 0.0);
  for (int64_t k = 0; k < bins; k++) {
    double re = 0, im = 0;
    for (int64_t t = 0; t < n; t++) {
      const double angle = (inverse ? 2 : -2) * kPi * static_cast<double>(k * t % n) / static_cast<double>(n);
      const double a = in[static_cast<size_t>(2 * t)], b = in[static_cast<size_t>(2 * t + 1)];
      re += a * std::cos(angle) - b * std::sin(angle);
      im += a * std::sin(angle) + b * std::cos(angle);
    }
    out[static_cast<size_t>(2 * k)] = inverse ? re / static_cast<double>(n) : re;
    out[static_cast<size_t>(2 * k + 1)] = inverse ? im / static_cast<double>(n) : im;
  }
}

// The axis is an attribute before opset 20 (default 1), an operand since (default -2).
std::optional<int64_t> dft_axis(const Node& n, std::optional<int64_t> operand, bool has_operand, int opset) {
  if (n.attrs.contains("axis")) return attr_int(n, "axis", 1);
  if (has_operand) return operand;
  return opset < 20 && opset != 13 ? 1 : -2;
}

void infer_dft(InferContext& c) {
  const Type& x = c.arg(0);
  if (x.dims.size() < 2) c.fail("GAF3101", "a signal and its real and imaginary parts are needed");
  const auto known = known_ints(c, 2);
  const auto axis = dft_axis(c.node, known ? std::optional((*known)[0]) : std::nullopt, c.has_arg(2), c.opset);
  Type out = x;
  const bool onesided = attr_int(c.node, "onesided", 0) != 0, inverse = attr_int(c.node, "inverse", 0) != 0;
  out.dims.back() = onesided && inverse ? 1 : 2;
  if (!axis) {
    for (size_t i = 1; i + 1 < out.dims.size(); i++) out.dims[i] = fresh_dim(c);
    c.types = {out};
    return;
  }
  Dim& d = out.dims[static_cast<size_t>(normal_axis(c, *axis, x.dims.size()))];
  if (c.has_arg(1)) d = c.value(1) ? (*c.value(1))[0] : fresh_dim(c);
  if (onesided && !inverse) d = floordiv(d, Expr(2)) + Expr(1);
  if (onesided && inverse && !c.has_arg(1)) d = (d - Expr(1)) * Expr(2);
  c.types = {out};
}

void eval_dft(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const auto operand = has(c, 2) ? std::optional(arg(c, 2).get_int(0)) : std::nullopt;
  const auto axis = static_cast<size_t>(normal_axis(c, *dft_axis(c.node, operand, has(c, 2), c.opset), x.dims.size()));
  if (axis + 1 == x.dims.size()) fail(c, "GAF3101", "the last dimension holds real and imaginary parts and is no axis");
  const bool onesided = attr_int(c.node, "onesided", 0) != 0, inverse = attr_int(c.node, "inverse", 0) != 0;
  const int64_t parts = x.dims.back(), given_n = x.dims[axis];
  int64_t n = has(c, 1) ? arg(c, 1).get_int(0) : onesided && inverse ? (given_n - 1) * 2 : given_n;
  if (n < 0 || parts < 1 || parts > 2 || (onesided && inverse && given_n < n / 2 + 1))
    fail(c, "GAF3101", "the input does not fit the transform");
  const int64_t bins = onesided && !inverse ? n / 2 + 1 : n;
  const int64_t out_parts = onesided && inverse ? 1 : 2;
  Ints dims = x.dims;
  dims[axis] = bins;
  dims.back() = out_parts;
  const Ints in_strides = strides_of(x.dims), out_strides = strides_of(dims);
  const std::vector<double> v = elements<double>(x);
  std::vector<double> out(static_cast<size_t>(numel(dims))), line, result;
  Ints outer = x.dims;
  outer[axis] = 1;
  outer.back() = 1;
  walk<2>(outer, {in_strides, out_strides}, [&](auto& at) {
    line.assign(static_cast<size_t>(2 * n), 0.0);
    for (int64_t t = 0; t < std::min(n, given_n); t++)
      for (int64_t p = 0; p < parts; p++)
        line[static_cast<size_t>(2 * t + p)] = v[static_cast<size_t>(at[0] + t * in_strides[axis] + p)];
    if (onesided && inverse)  // the other half of the spectrum mirrors the first
      for (int64_t t = given_n; t < n; t++) {
        line[static_cast<size_t>(2 * t)] = line[static_cast<size_t>(2 * (n - t))];
        line[static_cast<size_t>(2 * t + 1)] = -line[static_cast<size_t>(2 * (n - t) + 1)];
      }
    transform(line, n, bins, inverse, result);
    for (int64_t k = 0; k < bins; k++)
      for (int64_t p = 0; p < out_parts; p++)
        out[static_cast<size_t>(at[1] + k * out_strides[axis] + p)] = result[static_cast<size_t>(2 * k + p)];
  });
  c.results = {tensor_of(x.dtype, dims, out)};
}

// ---- STFT(signal [batch, length, 1 or 2], step, window?, frame length?) ----

void infer_stft(InferContext& c) {
  const Dims& x = c.arg(0).dims;
  if (x.size() < 2) c.fail("GAF3101", "the signal needs batch and length");
  const auto step = known_ints(c, 1), length = known_ints(c, 3);
  Dim frame = c.has_arg(2) ? c.arg(2).dims[0] : c.has_arg(3) ? (length ? Expr((*length)[0]) : fresh_dim(c)) : x[1];
  const Dim frames = step && (*step)[0] > 0 ? floordiv(x[1] - frame, Expr((*step)[0])) + Expr(1) : fresh_dim(c);
  c.types = {{c.arg(0).dtype,
              {x[0], frames, attr_int(c.node, "onesided", 1) ? floordiv(frame, Expr(2)) + Expr(1) : frame, 2}}};
}

void eval_stft(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const int64_t batch = x.dims[0], length = x.dims[1], parts = x.dims.size() > 2 ? x.dims[2] : 1,
                step = arg(c, 1).get_int(0);
  const int64_t frame = has(c, 2) ? arg(c, 2).numel() : has(c, 3) ? arg(c, 3).get_int(0) : length;
  if (step < 1 || frame < 1 || frame > length)
    fail(c, "GAF3101", fmt::format("frames of {} every {} of a signal of {}", frame, step, length));
  const std::vector<double> v = elements<double>(x),
                            window = has(c, 2) ? elements<double>(arg(c, 2))
                                               : std::vector<double>(static_cast<size_t>(frame), 1.0);
  const int64_t frames = (length - frame) / step + 1, bins = attr_int(c.node, "onesided", 1) ? frame / 2 + 1 : frame;
  std::vector<double> out, line(static_cast<size_t>(2 * frame)), result;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t f = 0; f < frames; f++) {
      std::fill(line.begin(), line.end(), 0.0);
      for (int64_t t = 0; t < frame; t++)
        for (int64_t p = 0; p < parts; p++)
          line[static_cast<size_t>(2 * t + p)] =
              window[static_cast<size_t>(t)] * v[static_cast<size_t>((b * length + f * step + t) * parts + p)];
      transform(line, frame, bins, false, result);
      out.insert(out.end(), result.begin(), result.end());
    }
  c.results = {tensor_of(x.dtype, {batch, frames, bins, 2}, out)};
}

// ---- windows: sums of cosines ----

void infer_window(InferContext& c) {
  const auto& size = c.value(0);
  c.types = {{dtype_attr(c.node, "output_datatype", DType::f32), {size ? (*size)[0] : fresh_dim(c)}}};
}
void eval_window(EvalContext& c) {
  const int64_t n = arg_of(c, 0, 1).get_int(0);
  if (n < 0 || n > (int64_t{1} << 32)) fail(c, "GAF3106", fmt::format("a window of {} elements", n));
  const double period = static_cast<double>(attr_int(c.node, "periodic", 1) ? n : n - 1);
  // a0 - a1 cos + a2 cos; Hamming's 25/46 as the standard has it
  const double a0 = c.node.op == "HannWindow" ? 0.5 : c.node.op == "HammingWindow" ? 25.0 / 46 : 0.42;
  const double a2 = c.node.op == "BlackmanWindow" ? 0.08 : 0, a1 = c.node.op == "BlackmanWindow" ? 0.5 : 1 - a0;
  std::vector<double> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) {
    const double angle = 2 * kPi * static_cast<double>(i) / period;
    v[static_cast<size_t>(i)] = a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle);
  }
  c.results = {tensor_of(c.types[0].dtype, {n}, v)};
}

// ---- MelWeightMatrix ----

void infer_mel(InferContext& c) {
  const auto bins = known_ints(c, 0), length = known_ints(c, 1);
  c.types = {{dtype_attr(c.node, "output_datatype", DType::f32),
              {length ? Expr((*length)[0] / 2 + 1) : fresh_dim(c), bins ? Expr((*bins)[0]) : fresh_dim(c)}}};
}
void eval_mel(EvalContext& c) {
  for (size_t i = 0; i < 5; i++) arg_of(c, i, 1);
  const int64_t bins = arg(c, 0).get_int(0), length = arg(c, 1).get_int(0), rate = arg(c, 2).get_int(0),
                rows = length / 2 + 1;
  if (bins < 0 || length < 0 || rate < 1 || (rows > 0 && bins > (int64_t{1} << 32) / rows))
    fail(c, "GAF3101", "the sizes of the matrix make no sense");
  auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double low = mel(arg(c, 3).get(0)), high = mel(arg(c, 4).get(0)),
               step = (high - low) / static_cast<double>(bins + 2);
  auto edge = [&](int64_t i) {  // of triangle i, as a spectrogram bin
    const double f = 700 * (std::pow(10.0, (static_cast<double>(i) * step + low) / 2595) - 1);
    return static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * f / static_cast<double>(rate)));
  };
  std::vector<double> out(static_cast<size_t>(rows * bins), 0.0);
  for (int64_t i = 0; i < bins; i++) {
    const int64_t lo = edge(i), mid = edge(i + 1), hi = edge(i + 2);
    auto put = [&](int64_t r, double v) {
      if (r >= 0 && r < rows) out[static_cast<size_t>(r * bins + i)] = v;
    };
    if (lo == mid) put(mid, 1);
    for (int64_t r = lo; r < mid; r++)
      put(r + (lo == mid ? 0 : 1), static_cast<double>(r + 1 - lo) / static_cast<double>(mid - lo));
    for (int64_t r = mid; r < hi; r++) put(r, static_cast<double>(hi - r) / static_cast<double>(hi - mid));
  }
  c.results = {tensor_of(c.types[0].dtype, {rows, bins}, out)};
}

OpRow signal(std::string_view name, int min_args, int max_args, void (*infer)(InferContext&),
             void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = min_args,
          .max_args = max_args,
          .infer = infer,
          .eval = eval,
          .ulp = 256,
          .cheap = false};
}

const OpRow kRows[] = {
    signal("DFT", 1, 3, infer_dft, eval_dft),
    signal("STFT", 2, 4, infer_stft, eval_stft),
    signal("HannWindow", 1, 1, infer_window, eval_window),
    signal("HammingWindow", 1, 1, infer_window, eval_window),
    signal("BlackmanWindow", 1, 1, infer_window, eval_window),
    signal("MelWeightMatrix", 5, 5, infer_mel, eval_mel),
};

}  // namespace

std::span<const OpRow> signal_rows() { return kRows; }

}  // namespace gaf
