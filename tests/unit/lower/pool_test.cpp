// Pooling against the reference: random windows with padding, dilation and ceil_mode, symbolic images, NaN.
#include "check_kernel.h"
#include "conv_text.h"

namespace gaf {
namespace {

TEST(Pool, RandomShapes) {
  std::mt19937 g(13);
  for (int i = 0; i < 60 && !::testing::Test::HasFailure(); i++) {
    size_t dims = i % 5 == 0 ? 1 : i % 7 == 0 ? 3 : 2;
    ConvShape c = random_shape(g, dims, false);
    for (size_t d = 0; d < dims; d++)  // padding is smaller than the kernel
      for (size_t side : {d, d + dims}) c.pads[side] = std::min(c.pads[side], c.kernel[d] - 1);
    expect_kernel(lower_pool, pool_text(c, i % 2 ? "MaxPool" : "AveragePool", i % 3 == 0, i % 4 < 2), {{}}, "pool");
  }
}

TEST(Pool, SymbolicImage) {
  expect_kernel(lower_pool, R"(graph @k(size H in 2..200, size W in 2..300, %0: f32[1,H,W,20]) -> (%1) {
  %1 = AveragePool(%0) {kernel_shape=[3,3], layout="NHWC", pads=[1,1,1,1], strides=[2,2]} : f32[1,(H + -1)/2 + 1,(W + -1)/2 + 1,20]
}
)",
                {{2, 2}, {7, 9}, {13, 61}}, "pool");
}

TEST(Pool, NanStays) {
  Tensor x = Tensor::make(DType::f32, {1, 4, 4, 3});
  for (int64_t i = 0; i < x.numel(); i++) x.set(i, static_cast<double>(i));
  x.set(5, std::nan(""));
  expect_kernel(lower_pool, R"(graph @k(%0: f32[1,4,4,3]) -> (%1) {
  %1, %2 = MaxPool(%0) {kernel_shape=[2,2], layout="NHWC", strides=[2,2]} : f32[1,2,2,3], i64[1,2,2,3]
}
)",
                {{}}, "pool", {x});
}

}  // namespace
}  // namespace gaf
