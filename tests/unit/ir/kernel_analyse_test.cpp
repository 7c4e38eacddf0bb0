// Counts and predicted times of kernels: exact where the text decides, monotone and in the right order where it is a
// model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unit/ir/kernel_run.h"
#include "unit/ir/kernel_texts.h"

namespace gaf::kir {
namespace {

Work work(std::string_view text, std::vector<int64_t> sizes, int workers = 1) {
  return analyse(parse_kernel(text), test_target(), sizes, workers);
}

TEST(KernelAnalysis, CountsFlopsCopiesAndScratch) {
  Work w = work(texts::kMatmulBiasRelu, {});
  EXPECT_EQ(w.mma_flops, 2.0 * 17 * 24 * 48);
  EXPECT_EQ((w.moved[{Mem::reg, Mem::gm}]), 17 * 48 * 4);
  EXPECT_EQ(w.phases, 1);
  EXPECT_EQ(w.gm_bytes, 4.0 * (17 * 24 + 24 * 48 + 48 + 17 * 48)) << "all of it fits the cache: each byte once";
  Work c = work(texts::kConv, {5});
  EXPECT_EQ(c.mma_flops, 2.0 * 5 * 7 * 36 * 16);
  EXPECT_EQ(c.peak[Mem::scratch], 448);
  EXPECT_EQ((c.moved[{Mem::gm, Mem::scratch}]), 5 * 27 * 4 * 4);
  EXPECT_EQ(work(texts::kSplitSum, {}).phases, 2);
}

TEST(KernelAnalysis, SizesScaleTheCounts) {
  Work a = work(texts::kMatmulRows, {8}), b = work(texts::kMatmulRows, {31});
  EXPECT_EQ(a.mma_flops, 2.0 * 8 * 8 * 16);
  EXPECT_EQ(b.mma_flops, 2.0 * 31 * 8 * 16);
  EXPECT_LT(a.compute_us, b.compute_us);
}

TEST(KernelAnalysis, LiveRegisters) {
  Work w = work(texts::kMatmulBiasRelu, {});
  EXPECT_EQ(w.regs, 15) << "6 x 2 accumulators, a row of b, a broadcast element";
  EXPECT_LE(w.regs_added, 1);
  EXPECT_EQ(work(texts::kBiasGelu, {8}).regs, 8) << "two tiles of 4";
  EXPECT_EQ(work(texts::kBiasGelu, {8}).regs_added, 8);
}

// Ragged extents are sampled, not multiplied out.
TEST(KernelAnalysis, RaggedLoops) {
  auto ragged = [](int n) {
    return fmt::format(
        "kernel @k target test (in %0: f32[4, {0}], out %1: f32[4, {0}]) {{\n  for r in 0..4 par {{\n    for c in "
        "0..{0} step 32 {{\n"
        "      tile x: f32[1, 32] @reg\n      x = exp(%0[r, c:min(32, {0} - c)])\n      copy %1[r, c:min(32, {0} - c)] "
        "= x\n    }}\n  }}\n}}\n",
        n);
  };
  EXPECT_EQ((work(ragged(100), {}).moved[{Mem::reg, Mem::gm}]), 4 * 100 * 4);
  EXPECT_NEAR((work(ragged(10000), {}).moved[{Mem::reg, Mem::gm}]), 4 * 10000 * 4, 1);
}

// A row of blocks of a matmul: A stays in L2 while the panels of B pass once.
std::string matmul(int m, int n, int k, bool rows_outside) {
  std::string p = fmt::format("for p in 0..{} {}{{\n", n / 16, rows_outside ? "" : "par "),
              i = fmt::format("for i in 0..{} step 6 {}{{\n", m, rows_outside ? "par " : "");
  return fmt::format(
             "kernel @mm target test (in %0: f32[{0}, {2}], in %1: f32[{3}, {2}, 16], out %2: f32[{0}, {1}]) {{\n", m,
             n, k, n / 16) +
         (rows_outside ? i + p : p + i) +
         fmt::format(
             "tile c: f32[6, 16] @reg\nc = mov(0)\nc += mma(%0[i:6, 0:{0}], %1[p, 0:{0}, 0:16])\ncopy %2[i:6, p*16:16] "
             "= c\n}}\n}}\n}}\n",
             k);
}
TEST(KernelAnalysis, TrafficThroughTheCache) {
  double a = 4.0 * 126 * 768, b = 4.0 * 3072 * 768, c = 4.0 * 126 * 3072;
  Work panels = work(matmul(126, 3072, 768, false), {}), rows = work(matmul(126, 3072, 768, true), {});
  EXPECT_NEAR(panels.gm_bytes, a + b + c, 0.01 * b) << "A fits: all once";
  EXPECT_NEAR(rows.gm_bytes, a + 21 * b + c, 0.01 * b) << "B does not: once a block of rows";
  EXPECT_LT(panels.us, rows.us);
}

TEST(KernelAnalysis, WorkersShareIterationsInWholeNumbers) {
  std::string text = matmul(126, 48, 768, false);  // three panels
  double one = work(text, {}, 1).compute_us, two = work(text, {}, 2).compute_us, three = work(text, {}, 3).compute_us,
         four = work(text, {}, 4).compute_us;
  EXPECT_NEAR(two, one * 2 / 3, 1e-6 * one);
  EXPECT_NEAR(three, one / 3, 1e-6 * one);
  EXPECT_EQ(three, four);
}

// Fusing a chain of pointwise ops over large data saves the traffic between them.
TEST(KernelAnalysis, OneKernelBeatsTwo) {
  auto chain = [](std::string_view body) {
    return "kernel @k target test (in %0: f32[4096, 1024], out %1: f32[4096, 1024]) {\n  for r in 0..4096 par {\n    "
           "for c in 0..1024 step 32 {\n"
           "      tile x: f32[1, 32] @reg\n" +
           std::string(body) + "      copy %1[r, c:32] = x\n    }\n  }\n}\n";
  };
  double relu = work(chain("      x = max(0, %0[r, c:32])\n"), {}).us,
         scale = work(chain("      x = mul(%0[r, c:32], 2)\n"), {}).us;
  double both = work(chain("      x = max(0, %0[r, c:32])\n      x = mul(x, 2)\n"), {}).us;
  EXPECT_LT(both, 0.6 * (relu + scale));
}

TEST(KernelAnalysis, ReadRowsAreCountedByUse) {
  std::string text =
      "kernel @embed target test (in %0: f32[30000, 768], in %1: i64[16], out %2: f32[16, 768]) {\n"
      "  for i in 0..16 par {\n    read k = %1[i] in 0..30000\n    copy %2[i, 0:768] = %0[k, 0:768]\n  }\n}\n";
  EXPECT_NEAR(work(text, {}).gm_bytes, 2.0 * 16 * 768 * 4, 1000);
}

// What a copy costs beyond its bytes: blocks that turn in registers, elements one by one, rows with an end, one run.
TEST(KernelAnalysis, CopiesThatTurnAndCopiesWithAnEnd) {
  auto copy = [](std::string_view what, std::string_view tile) {
    return work(fmt::format(
                    "kernel @k target test (in %0: f32[40, 64], out %1: f32[64, 64]) {{\n  tile t: f32[{}] @scratch\n"
                    "  copy t = {}\n  copy %1[0:1, 0:16] = t[0:1, 0:16]\n}}\n",
                    tile, what),
                {})
        .compute_us;
  };
  const double plain = copy("%0[0:32, 0:64]", "32, 64"), turned = copy("%0[0:32, 0:64]^T", "64, 32");
  const double apart = copy("%0[0:4, 0:64]^T", "64, 4") * 8;  // four rows are no block of eight
  EXPECT_GT(turned, plain);
  EXPECT_GT(apart, 2 * turned);
  const double run = copy("%0[16:32, 0:64] else 0", "32, 64"), rows = copy("%0[16:32, 1:64] else 0", "32, 64");
  EXPECT_LT(run, 2 * plain);
  EXPECT_GT(rows, run);
}

}  // namespace
}  // namespace gaf::kir
