// Text form of kernels: round trip, faults with their place, Builder, renaming; and the scalar programs.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ir/kernel.h"
#include "unit/ir/kernel_texts.h"

namespace gaf::kir {
namespace {

TEST(KernelText, PrintedFormReadsBackAsItself) {
  for (std::string_view text : texts::kAll) EXPECT_EQ(print_kernel(parse_kernel(text)), text);
}

TEST(KernelText, EveryFormIsReadFromLooseText) {
  std::string_view loose =
      "# all statements and options\n"
      "kernel @k target npu (in %0 : f32[4,8], size N in 1 .. 8 mult 4,out %1: f32[4,8]) {\n"
      "for i in 0..4 step 2 par{ tile t: f32[2,8]@ub+64 ring 2 tile w: f32[2, 8] @ub\n"
      "  copy t = %0[i:2, 0 : 4 : 2] else nan post relu\n"
      "  t = add(t, -1e-3) tmp w\n"
      "  t = reduce(max, 2, t) tmp w\n"
      "  t = mma(t, t^T, t)\n"
      "  if i + 1 <= N*2 { t = mov(inf) } else { t = mov(-inf) }\n"
      "  set mte2 v i%2 wait mte2 v i%2 fence v }\n"
      "barrier }";
  std::string printed = print_kernel(parse_kernel(loose));
  EXPECT_EQ(printed, R"(kernel @k target npu (size N in 1..8 mult 4, in %0: f32[4, 8], out %1: f32[4, 8]) {
  for i in 0..4 step 2 par {
    tile t: f32[2, 8] @ub+64 ring 2
    tile w: f32[2, 8] @ub
    copy t = %0[i:2, 0:4:2] else nan post relu
    t = add(t, -0.001) tmp w
    t = reduce(max, 2, t) tmp w
    t = mma(t, t^T, t)
    if i + 1 <= N*2 {
      t = mov(inf)
    } else {
      t = mov(-inf)
    }
    set mte2 v i%2
    wait mte2 v i%2
    fence v
  }
  barrier
}
)");
  EXPECT_EQ(print_kernel(parse_kernel(printed)), printed);
}

struct Fault {
  std::string_view text;
  int line, column;
  std::string_view message;
};
class KernelTextFault : public testing::TestWithParam<Fault> {};
TEST_P(KernelTextFault, IsReportedAtItsPlace) {
  try {
    parse_kernel(GetParam().text, "k.kir");
    FAIL() << "was read";
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF5001");
    EXPECT_EQ(e.info().file, "k.kir");
    EXPECT_EQ(e.info().line, GetParam().line) << e.what();
    EXPECT_EQ(e.info().column, GetParam().column) << e.what();
    EXPECT_NE(e.info().message.find(GetParam().message), std::string::npos) << e.what();
  }
}
INSTANTIATE_TEST_SUITE_P(
    , KernelTextFault,
    testing::Values(
        Fault{"graph @g", 1, 1, "expected 'kernel'"},
        Fault{"kernel @k target t (in %0: f33[4]) {}", 1, 28, "unknown dtype 'f33'"},
        Fault{"kernel @k target t (in %1: f32[4]) {}", 1, 24, "expected '%0'"},
        Fault{"kernel @k target t (view %0: f32[4]) {}", 1, 21, "cannot be a view"},
        Fault{"kernel @k target t (in %0: f32[N]) {}", 1, 32, "unknown size or loop variable 'N'"},
        Fault{"kernel @k target t () {\n  tile a: f32[1, 8] @lds\n}", 2, 22, "unknown memory 'lds'"},
        Fault{"kernel @k target t () {\n  tile a: f32[1, 8] @reg\n  tile a: f32[1, 8] @reg\n}", 3, 8,
              "'a' is declared twice"},
        Fault{"kernel @k target t () {\n  tile for: f32[1, 8] @reg\n}", 2, 8, "'for' is a keyword"},
        Fault{"kernel @k target t () {\n  tile a: f32[1, 8] @reg\n  a = frob(a)\n}", 3, 7, "unknown scalar op 'frob'"},
        Fault{"kernel @k target t () {\n  tile a: f32[1, 8] @reg\n  a += add(a, a)\n}", 3, 8, "only mma"},
        Fault{"kernel @k target t () {\n  copy b = b\n}", 2, 8, "unknown tile or buffer 'b'"},
        Fault{"kernel @k target t () {\n  for i in 0..4, j in 0..4 {\n  }\n}", 2, 28, "only a par loop"},
        Fault{"kernel @k target t () {\n  for i in 0..4 {\n", 3, 1, "expected '}'"},
        Fault{"kernel @k target t () {\n  tile a: f32[1, 8] @reg\n  a = add(a, 1.2.3)\n}", 3, 17, "expected ')'"},
        Fault{"kernel @k target t () {\n}\n}", 3, 1, "text after the kernel"},
        Fault{"kernel @k target t (in %0: f32[4]) {\n  view v = %0: f32[2] strides(1) at 0\n  view w = v: f32[2] "
              "strides(1) at 0\n}",
              3, 12, "a view of the view"}));

TEST(KernelBuilder, WritesTheTextOfAMatmul) {
  Builder b;
  b.k.name = "mm", b.k.target = "test";
  int x = b.buf(Role::in, DType::f32, {16, 24}), w = b.buf(Role::in, DType::f32, {24, 32});
  int n = b.size("N", 1, 8), y = b.buf(Role::out, DType::f32, {16, 32});
  int v = b.view(w, {32, 24}, {1, 32}, 0, DType::f32);
  b.par({{0, 4}, {0, 2}}, [&](std::vector<Expr> p) {
    Ref acc = b.tile("acc", DType::f32, 4, 16);
    b.map(acc, S::mov, {0.0});
    b.mma(acc, Builder::at(x, {{p[0] * 4, 4}, {0, 24}}), Builder::at(w, {{0, 24}, {p[1] * 16, 16}}));
    b.when(Cmp::lt, p[0], Expr::sym(n), [&] {
      b.map(Builder::part(acc, 0, 1, 0, 16), S::mul, {Builder::part(acc, 0, 1, 0, 16), 2.0});
    });
    b.loop("i", 0, 4, 1, LoopKind::unroll, [&](Expr i) {
      b.copy(Builder::at(y, {{p[0] * 4 + i}, {p[1] * 16, 16}}), Builder::part(acc, i, 1, 0, 16));
    });
  });
  (void)v;
  std::string text = print_kernel(b.k);
  EXPECT_EQ(text,
            R"(kernel @mm target test (size N in 1..8, in %0: f32[16, 24], in %1: f32[24, 32], out %2: f32[16, 32]) {
  view v0 = %1: f32[32, 24] strides(1, 32) at 0
  for p1 in 0..4, p2 in 0..2 par {
    tile acc3: f32[4, 16] @reg
    acc3 = mov(0)
    acc3 += mma(%0[p1*4:4, 0:24], %1[0:24, p2*16:16])
    if p1 < N {
      acc3[0:1, 0:16] = mul(acc3[0:1, 0:16], 2)
    }
    for i4 in 0..4 unroll {
      copy %2[p1*4 + i4, p2*16:16] = acc3[i4:1, 0:16]
    }
  }
}
)");
  EXPECT_EQ(print_kernel(parse_kernel(text)), text);
}

// A size added after the loops that use it: the text must not depend on the order of construction.
TEST(KernelBuilder, SizesAddedLateDoNotChangeTheText) {
  Builder b;
  b.k.name = "k", b.k.target = "test";
  int x = b.buf(Role::out, DType::f32, {64});
  b.loop("i", 0, 8, 1, LoopKind::seq, [&](Expr i) {
    Expr n = Expr::sym(b.size("N", 1, 8));
    Ref t = b.tile("t", DType::f32, 1, 1);
    b.map(t, S::mov, {1.0});
    b.copy(Builder::at(x, {{i + n, 1}}), t);
  });
  std::string text = print_kernel(b.k);
  EXPECT_EQ(print_kernel(parse_kernel(text)), text);
}

TEST(KernelText, StrippedNamesMakeEqualKernelsEqual) {
  std::string a(texts::kBiasGelu), b = a;
  for (auto [from, to] : {std::pair{"@bias_gelu", "@other"},
                          {" M ", " Rows "},
                          {"[M,", "[Rows,"},
                          {"..M ", "..Rows "},
                          {" x", " tmp0"},
                          {"(x", "(tmp0"}})
    for (size_t i = 0; (i = b.find(from, i)) != std::string::npos; i += std::string_view(to).size())
      b.replace(i, std::string_view(from).size(), to);
  ASSERT_NE(a, b);
  EXPECT_EQ(print_kernel(strip_names(parse_kernel(a))), print_kernel(strip_names(parse_kernel(b))));
  for (std::string_view text : texts::kAll) {
    std::string stripped = print_kernel(strip_names(parse_kernel(text)));
    EXPECT_EQ(print_kernel(strip_names(parse_kernel(stripped))), stripped);
  }
}

// ---- scalar programs ----

double run(const ScalarProgram& p, std::vector<double> in) {
  std::vector<double> steps;
  for (const ScalarStep& s : p.steps) {
    double v[3] = {0, 0, 0};
    for (size_t i = 0; i < s.args.size(); i++) {
      const ScalarArg& a = s.args[i];
      v[i] = a.kind == ScalarArg::number ? a.value
             : a.kind == ScalarArg::step ? steps[static_cast<size_t>(a.index)]
                                         : in[static_cast<size_t>(a.index)];
    }
    steps.push_back(s.op == S::cast ? round_float(s.out, v[0]) : eval_float(s.op, s.in, v[0], v[1], v[2]));
  }
  return steps.back();
}

TEST(ScalarText, FollowsTheUsualPrecedence) {
  DType f[] = {DType::f64, DType::f64};
  EXPECT_EQ(run(parse_scalar("a - b * 2 - -a / 4", f, DType::f64), {8, 3}), 8 - 6 + 2);
  EXPECT_EQ(run(parse_scalar("(a - b) * 2", f, DType::f64), {8, 3}), 10);
  EXPECT_EQ(run(parse_scalar("fma(a, $k, max(0, b)) + 1/2", f, DType::f64, {{"k", 3}}), {2, 5}), 11.5);
  EXPECT_EQ(run(parse_scalar("a", f, DType::f64), {7, 0}), 7);
  EXPECT_EQ(run(parse_scalar("2 * 3", f, DType::f64), {7, 0}), 6);
}

TEST(ScalarText, TypesFollowTheOperands) {
  DType f[] = {DType::f16, DType::i32};
  ScalarProgram p = parse_scalar("select(lt(b, 0), a, a * a)", f, DType::f32);
  ASSERT_EQ(p.steps.size(), 4u);
  EXPECT_EQ(p.steps[0].in, DType::i32);
  EXPECT_EQ(p.steps[0].out, DType::b1);
  EXPECT_EQ(p.steps[2].op, S::select);
  EXPECT_EQ(p.steps[2].in, DType::f16);
  EXPECT_EQ(p.steps[3].op, S::cast);
  EXPECT_EQ(p.steps[3].out, DType::f32);
  ScalarProgram q = parse_scalar("f32(a) * sigmoid(f32(a))", f, DType::f32);
  EXPECT_EQ(q.steps.size(), 3u) << "equal steps are written once";
}

TEST(ScalarText, FaultsAreInternal) {
  DType f[] = {DType::f32, DType::i32};
  for (std::string_view text : {"a + b", "frob(a)", "add(a)", "a +", "c", "$k", "exp(b)", "a a"})
    EXPECT_THROW(parse_scalar(text, f, DType::f32), InternalError) << text;
}

// Every row's derivative agrees with a difference quotient.
TEST(ScalarTable, DerivativesMatchDifferences) {
  for (int n = 0; n < static_cast<int>(S::count); n++) {
    S op = static_cast<S>(n);
    const ScalarRow& r = row(op);
    if (!computes(op, DType::f64) || r.nan == Nan::never || r.nan == Nan::bits || op == S::select) continue;
    double x[3] = {0.37, 1.61, 2.3}, h = 1e-6;
    if (op == S::expn) x[0] = -0.4;
    double y = eval_float(op, DType::f64, x[0], x[1], x[2]);
    std::string grad(r.grad);
    for (int i = 0; i < r.arity; i++) {
      size_t semicolon = grad.find(';');
      std::string text = grad.substr(0, semicolon);
      grad = semicolon == std::string::npos ? "" : grad.substr(semicolon + 1);
      std::vector<DType> types(static_cast<size_t>(r.arity) + 1, DType::f64);
      std::vector<double> in(x, x + r.arity);
      in.push_back(y);
      double got = run(parse_scalar(text, types, DType::f64), in);
      double up[3] = {x[0], x[1], x[2]}, down[3] = {x[0], x[1], x[2]};
      up[i] += h, down[i] -= h;
      double want =
          (eval_float(op, DType::f64, up[0], up[1], up[2]) - eval_float(op, DType::f64, down[0], down[1], down[2])) /
          (2 * h);
      EXPECT_NEAR(got, want, 1e-5 * (1 + std::fabs(want))) << r.name << " operand " << i;
    }
    EXPECT_EQ(grad, "") << r.name;
  }
}

TEST(ScalarTable, NanRules) {
  double nan = std::nan("");
  EXPECT_TRUE(std::isnan(eval_float(S::max, DType::f32, 0, nan, 0)));
  EXPECT_EQ(eval_float(S::max, DType::f32, nan, 0, 0), 0);
  EXPECT_TRUE(std::isnan(eval_float(S::maxp, DType::f32, nan, 0, 0)));
  EXPECT_TRUE(std::isnan(eval_float(S::minp, DType::f32, 0, nan, 0)));
  EXPECT_EQ(eval_float(S::lt, DType::f32, nan, 0, 0), 0);
  EXPECT_EQ(eval_float(S::ne, DType::f32, nan, nan, 0), 1);
}

TEST(ScalarTable, RoundsAndWrapsToTheDtype) {
  EXPECT_EQ(eval_float(S::add, DType::f16, 2048, 1, 0), 2048);  // half to even
  EXPECT_EQ(eval_float(S::add, DType::f16, 65504, 16, 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(round_float(DType::bf16, 1 + 0x1p-8), 1);
  EXPECT_EQ(round_float(DType::bf16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);  // not twice rounded through f32
  EXPECT_EQ(round_float(DType::f16, 0x1p-25), 0);
  EXPECT_EQ(round_float(DType::f16, 0x1.8p-24), 0x1p-23);
  EXPECT_EQ(eval_int(S::add, DType::u8, 250, 10, 0), 4);
  EXPECT_EQ(eval_int(S::mul, DType::i32, 1 << 30, 4, 0), 0);
  EXPECT_EQ(eval_int(S::div, DType::i32, -7, 2, 0), -3);
  EXPECT_EQ(eval_int(S::rem, DType::i32, -7, 2, 0), -1);
  EXPECT_EQ(eval_int(S::div, DType::i64, INT64_MIN, -1, 0), INT64_MIN);
  EXPECT_EQ(eval_int(S::div, DType::u64, -1, 2, 0), INT64_MAX);
  EXPECT_EQ(eval_int(S::lt, DType::u64, -1, 2, 0), 0);
  EXPECT_EQ(eval_int(S::shr, DType::i8, -128, 3, 0), -16);
  EXPECT_EQ(convert({2.5, 0}, DType::f32, DType::i32).i, 2);
  EXPECT_EQ(convert({-1e30, 0}, DType::f32, DType::i8).i, -128);
  EXPECT_EQ(convert({1e30, 0}, DType::f32, DType::u64).i, -1);
  EXPECT_EQ(convert({1e30, 0}, DType::f32, DType::i64).i, INT64_MAX);
  EXPECT_EQ(convert({0, 300}, DType::i32, DType::u8).i, 44);
  EXPECT_EQ(convert({0, -1}, DType::u64, DType::f64).f, 0x1p64);
  EXPECT_EQ(convert({0.3, 0}, DType::f32, DType::b1).i, 1);
  EXPECT_EQ(bitcast({1.0, 0}, DType::f32, DType::i32).i, 0x3f800000);
  EXPECT_EQ(bitcast({0, 0x3c00}, DType::i16, DType::f16).f, 1);
}

}  // namespace
}  // namespace gaf::kir
