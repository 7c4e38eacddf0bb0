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

// Input and output in plain order, the convolution between two transposes, with a Relu behind the first.
std::string plain_text(const ConvShape& c) {
  const std::string dims = "f32[" + std::to_string(c.n) + ",", channels = std::to_string(c.channels);
  const std::string in = dims + channels + "," + list(c.in) + "]", out = dims + channels + "," + list(c.out()) + "]";
  std::vector<int64_t> there = {0}, back = {0, static_cast<int64_t>(c.in.size()) + 1};
  for (size_t d = 0; d < c.in.size(); d++) there.push_back(static_cast<int64_t>(d) + 2);
  for (size_t d = 0; d < c.in.size(); d++) back.push_back(static_cast<int64_t>(d) + 1);
  there.push_back(1);
  return "graph @k(%0: " + in + ", %1: f32[" + channels + ",1," + list(c.kernel) + "] const, %2: f32[" + channels +
         "]) -> (%6) {\n  %3 = Transpose(%0) {perm=[" + list(there) + "]} : " + dims + list(c.in) + "," + channels +
         "]\n  %4 = Conv(%3, %1, %2) {group=" + channels + ", " + attributes(c) + "} : " + dims + list(c.out()) + "," +
         channels + "]\n  %5 = Relu(%4) : " + dims + list(c.out()) + "," + channels +
         "]\n  %6 = Transpose(%5) {perm=[" + list(back) + "]} : " + out + "\n}\n";
}

TEST(Depthwise, PlainOrder) {
  std::mt19937 g(12);
  for (int i = 0; i < 40 && !::testing::Test::HasFailure(); i++) {
    const size_t dims = i % 5 == 0 ? 1 : i % 7 == 0 ? 3 : 2;
    ConvShape c = random_shape(g, dims, true);
    c.channels = c.outputs = c.group = 2 + c.channels % 5;
    c.stride.back() = 1;
    expect_kernel(lower_depthwise, plain_text(c), {{}}, "depthwise");
  }
}

TEST(Depthwise, PlainOrderInBlocksOfRows) {
  ConvShape c{1, {75, 130}, 3, 3, 3, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  expect_kernel(lower_depthwise, plain_text(c), {{}}, "depthwise");
  c.stride = {2, 1}, c.dilation = {2, 3}, c.pads = {0, 3, 2, 1};
  expect_kernel(lower_depthwise, plain_text(c), {{}}, "depthwise");
}

TEST(Depthwise, PlainOrderOfSymbolicHeight) {
  expect_kernel(lower_depthwise,
                R"(graph @k(size B in 1..16, size H in 1..200, %0: f32[B,5,H,21], %1: f32[5,1,3,3] const) -> (%4) {
  %2 = Transpose(%0) {perm=[0,2,3,1]} : f32[B,H,21,5]
  %3 = Conv(%2, %1) {group=5, kernel_shape=[3,3], layout="NHWC", pads=[1,1,1,1]} : f32[B,H,21,5]
  %4 = Transpose(%3) {perm=[0,3,1,2]} : f32[B,5,H,21]
}
)",
                {{1, 1}, {2, 7}, {1, 53}}, "depthwise");
}

TEST(Depthwise, PlainOrderRefused) {
  auto reason = [](const std::string& text) {
    auto a = lower_depthwise(parse_graph(text), load_target("x86-64-avx2"));
    return a && std::holds_alternative<Verdict>(*a) ? std::get<Verdict>(*a).text : "";
  };
  ConvShape c{1, {9, 9}, 3, 3, 3, {3, 3}, {1, 2}, {1, 1}, {1, 1, 1, 1}};
  EXPECT_NE(reason(plain_text(c)).find("reads plain data with a stride"), std::string::npos);
  c.stride = {1, 1};
  std::string text = plain_text(c);  // without the last transpose
  text.replace(text.find("(%6)"), 4, "(%5)")
      .erase(text.find("  %6"), text.find("}\n", text.find("  %6")) - text.find("  %6"));
  EXPECT_NE(reason(text).find("written in another order"), std::string::npos) << text;
}

}  // namespace
}  // namespace gaf
