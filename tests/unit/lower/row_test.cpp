// Row kernels against the reference: normalisations, softmax, losses, sums over any axes, split reductions.
#include "check_kernel.h"

namespace gaf {
namespace {

void check(const std::string& text, std::vector<std::vector<int64_t>> sizes = {{}}, std::vector<Tensor> inputs = {}) {
  expect_kernel(lower_row, text, std::move(sizes), "row", std::move(inputs));
}

std::string unary(const std::string& node, const std::string& dims, const std::string& out) {
  return "graph @k(%0: f32[" + dims + "]) -> (%1) {\n  %1 = " + node + " : f32[" + out + "]\n}\n";
}

TEST(Row, SoftmaxSizes) {
  for (const char* n : {"1", "3", "49", "64", "100", "128", "130", "768"}) {
    const std::string dims = std::string("5,") + n;
    check(unary("Softmax(%0) {axis=-1}", dims, dims));
  }
  check(unary("LogSoftmax(%0) {axis=1}", "4,200", "4,200"));
}

TEST(Row, SoftmaxSymbolic) {
  check("graph @k(size b, size n, %0: f32[b,n]) -> (%1) {\n  %1 = Softmax(%0) {axis=-1} : f32[b,n]\n}\n",
        {{1, 1}, {2, 63}, {3, 64}, {2, 200}});
}

TEST(Row, SoftmaxOverMiddleAxis) {
  check(unary("Softmax(%0) {axis=1}", "2,7,33", "2,7,33"));
  check(unary("Softmax(%0) {axis=0}", "9,5", "9,5"));
}

TEST(Row, ShortRows) {
  for (const char* dims : {"40,2", "37,3", "3,50,4", "100,7", "70,16"})
    check(unary("Softmax(%0) {axis=-1}", dims, dims));
  check(
      "graph @k(size b, %0: f32[b,2]) -> (%1, %2) {\n  %1 = Softmax(%0) {axis=-1} : f32[b,2]\n  %2 = ReduceMax(%0) "
      "{axes=[1],keepdims=0} : f32[b]\n}\n",
      {{1}, {32}, {75}});
  check(R"(graph @k(%0: f32[50,4], %1: f32[4], %2: f32[4]) -> (%3) {
  %3 = LayerNormalization(%0, %1, %2) {axis=-1,epsilon=1e-05} : f32[50,4]
}
)");
}

TEST(Row, LayerNormWithResidual) {
  check(R"(graph @k(%0: f32[6,96], %1: f32[6,96], %2: f32[96], %3: f32[96]) -> (%4, %6) {
  %4 = Add(%0, %1) : f32[6,96]
  %5 = LayerNormalization(%4, %2, %3) {axis=-1,epsilon=1e-05} : f32[6,96]
  %6 = Gelu(%5) : f32[6,96]
}
)");
  check(R"(graph @k(size m, %0: f32[m,300], %1: f32[300], %2: f32[300]) -> (%3) {
  %3 = LayerNormalization(%0, %1, %2) {axis=-1,epsilon=1e-05} : f32[m,300]
}
)",
        {{1}, {4}});
  check(R"(graph @k(%0: f16[6,96], %1: f16[96]) -> (%2) {
  %2 = RMSNormalization(%0, %1) {axis=-1,epsilon=1e-05} : f16[6,96]
}
)");
}

TEST(Row, SymbolicRowLength) {
  check(R"(graph @k(size m, size n, %0: f32[m,n]) -> (%1) {
  %1 = ReduceMean(%0) {axes=[1],keepdims=0} : f32[m]
}
)",
        {{3, 5}, {2, 200}});
}

TEST(Row, EveryAxis) {
  check(unary("ReduceSum(%0) {axes=[0],keepdims=1}", "7,5,80", "1,5,80"));
  check(unary("ReduceSum(%0) {axes=[1],keepdims=0}", "7,5,80", "7,80"));
  check(unary("ReduceMax(%0) {axes=[2],keepdims=0}", "7,5,80", "7,5"));
  check(unary("ReduceMin(%0) {axes=[0,2],keepdims=0}", "7,5,80", "5"));
  check(unary("ReduceProd(%0) {axes=[0,1],keepdims=0}", "2,3,70", "70"));
  check(unary("ReduceMean(%0) {axes=[0,1,2],keepdims=0}", "7,5,80", ""));
  check(unary("ReduceL2(%0) {axes=[1,2],keepdims=1}", "2,5,80", "2,1,1"));
  check(unary("ReduceLogSumExp(%0) {axes=[1],keepdims=1}", "3,200", "3,1"));
}

TEST(Row, IntegersAndHalves) {
  check(
      "graph @k(%0: i64[5,70]) -> (%1, %2) {\n  %1 = ReduceSum(%0) {axes=[1],keepdims=1} : i64[5,1]\n  %2 = "
      "ReduceMax(%0) {axes=[1],keepdims=0} : i64[5]\n}\n");
  check("graph @k(%0: i32[5,70]) -> (%1) {\n  %1 = ReduceMin(%0) {axes=[0],keepdims=1} : i32[1,70]\n}\n");
  check("graph @k(%0: bf16[5,300]) -> (%1) {\n  %1 = Softmax(%0) {axis=-1} : bf16[5,300]\n}\n");
  check("graph @k(%0: f64[5,70]) -> (%1) {\n  %1 = Softmax(%0) {axis=-1} : f64[5,70]\n}\n");
}

TEST(Row, SplitReductions) {
  check(unary("ReduceSum(%0) {axes=[0,1],keepdims=0}", "300,700", ""));
  check(unary("ReduceMean(%0) {axes=[0],keepdims=0}", "3000,100", "100"));
  check(unary("ReduceSum(%0) {axes=[0],keepdims=0}", "100003", ""));
  check(unary("ReduceMax(%0) {axes=[0,2],keepdims=0}", "100,2,600", "2"));
  check("graph @k(size n, %0: f32[n]) -> (%1) {\n  %1 = ReduceMean(%0) {axes=[0],keepdims=0} : f32[]\n}\n",
        {{7}, {200000}});
}

TEST(Row, ReductionThenPointwise) {
  check(R"(graph @k(%0: f32[2,6,5,7], %1: f32[6]) -> (%4) {
  %2 = ReduceMean(%0) {axes=[2,3],keepdims=0} : f32[2,6]
  %3 = Add(%2, %1) : f32[2,6]
  %4 = Sigmoid(%3) : f32[2,6]
}
)");
}

TEST(Row, ChannelNorms) {
  check(R"(graph @k(%0: f32[2,6,5,7], %1: f32[6], %2: f32[6]) -> (%3) {
  %3 = InstanceNormalization(%0, %1, %2) {epsilon=1e-05} : f32[2,6,5,7]
}
)");
  check(R"(graph @k(%0: f32[2,6,5,7], %1: f32[6], %2: f32[6]) -> (%3) {
  %3 = GroupNormalization(%0, %1, %2) {epsilon=1e-05,num_groups=2} : f32[2,6,5,7]
}
)");
}

TEST(Row, CrossEntropy) {
  Tensor labels = Tensor::make(DType::i64, {5, 1});
  for (int64_t i = 0; i < 5; i++) labels.set_int(i, (i * 29) % 96);
  std::mt19937 g(1);
  check(R"(graph @k(%0: f32[5,96], %1: i64[5,1]) -> (%4) {
  %2 = LogSoftmax(%0) {axis=1} : f32[5,96]
  %3 = GatherElements(%2, %1) {axis=1} : f32[5,1]
  %4 = Neg(%3) : f32[5,1]
}
)",
        {{}}, {random_tensor(DType::f32, {5, 96}, g), labels});
}

TEST(Row, EmbeddingAddLayerNorm) {
  Tensor ids = Tensor::make(DType::i64, {2, 3});
  for (int64_t i = 0; i < 6; i++) ids.set_int(i, (i * 7) % 11);
  std::mt19937 g(1);
  check(R"(graph @k(%0: f32[11,80] const, %1: i64[2,3], %2: f32[3,80], %3: f32[80], %4: f32[80]) -> (%7) {
  %5 = Gather(%0, %1) {axis=0} : f32[2,3,80]
  %6 = Add(%5, %2) : f32[2,3,80]
  %7 = LayerNormalization(%6, %3, %4) {axis=-1,epsilon=1e-05} : f32[2,3,80]
}
)",
        {{}},
        {random_tensor(DType::f32, {11, 80}, g), ids, random_tensor(DType::f32, {3, 80}, g),
         random_tensor(DType::f32, {80}, g), random_tensor(DType::f32, {80}, g)});
}

TEST(Row, GatheredAndRegroupedRows) {
  Tensor ids = Tensor::make(DType::i32, {2, 12});
  for (int64_t i = 0; i < 24; i++) ids.set_int(i, (i * 7) % 11);
  std::mt19937 g(1);
  check(R"(graph @k(size n, %0: f32[11,32] const, %1: i32[n,12], %2: f32[1,6,1]) -> (%10) {
  %3 = Gather(%0, %1) {axis=0} : f32[n,12,32]
  %4 = Gelu(%3) {approximate="tanh"} : f32[n,12,32]
  %5 = Reshape(%4) {shape=(n,6,64)} : f32[n,6,64]
  %6 = ReduceMean(%5) {axes=[1],keepdims=1} : f32[n,1,64]
  %7 = Sub(%5, %6) : f32[n,6,64]
  %8 = ReduceSumSquare(%7) {axes=[1],keepdims=1} : f32[n,1,64]
  %9 = Mul(%8, %2) : f32[n,6,64]
  %10 = Mul(%7, %9) : f32[n,6,64]
}
)",
        {{2}}, {random_tensor(DType::f32, {11, 32}, g), ids, random_tensor(DType::f32, {1, 6, 1}, g)});
}

TEST(Row, InfinitiesInSoftmax) {
  Tensor x = Tensor::make(DType::f32, {3, 70});
  for (int64_t i = 0; i < x.numel(); i++) x.set(i, i % 3 ? -INFINITY : 0.25 * static_cast<double>(i % 7));
  for (int64_t i = 70; i < 140; i++) x.set(i, -INFINITY);
  check(unary("Softmax(%0) {axis=-1}", "3,70", "3,70"), {{}}, {x});
}

// The second output reads the first through a view: what the first one's memory holds until then must still be there.
TEST(Row, OutputReadThroughAViewByAnother) {
  check(R"(graph @k(size N in 1..5000, %0: f32[1,1,2,N]) -> (%1, %3) {
  %1 = Softmax(%0) {axis=-1} : f32[1,1,2,N]
  %2 = Reshape(%1) {shape=[1,1,2,1,-1]} : f32[1,1,2,1,N]
  %3 = Asinh(%2) : f32[1,1,2,1,N]
}
)",
        {{2}, {64}, {300}, {4097}});
}

TEST(Row, OtherAxesAreRefused) {
  const Graph fn = parse_graph(R"(graph @k(%0: f32[4,9]) -> (%2) {
  %1 = ReduceSum(%0) {axes=[1],keepdims=0} : f32[4]
  %2 = ReduceSum(%1) {axes=[0],keepdims=0} : f32[]
}
)");
  auto a = lower_row(fn, load_target("x86-64-avx2"));
  ASSERT_TRUE(a && std::holds_alternative<Verdict>(*a));
  EXPECT_EQ(std::get<Verdict>(*a).reason, "iteration-mismatch");
}

}  // namespace
}  // namespace gaf
