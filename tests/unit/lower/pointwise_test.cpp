// Pointwise and data-movement kernels against the reference: broadcasts, views, dtypes, tails, pieces, gathers.
#include "check_kernel.h"

namespace gaf {
namespace {

void check(const std::string& text, std::vector<std::vector<int64_t>> sizes = {{}}, std::vector<Tensor> inputs = {}) {
  expect_kernel(lower_pointwise, text, std::move(sizes), "pointwise", std::move(inputs));
}
void check_copy(const std::string& text, std::vector<std::vector<int64_t>> sizes = {{}},
                std::vector<Tensor> inputs = {}) {
  expect_kernel(lower_move, text, std::move(sizes), "copy", std::move(inputs));
}

Tensor ints(DType t, std::vector<int64_t> dims, std::vector<int64_t> values) {
  Tensor x = Tensor::make(t, std::move(dims));
  for (int64_t i = 0; i < x.numel(); i++) x.set_int(i, values[static_cast<size_t>(i)]);
  return x;
}
Tensor floats(std::vector<int64_t> dims, unsigned seed = 3) {
  std::mt19937 g(seed);
  return random_tensor(DType::f32, std::move(dims), g);
}

Tensor scaled(std::vector<int64_t> dims, double by) {
  Tensor x = floats(std::move(dims));
  for (int64_t i = 0; i < x.numel(); i++) x.set(i, by * x.get(i));
  return x;
}

TEST(Pointwise, FlatSizes) {
  for (int n : {1, 5, 63, 64, 65, 96, 100, 1000, 9000, 20000, 20003})
    check("graph @k(%0: f32[" + std::to_string(n) + "], %1: f32[" + std::to_string(n) +
          "]) -> (%3) {\n  %2 = Add(%0, %1) : f32[" + std::to_string(n) + "]\n  %3 = Relu(%2) : f32[" +
          std::to_string(n) + "]\n}\n");
}

TEST(Pointwise, BiasGelu) {
  check(R"(graph @k(%0: f32[3,5,48], %1: f32[48]) -> (%3) {
  %2 = Add(%0, %1) : f32[3,5,48]
  %3 = Gelu(%2) : f32[3,5,48]
}
)");
}

TEST(Pointwise, ChannelScaleAndTwoOutputs) {
  check(R"(graph @k(%0: f32[2,3,4,7], %1: f32[3,1,1], %2: f32[3,1,1]) -> (%3, %5) {
  %3 = Mul(%0, %1) : f32[2,3,4,7]
  %4 = Add(%3, %2) : f32[2,3,4,7]
  %5 = Sigmoid(%4) : f32[2,3,4,7]
}
)");
}

TEST(Pointwise, ScalarsAndConstants) {
  check(R"(graph @k(%0: f32[4,9], %1: f32[], %2: f32[1]) -> (%6) {
  %3 = constant {value=[0.5]} : f32[]
  %4 = Mul(%0, %1) : f32[4,9]
  %5 = Sub(%4, %3) : f32[4,9]
  %6 = Div(%5, %2) : f32[4,9]
}
)");
}

TEST(Pointwise, SymbolicSizes) {
  const std::string text =
      R"(graph @k(size batch, size seq, %0: f32[batch,seq,24], %1: f32[24], %2: f32[batch,1,24]) -> (%4) {
  %3 = Add(%0, %1) : f32[batch,seq,24]
  %4 = Mul(%3, %2) : f32[batch,seq,24]
}
)";
  check(text, {{1, 1}, {2, 3}, {3, 70}});
  check(R"(graph @k(size n, %0: f32[n], %1: f32[n]) -> (%2) {
  %2 = Mul(%0, %1) : f32[n]
}
)",
        {{1}, {63}, {64}, {130}, {9000}});
  check(R"(graph @k(size n, size m, %0: f32[n,m], %1: f32[m]) -> (%2) {
  %2 = Mul(%0, %1) : f32[n,m]
}
)",
        {{1, 1}, {5, 63}, {3, 64}, {2, 200}});
  // the largest sizes of all three multiply to more than 64 bits hold
  check(R"(graph @k(size a, size b, size c, %0: f32[a,b,c,100], %1: f32[a,b,c,100]) -> (%3) {
  %2 = Add(%0, %1) : f32[a,b,c,100]
  %3 = Sigmoid(%2) : f32[a,b,c,100]
}
)",
        {{1, 1, 1}, {2, 3, 5}});
}

TEST(Pointwise, TransposedOperandAndResult) {
  check(R"(graph @k(%0: f32[5,20], %1: f32[20,5]) -> (%3) {
  %2 = Transpose(%1) {perm=[1,0]} : f32[5,20]
  %3 = Add(%0, %2) : f32[5,20]
}
)");
  check(R"(graph @k(%0: f32[2,6,4,8], %1: f32[8]) -> (%4) {
  %2 = Add(%0, %1) : f32[2,6,4,8]
  %3 = Transpose(%2) {perm=[0,2,1,3]} : f32[2,4,6,8]
  %4 = Reshape(%3) {shape=[2,4,48]} : f32[2,4,48]
}
)");
  check(R"(graph @k(%0: f32[2,33,50]) -> (%1) {
  %1 = Transpose(%0) {perm=[0,2,1]} : f32[2,50,33]
}
)");
}

TEST(Pointwise, TurnedTiles) {
  for (const char* dims : {"2,32,48", "1,3,70", "2,40,3", "3,17,33"}) {
    const std::string d = dims;
    const size_t a = d.find(','), b = d.rfind(',');
    const std::string turned = d.substr(0, a) + d.substr(b) + d.substr(a, b - a);
    check("graph @k(%0: f32[" + d + "], %1: f32[" + turned +
          "]) -> (%3) {\n  %2 = Transpose(%0) {perm=[0,2,1]} : f32[" + turned + "]\n  %3 = Mul(%2, %1) : f32[" +
          turned + "]\n}\n");
    check("graph @k(%0: f32[" + d + "]) -> (%2) {\n  %1 = Sigmoid(%0) : f32[" + d +
          "]\n  %2 = Transpose(%1) {perm=[0,2,1]} : f32[" + turned + "]\n}\n");
  }
  check(R"(graph @k(size n, %0: f32[n,20], %1: f32[n], %2: f32[20,n]) -> (%5) {
  %3 = Transpose(%0) {perm=[1,0]} : f32[20,n]
  %4 = Add(%3, %1) : f32[20,n]
  %5 = Mul(%4, %2) : f32[20,n]
}
)",
        {{1}, {16}, {37}});
  check("graph @k(%0: f16[9,20]) -> (%1) {\n  %1 = Transpose(%0) {perm=[1,0]} : f16[20,9]\n}\n");
  check("graph @k(%0: i64[9,20]) -> (%1) {\n  %1 = Transpose(%0) {perm=[1,0]} : i64[20,9]\n}\n");
}

TEST(Pointwise, ViewsInside) {
  check(R"(graph @k(%0: f32[4,6], %1: f32[24], %2: f32[2,2,6]) -> (%6) {
  %3 = Exp(%0) : f32[4,6]
  %4 = Reshape(%3) {shape=[24]} : f32[24]
  %5 = Add(%4, %1) : f32[24]
  %6 = Reshape(%5) {shape=[2,2,6]} : f32[2,2,6]
}
)");
}

TEST(Pointwise, HalfAndIntegers) {
  check(R"(graph @k(%0: f16[3,40], %1: f16[40]) -> (%3) {
  %2 = Add(%0, %1) : f16[3,40]
  %3 = Relu(%2) : f16[3,40]
}
)",
        {{}}, {});
  check(R"(graph @k(%0: i64[3,40], %1: i64[40]) -> (%3, %4) {
  %2 = Equal(%0, %1) : b1[3,40]
  %3 = Cast(%2) {to="f32"} : f32[3,40]
  %4 = Add(%0, %1) : i64[3,40]
}
)");
  check(R"(graph @k(%0: f32[3,40], %1: f32[40]) -> (%4) {
  %2 = Less(%0, %1) : b1[3,40]
  %3 = Neg(%1) : f32[40]
  %4 = Where(%2, %0, %3) : f32[3,40]
}
)");
}

TEST(Pointwise, CastsTruncateToIntegersAndRoundToHalf) {
  check("graph @k(%0: f32[3,40]) -> (%1) {\n  %1 = Cast(%0) {to=\"i32\"} : i32[3,40]\n}\n");
  check("graph @k(%0: f16[3,40]) -> (%1) {\n  %1 = Cast(%0) {to=\"i64\"} : i64[3,40]\n}\n");
  check(R"(graph @k(%0: f32[3,40], %1: f32[40]) -> (%5, %7) {
  %2 = Add(%0, %1) : f32[3,40]
  %3 = Cast(%2) {to="f16"} : f16[3,40]
  %4 = Cast(%3) {to="f32"} : f32[3,40]
  %5 = Mul(%4, %1) : f32[3,40]
  %6 = Cast(%5) {to="bf16"} : bf16[3,40]
  %7 = Cast(%6) {to="f32"} : f32[3,40]
}
)");
}

TEST(Pointwise, ProductsWithNumbersAreNoNumbers) {
  check("graph @k(%0: f32[3,40]) -> (%1) {\n  %1 = Sinh(%0) : f32[3,40]\n}\n", {{}}, {scaled({3, 40}, 4)});
  check(R"(graph @k(%0: f32[3,40], %1: f32[40]) -> (%6, %7) {
  %2 = constant {value=[0.5]} : f32[]
  %3 = Mul(%0, %1) : f32[3,40]
  %4 = Mul(%2, %0) : f32[3,40]
  %5 = Mul(%2, %1) : f32[40]
  %6 = Sub(%3, %4) : f32[3,40]
  %7 = Cast(%5) {to="f64"} : f64[40]
}
)");
}

TEST(Pointwise, BooleansAndBytes) {
  check(R"(graph @k(%0: b1[5,70], %1: b1[70], %2: f32[5,70], %3: f32[]) -> (%6, %7) {
  %4 = Not(%1) : b1[70]
  %5 = And(%0, %4) : b1[5,70]
  %6 = Where(%5, %2, %3) : f32[5,70]
  %7 = Or(%0, %5) : b1[5,70]
}
)");
  check(R"(graph @k(%0: u8[4,50], %1: f32[50], %2: bf16[4,50]) -> (%5, %6) {
  %3 = Cast(%0) {to="f32"} : f32[4,50]
  %4 = Mul(%3, %1) : f32[4,50]
  %5 = Cast(%4) {to="bf16"} : bf16[4,50]
  %6 = Neg(%2) : bf16[4,50]
}
)");
  check(R"(graph @k(%0: f64[3,33], %1: f32[33]) -> (%4) {
  %2 = Cast(%1) {to="f64"} : f64[33]
  %3 = Sqrt(%2) : f64[33]
  %4 = Add(%0, %3) : f64[3,33]
}
)");
  check(R"(graph @k(%0: i32[3,33], %1: i32[3,1]) -> (%3) {
  %2 = Max(%0, %1) : i32[3,33]
  %3 = Mul(%2, %0) : i32[3,33]
}
)");
}

TEST(Pointwise, Slices) {
  check(R"(graph @k(%0: f32[6,10]) -> (%3) {
  %1 = Slice(%0) {axes=[1],ends=[8],starts=[2],steps=[2]} : f32[6,3]
  %2 = Slice(%0) {axes=[1],ends=[-100],starts=[-1],steps=[-4]} : f32[6,3]
  %3 = Add(%1, %2) : f32[6,3]
}
)");
}

TEST(Copy, Concat) {
  check_copy(R"(graph @k(%0: f32[3,5], %1: f32[3,70], %2: f32[75]) -> (%5) {
  %3 = Concat(%0, %1) {axis=1} : f32[3,75]
  %4 = Add(%3, %2) : f32[3,75]
  %5 = Relu(%4) : f32[3,75]
}
)");
  check_copy(R"(graph @k(size n, size m, %0: f32[n,5], %1: f32[m,5]) -> (%3) {
  %2 = Exp(%0) : f32[n,5]
  %3 = Concat(%2, %1) {axis=0} : f32[n + m,5]
}
)",
             {{1, 2}, {4, 3}});
}

TEST(Copy, Split) {
  check_copy(R"(graph @k(%0: f32[3,30]) -> (%4) {
  %1, %2, %3 = Split(%0) {axis=1} : f32[3,10], f32[3,10], f32[3,10]
  %4 = Mul(%1, %3) : f32[3,10]
}
)");
}

TEST(Copy, Pads) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"})
    check_copy(std::string("graph @k(%0: f32[3,7]) -> (%1) {\n  %1 = Pad(%0) {mode=\"") + mode +
               "\",pads=[1,3,0,2]} : f32[4,12]\n}\n");
}

// Negative pads leave a part, down to one element, of a value or of a piece of one.
TEST(Copy, PadsThatCutPieces) {
  const std::string two = "graph @k(%0: f32[1,2,2]) -> (%2) {\n  %1 = Concat(%0, %0) {axis=0} : f32[2,2,2]\n";
  check_copy(two + "  %2 = Pad(%1) {mode=\"constant\", pads=[-1,0,0,0,0,0]} : f32[1,2,2]\n}\n");
  check_copy(two + "  %2 = Pad(%1) {mode=\"constant\", pads=[-1,2,2,0,3,0]} : f32[1,7,4]\n}\n");
  check_copy(two + "  %2 = Pad(%1) {mode=\"constant\", pads=[0,-1,0,-1,0,3]} : f32[1,1,5]\n}\n");
  check_copy(
      "graph @k(%0: f32[5,3]) -> (%2) {\n  %1 = Pad(%0) {mode=\"constant\", pads=[-2,1,1,-1]} : f32[4,3]\n"
      "  %2 = Pad(%1) {mode=\"constant\", pads=[-1,-2,-2,2]} : f32[1,3]\n}\n");
}

TEST(Copy, PartsOfPaddedValues) {
  check_copy(R"(graph @k(%0: f32[7]) -> (%2, %3) {
  %1 = Pad(%0) {mode="constant", pads=[0,2]} : f32[9]
  %2, %3 = Split(%1) {axis=0, split=[1,8]} : f32[1], f32[8]
}
)");
}

TEST(Copy, Tile) {
  check_copy(R"(graph @k(%0: f32[1,7]) -> (%1) {
  %1 = Tile(%0) {repeats=[3,1]} : f32[3,7]
}
)");
}

TEST(Copy, RepeatedElements) {
  check_copy(R"(graph @k(%0: f32[2,7], %1: f32[6,14]) -> (%3) {
  %2 = Tile(%0) {repeats=[3,2]} : f32[6,14]
  %3 = Add(%2, %1) : f32[6,14]
}
)");
  check_copy(R"(graph @k(%0: f32[1,3,4,5]) -> (%1) {
  %1 = Resize(%0) {mode="nearest",scales=[1.,1.,2.,3.]} : f32[1,3,8,15]
}
)");
  check_copy(R"(graph @k(size h, %0: f32[1,h,5,16], %1: f32[16]) -> (%3) {
  %2 = Resize(%0) {coordinate_transformation_mode="asymmetric",mode="nearest",nearest_mode="floor",scales=[1.,2.,2.,1.]} : f32[1,2*h,10,16]
  %3 = Add(%2, %1) : f32[1,2*h,10,16]
}
)",
             {{1}, {3}});
  check(
      "graph @k(%0: f32[1,12,3,5]) -> (%1) {\n  %1 = DepthToSpace(%0) {blocksize=2,mode=\"DCR\"} : f32[1,3,6,10]\n}\n");
  check("graph @k(%0: f32[1,3,6,10]) -> (%1) {\n  %1 = SpaceToDepth(%0) {blocksize=2} : f32[1,12,3,5]\n}\n");
}

TEST(Copy, GatherRows) {
  check_copy(R"(graph @k(size n, %0: f32[9,40] const, %1: i64[n], %2: f32[40]) -> (%4) {
  %3 = Gather(%0, %1) {axis=0} : f32[n,40]
  %4 = Add(%3, %2) : f32[n,40]
}
)",
             {{4}}, {floats({9, 40}), ints(DType::i64, {4}, {0, 8, -1, 3}), floats({40})});
}

TEST(Copy, GatherColumns) {
  check_copy(R"(graph @k(%0: f32[4,9], %1: i64[5]) -> (%2) {
  %2 = Gather(%0, %1) {axis=1} : f32[4,5]
}
)",
             {{}}, {floats({4, 9}), ints(DType::i64, {5}, {0, 8, -1, 3, -9})});
  check_copy(R"(graph @k(%0: f32[4,9,20]) -> (%3) {
  %1 = constant {value=[-1]} : i64[]
  %2 = Gather(%0, %1) {axis=1} : f32[4,20]
  %3 = Tanh(%2) : f32[4,20]
}
)");
  check_copy(R"(graph @k(%0: f32[4,9], %1: i32[4,3]) -> (%2) {
  %2 = GatherElements(%0, %1) {axis=1} : f32[4,3]
}
)",
             {{}}, {floats({4, 9}), ints(DType::i32, {4, 3}, {0, 8, -1, 3, -9, 1, 1, 1, 2, 5, 6, 7})});
  check_copy(R"(graph @k(%0: f32[4,9,6], %1: i64[3,2]) -> (%2) {
  %2 = GatherND(%0, %1) : f32[3,6]
}
)",
             {{}}, {floats({4, 9, 6}), ints(DType::i64, {3, 2}, {0, 8, -1, 3, 2, 2})});
}

}  // namespace
}  // namespace gaf
