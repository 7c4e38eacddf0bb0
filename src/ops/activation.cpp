// Activation functions: elementwise, one row each, with the text kernels compute and the definition that checks it.
// Relu, Clip and their kin pass NaN on: `max` takes its second operand when unordered, so the constant comes first.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/pointwise_row.h"

namespace gaf {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double clamp(double x, double lo, double hi) { return x != x ? x : std::min(hi, std::max(lo, x)); }

constexpr std::string_view kSoftplus = "(max(0, a) + log1p(exp(neg(abs(a)))))";
constexpr double kSeluAlpha = 1.67326319217681884765625, kSeluGamma = 1.05070102214813232421875;  // ONNX Selu

// ---- Gelu: erf form, or the tanh approximation, of which (1 + tanh(x)) / 2 = sigmoid(2 x) leaves the fewest steps ----
constexpr const char* kGeluErf = "fma(0.5 * a, erf(a * 0.7071067811865476), 0.5 * a)";
constexpr const char* kGeluTanh = "a * sigmoid(a * (1.5957691216057308 + (0.07135481627159727 * (a * a))))";

bool tanh_form(const Node& n) { return attr_str(n, "approximate", "none") == "tanh"; }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
void eval_gelu(EvalContext& c) {
  if (tanh_form(c.node)) return eval_float<[](double x, P) { return gelu_tanh(x); }>(c);
  eval_float<[](double x, P) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }>(c);
}
kir::ScalarProgram gelu_program(const Node& n, std::span<const DType> t, DType result) {
  return kir::parse_scalar(tanh_form(n) ? kGeluTanh : kGeluErf, t, result);
}

// com.microsoft: BiasGelu(x, bias), FastGelu(x [, bias])
std::string of_sum(std::string_view text, size_t operands) {
  if (operands < 2) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    auto letter = [&](size_t k) { return k < text.size() && std::isalpha(static_cast<unsigned char>(text[k])); };
    bool alone = text[i] == 'a' && !letter(i + 1) && (i == 0 || !letter(i - 1));
    out += alone ? "(a + b)" : std::string(1, text[i]);
  }
  return out;
}
kir::ScalarProgram bias_gelu_program(const Node&, std::span<const DType> t, DType result) {
  return kir::parse_scalar(of_sum(kGeluErf, t.size()), t, result);
}
kir::ScalarProgram fast_gelu_program(const Node&, std::span<const DType> t, DType result) {
  return kir::parse_scalar(of_sum(kGeluTanh, t.size()), t, result);
}
void eval_fast_gelu(EvalContext& c) {
  if (has(c, 1)) return eval_float<[](double x, double b, P) { return gelu_tanh(x + b); }>(c);
  eval_float<[](double x, P) { return gelu_tanh(x); }>(c);
}

// ---- Clip: bounds are attributes (old opsets, canonical graphs) or optional operands ----
void eval_clip(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  auto bound = [&](const char* attr, size_t i, double fallback) {
    if (has(c, i)) return arg(c, i).get(0);
    return c.node.attrs.contains(attr) ? attr_float(c.node, attr, 0) : fallback;
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (is_float(x.dtype)) {
    const double lo = bound("min", 1, -inf), hi = bound("max", 2, inf);
    std::vector<double> v = elements<double>(x);
    for (double& e : v) e = clamp(e, lo, hi);
    c.results = {tensor_of(x.dtype, x.dims, v)};
    return;
  }
  std::vector<int64_t> v = elements<int64_t>(x);
  for (int64_t& e : v) {
    if (has(c, 1))
      e = std::max(e, arg(c, 1).get_int(0));
    else if (c.node.attrs.contains("min"))
      e = std::max(e, static_cast<int64_t>(attr_float(c.node, "min", 0)));
    if (has(c, 2))
      e = std::min(e, arg(c, 2).get_int(0));
    else if (c.node.attrs.contains("max"))
      e = std::min(e, static_cast<int64_t>(attr_float(c.node, "max", 0)));
  }
  c.results = {tensor_of(x.dtype, x.dims, v)};
}

kir::ScalarProgram clip_program(const Node& n, std::span<const DType> t, DType result) {
  std::string text = "a";
  std::map<std::string, double> params;
  auto side = [&](const char* attr, size_t i, const char* op, const char* letter) {
    if (i < n.args.size() && n.args[i] != kNoValue) {
      text = fmt::format("{}({}, {})", op, letter, text);
    } else if (n.attrs.contains(attr)) {
      double v = attr_float(n, attr, 0);
      if (is_float(t[0]) && std::isinf(v)) return;
      params[attr] = v;
      text = fmt::format("{}(${}, {})", op, attr, text);
    }
  };
  side("min", 1, "max", "b");
  side("max", 2, "min", "c");
  return kir::parse_scalar(text == "a" ? "mov(a)" : text, t, result, params);
}

void infer_prelu(InferContext& c) {
  need_same_dtype(c);
  const Dims both[] = {c.arg(0).dims, c.arg(1).dims};
  Dims out = broadcast_dims(c, both);
  if (out.size() != c.arg(0).dims.size()) c.fail("GAF3101", "the slope has a higher rank than the input");
  c.types = {{c.arg(0).dtype, c.arg(0).dims}};
}

OpRow activation(std::string_view name, std::string_view friendly, void (*eval)(EvalContext&), std::string_view text,
                 Defaults defaults = {}) {
  return unary(name, friendly, eval, text, false, std::move(defaults));
}

const std::string kMish = fmt::format("a * tanh({})", kSoftplus);

const OpRow kRows[] = {
    unary("Relu", "ReLU", eval_number<[](auto a, P) { return a < 0 ? decltype(a)(0) : a; }>, "max(0, a)"),
    unary("LeakyRelu", "LeakyReLU", eval_float<[](double a, P p) { return a < 0 ? p[0] * a : a; }>,
          "select(lt(a, 0), $alpha * a, a)", true, {{"alpha", 0.01}}),
    {.name = "PRelu",
     .friendly = "PReLU",
     .kind = OpKind::pointwise,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_prelu,
     .eval = eval_number<[](auto a, auto b, P) { return a < 0 ? a * b : a; }>,
     .scalar = "select(lt(a, 0), a * b, a)"},
    unary("ThresholdedRelu", "ThresholdedReLU", eval_float<[](double a, P p) { return p[0] < a || a != a ? a : 0; }>,
          "select(le(a, $alpha), 0, a)", true, {{"alpha", 1}}),
    unary("Shrink", "Shrink",
          eval_float<[](double a, P p) { return a < -p[1]  ? a + p[0]
                                                : p[1] < a ? a - p[0]
                                                : a != a   ? a
                                                           : 0; }>,
          "select(lt(a, neg($lambd)), a + $bias, select(lt($lambd, a), a - $bias, select(isnan(a), a, 0)))", true,
          {{"bias", 0}, {"lambd", 0.5}}),
    unary("HardSigmoid", "HardSigmoid", eval_float<[](double a, P p) { return clamp(p[0] * a + p[1], 0, 1); }>,
          "min(1, max(0, ($alpha * a) + $beta))", true, {{"alpha", 0.2}, {"beta", 0.5}}),
    unary("HardSwish", "HardSwish", eval_float<[](double a, P) { return a * clamp(a / 6 + 0.5, 0, 1); }>,
          "a * min(1, max(0, (a * 0.16666666666666666) + 0.5))"),
    unary("Softsign", "Softsign", eval_float<[](double a, P) { return a / (1 + std::fabs(a)); }>, "a / (1 + abs(a))"),
    activation("Sigmoid", "Sigmoid", eval_float<[](double a, P) { return sigmoid(a); }>, "sigmoid(a)"),
    activation("Tanh", "Tanh", eval_float<[](double a, P) { return std::tanh(a); }>, "tanh(a)"),
    activation("Softplus", "Softplus", eval_float<[](double a, P) { return softplus(a); }>, kSoftplus),
    activation("Mish", "Mish", eval_float<[](double a, P) { return a * std::tanh(softplus(a)); }>, kMish),
    activation("Elu", "ELU", eval_float<[](double a, P p) { return a < 0 ? p[0] * std::expm1(a) : a; }>,
               "select(lt(a, 0), $alpha * expm1(a), a)", {{"alpha", 1}}),
    activation("Celu", "CELU", eval_float<[](double a, P p) { return a < 0 ? p[0] * std::expm1(a / p[0]) : a; }>,
               "select(lt(a, 0), $alpha * expm1(a / $alpha), a)", {{"alpha", 1}}),
    activation("Selu", "SELU", eval_float<[](double a, P p) { return p[1] * (a < 0 ? p[0] * std::expm1(a) : a); }>,
               "$gamma * select(lt(a, 0), $alpha * expm1(a), a)", {{"alpha", kSeluAlpha}, {"gamma", kSeluGamma}}),
    activation("Swish", "SiLU", eval_float<[](double a, P p) { return a * sigmoid(p[0] * a); }>,
               "a * sigmoid($alpha * a)", {{"alpha", 1}}),
    {.name = "SwiGLU",
     .friendly = "SwiGLU",
     .kind = OpKind::pointwise,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_broadcast,
     .eval = eval_float<[](double a, double b, P p) { return a * sigmoid(p[0] * a) * b; }>,
     .scalar = "(a * sigmoid($alpha * a)) * b",
     .defaults = {{"alpha", 1}},
     .cheap = false},
    activation("QuickGelu", "QuickGELU", eval_float<[](double a, P p) { return a * sigmoid(p[0] * a); }>,
               "a * sigmoid($alpha * a)", {{"alpha", 1.702}}),
    {.name = "Gelu",
     .friendly = "GELU",
     .kind = OpKind::pointwise,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_same,
     .eval = eval_gelu,
     .program = gelu_program,
     .ulp = 16,
     .cheap = false},
    {.name = "BiasGelu",
     .friendly = "BiasGELU",
     .kind = OpKind::pointwise,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_broadcast,
     .eval = eval_float<[](double x, double b, P) { return 0.5 * (x + b) * std::erfc(-(x + b) / std::sqrt(2.0)); }>,
     .program = bias_gelu_program,
     .ulp = 16,
     .cheap = false},
    {.name = "FastGelu",
     .friendly = "FastGELU",
     .kind = OpKind::pointwise,
     .min_args = 1,
     .max_args = 2,
     .infer = infer_broadcast,
     .eval = eval_fast_gelu,
     .program = fast_gelu_program,
     .ulp = 16,
     .cheap = false},
    {.name = "Clip",
     .friendly = "Clip",
     .kind = OpKind::pointwise,
     .min_args = 1,
     .max_args = 3,
     .infer = infer_same,
     .eval = eval_clip,
     .program = clip_program},
};

}  // namespace

std::span<const OpRow> activation_rows() { return kRows; }

}  // namespace gaf
