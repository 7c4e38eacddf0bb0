// Elementwise comparisons, boolean and bit operations, and Where. Results of tests are b1, one byte, 0 or 1.
#include <cmath>

#include "ops/pointwise_row.h"

namespace gaf {

namespace {

constexpr auto test(auto v) { return static_cast<int64_t>(v != 0); }

void infer_unary_test(InferContext& c) { c.types = {{DType::b1, c.arg(0).dims}}; }

void infer_where(InferContext& c) {
  if (c.arg(0).dtype != DType::b1) c.fail("GAF3101", "the condition is not of type bool");
  need_same_dtype(c, 1);
  const Dims all[] = {c.arg(0).dims, c.arg(1).dims, c.arg(2).dims};
  c.types = {{c.arg(1).dtype, broadcast_dims(c, all)}};
  const auto &cond = c.value(0), &yes = c.value(1), &no = c.value(2);
  if (!cond || !yes || !no) return;
  const size_t n = std::max({cond->size(), yes->size(), no->size()});
  auto pick = [&](const std::vector<Expr>& v, size_t i) { return v.size() == n ? v[i] : v[0]; };
  std::vector<Expr> out;
  for (size_t i = 0; i < n; i++) {
    for (const auto* v : {&*cond, &*yes, &*no})
      if (v->size() != n && v->size() != 1) return;
    const Expr test = pick(*cond, i);
    if (!test.is_num()) return;
    out.push_back(pick(test.is(0) ? *no : *yes, i));
  }
  c.results = {out};
}

void eval_where(EvalContext& c) {
  const Tensor &cond = arg(c, 0), &yes = arg(c, 1), &no = arg(c, 2);
  const Ints dims = result_shape(c);
  std::vector<int64_t> test = elements<int64_t>(cond, dims);
  Tensor a = strided_copy(yes, dims, broadcast_strides(yes.dims, dims), 0);
  const Tensor b = strided_copy(no, dims, broadcast_strides(no.dims, dims), 0);
  const auto size = static_cast<size_t>(bytes(a.dtype));
  for (size_t i = 0; i < test.size(); i++)
    if (!test[i]) std::memcpy(a.mut<char>() + i * size, b.as<char>() + i * size, size);
  c.results = {a};
}

// Shifts by the width or more push every bit out; so does, read as unsigned, a negative shift.
constexpr auto shift_left = [](auto a, auto b, P) {
  return static_cast<uint64_t>(b) > 63 ? decltype(a)(0) : decltype(a)(a << b);
};
constexpr auto shift_right = [](auto a, auto b, P) {
  return static_cast<uint64_t>(b) > 63 ? decltype(a)(a < 0 ? -1 : 0) : decltype(a)(a >> b);
};

void eval_bit_shift(EvalContext& c) {
  if (attr_str(c.node, "direction", "LEFT") == "LEFT") return eval_int<shift_left>(c);
  eval_int<shift_right>(c);
}
kir::ScalarProgram bit_shift_program(const Node& n, std::span<const DType> t, DType result) {
  return kir::parse_scalar(attr_str(n, "direction", "LEFT") == "LEFT" ? "shl(a, b)" : "shr(a, b)", t, result);
}

kir::ScalarProgram is_inf_program(const Node& n, std::span<const DType> t, DType result) {
  const bool negative = attr_int(n, "detect_negative", 1) != 0, positive = attr_int(n, "detect_positive", 1) != 0;
  return kir::parse_scalar(negative && positive ? "eq(abs(a), inf)"
                           : positive           ? "eq(a, inf)"
                           : negative           ? "eq(neg(a), inf)"
                                                : "lt(inf, a)",
                           t, result);
}

template <Compare op, bool swapped>
void infer_compare(InferContext& c) {
  infer_test(c);
  known_compare(c, op, swapped);
}

OpRow compare(std::string_view name, void (*eval)(EvalContext&), std::string_view text,
              void (*infer)(InferContext&) = infer_test) {
  return binary(name, name, eval, text, infer);
}

const OpRow kRows[] = {
    compare("Equal", eval_number<[](auto a, auto b, P) { return int(a == b); }>, "eq(a, b)",
            infer_compare<Compare::equal, false>),
    compare("Less", eval_number<[](auto a, auto b, P) { return int(a < b); }>, "lt(a, b)",
            infer_compare<Compare::less, false>),
    compare("LessOrEqual", eval_number<[](auto a, auto b, P) { return int(a <= b); }>, "le(a, b)",
            infer_compare<Compare::less_equal, false>),
    compare("Greater", eval_number<[](auto a, auto b, P) { return int(b < a); }>, "lt(b, a)",
            infer_compare<Compare::less, true>),
    compare("GreaterOrEqual", eval_number<[](auto a, auto b, P) { return int(b <= a); }>, "le(b, a)",
            infer_compare<Compare::less_equal, true>),
    compare("And", eval_int<[](auto a, auto b, P) { return test(a) & test(b); }>, "and(a, b)"),
    compare("Or", eval_int<[](auto a, auto b, P) { return test(a) | test(b); }>, "or(a, b)"),
    compare("Xor", eval_int<[](auto a, auto b, P) { return test(a) ^ test(b); }>, "xor(a, b)"),
    unary("Not", "Not", eval_int<[](auto a, P) { return a ? decltype(a)(0) : decltype(a)(1); }>, "not(a)"),
    {.name = "Where",
     .friendly = "Where",
     .kind = OpKind::pointwise,
     .min_args = 3,
     .max_args = 3,
     .infer = infer_where,
     .eval = eval_where,
     .scalar = "select(a, b, c)"},
    {.name = "IsNaN",
     .friendly = "IsNaN",
     .kind = OpKind::pointwise,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_unary_test,
     .eval = eval_float<[](double a, P) { return int(std::isnan(a)); }>,
     .scalar = "isnan(a)"},
    {.name = "IsInf",
     .friendly = "IsInf",
     .kind = OpKind::pointwise,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_unary_test,
     .eval = eval_float<[](double a, P p) { return int(std::isinf(a) && (a < 0 ? p[0] : p[1]) != 0); }>,
     .program = is_inf_program,
     .defaults = {{"detect_negative", 1}, {"detect_positive", 1}}},
    binary("BitwiseAnd", "BitwiseAnd", eval_int<[](auto a, auto b, P) { return a & b; }>, "and(a, b)"),
    binary("BitwiseOr", "BitwiseOr", eval_int<[](auto a, auto b, P) { return a | b; }>, "or(a, b)"),
    binary("BitwiseXor", "BitwiseXor", eval_int<[](auto a, auto b, P) { return a ^ b; }>, "xor(a, b)"),
    unary("BitwiseNot", "BitwiseNot", eval_int<[](auto a, P) { return ~a; }>, "xor(a, -1)"),
    {.name = "BitShift",
     .friendly = "BitShift",
     .kind = OpKind::pointwise,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_broadcast,
     .eval = eval_bit_shift,
     .program = bit_shift_program},
};

}  // namespace

std::span<const OpRow> logic_rows() { return kRows; }

}  // namespace gaf
