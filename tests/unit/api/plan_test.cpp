// Step by step through the public header alone: nodes to a plan, its specialisation and budget, kernel text, code,
// launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

gaf::FusionPlan plan_of(const char* text, std::vector<std::string> nodes) {
  return gaf::analyze_fusion_opportunity({load_text(text), std::move(nodes)});
}
gaf::FusionPlan mlp_plan(const char* text = kMlp) { return plan_of(text, {"mm", "bias", "act"}); }

TEST(Plan, SaysWhatTheKernelIs) {
  RecordProperty("contract", "O9");
  const gaf::FusionPlan p = mlp_plan();
  ASSERT_TRUE(p.can_be_one_kernel()) << p.explanation();
  EXPECT_EQ(p.reason(), "");
  EXPECT_EQ(p.kernel_name(), "matmul_bias_relu_fused");
  EXPECT_THAT(p.nodes(), ElementsAre("mm", "bias", "act"));
  ASSERT_EQ(p.inputs().size(), 3u);
  EXPECT_THAT(p.inputs()[0].shape, ElementsAre(-1, 48));
  EXPECT_EQ(p.outputs()[0].name, "y");
  EXPECT_GT(p.predicted_us(), 0);
  EXPECT_LT(p.predicted_us(), p.unfused_us());
}

TEST(Plan, TakesAPartOfAModel) {
  RecordProperty("contract", "O9");
  const gaf::FusionPlan p = plan_of(kMlp, {"act", "bias"});
  ASSERT_TRUE(p.can_be_one_kernel()) << p.explanation();
  ASSERT_EQ(p.inputs().size(), 2u);
  EXPECT_EQ(p.inputs()[0].name, "mm");
  EXPECT_EQ(plan_of(kMlp, {"mm", "bias"}).outputs()[0].name, "bias");
  EXPECT_THROW(plan_of(kMlp, {"mm", "bais"}), gaf::UsageError);
  EXPECT_THROW(plan_of(kMlp, {}), gaf::UsageError);
}

TEST(Plan, RefusalsHaveReasons) {
  RecordProperty("contract", "O9 O11");
  const char* text = R"(
graph @g(%0 "x": f32[8,8], %1 "w": f32[8,8]) -> (%4 "y") {
  %2 = Exp(%0) : f32[8,8]  # "exp"
  %3 = MatMul(%2, %1) : f32[8,8]  # "mm"
  %4 = Add(%2, %3) : f32[8,8]  # "add"
}
)";
  const gaf::FusionPlan cycle = plan_of(text, {"exp", "add"});
  EXPECT_FALSE(cycle.can_be_one_kernel());
  EXPECT_EQ(cycle.reason(), "cycle");
  EXPECT_THAT(cycle.explanation(), HasSubstr("mm"));
  EXPECT_FALSE(gaf::can_fuse(cycle, {1000, 1000000000}));
  EXPECT_THROW(gaf::estimate_reg_usage(cycle), gaf::CompileError);
  try {
    gaf::codegen_jit(cycle);
    FAIL() << "no error";
  } catch (const gaf::CompileError& e) {
    EXPECT_THAT(e.what(), HasSubstr("cycle"));
  }
  const gaf::FusionPlan two = plan_of(R"(
graph @g(%0 "x": f32[64,64], %1 "w": f32[64,64]) -> (%5 "y") {
  %2 = MatMul(%0, %1) : f32[64,64]  # "a"
  %3 = Relu(%2) : f32[64,64]  # "r"
  %4 = MatMul(%3, %1) : f32[64,64]  # "b"
  %5 = MatMul(%4, %2) : f32[64,64]  # "c"
}
)",
                                      {"a", "r", "b", "c"});
  EXPECT_FALSE(two.can_be_one_kernel());
  EXPECT_NE(two.reason(), "");
  EXPECT_NE(two.explanation(), "");
}

TEST(Plan, SpecialisesByShapeAndDtype) {
  RecordProperty("contract", "O10 N6");
  gaf::FusionPlan p = plan_of(kMlp, {"act"});
  const std::string free_text = gaf::codegen_jit(p);
  EXPECT_THAT(free_text, HasSubstr("size batch"));
  const gaf::FusionPlan before = p;
  EXPECT_THAT(p.specialize({8, 40}, gaf::DT_FLOAT).inputs()[0].shape, ElementsAre(8, 40));
  EXPECT_THAT(p.outputs()[0].shape, ElementsAre(8, 40));
  EXPECT_THAT(gaf::codegen_jit(p), Not(HasSubstr("size batch")));
  EXPECT_EQ(gaf::codegen_jit(before), free_text) << "a copy is its own";
  gaf::FusionPlan half = plan_of(R"(
graph @g(size batch, %0 "x": f16[batch,40]) -> (%1 "y") {
  %1 = Relu(%0) : f16[batch,40]  # "act"
}
)",
                                 {"act"});
  half.specialize({8, 40}, gaf::DT_FLOAT16);
  EXPECT_THAT(gaf::codegen_jit(half), HasSubstr("f16[8, 40]"));
  EXPECT_NE(gaf::codegen_jit(half), gaf::codegen_jit(p));
  const uint16_t x[320] = {0x3c00, 0xbc00};  // 1, -1
  uint16_t y[320];
  gaf::launch(gaf::compile_kernel(gaf::codegen_jit(half)), {{gaf::DT_FLOAT16, {8, 40}, x}},
              {{gaf::DT_FLOAT16, {8, 40}, y}});
  EXPECT_EQ(y[0], 0x3c00);
  EXPECT_EQ(y[1], 0);
}

TEST(Plan, SpecialisesAllInputs) {
  RecordProperty("contract", "O10");
  gaf::FusionPlan p = mlp_plan();
  const std::vector<gaf::Shape> shapes = {{6, 48}, {48, 40}, {40}};
  const std::vector<gaf::DataType> types(3, gaf::DT_FLOAT);
  EXPECT_THAT(p.specialize(shapes, types).outputs()[0].shape, ElementsAre(6, 40));
  const std::vector<gaf::Shape> other = {{7, 48}, {48, 40}, {40}};
  EXPECT_THROW(p.specialize(other, types), gaf::ShapeError) << "fixed already";
  const std::vector<gaf::Shape> free = {{-1, 48}, {-1, 40}, {-1}};
  EXPECT_THAT(p.specialize(free, types).outputs()[0].shape, ElementsAre(6, 40));
}

TEST(Plan, MismatchesAreShapeErrors) {
  RecordProperty("contract", "O10");
  gaf::FusionPlan p = plan_of(kMlp, {"act"});
  EXPECT_THROW(p.specialize({8, 41}, gaf::DT_FLOAT), gaf::ShapeError);
  EXPECT_THROW(p.specialize({8}, gaf::DT_FLOAT), gaf::ShapeError);
  EXPECT_THROW(p.specialize({-2, 40}, gaf::DT_FLOAT), gaf::ShapeError);
  EXPECT_THROW(p.specialize({8, 40}, gaf::DT_FLOAT16), gaf::ShapeError);
  EXPECT_THROW(mlp_plan().specialize({8, 48}, gaf::DT_FLOAT), gaf::ShapeError) << "three inputs, one shape";
  EXPECT_THAT(p.inputs()[0].shape, ElementsAre(-1, 40)) << "a failed call changes nothing";
  try {
    p.specialize({8, 41}, gaf::DT_FLOAT);
  } catch (const gaf::Error& e) {
    EXPECT_EQ(e.code(), "GAF3102");
    EXPECT_THAT(e.message(), HasSubstr("expected f32[batch,40], got float32 [8,41]"));
  }
}

// Usage of exactly 80 % passes, a unit less of the resource does not.
TEST(Plan, BudgetIsFourFifths) {
  RecordProperty("contract", "O13 O14");
  const gaf::FusionPlan p = plan_of(kConv, {"conv", "bn", "relu"});
  ASSERT_TRUE(p.can_be_one_kernel()) << p.explanation();
  const size_t regs = gaf::estimate_reg_usage(p), ub = gaf::estimate_ub_usage(p);
  ASSERT_GT(ub, 0u) << "a convolution stages its input";
  ASSERT_EQ(ub % 4, 0u) << "so that there is a whole number of which it is 80 %";
  const size_t room = 1 << 20;
  EXPECT_TRUE(gaf::can_fuse(p, {room, ub / 4 * 5}));
  EXPECT_FALSE(gaf::can_fuse(p, {room, ub / 4 * 5 - 1}));
  const gaf::FusionPlan norm = plan_of(kNorm, {"ln", "gelu"});
  const size_t live = gaf::estimate_reg_usage(norm), least = (live * 5 + 3) / 4;
  ASSERT_GT(live, 0u);
  EXPECT_TRUE(gaf::can_fuse(norm, {least, size_t{1} << 30}));
  EXPECT_FALSE(gaf::can_fuse(norm, {least - 1, size_t{1} << 30}));
  EXPECT_FALSE(gaf::can_fuse(norm, {0, 0}));
  EXPECT_TRUE(gaf::can_fuse(norm, {SIZE_MAX, SIZE_MAX}));
  EXPECT_LE(regs, gaf::hw_resource().max_regs);
  EXPECT_TRUE(gaf::can_fuse(p, gaf::hw_resource()));
}

TEST(Kernel, TextCodeLaunch) {
  RecordProperty("contract", "O11 O12 N8");
  const gaf::FusionPlan p = mlp_plan();
  const std::string text = gaf::codegen_jit(p);
  EXPECT_THAT(text, HasSubstr("kernel @matmul_bias_relu_fused"));
  EXPECT_THAT(text, HasSubstr("mma"));
  EXPECT_EQ(gaf::codegen_jit(mlp_plan()), text) << "the same plan, the same text";
  const gaf::ExecutableKernel k = gaf::compile_kernel(text);
  EXPECT_EQ(k.name(), "matmul_bias_relu_fused");
  EXPECT_EQ(k.inputs().size(), 3u);
  EXPECT_EQ(k.outputs().size(), 1u);
  const std::vector<float> w = quarters(48 * 40, 2), b = quarters(40, 3);
  for (const size_t m : {1u, 6u, 50u}) {  // one kernel for every size
    const std::vector<float> x = quarters(m * 48, 1);
    std::vector<float> y(m * 40, -1);
    const auto rows = static_cast<int64_t>(m);
    const gaf::RunInfo info =
        gaf::launch(k, {{x.data(), {rows, 48}}, {w.data(), {48, 40}}, {b.data(), {40}}}, {{y.data(), {rows, 40}}});
    EXPECT_EQ(info.kernels, 1);
    EXPECT_EQ(y, mlp(x, w, b, m));
  }
}

// Weights of the model come re-laid from the plan; the result is that of the whole model.
TEST(Kernel, WeightsOfTheModel) {
  RecordProperty("contract", "O12 N8 N9");
  gaf::FusionConfig by_definition;
  by_definition.enable_superkernel = false;
  struct Case {
    const char* text;
    std::vector<std::string> nodes;
    std::string name;
    gaf::Shape in, out;
  };
  for (const Case& c :
       {Case{kMlpWeights, {"mm", "bias", "act"}, "matmul_bias_relu_fused", {9, 48}, {9, 40}},
        Case{kConv, {"conv", "bn", "relu"}, "conv_batchnorm_relu_fused", {1, 3, 20, 24}, {1, 8, 20, 24}}}) {
    const gaf::FusionPlan p = plan_of(c.text, c.nodes);
    ASSERT_TRUE(p.can_be_one_kernel()) << p.explanation();
    EXPECT_EQ(p.inputs().size(), 1u);
    EXPECT_EQ(p.kernel_name(), c.name);
    const gaf::ExecutableKernel k = gaf::compile_kernel(gaf::codegen_jit(p));
    gaf::Tensor x(gaf::DT_FLOAT, c.in), y(gaf::DT_FLOAT, c.out);
    const std::vector<float> numbers = quarters(static_cast<size_t>(x.size()), 8);
    std::copy(numbers.begin(), numbers.end(), x.as<float>());
    gaf::launch(k, p.arguments({x}), {y});
    const gaf::Tensor want = gaf::compile(load_text(c.text), by_definition).run({x})[0];
    for (int64_t i = 0; i < y.size(); i++)
      ASSERT_NEAR(y.as<float>()[i], want.as<float>()[i], 2e-5 + 1e-5 * std::abs(want.as<float>()[i])) << i;
  }
}

TEST(Kernel, LayerNormGelu) {
  RecordProperty("contract", "N11 O12");
  const gaf::FusionPlan p = plan_of(kNorm, {"ln", "gelu"});
  ASSERT_TRUE(p.can_be_one_kernel()) << p.explanation();
  gaf::Tensor x(gaf::DT_FLOAT, {10, 96}), s(gaf::DT_FLOAT, {96}), y(gaf::DT_FLOAT, {10, 96});
  x.as<float>()[0] = 1;  // one row is not constant, the others are: variance 0
  s.as<float>()[0] = 2;
  gaf::launch(gaf::compile_kernel(gaf::codegen_jit(p)), p.arguments({x, s, s}), {y});
  const double mean = 1.0 / 96, n = (1 - mean) / std::sqrt(mean - mean * mean + 1e-5) * 2 + 2;
  EXPECT_NEAR(y.as<float>()[0], n / 2 * (1 + std::erf(n / std::sqrt(2.0))), 1e-4);
  EXPECT_NEAR(y.as<float>()[96], 2 / 2.0 * (1 + std::erf(2 / std::sqrt(2.0))), 1e-5);
  EXPECT_EQ(y.as<float>()[97], 0);
}

TEST(Kernel, Errors) {
  RecordProperty("contract", "O12");
  try {
    gaf::compile_kernel("kernel @k target host {\n  nonsense\n}\n");
    FAIL() << "no error";
  } catch (const gaf::CompileError& e) {
    EXPECT_GT(e.line(), 0);
  }
  const gaf::ExecutableKernel k = gaf::compile_kernel(gaf::codegen_jit(mlp_plan()));
  const std::vector<float> x(96), w(48 * 40), b(40);
  std::vector<float> y(80);
  const gaf::ConstTensorView vx(x.data(), {2, 48}), vw(w.data(), {48, 40}), vb(b.data(), {40});
  EXPECT_THROW(gaf::launch(k, {vx, vw}, {{y.data(), {2, 40}}}), gaf::ModelError);
  EXPECT_THROW(gaf::launch(k, {{x.data(), {48, 2}}, vw, vb}, {{y.data(), {2, 40}}}), gaf::ShapeError);
  EXPECT_THROW(gaf::launch(k, {vx, vw, vb}, {{y.data(), {40, 2}}}), gaf::ShapeError);
  EXPECT_THROW(gaf::launch(k, {{gaf::DT_INT32, {2, 48}, x.data()}, vw, vb}, {{y.data(), {2, 40}}}), gaf::DTypeError);
  EXPECT_THROW(gaf::launch(gaf::ExecutableKernel(), {}, {}), gaf::UsageError);
  EXPECT_THROW(gaf::compile_to_pto(mlp_plan()), gaf::UsageError) << "not for an NPU";
}

// For an NPU the same steps end in text. Numbers of its kernels are checked by tests/npu.
TEST(Npu, PlansEndInAscendCAndPto) {
  RecordProperty("contract", "O11 O16");
  const char* model = R"(
graph @g(size m in 1..512, %0 "x": f16[m,48], %1 "w": f16[48,40], %2 "b": f16[40]) -> (%5 "y") {
  %3 = MatMul(%0, %1) : f16[m,40]  # "mm"
  %4 = Add(%3, %2) : f16[m,40]  # "bias"
  %5 = Relu(%4) : f16[m,40]  # "act"
}
)";
  gaf::FusionPlan p = gaf::analyze_fusion_opportunity({load_text(model), {"mm", "bias", "act"}}, "Ascend910B1");
  EXPECT_FALSE(p.can_be_one_kernel());
  EXPECT_EQ(p.reason(), "dynamic-shape");
  EXPECT_THROW(gaf::compile_to_pto(p), gaf::CompileError);
  const std::vector<gaf::Shape> shapes{{100, 48}, {48, 40}, {40}};
  const std::vector<gaf::DataType> dtypes(3, gaf::DT_FLOAT16);
  p.specialize(shapes, dtypes);
  ASSERT_TRUE(p.can_be_one_kernel()) << p.explanation();
  EXPECT_GT(p.predicted_us(), 0);
  EXPECT_GT(p.unfused_us(), p.predicted_us()) << "three launches";
  EXPECT_TRUE(gaf::can_fuse(p, gaf::hw_resource("ascend910b1")));
  const std::string ascend = gaf::codegen_jit(p), pto = gaf::compile_to_pto(p);
  for (const std::string& text : {ascend, pto}) {
    EXPECT_THAT(text, HasSubstr("matmul_bias_relu_fused("));
    EXPECT_THAT(text, HasSubstr("ascend910b1"));
  }
  EXPECT_THAT(ascend, HasSubstr("kernel_operator.h"));
  EXPECT_THAT(pto, HasSubstr("TMATMUL"));
  EXPECT_EQ(gaf::compile_to_pto(p), pto) << "the same plan, the same text";
}

TEST(Npu, WhatHasNoKernelSaysWhy) {
  RecordProperty("contract", "O16");
  const gaf::FusionPlan p = gaf::analyze_fusion_opportunity(
      {load_text("graph @g(%0 \"x\": f16[8,32]) -> (%1 \"y\") {\n  %1 = Gelu(%0) : f16[8,32]  # \"act\"\n}\n"), {"act"}}, "ascend910b");
  EXPECT_FALSE(p.can_be_one_kernel());
  EXPECT_EQ(p.reason(), "backend-limit");
  EXPECT_THAT(p.explanation(), HasSubstr("no kernel on target ascend910b3"));
  EXPECT_THROW(gaf::codegen_jit(p), gaf::CompileError);
}

}  // namespace
