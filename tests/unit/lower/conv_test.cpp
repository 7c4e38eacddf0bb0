// Convolutions against the reference: random shapes in one to three dims, groups, symbolic sizes, pointwise neighbours.
#include "check_kernel.h"
#include "conv_text.h"

namespace gaf {
namespace {

void check(const std::string& text, std::vector<std::vector<int64_t>> sizes = {{}}, std::string_view tmpl = "") {
  expect_kernel(lower_conv, text, std::move(sizes), tmpl);
}

TEST(Convolution, RandomShapes) {
  std::mt19937 g(7);
  for (int i = 0; i < 100 && !::testing::Test::HasFailure(); i++) {
    size_t dims = i % 5 == 0 ? 1 : i % 7 == 0 ? 3 : 2;
    check(conv_text(random_shape(g, dims, false), i % 3 == 0));
  }
}

TEST(Convolution, OneByOneIsAContraction) {
  ConvShape c{2, {5, 7}, 24, 40, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
  check(conv_text(c, true), {{}}, "contraction");
  c.stride = {2, 2};
  check(conv_text(c, true), {{}}, "conv");
}

TEST(Convolution, SymbolicBatchAndImage) {
  check(
      R"(graph @k(size B in 1..16, size H in 1..200, size W in 1..300, %0: f32[B,H,W,3], %1: f32[10,3,3,3] const, %2: f32[10]) -> (%4) {
  %3 = Conv(%0, %1, %2) {kernel_shape=[3,3], layout="NHWC", pads=[1,1,1,1]} : f32[B,H,W,10]
  %4 = Relu(%3) : f32[B,H,W,10]
}
)",
      {{1, 1, 1}, {2, 7, 9}, {1, 13, 61}});
  check(R"(graph @k(size H in 3..200, size W in 3..300, %0: f32[1,H,W,4], %1: f32[10,4,3,3] const) -> (%2) {
  %2 = Conv(%0, %1) {kernel_shape=[3,3], layout="NHWC", strides=[2,2]} : f32[1,(H + -3)/2 + 1,(W + -3)/2 + 1,10]
}
)",
        {{3, 3}, {8, 9}, {21, 70}});
}

TEST(Convolution, SizesThatAreExpressions) {
  check(
      R"(graph @k(size N in 1..1024, size A in 1..4096, size B in 1..4096, %0: f32[N,(A + max(0, -A + ((A + 1)/2)*2))/2 - 1,(B + max(0, -B + ((B + 1)/2)*2))/2 - 1,10], %1: f32[16,10,3,3] const) -> (%2) {
  %2 = Conv(%0, %1) {kernel_shape=[3,3], layout="NHWC"} : f32[N,(A + max(0, -A + ((A + 1)/2)*2))/2 - 3,(B + max(0, -B + ((B + 1)/2)*2))/2 - 3,16]
}
)",
      {{2, 13, 20}});
}

TEST(Convolution, LongEpilogueOfARaggedRow) {
  check(R"(graph @k(size W in 5..300, %0: f32[1,9,W,16], %1: f32[32,16,3,3] const, %2: f32[32], %3: f32[1,1,1,32]) -> (%5) {
  %4 = Conv(%0, %1, %2) {kernel_shape=[3,3], layout="NHWC"} : f32[1,7,W + -2,32]
  %5 = PRelu(%4, %3) : f32[1,7,W + -2,32]
}
)",
        {{5}, {15}, {70}});
}

TEST(Convolution, ChannelScaleBehindIt) {
  check(R"(graph @k(%0: f32[2,6,6,8], %1: f32[16,8,1,1] const, %2: f32[2,1,1,16]) -> (%4) {
  %3 = Conv(%0, %1) {kernel_shape=[1,1], layout="NHWC"} : f32[2,6,6,16]
  %4 = Mul(%3, %2) : f32[2,6,6,16]
}
)");
}

// The input of a channels-first model: turned while the patch is filled.
TEST(Convolution, TransposedInput) {
  check(R"(graph @k(size N in 1..4, %0: f32[N,21,9,37], %1: f32[8,21,3,3] const) -> (%3) {
  %2 = Transpose(%0) {perm=[0,2,3,1]} : f32[N,9,37,21]
  %3 = Conv(%2, %1) {kernel_shape=[3,3], layout="NHWC", pads=[1,1,1,1]} : f32[N,9,37,8]
}
)",
        {{1}, {3}}, "conv");
}

std::string pooled_text(const std::string& reduce, const std::string& y, const std::string& behind = "") {
  return "graph @k(size N in 1..4, %0: f32[N,9,31,5], %1: f32[20,5,3,3] const, %2: f32[20]) -> (%7) {\n"
         "  %3 = Conv(%0, %1, %2) {kernel_shape=[3,3], layout=\"NHWC\", pads=[0,1,0,1]} : f32[N,7,31,20]\n"
         "  %4 = Sigmoid(%3) : f32[N,7,31,20]\n"
         "  %5 = Mul(%3, %4) : f32[N,7,31,20]\n"
         "  %6 = " +
         reduce + "(%5) {axes=[1,2]" + behind + "} : " + y +
         "\n"
         "  %7 = Abs(%6) : " +
         y + "\n}\n";
}

TEST(Convolution, FoldsAReductionOverItsPixels) {
  for (const char* reduce : {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean"}) {
    check(pooled_text(reduce, "f32[N,1,1,20]"), {{1}, {3}}, "conv");
    check(pooled_text(reduce, "f32[N,20]", ", keepdims=0"), {{2}}, "conv");
  }
  check(R"(graph @k(size N in 1..4, %0: f32[N,40,6], %1: f32[33,6,5] const) -> (%3) {
  %2 = Conv(%0, %1) {kernel_shape=[5], layout="NHWC"} : f32[N,36,33]
  %3 = GlobalMaxPool(%2) {layout="NHWC"} : f32[N,1,33]
}
)",
        {{1}, {2}}, "conv");
}

TEST(Convolution, OtherReductionsAreRefused) {
  auto reason = [](const std::string& text) {
    Attempt a = lower_conv(parse_graph(text), load_target("x86-64-avx2"));
    return a && std::holds_alternative<Verdict>(*a) ? std::get<Verdict>(*a).reason : "none";
  };
  std::string some = pooled_text("ReduceSum", "f32[N,7,1,20]");
  some.replace(some.find("axes=[1,2]"), 10, "axes=[2]");
  EXPECT_EQ(reason(some), "iteration-mismatch");
  EXPECT_EQ(reason(pooled_text("ReduceProd", "f32[N,1,1,20]")), "iteration-mismatch");
  std::string both = pooled_text("ReduceSum", "f32[N,1,1,20]");
  both.replace(both.find("-> (%7)"), 7, "-> (%7, %5)");
  EXPECT_EQ(reason(both), "iteration-mismatch");
  EXPECT_EQ(reason(R"(graph @k(size H in 3..200, %0: f32[1,H,9,4], %1: f32[10,4,3,3] const) -> (%3) {
  %2 = Conv(%0, %1) {kernel_shape=[3,3], layout="NHWC"} : f32[1,H + -2,7,10]
  %3 = ReduceMax(%2) {axes=[1,2]} : f32[1,1,1,10]
}
)"),
            "dynamic-shape");
}

TEST(Convolution, ChannelsFirstIsRefused) {
  Graph fn = parse_graph(R"(graph @k(%0: f32[1,3,8,8], %1: f32[4,3,3,3] const) -> (%2) {
  %2 = Conv(%0, %1) {kernel_shape=[3,3]} : f32[1,4,6,6]
}
)");
  Attempt a = lower_conv(fn, load_target("x86-64-avx2"));
  ASSERT_TRUE(a && std::holds_alternative<Verdict>(*a));
  EXPECT_EQ(std::get<Verdict>(*a).reason, "layout");
}

}  // namespace
}  // namespace gaf
