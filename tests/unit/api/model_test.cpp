// Models through the public header alone: loading, fusing, saving, compiling, running, and the errors of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class E, class F>
E caught(F f) {
  try {
    f();
  } catch (const E& e) {
    return e;
  }
  throw std::runtime_error("nothing, or something else, was thrown");
}

gaf::FusionConfig unfused() {  // every op by its definition: the reference
  gaf::FusionConfig c;
  c.enable_superkernel = false;
  return c;
}
gaf::FusionConfig fresh() {
  gaf::FusionConfig c;
  c.cache_dir = "";
  return c;
}

TEST(Model, SaysWhatItIs) {
  const gaf::Graph g = load_text(kMlp);
  EXPECT_EQ(g.name(), "model.gaf");
  ASSERT_EQ(g.inputs().size(), 3u);
  EXPECT_EQ(g.inputs()[0].name, "x");
  EXPECT_EQ(g.inputs()[0].dtype, gaf::DT_FLOAT);
  EXPECT_THAT(g.inputs()[0].shape, ElementsAre(-1, 48));
  EXPECT_THAT(g.inputs()[0].dim_names, ElementsAre("batch", ""));
  EXPECT_EQ(g.outputs()[0].name, "y");
  EXPECT_EQ(g.num_ops(), 3);
  EXPECT_EQ(g.num_kernels(), 3);
  EXPECT_EQ(g.ops()[0].name, "mm");
  EXPECT_EQ(g.ops()[0].type, "MatMul");
  EXPECT_THAT(g.str(), HasSubstr("MatMul"));
  EXPECT_EQ(g.report_text(), "");
}

TEST(Model, ShapesAreFixedWhileLoading) {
  EXPECT_THAT(load_text(kMlp, {{"x", {7, 48}}}).outputs()[0].shape, ElementsAre(7, 40));
  EXPECT_THROW(load_text(kMlp, {{"x", {7, 49}}}), gaf::ShapeError);
}

TEST(Model, MatMulBiasReluIsOneKernelAndRight) {
  RecordProperty("contract", "N8");
  const gaf::Graph g = load_text(kMlp), fused = gaf::fuse(g, fresh());
  EXPECT_EQ(fused.num_kernels(), 1);
  EXPECT_EQ(fused.ops()[0].name, "matmul_bias_relu_fused");
  EXPECT_THAT(fused.ops()[0].original_names, ElementsAre("mm", "bias", "act"));
  EXPECT_THAT(fused.report_text(), HasSubstr("matmul_bias_relu_fused"));
  EXPECT_THAT(fused.report_json(), HasSubstr("gaf.report/1"));
  EXPECT_EQ(g.num_kernels(), 3) << "fuse must not change its argument";

  const gaf::CompiledModel c = gaf::compile(g, fresh());
  EXPECT_EQ(c.stats().kernels, 1);
  EXPECT_EQ(c.stats().compiled, 1);
  EXPECT_EQ(c.sources().size(), 1u);
  EXPECT_EQ(c.graph().num_kernels(), 1);
  EXPECT_THAT(c.input_names(), ElementsAre("x", "w", "b"));
  const std::vector<float> w = quarters(48 * 40, 2), b = quarters(40, 3);
  for (const size_t m : {1u, 5u, 33u}) {
    const std::vector<float> x = quarters(m * 48, 1);
    const auto rows = static_cast<int64_t>(m);
    const std::vector<gaf::Tensor> y = c.run({{x.data(), {rows, 48}}, {w.data(), {48, 40}}, {b.data(), {40}}});
    ASSERT_THAT(y[0].shape(), ElementsAre(rows, 40));
    const std::vector<float> want = mlp(x, w, b, m);
    EXPECT_EQ(std::vector<float>(y[0].as<float>(), y[0].as<float>() + y[0].size()), want);
    std::vector<float> own(want.size());  // the caller's memory
    c.run({{x.data(), {rows, 48}}, {w.data(), {48, 40}}, {b.data(), {40}}}, {{own.data(), {rows, 40}}});
    EXPECT_EQ(own, want);
    const auto named =
        c.run_named({{"b", {b.data(), {40}}}, {"w", {w.data(), {48, 40}}}, {"x", {x.data(), {rows, 48}}}});
    EXPECT_EQ(std::vector<float>(named.at("y").as<float>(), named.at("y").as<float>() + want.size()), want);
  }
  EXPECT_EQ(c.stats().compiled, 1) << "a new size compiles nothing";
}

void expect_close(const gaf::Tensor& got, const gaf::Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < got.size(); i++)
    ASSERT_NEAR(got.as<float>()[i], want.as<float>()[i], 1e-5 + 1e-5 * std::abs(want.as<float>()[i])) << i;
}

TEST(Model, ConvBatchNormReluFuse) {
  RecordProperty("contract", "N9");
  const gaf::Graph g = load_text(kConv);
  const std::string report = gaf::fuse(g, fresh()).report_json();
  // one group; the normalisation is in the weights; transposes of the layout may ride along
  EXPECT_THAT(report, testing::ContainsRegex("\"nodes\":\\[(\"Transpose\",)?\"Conv\",\"ReLU\""));
  const std::vector<float> x = quarters(3 * 20 * 24, 4);
  expect_close(gaf::compile(g, fresh()).run({{x.data(), {1, 3, 20, 24}}})[0],
               gaf::compile(g, unfused()).run({{x.data(), {1, 3, 20, 24}}})[0]);
}

TEST(Model, LayerNormGeluIsOneKernelAndRight) {
  RecordProperty("contract", "N11");
  const gaf::CompiledModel c = gaf::compile(load_text(kNorm), fresh());
  EXPECT_EQ(c.stats().kernels, 1);
  const std::vector<float> x = quarters(960, 5), scale = quarters(96, 6), shift = quarters(96, 7);
  const gaf::Tensor y = c.run({{x.data(), {10, 96}}, {scale.data(), {96}}, {shift.data(), {96}}})[0];
  for (size_t r = 0; r < 10; r++) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < 96; i++) mean += x[r * 96 + i] / 96.0;
    for (size_t i = 0; i < 96; i++) var += (x[r * 96 + i] - mean) * (x[r * 96 + i] - mean) / 96;
    for (size_t i = 0; i < 96; i++) {
      const double n = (x[r * 96 + i] - mean) / std::sqrt(var + 1e-5) * scale[i] + shift[i];
      ASSERT_NEAR(y.as<float>()[r * 96 + i], n / 2 * (1 + std::erf(n / std::sqrt(2.0))), 1e-5) << r << "," << i;
    }
  }
}

TEST(Model, SavedGraphsLoadAgain) {
  const Folder f;
  const gaf::Graph fused = gaf::fuse(load_text(kMlp), fresh());
  gaf::save(fused, f.path + "/fused.gaf");
  const gaf::Graph again = gaf::load_model(f.path + "/fused.gaf");  // a plan loads as the ops its kernels stand for
  EXPECT_EQ(again.num_ops(), 3);
  EXPECT_THAT(gaf::fuse(again, fresh()).str(), HasSubstr("matmul_bias_relu_fused"));
  gaf::save(load_text(kMlp), f.path + "/plain.gaf");
  EXPECT_EQ(gaf::load_model(f.path + "/plain.gaf").num_ops(), 3);
  EXPECT_EQ(caught<gaf::UsageError>([&] { gaf::save(fused, f.path + "/fused.txt"); }).code(), "GAF1102");
}

TEST(Errors, CarryTheirFields) {
  const auto missing = caught<gaf::CacheError>([] { gaf::load_model("/nowhere/model.onnx"); });
  EXPECT_EQ(missing.code(), "GAF8001");
  EXPECT_NE(missing.remedy(), "");
  const auto text = caught<gaf::ModelError>([] { load_text("graph @g(%0: f32[2]) -> (%1) {\n  %1 = = 3\n}\n"); });
  EXPECT_EQ(text.code(), "GAF3001");
  EXPECT_EQ(text.line(), 2);
  EXPECT_GT(text.column(), 0);
  EXPECT_THAT(text.file(), HasSubstr("model.gaf"));
  const auto dims = caught<gaf::ShapeError>([] {
    load_text(
        "graph @g(%0 \"a\": f32[2,3], %1 \"b\": f32[4,5]) -> (%2) {\n  %2 = MatMul(%0, %1) : f32[2,5] # \"mm0\"\n}\n");
  });
  EXPECT_EQ(dims.code(), "GAF3101");
  EXPECT_EQ(dims.node(), "mm0");
  EXPECT_EQ(dims.op_type(), "MatMul");
  EXPECT_THAT(dims.what(), HasSubstr("GAF3101"));
  EXPECT_EQ(dims.faults().size(), 1u);
}

TEST(Errors, OfRuns) {
  const gaf::CompiledModel c = gaf::compile(load_text(kNorm), fresh());
  const std::vector<float> x(960), s(96);
  const std::vector<double> wide(960);
  const gaf::ConstTensorView scale(s.data(), {96});
  EXPECT_EQ(caught<gaf::ShapeError>([&] { c.run({{x.data(), {96, 10}}, scale, scale}); }).code(), "GAF3102");
  EXPECT_EQ(caught<gaf::DTypeError>([&] { c.run({{wide.data(), {10, 96}}, scale, scale}); }).code(), "GAF3107");
  EXPECT_EQ(caught<gaf::ModelError>([&] { c.run({{x.data(), {10, 96}}}); }).code(), "GAF3103");
  EXPECT_EQ(caught<gaf::UsageError>([&] {
              c.run({{gaf::DT_FLOAT, {10, 96}, nullptr}, scale, scale});
            }).code(),
            "GAF1102");
  EXPECT_THAT(caught<gaf::ModelError>([&] {
                c.run_named({{"scales", scale}});
              }).what(),
              HasSubstr("did you mean 'scale'"));
}

TEST(Errors, OfSettings) {
  gaf::FusionConfig c = fresh();
  c.strategy = "fast";
  EXPECT_THROW(gaf::fuse(load_text(kNorm), c), gaf::ConfigError);
  c = fresh(), c.level = 3;
  EXPECT_THROW(gaf::fuse(load_text(kNorm), c), gaf::ConfigError);
  c = fresh(), c.target = "no such machine";
  EXPECT_THROW(gaf::fuse(load_text(kNorm), c), gaf::TargetError);
  c = fresh(), c.level = 0;
  EXPECT_EQ(gaf::fuse(load_text(kNorm), c).num_kernels(), 2);
}

TEST(DataType, NumbersAreThoseOfCann) {
  EXPECT_EQ(gaf::DT_FLOAT, 0);
  EXPECT_EQ(gaf::DT_INT64, 9);
  EXPECT_EQ(gaf::DT_BF16, 27);
  EXPECT_EQ(gaf::size_of(gaf::ACL_FLOAT16), 2u);
  EXPECT_EQ(gaf::to_string(gaf::DT_BOOL), "bool");
  EXPECT_THROW(gaf::size_of(static_cast<gaf::DataType>(99)), gaf::DTypeError);
  EXPECT_EQ(gaf::data_type_of<long long>(), gaf::DT_INT64);
  gaf::Tensor t(gaf::DT_INT32, {2, 3});
  EXPECT_EQ(t.size(), 6);
  EXPECT_EQ(t.as<int32_t>()[5], 0);
  EXPECT_THROW(gaf::Tensor(gaf::DT_FLOAT, {-1}), gaf::ShapeError);
}

}  // namespace
