// Attention against the reference: masks and their broadcasts, strided heads, ragged and symbolic lengths, masked rows.
#include "check_kernel.h"

namespace gaf {
namespace {

void check(const std::string& text, std::vector<std::vector<int64_t>> sizes = {{}}, std::vector<Tensor> inputs = {}) {
  expect_kernel(lower_attention, text, std::move(sizes), "attention", std::move(inputs));
}

// [batch, heads, queries, depth] and so on; `mask` is a type or empty.
std::string plain(const std::string& lead, const std::string& q, const std::string& k, int d, const std::string& mask,
                  const std::string& sizes = "") {
  std::string depth = std::to_string(d), t = "f32[" + lead + q + "," + k + "]";
  std::string s = "graph @k(" + sizes + "%0: f32[" + lead + q + "," + depth + "], %1: f32[" + lead + depth + "," + k +
                  "], %2: f32[" + lead + k + "," + depth + "]" + (mask.empty() ? "" : ", %3: " + mask) +
                  ") -> (%9) {\n";
  s += "  %4 = MatMul(%0, %1) : " + t + "\n  %5 = constant {value=[0.25]} : f32[]\n  %6 = Mul(%4, %5) : " + t + "\n";
  s += mask.empty() ? "  %7 = Identity(%6) : " + t + "\n" : "  %7 = Add(%6, %3) : " + t + "\n";
  return s + "  %8 = Softmax(%7) {axis=-1} : " + t + "\n  %9 = MatMul(%8, %2) : f32[" + lead + q + "," + depth +
         "]\n}\n";
}

TEST(Attention, StaticSizes) {
  check(plain("2,3,", "8", "8", 16, ""));
  check(plain("", "17", "33", 20, "f32[17,33]"));
  check(plain("2,", "5", "70", 8, "f32[2,1,70]"));
  check(plain("2,3,", "70", "19", 40, "f32[1,1,70,19]"));
  check(plain("2,3,", "13", "13", 12, "f32[2,1,1,13]"));
}

TEST(Attention, LongRowsInBlocksOfKeys) { check(plain("", "9", "12000", 8, "f32[1,12000]")); }

// Heads so wide that a block of keys must be smaller than usual to fit, then so wide that none does.
TEST(Attention, WideHeads) {
  check(plain("", "16", "600", 256, ""));
  const Target t = load_target("x86-64-sse");
  const Attempt none = lower_attention(parse_graph(plain("", "16", "600", 4096, "")), t);
  ASSERT_TRUE(none && std::holds_alternative<Verdict>(*none));
  EXPECT_EQ(std::get<Verdict>(*none).reason, "resource-local-memory");
}

TEST(Attention, SymbolicLength) {
  check(plain("B,2,", "S", "S", 16, "f32[B,1,1,S]", "size B in 1..16, size S in 1..4096, "),
        {{1, 1}, {2, 7}, {1, 33}, {1, 140}});
}

TEST(Attention, ProjectionsAreReadInPlace) {
  check(R"(graph @k(%0: f32[2,7,24], %1: f32[2,7,24], %2: f32[2,7,24], %3: f32[2,1,1,7]) -> (%19) {
  %4 = constant {value=[0.5]} : f32[]
  %5 = Reshape(%0) {shape=[2,7,3,8]} : f32[2,7,3,8]
  %6 = Transpose(%5) {perm=[0,2,1,3]} : f32[2,3,7,8]
  %7 = Mul(%6, %4) : f32[2,3,7,8]
  %8 = Reshape(%1) {shape=[2,7,3,8]} : f32[2,7,3,8]
  %9 = Transpose(%8) {perm=[0,2,3,1]} : f32[2,3,8,7]
  %10 = Div(%9, %4) : f32[2,3,8,7]
  %11 = Reshape(%2) {shape=[2,7,3,8]} : f32[2,7,3,8]
  %12 = Transpose(%11) {perm=[0,2,1,3]} : f32[2,3,7,8]
  %13 = MatMul(%7, %10) : f32[2,3,7,7]
  %14 = Add(%13, %3) : f32[2,3,7,7]
  %15 = Softmax(%14) {axis=3} : f32[2,3,7,7]
  %16 = MatMul(%15, %12) : f32[2,3,7,8]
  %17 = Transpose(%16) {perm=[0,2,1,3]} : f32[2,7,3,8]
  %18 = Reshape(%17) {shape=[2,7,24]} : f32[2,7,24]
  %19 = Identity(%18) : f32[2,7,24]
}
)");
}

TEST(Attention, MaskedRowsAreNan) {
  for (std::string sizes : {"", "size S in 1..4096, "}) {
    std::string s = sizes.empty() ? "20" : "S";
    Graph fn = parse_graph(plain("", s, s, 8, "f32[" + s + "," + s + "]", sizes));
    std::vector<int64_t> values = sizes.empty() ? std::vector<int64_t>{} : std::vector<int64_t>{20};
    std::vector<Tensor> in = random_inputs(fn, values);
    for (int64_t i = 0; i < 20; i++)
      for (int64_t j = 0; j < 20; j++)
        if (i == 3 || j > i) in[3].set(i * 20 + j, -INFINITY);
    check(print_graph(fn), {values}, in);
  }
}

TEST(Attention, OtherFunctionsAreNot) {
  Graph fn = parse_graph(R"(graph @k(%0: f32[4,8], %1: f32[8,4]) -> (%3) {
  %2 = MatMul(%0, %1) : f32[4,4]
  %3 = Softmax(%2) {axis=-1} : f32[4,4]
}
)");
  EXPECT_FALSE(lower_attention(fn, load_target("x86-64-avx2")));
}

}  // namespace
}  // namespace gaf
