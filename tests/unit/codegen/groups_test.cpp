// The hand-written kernels of every kind of group, compiled for each x86 target this machine runs, against the
// interpreter.
#include "unit/codegen/run_kernel.h"
#include "unit/ir/kernel_texts.h"

namespace gaf {
namespace {

using namespace kir::texts;

void run(std::string_view text, std::vector<int64_t> sizes = {}, std::function<void(int, Tensor&)> fill = {},
         double tolerance = 2e-6) {
  expect_compiled_like_interpreted({std::string(text), std::move(sizes), std::move(fill), tolerance});
}
std::function<void(int, Tensor&)> below(int parameter, int64_t limit) {
  return [=](int p, Tensor& t) {
    for (int64_t i = 0; p == parameter && i < t.numel(); i++) t.set_int(i, (i * 7 + 3) % limit);
  };
}

TEST(Groups, BiasGelu) {
  for (int64_t m : {1, 3, 64}) run(kBiasGelu, {m});
}
TEST(Groups, ResidualNormGelu) {
  for (int64_t m : {1, 5}) run(kResidualNormGelu, {m}, {}, 5e-6);
}
TEST(Groups, MatmulBiasRelu) { run(kMatmulBiasRelu); }
TEST(Groups, MatmulRows) {
  for (int64_t m : {1, 3, 4, 9, 32}) run(kMatmulRows, {m});
}
TEST(Groups, Conv) {
  for (int64_t h : {1, 2, 5}) run(kConv, {h});
}
TEST(Groups, Attention) { run(kAttention, {}, {}, 5e-6); }
TEST(Groups, SoftmaxLoss) { run(kSoftmaxLoss, {7}, below(1, 64)); }
TEST(Groups, GatherTranspose) { run(kGatherTranspose, {}, below(1, 50)); }
TEST(Groups, Half) { run(kHalf, {}, {}, 1e-3); }
TEST(Groups, SplitSum) { run(kSplitSum); }
TEST(Groups, Mask) { run(kMask, {}, below(2, 16)); }
TEST(Groups, Integers) {
  for (int64_t n : {1, 4}) run(kIntegers, {n});
}

}  // namespace
}  // namespace gaf
