// Elementwise arithmetic: one line an op. The scalar text is what kernels compute, the lambda beside it is the
// definition that checks them; they are written apart on purpose. Knows nothing of tiles, loops or layouts.
#include <fmt/format.h>

#include <cmath>

#include "ops/pointwise_row.h"

namespace gaf {

namespace {

constexpr auto divide = [](auto a, auto b, P) {
  if constexpr (std::is_integral_v<decltype(a)>) {
    if (b == 0) throw UserError("GAF6002", "integer division by zero");
    if constexpr (std::is_signed_v<decltype(a)>)
      if (b == -1) return decltype(a)(-static_cast<uint64_t>(a));  // the smallest number wraps
  }
  return a / b;
};

constexpr auto power = [](auto a, auto b, P) {
  if constexpr (std::is_integral_v<decltype(a)>) {
    uint64_t r = 1, base = static_cast<uint64_t>(a);
    if (static_cast<int64_t>(b) < 0)
      return static_cast<decltype(a)>(a == 1 ? 1 : std::pow(double(a), double(static_cast<int64_t>(b))));
    for (auto n = static_cast<uint64_t>(b); n != 0; n >>= 1, base *= base)
      if (n & 1) r *= base;
    return static_cast<decltype(a)>(r);
  } else {
    return std::pow(a, b);
  }
};

// The exponent may have another type than the base; the result has the base's.
void eval_pow(EvalContext& c) {
  if (is_float(arg(c, 0).dtype) || !is_float(arg(c, 1).dtype)) return eval_number<power>(c);
  c.results = {detail::map_elements<double, power>(c, c.types[0].dtype)};
}

kir::ScalarProgram pow_program(const Node&, std::span<const DType> t, DType result) {
  if (is_float(t[0])) return kir::parse_scalar(fmt::format("pow(a, {}(b))", name(t[0])), t, result);
  return kir::parse_scalar(fmt::format("{}(pow(f64(a), f64(b)))", name(t[0])), t, result);
}

// fmod=1: sign of the dividend, as C. Else the sign of the divisor, as Python; integers only, says the standard.
constexpr auto modulo = [](auto a, auto b, P p) {
  if constexpr (std::is_integral_v<decltype(a)>) {
    if (b == 0) throw UserError("GAF6002", "integer division by zero");
    if constexpr (std::is_signed_v<decltype(a)>) {
      if (b == -1) return decltype(a)(0);
      auto r = a % b;
      return p[0] == 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else {
      return a % b;
    }
  } else {
    double r = std::fmod(a, b);
    return p[0] == 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};

kir::ScalarProgram mod_program(const Node& n, std::span<const DType> t, DType result) {
  const bool plain = attr_int(n, "fmod", 0) != 0 || (is_int(t[0]) && !row(t[0]).is_signed);
  return kir::parse_scalar(
      plain ? "rem(a, b)" : "select(and(ne(rem(a, b), 0), ne(lt(rem(a, b), 0), lt(b, 0))), rem(a, b) + b, rem(a, b))",
      t, result);
}

// ---- Max, Min, Sum, Mean: any number of operands ----

template <class T, class F>
std::vector<T> fold(const EvalContext& c, F f) {
  const Ints dims = result_shape(c);
  std::vector<T> acc = elements<T>(arg(c, 0), dims);
  for (size_t i = 1; i < c.args.size(); i++) {
    std::vector<T> next = elements<T>(arg(c, i), dims);
    for (size_t k = 0; k < acc.size(); k++) acc[k] = f(acc[k], next[k]);
  }
  return acc;
}

template <auto F>
void eval_fold(EvalContext& c) {
  const DType t = arg(c, 0).dtype;
  const Ints dims = result_shape(c);
  if (is_float(t)) {
    c.results = {tensor_of(t, dims, fold<double>(c, F))};
  } else if (row(t).is_signed) {
    c.results = {tensor_of(t, dims, fold<int64_t>(c, F))};
  } else {
    c.results = {tensor_of(t, dims, fold<uint64_t>(c, F))};
  }
}

constexpr auto larger = [](auto a, auto b) { return a != a || a > b ? a : b; };
constexpr auto smaller = [](auto a, auto b) { return a != a || a < b ? a : b; };
constexpr auto plus = [](auto a, auto b) { return a + b; };

void eval_mean(EvalContext& c) {
  std::vector<double> sum = fold<double>(c, plus);
  for (double& v : sum) v /= static_cast<double>(c.args.size());
  c.results = {tensor_of(c.types[0].dtype, result_shape(c), sum)};
}

kir::ScalarProgram chain(kir::S op, std::span<const DType> t) {
  kir::ScalarProgram p;
  kir::ScalarArg acc{kir::ScalarArg::operand, 0, 0};
  if (t.size() == 1) p.steps.push_back({kir::S::mov, t[0], t[0], {acc}});
  for (int i = 1; i < static_cast<int>(t.size()); i++) {
    p.steps.push_back({op, t[0], t[0], {acc, {kir::ScalarArg::operand, i, 0}}});
    acc = {kir::ScalarArg::step, i - 1, 0};
  }
  return p;
}
kir::ScalarProgram max_program(const Node&, std::span<const DType> t, DType) { return chain(kir::S::maxp, t); }
kir::ScalarProgram min_program(const Node&, std::span<const DType> t, DType) { return chain(kir::S::minp, t); }
kir::ScalarProgram sum_program(const Node&, std::span<const DType> t, DType) { return chain(kir::S::add, t); }
kir::ScalarProgram mean_program(const Node&, std::span<const DType> t, DType) {
  kir::ScalarProgram p = chain(kir::S::add, t);
  kir::ScalarArg sum{kir::ScalarArg::step, static_cast<int>(p.steps.size()) - 1, 0};
  p.steps.push_back({kir::S::div, t[0], t[0], {sum, {kir::ScalarArg::number, 0, static_cast<double>(t.size())}}});
  return p;
}

void infer_max(InferContext& c) {
  infer_broadcast(c);
  if (c.args.size() == 2)
    known_binary(c, [](const Expr& a, const Expr& b) -> std::optional<Expr> { return max(a, b); });
}
void infer_min(InferContext& c) {
  infer_broadcast(c);
  if (c.args.size() == 2)
    known_binary(c, [](const Expr& a, const Expr& b) -> std::optional<Expr> { return min(a, b); });
}

OpRow variadic(std::string_view name, void (*infer)(InferContext&), void (*eval)(EvalContext&),
               kir::ScalarProgram (*program)(const Node&, std::span<const DType>, DType)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::pointwise,
          .min_args = 1,
          .max_args = -1,
          .infer = infer,
          .eval = eval,
          .program = program};
}

double round_half_even(double a) {
  double r = std::round(a);
  return std::fabs(a - std::trunc(a)) == 0.5 ? 2 * std::round(a / 2) : r;
}

// Extent: how many elements some dims have, as a number; what a mean over a symbolic count divides by.
void infer_extent(InferContext& c) { c.types = {{dtype_attr(c.node, "dtype", DType::f32), {}}}; }
void eval_extent(EvalContext& c) {
  c.results = {scalar_tensor(c.types[0].dtype, static_cast<double>(numel(list_of(c, "dims", 99))))};
}

// ---- arithmetic on sizes: what shape programs of models are made of ----
using Known = std::optional<Expr>;

template <auto F>
void infer_arith(InferContext& c) {
  infer_broadcast(c);
  known_binary(c, F);
}
// Sizes are not negative, so truncation is floor. Float operands that hold integers do not divide to integers.
void infer_div(InferContext& c) {
  infer_broadcast(c);
  if (!is_float(c.arg(0).dtype))
    known_binary(c, [](const Expr& a, const Expr& b) -> Known {
      if (a.is_num() && b.is_num()) return b.is(0) ? Known{} : Known{a.num() / b.num()};
      return b.is_num() && b.num() > 0 ? Known{floordiv(a, b)} : std::nullopt;
    });
}
void infer_mod(InferContext& c) {
  infer_broadcast(c);
  if (!is_float(c.arg(0).dtype))
    known_binary(c, [](const Expr& a, const Expr& b) -> Known {
      if (a.is_num() && a.num() < 0) return std::nullopt;
      return b.is_num() && b.num() > 0 ? Known{mod(a, b)} : std::nullopt;
    });
}
void infer_neg(InferContext& c) {
  infer_same(c);
  known_unary(c, [](const Expr& a) -> Known { return -a; });
}
void infer_integral(InferContext& c) {  // Floor, Ceil, Round: known values are integers already
  infer_same(c);
  known_unary(c, [](const Expr& a) -> Known { return a; });
}

OpRow integral(std::string_view name, void (*eval)(EvalContext&), std::string_view text) {
  OpRow r = unary(name, name, eval, text);
  r.infer = infer_integral;
  return r;
}

const OpRow kRows[] = {
    binary("Add", "Add", eval_number<[](auto a, auto b, P) { return a + b; }>, "a + b",
           infer_arith<[](const Expr& a, const Expr& b) -> Known { return a + b; }>),
    binary("Sub", "Sub", eval_number<[](auto a, auto b, P) { return a - b; }>, "a - b",
           infer_arith<[](const Expr& a, const Expr& b) -> Known { return a - b; }>),
    binary("Mul", "Mul", eval_number<[](auto a, auto b, P) { return a * b; }>, "a * b",
           infer_arith<[](const Expr& a, const Expr& b) -> Known { return a * b; }>),
    binary("Div", "Div", eval_number<divide>, "a / b", infer_div),
    {.name = "Pow",
     .friendly = "Pow",
     .kind = OpKind::pointwise,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_first,
     .eval = eval_pow,
     .program = pow_program,
     .ulp = 16,
     .cheap = false},
    {.name = "Mod",
     .friendly = "Mod",
     .kind = OpKind::pointwise,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_mod,
     .eval = eval_number<modulo>,
     .program = mod_program,
     .defaults = {{"fmod", 0}}},
    {.name = "Neg",
     .friendly = "Neg",
     .kind = OpKind::pointwise,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_neg,
     .eval = eval_number<[](auto a, P) { return -a; }>,
     .scalar = "neg(a)"},
    unary("Abs", "Abs", eval_number<[](auto a, P) { return a < 0    ? -a
                                                           : a == 0 ? decltype(a)(0)
                                                                    : a; }>, "abs(a)"),
    unary("Sign", "Sign", eval_number<[](auto a, P) { return 0 < a   ? decltype(a)(1)
                                                             : a < 0 ? decltype(a)(-1)
                                                                     : a; }>,
          "sign(a)"),
    unary("Sqrt", "Sqrt", eval_float<[](double a, P) { return std::sqrt(a); }>, "sqrt(a)"),
    unary("Reciprocal", "Reciprocal", eval_float<[](double a, P) { return 1 / a; }>, "recip(a)"),
    unary("Exp", "Exp", eval_float<[](double a, P) { return std::exp(a); }>, "exp(a)", false),
    unary("Log", "Log", eval_float<[](double a, P) { return std::log(a); }>, "log(a)", false),
    unary("Erf", "Erf", eval_float<[](double a, P) { return std::erf(a); }>, "erf(a)", false),
    integral("Floor", eval_float<[](double a, P) { return std::floor(a); }>, "floor(a)"),
    integral("Ceil", eval_float<[](double a, P) { return std::ceil(a); }>, "ceil(a)"),
    integral("Round", eval_float<[](double a, P) { return round_half_even(a); }>, "round(a)"),
    unary("Sin", "Sin", eval_float<[](double a, P) { return std::sin(a); }>, "sin(a)", false),
    unary("Cos", "Cos", eval_float<[](double a, P) { return std::cos(a); }>, "cos(a)", false),
    unary("Tan", "Tan", eval_float<[](double a, P) { return std::tan(a); }>, "sin(a) / cos(a)", false),
    unary("Sinh", "Sinh", eval_float<[](double a, P) { return std::sinh(a); }>,
          "select(lt(abs(a), 1), 0.5 * (expm1(a) + (expm1(a) / (expm1(a) + 1))), (0.5 * exp(a)) - (0.5 * exp(neg(a))))",
          false),
    unary("Cosh", "Cosh", eval_float<[](double a, P) { return std::cosh(a); }>, "(0.5 * exp(a)) + (0.5 * exp(neg(a)))",
          false),
    unary("Atanh", "Atanh", eval_float<[](double a, P) { return std::atanh(a); }>, "0.5 * log1p((2 * a) / (1 - a))",
          false),
    unary("Acosh", "Acosh", eval_float<[](double a, P) { return std::acosh(a); }>,
          "select(lt(1e9, a), log(a) + 0.6931471805599453, log1p((a - 1) + sqrt((a - 1) * (a + 1))))", false),
    unary("Asinh", "Asinh", eval_float<[](double a, P) { return std::asinh(a); }>,
          "sign(a) * select(lt(1e9, abs(a)), log(abs(a)) + 0.6931471805599453, "
          "log1p(abs(a) + ((a * a) / (1 + sqrt((a * a) + 1)))))",
          false),
    reference("Asin", "Asin", eval_float<[](double a, P) { return std::asin(a); }>),
    reference("Acos", "Acos", eval_float<[](double a, P) { return std::acos(a); }>),
    reference("Atan", "Atan", eval_float<[](double a, P) { return std::atan(a); }>),
    variadic("Max", infer_max, eval_fold<larger>, max_program),
    variadic("Min", infer_min, eval_fold<smaller>, min_program),
    variadic("Sum", infer_broadcast, eval_fold<plus>, sum_program),
    variadic("Mean", infer_broadcast, eval_mean, mean_program),
    {.name = "Extent",
     .friendly = "Extent",
     .kind = OpKind::other,
     .min_args = 0,
     .max_args = 0,
     .infer = infer_extent,
     .eval = eval_extent},
};

}  // namespace

std::span<const OpRow> pointwise_rows() { return kRows; }

}  // namespace gaf
