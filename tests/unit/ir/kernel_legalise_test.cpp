// Legalised kernels compute what the text before said, in statements that the target has.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/tensor.h"
#include "unit/ir/kernel_run.h"

namespace gaf::kir {
namespace {

// A vector unit with its own memory and no transcendental instructions.
Target npu_target() {
  Target t = test_target();
  t.name = "npu", t.kind = "npu", t.pipes = true, t.events = 6, t.vector_bits = 2048, t.max_regs = 0;
  t.memories = {{Mem::gm, INT64_MAX, 32}, {Mem::ub, 184 << 10, 32}};
  t.edges = {{Mem::gm, Mem::ub, Pipe::mte2, 60}, {Mem::ub, Mem::gm, Pipe::mte3, 60}};
  t.map_dst = Mem::ub, t.map_src = {Mem::ub};
  t.vector_dtypes = {DType::f16, DType::f32, DType::i16, DType::i32};
  return t;
}

class KernelLegaliseOp : public testing::TestWithParam<S> {};
TEST_P(KernelLegaliseOp, ExpandsToInstructionsWithTheSameValue) {
  S op = GetParam();
  const ScalarRow& r = row(op);
  Kernel k = parse_kernel(
      fmt::format("kernel @k target npu (in %0: f32[64], in %1: f32[64], out %2: f32[64]) {{\n  for i in 0..64 step 64 "
                  "par {{\n    tile a: f32[1, 64] @ub\n    tile b: f32[1, 64] @ub\n"
                  "    copy a = %0[i:64]\n    copy b = %1[i:64]\n    a = {}(a{})\n    copy %2[i:64] = a\n  }}\n}}\n",
                  r.name, r.arity > 1 ? ", b" : ""));
  Target t = npu_target();
  ASSERT_FALSE(verify_kernel(k, t).empty()) << "it is an instruction";
  Kernel l = legalise(k, t);
  for (const KernelProblem& p : verify_kernel(l, t)) ADD_FAILURE() << p.line << ": " << p.text;
  std::vector<float> a(64), b(64), want(64), got(64);
  for (size_t i = 0; i < 64; i++) {
    a[i] = (static_cast<float>(i) - 31) * 0.173f, b[i] = 0.25f * static_cast<float>(i % 9) + 0.5f;
    if (op == S::log1p) a[i] = std::fabs(a[i]);
    if (op == S::pow) a[i] = std::fabs(a[i]) + 0.01f;
  }
  if (op != S::rem && op != S::pow && op != S::log1p) a[5] = 1e-4f, a[6] = -1e-4f;
  if (op == S::minp || op == S::maxp) a[7] = NAN, b[8] = NAN;
  auto run = [&](const Kernel& x, std::vector<float>& y) {
    void* buffers[] = {a.data(), b.data(), y.data()};
    interpret(x, t, buffers, {});
  };
  run(k, want), run(l, got);
  for (size_t i = 0; i < 64; i++) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << a[i];
      continue;
    }
    EXPECT_NEAR(got[i], want[i], 4e-6 * std::max(1.0f, std::fabs(want[i]))) << r.name << ' ' << a[i];
  }
}
INSTANTIATE_TEST_SUITE_P(, KernelLegaliseOp,
                         testing::Values(S::sign, S::rem, S::minp, S::maxp, S::expm1, S::log1p, S::pow, S::tanh,
                                         S::sigmoid, S::erf, S::sin, S::cos),
                         [](const auto& i) { return std::string(row(i.param).name); });

TEST(KernelLegalise, HalfPrecisionIsComputedInF32) {
  Kernel k = parse_kernel(
      "kernel @k target test (size N in 1..32, in %0: f16[4, 32], in %1: f16[32], out %2: f16[4, 32], out %3: f16[4]) "
      "{\n"
      "  for r in 0..4 par {\n    tile x: f16[1, 32] @reg\n    tile s: f16[1, 1] @reg\n"
      "    x[0:1, 0:N] = add(%0[r, 0:N], %1[0:N])\n    x[0:1, 0:N] = mul(x[0:1, 0:N], 0.5)\n"
      "    copy %2[r, 0:N] = x[0:1, 0:N]\n    s = reduce(max, 1, x[0:1, 0:N])\n    copy %3[r] = s\n  }\n}\n");
  Target t = test_target();
  Kernel l = legalise(k, t);
  for (const KernelProblem& p : verify_kernel(l, t)) ADD_FAILURE() << p.line << ": " << p.text;
  for_each_stmt(l.body, [&](const Stmt& s) {
    if (const Map* m = std::get_if<Map>(&s.alt); m && m->op != S::cast) {
      EXPECT_EQ(type_of(l, m->dst), DType::f32);
    }
  });
  std::vector<uint16_t> x(128), b(32), y(128), z(128), ym(4), zm(4);
  for (size_t i = 0; i < x.size(); i++) x[i] = f32_to_f16(0.37f * static_cast<float>(i) - 20);
  for (size_t i = 0; i < b.size(); i++) b[i] = f32_to_f16(0.11f * static_cast<float>(i));
  int64_t sizes[] = {29};
  void *before[] = {x.data(), b.data(), y.data(), ym.data()}, *after[] = {x.data(), b.data(), z.data(), zm.data()};
  interpret(k, t, before, sizes), interpret(l, t, after, sizes);
  EXPECT_EQ(y, z);
  EXPECT_EQ(ym, zm);
}

TEST(KernelLegalise, SplitsMmaBeyondTheRegisterTile) {
  Kernel k = parse_kernel(
      "kernel @k target test (in %0: f32[10, 8], in %1: f32[8, 24], out %2: f32[10, 24]) {\n"
      "  tile c: f32[10, 24] @reg\n  c = mma(%0[0:10, 0:8], %1[0:8, 0:24])\n  c += mma(%0[0:10, 0:8], %1[0:8, 0:24])\n "
      " copy %2[0:10, 0:24] = c\n}\n");
  Target t = test_target();
  Kernel l = legalise(k, t);
  for (const KernelProblem& p : verify_kernel(l, t)) ADD_FAILURE() << p.line << ": " << p.text;
  EXPECT_THAT(print_kernel(l), testing::HasSubstr("c[8:2, 16:8] += mma(%0[8:2, 0:8], %1[0:8, 16:8])"));
  std::vector<float> a = random_floats(80, 1), b = random_floats(192, 2), y(240), z(240);
  void *before[] = {a.data(), b.data(), y.data()}, *after[] = {a.data(), b.data(), z.data()};
  interpret(k, t, before, {}), interpret(l, t, after, {});
  EXPECT_EQ(y, z);
}

TEST(KernelLegalise, LeavesLegalKernelsAlone) {
  std::string_view text =
      "kernel @k target test (in %0: f32[8], out %1: f32[8]) {\n  tile c: f32[1, 8] @reg\n  c = tanh(%0[0:8])\n  copy "
      "%1[0:8] = c\n}\n";
  EXPECT_EQ(print_kernel(legalise(parse_kernel(text), test_target())), text);
}

}  // namespace
}  // namespace gaf::kir
