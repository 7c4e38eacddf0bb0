// 3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3) against the reference: borders, odd sizes, channels that fill
// no vector, images of several units of work, pointwise neighbours; and how far its rounding may stray.
#include "check_kernel.h"
#include "conv_text.h"

namespace gaf {
namespace {

ConvShape shape(std::vector<int64_t> in, int64_t channels, int64_t outputs, std::vector<int64_t> pads, int64_t n = 1) {
  return {n, std::move(in), channels, outputs, 1, {3, 3}, {1, 1}, {1, 1}, std::move(pads)};
}

bool is_winograd(const std::string& text, const char* target) {
  auto a = lower_conv(parse_graph(text), load_target(target));
  return a && std::holds_alternative<Lowered>(*a) && std::get<Lowered>(*a).template_name == "winograd";
}

// Right on every target, and written this way on the widest (narrower ones may find the nine taps cheaper).
void expect_winograd(const std::string& text, std::vector<std::vector<int64_t>> sizes = {{}}) {
  EXPECT_TRUE(is_winograd(text, "x86-64-avx512")) << text;
  expect_kernel(lower_conv, text, std::move(sizes));
}

TEST(Winograd, RandomShapes) {
  std::mt19937 g(11);
  auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(g); };
  int taken = 0;
  for (int i = 0; i < 12 && !::testing::Test::HasFailure(); i++) {
    ConvShape c = shape({pick(8, 17), pick(8, 26)}, pick(16, 40), pick(16, 50),
                        {pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)}, pick(1, 2));
    const std::string text = conv_text(c, i % 3 == 0);
    for (const char* target : kCpuTargets) taken += is_winograd(text, target);
    expect_kernel(lower_conv, text);
  }
  EXPECT_GE(taken, 18);  // of 36; for the rest the nine taps are cheaper
}

// Units of work that cut an image by rows, by columns and by panels of channels, none of them evenly.
TEST(Winograd, SeveralUnits) {
  expect_winograd(conv_text(shape({31, 13}, 32, 40, {1, 1, 1, 1}), true));
  expect_winograd(conv_text(shape({5, 123}, 96, 40, {1, 1, 1, 1}), false));
  expect_winograd(conv_text(shape({9, 9}, 48, 200, {1, 0, 0, 1}), false));
}

TEST(Winograd, ChannelsFirstOnBothSides) {
  expect_winograd(R"(graph @k(size N in 1..4, %0: f32[N,37,20,15], %1: f32[40,37,3,3] const) -> (%4) {
  %2 = Transpose(%0) {perm=[0,2,3,1]} : f32[N,20,15,37]
  %3 = Conv(%2, %1) {kernel_shape=[3,3], layout="NHWC", pads=[1,1,1,1]} : f32[N,20,15,40]
  %4 = Transpose(%3) {perm=[0,3,1,2]} : f32[N,40,20,15]
}
)",
                  {{1}, {2}});
}

TEST(Winograd, LongEpilogue) {
  expect_winograd(R"(graph @k(%0: f32[1,15,17,24], %1: f32[32,24,3,3] const, %2: f32[32]) -> (%5) {
  %3 = Conv(%0, %1, %2) {kernel_shape=[3,3], layout="NHWC", pads=[1,1,1,1]} : f32[1,15,17,32]
  %4 = Sigmoid(%3) : f32[1,15,17,32]
  %5 = Mul(%3, %4) : f32[1,15,17,32]
}
)");
}

TEST(Winograd, OthersSumTheirTaps) {
  ConvShape c = shape({20, 20}, 32, 32, {1, 1, 1, 1});
  c.stride = {2, 2};
  expect_kernel(lower_conv, conv_text(c, false), {{}}, "conv");
  c.stride = {1, 1}, c.dilation = {2, 2};
  expect_kernel(lower_conv, conv_text(c, false), {{}}, "conv");
  expect_kernel(lower_conv, conv_text(shape({20, 20}, 3, 32, {1, 1, 1, 1}), false), {{}}, "conv");
}

// CONTRACT 12.3: errors stay within sqrt(n) roundings of the sum of magnitudes. Here: 576 products of both signs.
TEST(Winograd, RoundsLikeALongSum) {
  const Graph fn = parse_graph(conv_text(shape({12, 12}, 64, 16, {0, 0, 0, 0}), false));
  const Target t = load_target("x86-64-avx512");
  auto a = lower_conv(fn, t);
  ASSERT_TRUE(a && std::holds_alternative<Lowered>(*a));
  const Lowered& l = std::get<Lowered>(*a);
  ASSERT_EQ(l.template_name, "winograd");
  std::vector<Tensor> in = random_inputs(fn, {}), got = run_lowered(l, t, fn, {}, in), want = interpret_graph(fn, in);
  std::vector<Tensor> magnitudes = in;
  for (Tensor& x : magnitudes)
    for (int64_t i = 0; i < x.numel(); i++) x.set(i, std::fabs(x.get(i)));
  const Tensor sums = interpret_graph(fn, magnitudes)[0];
  const double epsilon = std::ldexp(1, -24);
  ASSERT_EQ(got.size(), 1u);
  for (int64_t i = 0; i < sums.numel(); i++)
    ASSERT_LE(std::fabs(got[0].get(i) - want[0].get(i)), std::sqrt(576.0) * epsilon * sums.get(i)) << i;
}

}  // namespace
}  // namespace gaf
