// Values of hand-written kernels against plain loops, and the faults that the interpreter refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/tensor.h"
#include "unit/ir/kernel_run.h"
#include "unit/ir/kernel_texts.h"

namespace gaf::kir {
namespace {

using Floats = std::vector<float>;

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

TEST(KernelInterpreter, BiasGelu) {
  Floats x = random_floats(5 * 40, 1), b = random_floats(40, 2), y(5 * 40);
  run_text(texts::kBiasGelu, {5}, x, b, y);
  for (size_t i = 0; i < y.size(); i++) EXPECT_NEAR(y[i], gelu(double{x[i]} + b[i % 40]), 1e-6);
}

TEST(KernelInterpreter, ResidualNormGelu) {
  Floats x = random_floats(3 * 64, 1), z = random_floats(3 * 64, 2), g = random_floats(64, 3), b = random_floats(64, 4),
         y(3 * 64);
  run_text(texts::kResidualNormGelu, {3}, x, z, g, b, y);
  for (size_t r = 0; r < 3; r++) {
    double mean = 0, var = 0;
    for (size_t c = 0; c < 64; c++) mean += (double{x[r * 64 + c]} + z[r * 64 + c]) / 64;
    for (size_t c = 0; c < 64; c++) var += std::pow(double{x[r * 64 + c]} + z[r * 64 + c] - mean, 2) / 64;
    for (size_t c = 0; c < 64; c++)
      EXPECT_NEAR(y[r * 64 + c],
                  gelu((double{x[r * 64 + c]} + z[r * 64 + c] - mean) / std::sqrt(var + 1e-5) * g[c] + b[c]), 1e-5);
  }
}

TEST(KernelInterpreter, MatmulBiasRelu) {
  Floats a = random_floats(17 * 24, 1), w = random_floats(3 * 24 * 16, 2), b = random_floats(48, 3), y(17 * 48);
  run_text(texts::kMatmulBiasRelu, {}, a, w, b, y);
  for (size_t r = 0; r < 17; r++)
    for (size_t c = 0; c < 48; c++) {
      double s = b[c];
      for (size_t k = 0; k < 24; k++) s += double{a[r * 24 + k]} * w[(c / 16 * 24 + k) * 16 + c % 16];
      EXPECT_NEAR(y[r * 48 + c], std::max(0.0, s), 1e-5);
    }
}

TEST(KernelInterpreter, MatmulOfAnyNumberOfRows) {
  for (int64_t m : {1, 3, 4, 9, 32}) {
    auto rows = static_cast<size_t>(m);
    Floats a = random_floats(rows * 8, 1), w = random_floats(8 * 16, 2), y(rows * 16, -7);
    run_text(texts::kMatmulRows, {m}, a, w, y);
    for (size_t r = 0; r < rows; r++)
      for (size_t c = 0; c < 16; c++) {
        double s = 0;
        for (size_t k = 0; k < 8; k++) s += double{a[r * 8 + k]} * w[k * 16 + c];
        EXPECT_NEAR(y[r * 16 + c], s, 1e-5);
      }
  }
}

TEST(KernelInterpreter, ConvolutionWithPadding) {
  for (int h : {1, 2, 5}) {
    auto n = static_cast<size_t>(h);
    Floats x = random_floats(n * 7 * 4, 1), w = random_floats(3 * 12 * 16, 2), b = random_floats(16, 3),
           z = random_floats(n * 7 * 16, 4), y(n * 7 * 16);
    run_text(texts::kConv, {h}, x, w, b, z, y);
    for (int i = 0; i < h; i++)
      for (int j = 0; j < 7; j++)
        for (int o = 0; o < 16; o++) {
          double s = b[static_cast<size_t>(o)] + z[static_cast<size_t>((i * 7 + j) * 16 + o)];
          for (int kh = 0; kh < 3; kh++)
            for (int kw = 0; kw < 3; kw++)
              for (int c = 0; c < 4; c++) {
                int p = i + kh - 1, q = j + kw - 1;
                if (p >= 0 && p < h && q >= 0 && q < 7)
                  s += double{x[static_cast<size_t>((p * 7 + q) * 4 + c)]} *
                       w[static_cast<size_t>((kh * 12 + kw * 4 + c) * 16 + o)];
              }
          EXPECT_NEAR(y[static_cast<size_t>((i * 7 + j) * 16 + o)], std::max(0.0, s), 1e-5);
        }
  }
}

TEST(KernelInterpreter, OnlineAttentionWithCausalMask) {
  Floats q = random_floats(2 * 12 * 16, 1), k = random_floats(2 * 32 * 16, 2), v = random_floats(2 * 32 * 16, 3),
         mask(12 * 32), y(2 * 12 * 16);
  for (size_t i = 0; i < 12; i++)
    for (size_t j = 0; j < 32; j++)
      mask[i * 32 + j] = j > i + 2 ? -INFINITY : 0;  // the second block is wholly masked for all
  run_text(texts::kAttention, {}, q, k, v, mask, y);
  for (size_t h = 0; h < 2; h++)
    for (size_t i = 0; i < 12; i++) {
      std::vector<double> p(32);
      double sum = 0;
      for (size_t j = 0; j < 32; j++) {
        double s = 0;
        for (size_t d = 0; d < 16; d++) s += double{q[(h * 12 + i) * 16 + d]} * k[(h * 32 + j) * 16 + d];
        sum += p[j] = std::exp(s / 4 + mask[i * 32 + j]);
      }
      for (size_t d = 0; d < 16; d++) {
        double s = 0;
        for (size_t j = 0; j < 32; j++) s += p[j] / sum * v[(h * 32 + j) * 16 + d];
        EXPECT_NEAR(y[(h * 12 + i) * 16 + d], s, 1e-5);
      }
    }
}

TEST(KernelInterpreter, SoftmaxLossReadsLabels) {
  Floats x = random_floats(4 * 64, 1), y(4);
  std::vector<int64_t> label = {0, 63, 17, 5};
  run_text(texts::kSoftmaxLoss, {4}, x, label, y);
  for (size_t r = 0; r < 4; r++) {
    double s = 0;
    for (size_t c = 0; c < 64; c++) s += std::exp(double{x[r * 64 + c]});
    EXPECT_NEAR(y[r], std::log(s) - x[r * 64 + static_cast<size_t>(label[r])], 1e-5);
  }
  label[2] = 64;
  EXPECT_THROW(run_text(texts::kSoftmaxLoss, {4}, x, label, y), UserError);
}

TEST(KernelInterpreter, GatherTransposeBroadcastRagged) {
  Floats table = random_floats(50 * 20, 1), scale = random_floats(20, 2), a = random_floats(20 * 16, 3), y(16 * 20);
  std::vector<int32_t> ids(16);
  for (size_t i = 0; i < 16; i++) ids[i] = static_cast<int32_t>(i * 7 % 50);
  run_text(texts::kGatherTranspose, {}, table, ids, scale, a, y);
  for (size_t i = 0; i < 16; i++)
    for (size_t j = 0; j < 20; j++)
      EXPECT_NEAR(y[i * 20 + j], double{table[static_cast<size_t>(ids[i]) * 20 + j]} * scale[j] + a[j * 16 + i], 1e-6);
}

TEST(KernelInterpreter, HalfPrecisionThroughCasts) {
  std::vector<uint16_t> x(4 * 32), b(32), y(4 * 32);
  for (size_t i = 0; i < x.size(); i++) x[i] = f32_to_f16(0.37f * static_cast<float>(i) - 20);
  for (size_t i = 0; i < b.size(); i++) b[i] = f32_to_bf16(0.11f * static_cast<float>(i));
  run_text(texts::kHalf, {}, x, b, y);
  for (size_t i = 0; i < y.size(); i++) EXPECT_EQ(y[i], f32_to_f16(f16_to_f32(x[i]) * bf16_to_f32(b[i % 32])));
}

TEST(KernelInterpreter, TwoPhases) {
  std::vector<int32_t> x(128), parts(4), y(1);
  for (size_t i = 0; i < 128; i++) x[i] = static_cast<int32_t>(i * i);
  run_text(texts::kSplitSum, {}, x, parts, y);
  EXPECT_EQ(y[0], 127 * 128 * 255 / 6);
}

TEST(KernelInterpreter, MaskFlipGatherInPlace) {
  Floats x = random_floats(8 * 16, 1), was = x, b = random_floats(16, 2), y(8 * 16);
  std::vector<int32_t> index(8 * 16);
  for (size_t i = 0; i < index.size(); i++) index[i] = static_cast<int32_t>(i * 5 % 16);
  run_text(texts::kMask, {}, x, b, index, y);
  for (size_t r = 0; r < 8; r++)
    for (size_t c = 0; c < 16; c++) {
      EXPECT_EQ(x[r * 16 + c], c > r ? -INFINITY : was[r * 16 + c] + b[15 - c]);
      EXPECT_EQ(y[r * 16 + c], b[static_cast<size_t>(index[r * 16 + c])]);
    }
}

TEST(KernelInterpreter, IntegersAndBooleans) {
  std::vector<int64_t> x(2 * 24), y(2 * 24);
  std::vector<uint8_t> u(2 * 24), q(2 * 24);
  for (size_t i = 0; i < x.size(); i++)
    x[i] = static_cast<int64_t>(i) * 1000000007 - 3, u[i] = static_cast<uint8_t>(i * 37);
  run_text(texts::kIntegers, {2}, x, u, y, q);
  for (size_t i = 0; i < x.size(); i++) {
    int64_t want = i / 8 % 3 == 1 ? x[i] % 5 : x[i] * u[i];
    EXPECT_EQ(y[i], want);
    EXPECT_EQ(q[i], want >= u[i]);
  }
}

// ---- what must be refused ----

std::string in_kernel(std::string_view body) {
  return "kernel @k target test (size N in 1..8, in %0: f32[8, 8], in %1: i32[8], out %2: f32[8, 8]) {\n" +
         std::string(body) + "}\n";
}
std::string refusal(std::string_view body, int64_t n = 4) {
  Floats x(64, 1), y(64);
  std::vector<int32_t> i(8, 3);
  try {
    run_text(in_kernel(body), {n}, x, i, y);
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF5001");
    return e.info().message;
  }
  return "";
}

struct Refused {
  std::string_view body, message;
  int64_t n = 4;
};
class KernelInterpreterRefuses : public testing::TestWithParam<Refused> {};
TEST_P(KernelInterpreterRefuses, WithTheLine) {
  EXPECT_THAT(refusal(GetParam().body, GetParam().n), testing::HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    , KernelInterpreterRefuses,
    testing::Values(
        Refused{"  tile t: f32[1, 8] @reg\n  copy %2[0, 0:8] = t\n", "never written: t, line 3: copy %2[0, 0:8] = t"},
        Refused{"  tile t: f32[1, 8] @reg\n  t[0:1, 0:4] = mov(1)\n  t = neg(t)\n", "never written: t, line 4"},
        Refused{"  tile t: f32[1, 8] @reg\n  copy t = %2[0, 0:8]\n", "never written: %2[0, 0:8]"},
        Refused{"  copy %2[0, 0:8] = %0[N, 0:8]\n", "index outside %0[N, 0:8]", 8},
        Refused{"  tile t: f32[1, 8] @reg\n  copy t = %0[0, N:8]\n", "index outside"},
        Refused{"  read k = %1[0] in 0..3\n", "read 3, promised to lie in 0..3, line 2"},
        Refused{"  tile t: f32[1, 4] @reg\n  t = mov(%0[0, 0:8])\n", "[1, 8] does not fit tile t"},
        Refused{"  tile t: f32[1, 8] @reg\n  t = add(%0[0, 0:N], %0[0, 0:8])\n", "do not broadcast"},
        Refused{"  tile t: f32[1, 8] @reg\n  t = expn(%0[0, 0:8])\n", "promised to be <= 0"},
        Refused{"  for i in 0..4 par {\n    copy %2[0, 0:8] = %0[i, 0:8]\n  }\n",
                "writes what another par iteration writes"},
        Refused{"  for i in 0..4 par {\n    copy %2[i, 0:8] = %0[i, 0:8]\n    if i == 1 {\n      copy %2[5, 0:8] = "
                "%2[0, 0:8]\n    }\n  }\n",
                "reads what another par iteration writes"},
        Refused{"  tile t: f32[4, 8] @reg\n  t = mov(0)\n  t += mma(%0[0:N, 0:8], %0[0:8, 0:8])\n",
                "mma: adds [3, 8] to [4, 8]", 3},
        Refused{"  tile t: f32[4, 8] @reg\n  t = mma(%0[0:4, 0:7], %0[0:8, 0:8])\n", "inner sizes 7 and 8"}));

TEST(KernelInterpreter, SizesOutsideTheirClass) {
  EXPECT_THAT(refusal("", 9), testing::HasSubstr("size N = 9 is outside its class"));
}

// A ragged extent that happens to be 1 does not broadcast: extents are decided by the text.
TEST(KernelInterpreter, BroadcastIsDecidedByTheText) {
  Floats x(64, 1), y(64, 0);
  std::vector<int32_t> i(8, 3);
  run_text(in_kernel("  tile t: f32[1, 8] @reg\n  t = mov(%0[0, 0:N])\n  copy %2[0, 0:N] = t\n"), {1}, x, i, y);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 0);
}

// `else`: what lies outside the buffer, in rows and in columns, and what the extent leaves free.
TEST(KernelInterpreter, CopyElseFillsTheTile) {
  Floats x(64), y(64);
  std::vector<int32_t> i(8, 3);
  for (size_t n = 0; n < 64; n++) x[n] = static_cast<float>(n + 1);
  run_text(in_kernel("  tile t: f32[4, 8] @reg\n  copy t = %0[-1:3, 2:7] else -5\n  copy %2[0:4, 0:8] = t\n"), {1}, x,
           i, y);
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 8; c++) {
      bool inside = r - 1 >= 0 && r < 3 && c < 7 && c + 2 < 8;
      EXPECT_EQ(y[static_cast<size_t>(r * 8 + c)], inside ? static_cast<float>((r - 1) * 8 + c + 2 + 1) : -5)
          << r << ' ' << c;
    }
}

}  // namespace
}  // namespace gaf::kir
