// Every row of the op table is complete, and the scalar program of each elementwise row means what its `eval` means:
// the two are written apart, so this can fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "graphs.h"
#include "ir/scalar.h"

namespace gaf {
namespace {

using namespace testing;

TEST(OpTable, RowsAreCompleteAndNamesUnique) {
  std::set<std::string_view> names;
  for (const OpRow& r : all_ops()) {
    EXPECT_TRUE(names.insert(r.name).second) << r.name << " has two rows";
    EXPECT_TRUE(r.infer) << r.name;
    EXPECT_TRUE(r.eval) << r.name;
    EXPECT_FALSE(r.friendly.empty()) << r.name;
    EXPECT_EQ(r.kind == OpKind::composite, r.expand != nullptr) << r.name;
    EXPECT_EQ(r.kind == OpKind::pointwise, !r.scalar.empty() || r.program) << r.name;
    EXPECT_TRUE(r.max_args < 0 || r.max_args >= r.min_args) << r.name;
    EXPECT_EQ(find_op(r.name), &r);
  }
}

TEST(OpTable, NamesResolve) {
  EXPECT_EQ(find_op("ai.onnx.Relu"), find_op("Relu"));
  EXPECT_EQ(find_op("com.microsoft.Gelu"), find_op("Gelu"));
  EXPECT_EQ(find_op("com.microsoft.Attention"), nullptr);  // not the operator of the default domain
  EXPECT_EQ(find_op("my.ops.Relu"), nullptr);
  Node n;
  n.op = "NoSuchOp";
  n.name = "n0";
  try {
    op_row(n);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF4001");
    EXPECT_EQ(e.info().node, "n0");
  }
}

// ---- scalar programs against evaluation ----

const std::vector<double> kFloats = {0.0,
                                     -0.0,
                                     1.0,
                                     -1.0,
                                     0.5,
                                     -0.5,
                                     0.25,
                                     2.0,
                                     -2.0,
                                     3.0,
                                     -3.0,
                                     1e-3,
                                     -1e-3,
                                     7.25,
                                     -7.25,
                                     12.5,
                                     -12.5,
                                     1.5,
                                     std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN()};
const std::vector<int64_t> kInts = {0, 1, -1, 2, -2, 3, 7, -7, 100, -100, 127, -128};

std::vector<DType> types_of(std::string_view op) {
  static const std::set<std::string_view> boolean = {"And", "Or", "Xor", "Not"};
  static const std::set<std::string_view> integer = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"};
  static const std::set<std::string_view> both = {"Add",   "Sub",  "Mul",         "Neg",     "Abs",
                                                  "Sign",  "Max",  "Min",         "Sum",     "Relu",
                                                  "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  if (boolean.contains(op)) return {DType::b1};
  if (integer.contains(op)) return {DType::i32, DType::i64};
  if (both.contains(op)) return {DType::f32, DType::i32, DType::i64};
  return {DType::f32};
}

struct Number {
  double f = 0;
  int64_t i = 0;
};

// One element through a scalar program.
Number run_program(const kir::ScalarProgram& p, const std::vector<Number>& operands) {
  std::vector<Number> steps;
  for (const kir::ScalarStep& s : p.steps) {
    std::vector<Number> a(3);
    for (size_t k = 0; k < s.args.size(); k++) {
      const kir::ScalarArg& arg = s.args[k];
      if (arg.kind == kir::ScalarArg::operand) a[k] = operands[static_cast<size_t>(arg.index)];
      if (arg.kind == kir::ScalarArg::step) a[k] = steps[static_cast<size_t>(arg.index)];
      if (arg.kind == kir::ScalarArg::number) a[k] = {arg.value, static_cast<int64_t>(arg.value)};
    }
    Number out;
    if (s.op == kir::S::select) {
      out = a[0].i ? a[1] : a[2];
    } else if (s.op == kir::S::cast) {
      out = is_float(s.in) ? Number{static_cast<double>(static_cast<float>(a[0].f)), static_cast<int64_t>(a[0].f)}
                           : Number{static_cast<double>(a[0].i), a[0].i};
      if (s.out == DType::b1) out.i = is_float(s.in) ? a[0].f != 0 : a[0].i != 0;
    } else if (is_float(s.in)) {
      out.f = kir::eval_float(s.op, s.in, a[0].f, a[1].f, a[2].f);
      out.i = out.f != 0;  // of a comparison
    } else {
      out.i = kir::eval_int(s.op, s.in, a[0].i, a[1].i, a[2].i);
      out.f = static_cast<double>(out.i);
    }
    steps.push_back(out);
  }
  return steps.back();
}

// `scale`: what rounding errors are relative to, besides the result.
bool close(double got, double want, int ulp, double scale) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (got == want) return true;
  const double unit = std::max({std::fabs(want), scale, 1e-3}) * std::numeric_limits<float>::epsilon();
  return std::fabs(got - want) <= ulp * unit;
}

void check_row(const OpRow& r, DType t) {
  const int arity = r.max_args < 0 ? 3 : r.min_args;
  const size_t n = is_float(t) ? kFloats.size() : t == DType::b1 ? 2 : kInts.size();
  const auto total = static_cast<int64_t>(std::pow(n, arity));
  std::vector<Tensor> args;
  for (int k = 0; k < arity; k++) {
    args.push_back(Tensor::make(r.name == "Where" && k == 0 ? DType::b1 : t, {total}));
    for (int64_t i = 0; i < total; i++) {
      const auto pick = static_cast<size_t>(i / static_cast<int64_t>(std::pow(n, k))) % n;
      if (is_float(args.back().dtype))
        args.back().set(i, kFloats[pick]);
      else
        args.back().set_int(i, args.back().dtype == DType::b1 ? static_cast<int64_t>(pick % 2) : kInts[pick]);
    }
  }
  Attrs attrs;
  if (r.name == "Cast") attrs["to"] = std::string("i32");
  if (r.name == "Mod" && is_float(t)) attrs["fmod"] = int64_t{1};
  if (r.name == "Clip") attrs = {{"min", -1.0}, {"max", 2.0}};
  const Graph g = infer(one_node(std::string(r.name), args, attrs)).graph;
  const Node& node = g.nodes.back();
  const kir::ScalarProgram program = scalar_program(g, node);
  ASSERT_FALSE(program.steps.empty());
  EXPECT_EQ(program.steps.back().out, node.types[0].dtype);
  const Tensor want = interpret_graph(g, args)[0];
  static const std::set<std::string_view> cancels = {"Sum", "Mean", "Gelu", "BiasGelu",
                                                     "FastGelu"};  // sums of parts of either sign
  int shown = 0;
  for (int64_t i = 0; i < total && shown < 3; i++) {
    std::vector<Number> operands;
    bool nan = false;
    double largest = 0;
    for (const Tensor& a : args) {
      operands.push_back({a.get(i), is_float(a.dtype) ? 0 : a.get_int(i)});
      nan = nan || !std::isfinite(a.get(i));
      if (std::isfinite(a.get(i))) largest = std::max(largest, std::fabs(a.get(i)));
    }
    if (r.name == "Cast" && nan) continue;  // no number to convert to
    const Number got = run_program(program, operands);
    const bool same = is_float(want.dtype) ? close(got.f, want.get(i), r.ulp, cancels.contains(r.name) ? largest : 0)
                                           : got.i == want.get_int(i);
    if (same) continue;
    shown++;
    ADD_FAILURE() << r.name << " on " << name(t) << " at (" << operands[0].f
                  << (arity > 1 ? ", " + std::to_string(operands[1].f) : "") << "): program "
                  << (is_float(want.dtype) ? got.f : static_cast<double>(got.i)) << ", eval " << want.get(i);
  }
}

TEST(OpTable, ScalarProgramsMeanWhatEvalMeans) {
  for (const OpRow& r : all_ops()) {
    if (r.kind != OpKind::pointwise || r.name == "BitShift") continue;
    for (DType t : types_of(r.name)) {
      SCOPED_TRACE(std::string(r.name) + " " + std::string(name(t)));
      check_row(r, t);
    }
  }
}

TEST(OpTable, IntegerDivisionTruncatesAndShiftsDropBits) {
  const Tensor a = of_type(DType::i32, {4}, {7, -7, 7, -7}), b = of_type(DType::i32, {4}, {2, 2, -2, -2});
  EXPECT_EQ(values(run("Div", {a, b})[0]), (std::vector<double>{3, -3, -3, 3}));
  EXPECT_EQ(values(run("Mod", {a, b})[0]), (std::vector<double>{1, 1, -1, -1}));
  EXPECT_EQ(values(run("Mod", {a, b}, {{"fmod", int64_t{1}}})[0]), (std::vector<double>{1, -1, 1, -1}));
  EXPECT_THROW(run("Div", {a, of_type(DType::i32, {4}, {1, 0, 1, 1})}), UserError);
  const Tensor u = of_type(DType::u8, {3}, {1, 200, 255}), s = of_type(DType::u8, {3}, {3, 1, 9});
  EXPECT_EQ(values(run("BitShift", {u, s}, {{"direction", std::string("LEFT")}})[0]), (std::vector<double>{8, 144, 0}));
}

}  // namespace
}  // namespace gaf
