// Quantisation: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and integer products. Scales are per tensor,
// per axis or in blocks along the axis.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

double round_half_even(double a) { return std::nearbyint(a); }

// Index into a scale tensor for element i of x.
struct ScaleIndex {
  Ints dims, strides;
  size_t axis = 0;
  int64_t block = 0;
  Ints scale_strides;
  bool whole = true, per_axis = false;

  ScaleIndex(const EvalContext& c, const Tensor& x, const Tensor& scale) : dims(x.dims), strides(strides_of(x.dims)) {
    whole = scale.numel() == 1 && scale.dims.size() <= 1;
    if (whole) return;
    axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 1), dims.size()));
    per_axis = scale.dims.size() == 1;
    if (per_axis) {
      if (scale.dims[0] != dims[axis])
        fail(c, "GAF3101", fmt::format("{} scales for an axis of {}", scale.dims[0], dims[axis]));
      return;
    }
    if (scale.dims.size() != dims.size() || scale.dims[axis] < 1)
      fail(c, "GAF3101", "the scales do not have the rank of the input");
    for (size_t d = 0; d < dims.size(); d++)
      if (d != axis && scale.dims[d] != dims[d])
        fail(c, "GAF3101", fmt::format("{} scales for a dimension of {}", scale.dims[d], dims[d]));
    block = attr_int(c.node, "block_size", 0);
    if (block <= 0) block = (dims[axis] + scale.dims[axis] - 1) / scale.dims[axis];
    if ((dims[axis] + block - 1) / block > scale.dims[axis]) fail(c, "GAF3101", "too few scales for the blocks");
    scale_strides = strides_of(scale.dims);
  }
  size_t operator()(int64_t i) const {
    if (whole) return 0;
    if (per_axis) return static_cast<size_t>(i / strides[axis] % dims[axis]);
    int64_t at = 0;
    for (size_t d = 0; d < dims.size(); d++) {
      const int64_t p = i / strides[d] % dims[d];
      at += (d == axis ? p / block : p) * scale_strides[d];
    }
    return static_cast<size_t>(at);
  }
};

void infer_quantize(InferContext& c) {
  const DType t = c.has_arg(2) ? c.arg(2).dtype : DType::u8;
  c.types = {{attr_int(c.node, "output_dtype", 0) ? dtype_attr(c.node, "output_dtype", t) : t, c.arg(0).dims}};
}
void eval_quantize(EvalContext& c) {
  const Tensor &x = arg(c, 0), &scale = arg(c, 1);
  const ScaleIndex at(c, x, scale);
  std::vector<double> v = elements<double>(x);
  const auto s = elements<double>(scale);
  const auto zero = has(c, 2) ? elements<double>(arg_of(c, 2, scale.numel())) : std::vector<double>(s.size(), 0.0);
  for (size_t i = 0; i < v.size(); i++) {
    const size_t k = at(static_cast<int64_t>(i));
    // the quotient has the precision of the operands
    const double quotient = scale.dtype == DType::f64
                                ? v[i] / s[k]
                                : static_cast<double>(static_cast<float>(v[i]) / static_cast<float>(s[k]));
    v[i] = round_half_even(quotient) + zero[k];
  }
  c.results = {tensor_of(c.types[0].dtype, x.dims, v)};  // saturates
}

void infer_dequantize(InferContext& c) {
  const DType t = c.arg(1).dtype;
  c.types = {{attr_int(c.node, "output_dtype", 0) ? dtype_attr(c.node, "output_dtype", t) : t, c.arg(0).dims}};
}
void eval_dequantize(EvalContext& c) {
  const Tensor &x = arg(c, 0), &scale = arg(c, 1);
  const ScaleIndex at(c, x, scale);
  std::vector<double> v = elements<double>(x);
  const auto s = elements<double>(scale);
  const auto zero = has(c, 2) ? elements<double>(arg_of(c, 2, scale.numel())) : std::vector<double>(s.size(), 0.0);
  for (size_t i = 0; i < v.size(); i++) {
    const size_t k = at(static_cast<int64_t>(i));
    v[i] = (v[i] - zero[k]) * s[k];
  }
  c.results = {tensor_of(c.types[0].dtype, x.dims, v)};
}

void infer_dynamic(InferContext& c) { c.types = {{DType::u8, c.arg(0).dims}, {DType::f32, {}}, {DType::u8, {}}}; }
void eval_dynamic(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  std::vector<double> v = elements<double>(x);
  double lo = 0, hi = 0;
  for (double e : v) lo = std::min(lo, e), hi = std::max(hi, e);
  const double scale = static_cast<float>((hi - lo) / 255);
  const double zero = scale == 0 ? 0 : std::clamp(round_half_even(-lo / scale), 0.0, 255.0);
  for (double& e : v)
    e = (scale == 0 ? 0 : round_half_even(static_cast<double>(static_cast<float>(e) / static_cast<float>(scale)))) +
        zero;
  c.results = {tensor_of(DType::u8, x.dims, v), tensor_of(DType::f32, {}, std::vector<double>{scale}),
               tensor_of(DType::u8, {}, std::vector<double>{zero})};
}

// ---- products: by the float ops on shifted integers, which are exact in double ----

enum class Along : uint8_t { rows, columns, first };  // which dim a list of zero points belongs to

Tensor shifted(const EvalContext& c, size_t i, size_t zero_at, Along along) {
  const Tensor& x = arg(c, i);
  std::vector<double> v = elements<double>(x);
  if (has(c, zero_at)) {
    const auto zero = elements<double>(arg(c, zero_at));
    const auto n = static_cast<int64_t>(zero.size());
    if (n == 0 || x.dims.empty()) fail(c, "GAF3101", "a zero point is empty");
    const int64_t block = along == Along::rows ? x.dims.back() : along == Along::first ? x.numel() / x.dims[0] : 1;
    for (size_t k = 0; k < v.size(); k++) v[k] -= zero[static_cast<size_t>(static_cast<int64_t>(k) / block % n)];
  }
  return tensor_of(DType::f64, x.dims, v);
}

Tensor product_of(const EvalContext& c, const char* op, std::vector<const Tensor*> args) {
  Node n = c.node;
  n.op = op;
  n.attrs.erase("axis");
  const Type t{DType::f64, {}};
  EvalContext inner{n, args, std::span<const Type>(&t, 1), {}};
  find_op(op)->eval(inner);
  return inner.results[0];
}

// Infers like the float op, with the given operands.
void infer_like(InferContext& c, const char* op, std::vector<size_t> operands, DType result) {
  Node n = c.node;
  n.op = op;
  n.args.clear();
  std::vector<Type> types;
  for (size_t i : operands) {
    types.push_back({DType::f32, c.arg(i).dims});
    n.args.push_back(c.node.args[i]);
  }
  const std::vector<std::optional<std::vector<Expr>>> known(types.size());
  InferContext inner{n, types, known, c.syms, c.opset, {}, {}, {}};
  find_op(op)->infer(inner);
  c.types = {{result, inner.types[0].dims}};
}

void infer_matmul_integer(InferContext& c) { infer_like(c, "MatMul", {0, 1}, DType::i32); }
void eval_matmul_integer(EvalContext& c) {
  const Tensor a = shifted(c, 0, 2, Along::rows), b = shifted(c, 1, 3, Along::columns);
  const Tensor y = product_of(c, "MatMul", {&a, &b});
  c.results = {tensor_of(DType::i32, y.dims, elements<double>(y))};
}
void infer_conv_integer(InferContext& c) { infer_like(c, "Conv", {0, 1}, DType::i32); }
void eval_conv_integer(EvalContext& c) {
  const Tensor x = shifted(c, 0, 2, Along::rows), w = shifted(c, 1, 3, Along::first);
  const Tensor y = product_of(c, "Conv", {&x, &w});
  c.results = {tensor_of(DType::i32, y.dims, elements<double>(y))};
}

// QLinearMatMul(a, sa, za, b, sb, zb, sy, zy), QLinearConv(x, sx, zx, w, sw, zw, sy, zy, bias)
Tensor requantized(const EvalContext& c, const Tensor& y, size_t channel_axis) {
  std::vector<double> v = elements<double>(y);
  const double a = arg(c, 1).get(0), out = arg(c, 6).get(0), zero = has(c, 7) ? arg(c, 7).get(0) : 0;
  const auto b = elements<double>(arg(c, 4));
  const Ints strides = strides_of(y.dims);
  if (b.size() != 1 && (y.dims.empty() || static_cast<int64_t>(b.size()) != y.dims[channel_axis]))
    fail(c, "GAF3101", "the scales do not fit the result");
  for (size_t i = 0; i < v.size(); i++) {
    const auto channel = y.dims.empty() ? 0 : static_cast<int64_t>(i) / strides[channel_axis] % y.dims[channel_axis];
    v[i] = round_half_even(v[i] * a * b[static_cast<size_t>(b.size() == 1 ? 0 : channel)] / out) + zero;
  }
  return tensor_of(c.types[0].dtype, y.dims, v);
}
void infer_qlinear_matmul(InferContext& c) { infer_like(c, "MatMul", {0, 3}, c.arg(7).dtype); }
void eval_qlinear_matmul(EvalContext& c) {
  const Tensor a = shifted(c, 0, 2, Along::rows), b = shifted(c, 3, 5, Along::columns);
  const Tensor y = product_of(c, "MatMul", {&a, &b});
  c.results = {requantized(c, y, y.dims.empty() ? 0 : y.dims.size() - 1)};
}
void infer_qlinear_conv(InferContext& c) { infer_like(c, "Conv", {0, 3}, c.arg(7).dtype); }
void eval_qlinear_conv(EvalContext& c) {
  const Tensor x = shifted(c, 0, 2, Along::rows), weights = shifted(c, 3, 5, Along::first);
  const Tensor bias = has(c, 8) ? tensor_of(DType::f64, arg(c, 8).dims, elements<double>(arg(c, 8))) : Tensor{};
  const Tensor y = product_of(
      c, "Conv",
      has(c, 8) ? std::vector<const Tensor*>{&x, &weights, &bias} : std::vector<const Tensor*>{&x, &weights});
  c.results = {requantized(c, y, 1)};
}

OpRow quant(std::string_view name, int min_args, int max_args, void (*infer)(InferContext&), void (*eval)(EvalContext&),
            int results = 1) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = min_args,
          .max_args = max_args,
          .results = results,
          .infer = infer,
          .eval = eval};
}

const OpRow kRows[] = {
    quant("QuantizeLinear", 2, 3, infer_quantize, eval_quantize),
    quant("DequantizeLinear", 2, 3, infer_dequantize, eval_dequantize),
    quant("DynamicQuantizeLinear", 1, 1, infer_dynamic, eval_dynamic, 3),
    quant("MatMulInteger", 2, 4, infer_matmul_integer, eval_matmul_integer),
    quant("ConvInteger", 2, 4, infer_conv_integer, eval_conv_integer),
    quant("QLinearMatMul", 8, 8, infer_qlinear_matmul, eval_qlinear_matmul),
    quant("QLinearConv", 8, 9, infer_qlinear_conv, eval_qlinear_conv),
};

}  // namespace

std::span<const OpRow> quantize_rows() { return kRows; }

}  // namespace gaf
