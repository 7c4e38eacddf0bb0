// Templates for targets that work on tiles: every text verifies, fits the target's memories, and computes what float64
// arithmetic does to within two units of f16, for ragged sizes on the largest and the smallest of the shipped targets.
#include <cmath>
#include <random>

#include "base/catalogue.h"
#include "check_kernel.h"
#include "lower/npu_tiles.h"

namespace gaf {
namespace {

const char* const kNpuTargets[] = {"ascend910b1", "ascend910b4"};

std::string f16(std::vector<int64_t> dims) {
  std::string s = "f16[";
  for (size_t i = 0; i < dims.size(); i++) s += (i ? "," : "") + std::to_string(dims[i]);
  return s + "]";
}

std::string softmax_text(const std::vector<int64_t>& dims, const std::string& attrs = "axis=-1") {
  return "graph @k(%0: " + f16(dims) + ") -> (%1) {\n  %1 = Softmax(%0) {" + attrs + "} : " + f16(dims) + "\n}\n";
}

struct MatMul {
  int64_t m, k, n;
  bool bias = true, relu = true;
  std::string text() const {
    std::string s = "graph @k(%0: " + f16({m, k}) + ", %1: " + f16({k, n}) + " const" +
                    (bias ? ", %2: " + f16({n}) + " const" : "");
    int v = bias ? 3 : 2;
    std::string body = "  %" + std::to_string(v) + " = MatMul(%0, %1) : " + f16({m, n}) + "\n";
    if (bias)
      body += "  %" + std::to_string(v + 1) + " = Add(%" + std::to_string(v) + ", %2) : " + f16({m, n}) + "\n", v++;
    if (relu)
      body += "  %" + std::to_string(v + 1) + " = Relu(%" + std::to_string(v) + ") : " + f16({m, n}) + "\n", v++;
    return s + ") -> (%" + std::to_string(v) + ") {\n" + body + "}\n";
  }
};

std::vector<double> doubles(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.numel(); i++) v.push_back(t.get(i));
  return v;
}

std::vector<double> softmax(const Tensor& x, int64_t cols) {
  std::vector<double> v = doubles(x);
  for (size_t r = 0; r < v.size(); r += static_cast<size_t>(cols)) {
    double top = v[r], sum = 0;
    for (size_t c = 0; c < static_cast<size_t>(cols); c++) top = std::max(top, v[r + c]);
    for (size_t c = 0; c < static_cast<size_t>(cols); c++) sum += v[r + c] = std::exp(v[r + c] - top);
    for (size_t c = 0; c < static_cast<size_t>(cols); c++) v[r + c] /= sum;
  }
  return v;
}

std::vector<double> product(const MatMul& p, std::span<const Tensor> in) {
  const std::vector<double> a = doubles(in[0]), b = doubles(in[1]);
  std::vector<double> out;
  for (int64_t i = 0; i < p.m; i++)
    for (int64_t j = 0; j < p.n; j++) {
      double sum = p.bias ? in[2].get(j) : 0;
      for (int64_t k = 0; k < p.k; k++)
        sum += a[static_cast<size_t>(i * p.k + k)] * b[static_cast<size_t>(k * p.n + j)];
      out.push_back(p.relu ? std::max(0.0, sum) : sum);
    }
  return out;
}

// Distance in steps of f16 at the magnitude of `want`.
double f16_steps(double got, double want) {
  const int exponent = std::max(-14, std::ilogb(std::max(std::fabs(want), 0x1p-24)));
  return std::fabs(got - want) / std::ldexp(1, exponent - 10);
}

Lowered lowered(const Graph& fn, const Target& t) {
  auto made = lower(fn, t);
  if (auto* v = std::get_if<Verdict>(&made)) throw std::runtime_error(v->reason + ": " + v->text);
  Lowered l = std::get<Lowered>(std::move(made));
  l.kernel = kir::legalise(std::move(l.kernel), t);
  return l;
}

void check(const std::string& text, const char* target,
           const std::function<std::vector<double>(std::span<const Tensor>)>& reference, unsigned seed = 1) {
  const Graph fn = parse_graph(text);
  const Target t = load_target(target);
  const Lowered l = lowered(fn, t);
  for (const auto& [mem, bytes] : kir::peak_bytes(l.kernel, t)) {
    ASSERT_LE(bytes, t.memory(mem)->bytes) << kir::print_kernel(l.kernel);
  }
  const std::vector<Tensor> in = random_inputs(fn, {}, seed);
  const std::vector<Tensor> got = run_lowered(l, t, fn, {}, in);
  ASSERT_EQ(got.size(), 1u) << text;
  const std::vector<double> want = reference(in);
  ASSERT_EQ(want.size(), static_cast<size_t>(got[0].numel()));
  for (size_t i = 0; i < want.size(); i++)
    ASSERT_LE(f16_steps(got[0].get(static_cast<int64_t>(i)), want[i]), 2)
        << target << ": element " << i << " is " << got[0].get(static_cast<int64_t>(i)) << ", should be " << want[i]
        << "\n"
        << text << kir::print_kernel(l.kernel);
}

void check_softmax(const std::vector<int64_t>& dims, const char* target, unsigned seed = 1) {
  check(
      softmax_text(dims), target, [&](std::span<const Tensor> in) { return softmax(in[0], dims.back()); }, seed);
}
void check_matmul(const MatMul& p, const char* target, unsigned seed = 1) {
  check(
      p.text(), target, [&](std::span<const Tensor> in) { return product(p, in); }, seed);
}

TEST(TiledRow, ShapesOfSoftmax) {
  for (const char* t : kNpuTargets)
    for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{128, 128},
                                                                              {1, 2},
                                                                              {5},
                                                                              {1, 17},
                                                                              {3, 1000},
                                                                              {100, 77},
                                                                              {2, 3, 5, 33},
                                                                              {257, 16},
                                                                              {49, 15},
                                                                              {2, 9001},
                                                                              {1, 14000}})
      check_softmax(dims, t);
}

TEST(TiledRow, RandomShapesOfSoftmax) {
  std::mt19937 g(7);
  for (int i = 0; i < 60; i++) {
    const int64_t cols = 2 + static_cast<int64_t>(g() % (i % 4 ? 200 : 3000)),
                  rows = 1 + static_cast<int64_t>(g() % static_cast<unsigned>(1 + 40000 / cols));
    check_softmax({rows, cols}, kNpuTargets[i % 2], static_cast<unsigned>(i));
  }
}

TEST(TiledRow, LargeValuesAndInfinities) {
  const Graph fn = parse_graph(softmax_text({3, 20}));
  for (const char* name : kNpuTargets) {
    const Target t = load_target(name);
    std::vector<Tensor> in = random_inputs(fn, {});
    in[0].set(3, 60000), in[0].set(25, -INFINITY);
    for (int64_t c = 40; c < 60; c++) in[0].set(c, -INFINITY);  // a masked row
    const std::vector<Tensor> want = interpret_graph(fn, in), got = run_lowered(lowered(fn, t), t, fn, {}, in);
    expect_close(got[0], want[0], 1e-3, name);
  }
}

TEST(TiledRow, CastsAroundSoftmaxAreItsOwn) {
  for (const char* name : kNpuTargets)
    for (const auto& [from, inner, to] : std::vector<std::array<std::string, 3>>{
             {"f16", "f32", "f16"}, {"f16", "f32", "f32"}, {"f32", "f32", "f16"}, {"f32", "f16", "f32"}}) {
      const bool before = from != inner, after = to != inner;
      std::string text = "graph @k(%0: " + from + "[19,45]) -> (%" + std::to_string(1 + before + after) + ") {\n";
      int v = 0;
      auto line = [&](const std::string& op, const std::string& type) {
        text += "  %" + std::to_string(v + 1) + " = " + op.substr(0, op.find(' ')) + "(%" + std::to_string(v) + ")" +
                op.substr(op.find(' ')) + " : " + type + "[19,45]\n";
        v++;
      };
      if (before) line("Cast {to=\"" + inner + "\"}", inner);
      line("Softmax {axis=-1}", inner);
      if (after) line("Cast {to=\"" + to + "\"}", to);
      check(text + "}\n", name, [](std::span<const Tensor> in) { return softmax(in[0], 45); });
    }
}

TEST(TiledRow, RowsThatDoNotFitAreRefused) {
  const Target t = load_target("ascend910b1");
  const auto made = lower(parse_graph(softmax_text({4, 40000})), t);
  ASSERT_TRUE(std::holds_alternative<Verdict>(made));
  EXPECT_EQ(std::get<Verdict>(made).reason, "resource-local-memory");
  EXPECT_NE(std::get<Verdict>(made).text.find("one row of 40000 elements needs"), std::string::npos)
      << std::get<Verdict>(made).text;
}

TEST(TiledContraction, Shapes) {
  for (const char* t : kNpuTargets)
    for (auto [m, k, n] : std::vector<std::array<int64_t, 3>>{{16, 16, 16},
                                                              {64, 96, 64},
                                                              {1, 1, 1},
                                                              {1, 7, 5},
                                                              {17, 33, 18},
                                                              {5, 300, 3},
                                                              {130, 70, 129},
                                                              {33, 1025, 40},
                                                              {200, 48, 300}})
      for (const bool bias : {false, true})
        for (const bool relu : {false, true}) check_matmul({m, k, n, bias, relu}, t);
}

TEST(TiledContraction, RandomShapes) {
  std::mt19937 g(11);
  for (int i = 0; i < 60; i++) {
    auto size = [&](unsigned most) { return 1 + static_cast<int64_t>(g() % most); };
    check_matmul({size(150), size(i % 3 ? 100 : 700), size(150), g() % 2 == 0, g() % 2 == 0}, kNpuTargets[i % 2],
                 static_cast<unsigned>(i));
  }
}

TEST(TiledContraction, BatchesOfRowsAndGemm) {
  for (const char* name : kNpuTargets) {
    check(R"(graph @k(%0: f16[2,3,20], %1: f16[20,24], %2: f16[1,24]) -> (%4) {
  %3 = MatMul(%0, %1) : f16[2,3,24]
  %4 = Add(%2, %3) : f16[2,3,24]
}
)",
          name, [](std::span<const Tensor> in) {
            return product({6, 20, 24, true, false}, in);
          });
    check(R"(graph @k(%0: f16[6,20], %1: f16[20,24], %2: f16[24]) -> (%4) {
  %3 = Gemm(%0, %1, %2) : f16[6,24]
  %4 = Relu(%3) : f16[6,24]
}
)",
          name, [](std::span<const Tensor> in) {
            return product({6, 20, 24, true, true}, in);
          });
  }
}

// What the templates do not write is refused with the reason, on every one of these targets.
TEST(Tiled, Refusals) {
  struct Case {
    std::string text, reason, part;
  };
  auto two = [](const std::string& body, const std::string& out) {
    return "graph @k(%0: f16[8,32], %1: f16[32,16], %2: f16[8,16]) -> (" + out + ") {\n" + body + "}\n";
  };
  const Case cases[] = {
      {softmax_text({4, 8, 16}, "axis=1"), "layout", "only the last has a kernel"},
      {softmax_text({4, 1}), "backend-limit", "one element"},
      {two("  %3 = MatMul(%0, %1) : f16[8,16]\n  %4 = Add(%3, %2) : f16[8,16]\n", "%4"), "backend-limit",
       "not one number a column"},
      {two("  %3 = MatMul(%0, %1) : f16[8,16]\n  %4 = Sigmoid(%3) : f16[8,16]\n", "%4"), "backend-limit", "Sigmoid"},
      {two("  %3 = MatMul(%0, %1) : f16[8,16]\n  %4 = Relu(%3) : f16[8,16]\n", "%4, %3"), "multi-use", "read outside"},
      {two("  %3 = Gemm(%0, %1) {transA=1} : f16[8,16]\n", "%3"), "layout", "transposed"},
      {two("  %3 = Gemm(%0, %1) {alpha=0.5} : f16[8,16]\n", "%3"), "backend-limit", "Mul"},
      {"graph @k(%0: f32[8,32], %1: f32[32,16]) -> (%2) {\n  %2 = MatMul(%0, %1) : f32[8,16]\n}\n", "unsupported-dtype",
       "float32"},
      {"graph @k(%0: f16[4,8,32], %1: f16[4,32,16]) -> (%2) {\n  %2 = MatMul(%0, %1) : f16[4,8,16]\n}\n", "layout",
       "no matrix"},
      {"graph @k(%0: f16[8,32]) -> (%1) {\n  %1 = Exp(%0) : f16[8,32]\n}\n", "backend-limit", "Exp"},
      {"graph @k(%0: f16[8,32]) -> (%2) {\n  %1 = Softmax(%0) {axis=-1} : f16[8,32]\n  %2 = Exp(%1) : f16[8,32]\n}\n",
       "backend-limit", "Exp"},
  };
  for (const char* name : kNpuTargets)
    for (const Case& c : cases) {
      const auto made = lower(parse_graph(c.text), load_target(name));
      ASSERT_TRUE(std::holds_alternative<Verdict>(made)) << c.text;
      const Verdict& v = std::get<Verdict>(made);
      EXPECT_EQ(v.reason, c.reason) << c.text << v.text;
      EXPECT_NE(v.text.find(c.part), std::string::npos) << v.text;
    }
}

// Copies of large operands are long enough to reach the memory's speed (TARGETS.md: 16 KiB), tiles fill what there is.
TEST(Tiled, LargeShapesMoveLargeBlocks) {
  const Target t = load_target("ascend910b1");
  for (const std::string& text : {MatMul{4096, 4096, 4096}.text(), softmax_text({4096, 4096})}) {
    const Lowered l = lowered(parse_graph(text), t);
    for (const kir::Tile& x : l.kernel.tiles)
      if (x.ring > 1 && x.rows > 1 && (x.mem == Mem::l1 || x.mem == Mem::ub)) {
        EXPECT_GE(x.size_bytes(), 8192) << x.name << "\n" << kir::print_kernel(l.kernel);
      }
  }
}

}  // namespace
}  // namespace gaf
