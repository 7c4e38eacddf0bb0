// Contractions against the reference: constant and run-time B, batches, odd sizes, symbolic dims, epilogues.
#include "check_kernel.h"

namespace gaf {
namespace {

void check(const std::string& text, std::vector<std::vector<int64_t>> sizes = {{}}) {
  expect_kernel(lower_contraction, text, std::move(sizes), "contraction");
}

std::string matmul(int64_t m, int64_t k, int64_t n, bool constant) {
  auto dims = [](int64_t a, int64_t b) { return "f32[" + std::to_string(a) + "," + std::to_string(b) + "]"; };
  return "graph @k(%0: " + dims(m, k) + ", %1: " + dims(k, n) + (constant ? " const" : "") +
         ") -> (%2) {\n  %2 = MatMul(%0, %1) : " + dims(m, n) + "\n}\n";
}

TEST(Contraction, SizesWithConstantB) {
  for (auto [m, k, n] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                            {1, 7, 5},
                                                            {1, 64, 256},
                                                            {2, 33, 96},
                                                            {3, 16, 48},
                                                            {4, 4, 4},
                                                            {5, 3, 17},
                                                            {7, 12, 33},
                                                            {12, 8, 32},
                                                            {13, 9, 64},
                                                            {29, 5, 2},
                                                            {50, 20, 100},
                                                            {37, 6, 10}})
    check(matmul(m, k, n, true));
}

// A that pointwise nodes make: a gate before a projection, with batch dims, a scale a column, and an epilogue.
TEST(Contraction, PointwiseInFront) {
  for (const char* b : {"%2: f32[70,33] const", "%2: f32[70,33]"})
    check(std::string("graph @k(%0: f32[29,70], %1: f32[29,70], ") + b + R"() -> (%6) {
  %3 = Sigmoid(%0) : f32[29,70]
  %4 = Mul(%3, %1) : f32[29,70]
  %5 = MatMul(%4, %2) : f32[29,33]
  %6 = Relu(%5) : f32[29,33]
}
)");
  check(
      R"(graph @k(size B in 1..4, size S in 1..200, %0: f32[B,S,48], %1: f32[48], %2: f32[48,100] const, %3: f32[100]) -> (%6) {
  %4 = Add(%0, %1) : f32[B,S,48]
  %5 = MatMul(%4, %2) : f32[B,S,100]
  %6 = Add(%5, %3) : f32[B,S,100]
}
)",
      {{1, 1}, {2, 37}, {3, 130}});
  check(R"(graph @k(%0: f32[2,1,9,20], %1: f32[2,3,20,40]) -> (%3) {
  %2 = Tanh(%0) : f32[2,1,9,20]
  %3 = MatMul(%2, %1) : f32[2,3,9,40]
}
)");
  check(R"(graph @k(%0: f32[5,3000], %1: f32[3000,40] const) -> (%3) {
  %2 = Abs(%0) : f32[5,3000]
  %3 = MatMul(%2, %1) : f32[5,40]
}
)");
}

TEST(Contraction, WhatCannotBeMadeInFrontIsRefused) {
  auto reason = [](const std::string& text) {
    Attempt a = lower_contraction(parse_graph(text), load_target("x86-64-avx2"));
    return a && std::holds_alternative<Verdict>(*a) ? std::get<Verdict>(*a).reason : "none";
  };
  EXPECT_EQ(reason(R"(graph @k(size K in 1..4096, %0: f32[5,K], %1: f32[K,40]) -> (%3) {
  %2 = Abs(%0) : f32[5,K]
  %3 = MatMul(%2, %1) : f32[5,40]
}
)"),
            "dynamic-shape");
  EXPECT_EQ(reason(R"(graph @k(%0: f32[5,60], %1: f32[60,40]) -> (%3) {
  %2 = Abs(%1) : f32[60,40]
  %3 = MatMul(%0, %2) : f32[5,40]
}
)"),
            "not-fusable-op");
  EXPECT_EQ(reason(R"(graph @k(%0: f32[5,60000], %1: f32[60000,40] const) -> (%3) {
  %2 = Abs(%0) : f32[5,60000]
  %3 = MatMul(%2, %1) : f32[5,40]
}
)"),
            "resource-local-memory");
}

TEST(Contraction, SizesWithRuntimeB) {
  for (auto [m, k, n] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {1, 8, 64}, {3, 7, 5}, {6, 16, 32}, {17, 9, 35}, {24, 5, 64}})
    check(matmul(m, k, n, false));
}

TEST(Contraction, LongKInBlocks) {
  check(matmul(9, 2304, 20, true));
  check(matmul(9, 1301, 20, true));
}

TEST(Contraction, BatchOfRowsIsOneMatrix) {
  check(R"(graph @k(%0: f32[2,5,8], %1: f32[8,12] const, %2: f32[12], %3: f32[2,5,12]) -> (%6) {
  %4 = MatMul(%0, %1) : f32[2,5,12]
  %5 = Add(%4, %2) : f32[2,5,12]
  %6 = Add(%5, %3) : f32[2,5,12]
}
)");
}

TEST(Contraction, BatchedBothSides) {
  check(R"(graph @k(%0: f32[2,3,5,8], %1: f32[2,3,8,20]) -> (%2) {
  %2 = MatMul(%0, %1) : f32[2,3,5,20]
}
)");
  check(R"(graph @k(%0: f32[2,1,5,8], %1: f32[3,8,20]) -> (%2) {
  %2 = MatMul(%0, %1) : f32[2,3,5,20]
}
)");
  check(R"(graph @k(%0: f32[3,5,8], %1: f32[3,8,20] const) -> (%2) {
  %2 = MatMul(%0, %1) : f32[3,5,20]
}
)");
  check(R"(graph @k(%0: f32[3,1,5,8], %1: f32[3,1,8,20] const) -> (%2) {
  %2 = MatMul(%0, %1) : f32[3,1,5,20]
}
)");
}

TEST(Contraction, TransposedViews) {
  check(R"(graph @k(%0: f32[2,5,3,8], %1: f32[2,7,3,8]) -> (%5) {
  %2 = Transpose(%0) {perm=[0,2,1,3]} : f32[2,3,5,8]
  %3 = Transpose(%1) {perm=[0,2,3,1]} : f32[2,3,8,7]
  %4 = MatMul(%2, %3) : f32[2,3,5,7]
  %5 = Relu(%4) : f32[2,3,5,7]
}
)");
}

TEST(Contraction, Vectors) {
  check(R"(graph @k(%0: f32[9], %1: f32[2,9,5]) -> (%2) {
  %2 = MatMul(%0, %1) : f32[2,5]
}
)");
  check(R"(graph @k(%0: f32[2,4,9], %1: f32[9]) -> (%2) {
  %2 = MatMul(%0, %1) : f32[2,4]
}
)");
}

TEST(Contraction, GemmForms) {
  for (int ta = 0; ta < 2; ta++)
    for (int tb = 0; tb < 2; tb++)
      for (std::string constant : {"", " const"})
        check("graph @k(%0: f32[" + std::string(ta ? "9,7" : "7,9") + "], %1: f32[" + (tb ? "20,9" : "9,20") + "]" +
              constant + ", %2: f32[7,1]) -> (%3) {\n  %3 = Gemm(%0, %1, %2) {alpha=0.5, beta=2.0, transA=" +
              std::to_string(ta) + ", transB=" + std::to_string(tb) + "} : f32[7,20]\n}\n");
}

TEST(Contraction, AProductThatIsAnOutputItself) {
  check(R"(graph @k(size n in 1..64, %0: f32[n,4], %1: f32[4,65] const) -> (%2, %3) {
  %2 = MatMul(%0, %1) : f32[n,65]
  %3 = Neg(%2) : f32[n,65]
}
)",
        {{12}, {31}});
}

TEST(Contraction, EpiloguesAndSeveralOutputs) {
  check(R"(graph @k(%0: f32[20,8], %1: f32[8,40] const, %2: f32[40], %3: f32[20,1]) -> (%5, %8) {
  %4 = MatMul(%0, %1) : f32[20,40]
  %5 = Add(%4, %2) : f32[20,40]
  %6 = Sigmoid(%5) : f32[20,40]
  %7 = Mul(%5, %6) : f32[20,40]
  %8 = Mul(%7, %3) : f32[20,40]
}
)");
}

TEST(Contraction, SymbolicRows) {
  check(R"(graph @k(size M in 1..4096, %0: f32[M,8], %1: f32[8,40] const, %2: f32[40]) -> (%4) {
  %3 = MatMul(%0, %1) : f32[M,40]
  %4 = Add(%3, %2) : f32[M,40]
}
)",
        {{1}, {2}, {3}, {5}, {11}, {12}, {23}, {31}, {150}});
}

TEST(Contraction, SymbolicBatchAndSequence) {
  check(R"(graph @k(size B in 1..64, size S in 1..512, %0: f32[B,S,8], %1: f32[8,24] const) -> (%3) {
  %2 = MatMul(%0, %1) : f32[B,S,24]
  %3 = Relu(%2) : f32[B,S,24]
}
)",
        {{1, 1}, {2, 7}, {3, 17}});
  check(R"(graph @k(size B in 1..64, size S in 1..512, %0: f32[B,S,8], %1: f32[B,8,S]) -> (%2) {
  %2 = MatMul(%0, %1) : f32[B,S,S]
}
)",
        {{1, 1}, {2, 7}, {3, 37}});
  check(R"(graph @k(size B in 1..64, size S in 1..512, %0: f32[B,S,S], %1: f32[B,S,24]) -> (%2) {
  %2 = MatMul(%0, %1) : f32[B,S,24]
}
)",
        {{1, 1}, {2, 7}, {3, 37}});
}

}  // namespace
}  // namespace gaf
