// Depthwise convolutions against the reference.
#include "check_kernel.h"
#include "conv_text.h"

namespace gaf {
namespace {

TEST(Depthwise, RandomShapes) {
  std::mt19937 g(11);
  for (int i = 0; i < 40 && !::testing::Test::HasFailure(); i++) {
    size_t dims = i % 5 == 0 ? 1 : i % 7 == 0 ? 3 : 2;
    expect_kernel(lower_depthwise, conv_text(random_shape(g, dims, true), i % 3 == 0), {{}}, "depthwise");
  }
}

TEST(Depthwise, SymbolicImage) {
  expect_kernel(
      lower_depthwise,
      R"(graph @k(size B in 1..16, size H in 1..200, size W in 1..300, %0: f32[B,H,W,20], %1: f32[20,1,3,3] const, %2: f32[20]) -> (%4) {
  %3 = Conv(%0, %1, %2) {group=20, kernel_shape=[3,3], layout="NHWC", pads=[1,1,1,1]} : f32[B,H,W,20]
  %4 = HardSwish(%3) : f32[B,H,W,20]
}
)",
      {{1, 1, 1}, {2, 7, 9}, {1, 13, 61}}, "depthwise");
}

}  // namespace
}  // namespace gaf
