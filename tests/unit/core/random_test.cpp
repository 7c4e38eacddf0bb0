// Random inputs: the published vectors of the generator, the distributions, and bits that must never change.
#include "random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace gaf {
namespace {

using testing::ElementsAre;

// Known answers published with the generator (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  const uint32_t f = 0xffffffff;
  EXPECT_THAT(philox({f, f, f, f}, {f, f}), ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Normal, QuantileIsTheInverse) {
  for (double p : {1.2e-10, 1e-6, 0.01, 0.0749, 0.2, 0.5, 0.77, 0.9251, 0.999, 1 - 1e-9})
    EXPECT_NEAR(0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0)) / p, 1, 1e-12) << p;
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_EQ(normal_quantile(0.25), -normal_quantile(0.75));
}

TEST(RandomTensor, Moments) {
  RecordProperty("contract", "C23");
  const Tensor x = random_tensor(DType::f32, {100000}, 7, 0);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < x.numel(); i++) sum += x.get(i), squares += x.get(i) * x.get(i);
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.02);
  const Tensor b = random_tensor(DType::b1, {10000}, 7, 1);
  int64_t heads = 0;
  for (int64_t i = 0; i < b.numel(); i++) heads += b.get_int(i);
  EXPECT_NEAR(static_cast<double>(heads), 5000, 300);
}

TEST(RandomTensor, SeedsAndStreamsDiffer) {
  const Tensor a = random_tensor(DType::f32, {64}, 7, 0);
  EXPECT_TRUE(a.equal(random_tensor(DType::f32, {64}, 7, 0)));
  EXPECT_FALSE(a.equal(random_tensor(DType::f32, {64}, 8, 0)));
  EXPECT_FALSE(a.equal(random_tensor(DType::f32, {64}, 7, 1)));
  // a longer tensor begins with the shorter one
  const Tensor longer = random_tensor(DType::f32, {100}, 7, 0);
  for (int64_t i = 0; i < 64; i++) EXPECT_EQ(a.get(i), longer.get(i));
}

TEST(RandomTensor, IntegersStayInTheirRange) {
  const Tensor x = random_tensor(DType::i64, {1000}, 3, 0, -5, 5);
  std::vector<int> seen(10, 0);
  for (int64_t i = 0; i < 1000; i++) {
    ASSERT_GE(x.get_int(i), -5);
    ASSERT_LT(x.get_int(i), 5);
    seen[static_cast<size_t>(x.get_int(i) + 5)]++;
  }
  for (int s : seen) EXPECT_GT(s, 50);
  const Tensor wide = random_tensor(DType::i64, {100}, 3, 0, INT64_MIN, INT64_MAX);
  EXPECT_NE(wide.get_int(0), wide.get_int(1));
  EXPECT_THROW(random_tensor(DType::u8, {1}, 0, 0, 0, 257), UserError);
  EXPECT_THROW(random_tensor(DType::u8, {1}, 0, 0, -1, 3), UserError);
  EXPECT_THROW(random_tensor(DType::i32, {1}, 0, 0, 3, 3), UserError);
  EXPECT_NO_THROW(random_tensor(DType::u8, {1}, 0, 0, 0, 256));
}

}  // namespace
}  // namespace gaf
