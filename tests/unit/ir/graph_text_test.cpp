// Graph text: what is printed, that it reads back as the same graph, and where faults are reported.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/graph.h"

namespace gaf {
namespace {

const char* kMlp = R"(opset 13
metadata "author" = "a \"b\"\n"
kernel @k0(%0: f32[batch,8], %1: f32[8,4] const) -> (%4) {
  %2 = MatMul(%0, %1) : f32[batch,4]
  %3 = constant {value=[0.5]} : f32[]
  %4 = Mul(%2, %3) : f32[batch,4]  # "layer0/scale"
}
graph @mlp(size batch, size seq in 1..512 hint 128, %0 "x": f32[batch,8]) -> (%4 "y", %2) {
  %1 = constant #00000000deadbeef : f32[8,4]  # "w"
  %2 = call @k0(%0, %1) : f32[batch,4]
  %3, %4 = Split(%2, _) {axis=-1, big=0.1d, dims=(batch,seq*2 + 1), eps=1e-05, mode="x y", none=ints[]} : f32[batch,2], f32[batch,2]  # "s" from "a", "b"
}
)";

std::string reprint(std::string_view text) { return print_graph(parse_graph(text)); }

TEST(GraphText, ReadsBackAsPrinted) { EXPECT_EQ(reprint(kMlp), kMlp); }

TEST(GraphText, FieldsArrive) {
  Graph g = parse_graph(kMlp);
  EXPECT_EQ(g.name, "mlp");
  EXPECT_EQ(g.opset, 13);
  EXPECT_EQ(g.metadata.at("author"), "a \"b\"\n");
  ASSERT_EQ(g.syms.size(), 2u);
  EXPECT_EQ(g.syms[1], (Sym{"seq", 1, 512, 128}));
  ASSERT_EQ(g.kernels.size(), 1u);
  EXPECT_EQ(attr_int(g.kernels[0].nodes[1], "const", 0), 1);
  EXPECT_EQ(g.kernels[0].nodes[4].name, "layer0/scale");
  const Node& split = g.nodes[3];
  EXPECT_EQ(split.args, (std::vector<Value>{{2, 0}, kNoValue}));
  EXPECT_EQ(split.types.size(), 2u);
  EXPECT_EQ(split.origins, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(attr_float(split, "eps", 0), static_cast<double>(1e-5f));
  EXPECT_EQ(attr_float(split, "big", 0), 0.1);
  EXPECT_EQ((*attr_dims(split, "dims"))[1], Expr::sym(1) * Expr(2) + Expr(1));
  EXPECT_EQ(g.outputs[0].value, (Value{3, 1}));
  EXPECT_TRUE(verify_graph(g).empty());
}

TEST(GraphText, ConstantsKeepEveryBit) {
  Tensor t = Tensor::make(DType::f32, {5});
  float values[] = {-0.0f, 0.1f, std::numeric_limits<float>::denorm_min(), INFINITY, NAN};
  std::memcpy(t.mut<float>(), values, sizeof values);
  t.mut<uint32_t>()[4] = 0xffc12345;  // a NaN with a payload
  Tensor u = Tensor::make(DType::u64, {1});
  u.mut<uint64_t>()[0] = UINT64_MAX;
  Tensor h = Tensor::make(DType::f16, {2});
  h.mut<uint16_t>()[0] = 0x2e66;
  h.mut<uint16_t>()[1] = 0x7e00;
  GraphBuilder b;
  b.g.name = "c";
  b.constant(t);
  b.constant(u);
  b.constant(h);
  Graph back = parse_graph(print_graph(b.g));
  EXPECT_TRUE(constant(back, {0, 0})->equal(t)) << print_graph(b.g);
  EXPECT_TRUE(constant(back, {1, 0})->equal(u));
  EXPECT_TRUE(constant(back, {2, 0})->equal(h));
}

TEST(GraphText, LargeConstantsAreInventedOnceAndForAll) {
  Graph a = parse_graph(kMlp), b = parse_graph(kMlp);
  const Tensor* t = constant(a, {1, 0});
  EXPECT_TRUE(t->equal(*constant(b, {1, 0})));
  bool varied = false;
  for (int64_t i = 0; i < t->numel(); i++) varied = varied || t->get(i) != t->get(0);
  EXPECT_TRUE(varied);
  EXPECT_EQ(constant_hash(a.nodes[1]), 0xdeadbeefu);
}

TEST(GraphText, LargeConstantsComeFromTheSource) {
  Tensor t = Tensor::make(DType::i32, {40});
  t.set_int(7, 5);
  GraphBuilder b;
  b.g.name = "c";
  b.constant(t);
  std::string text = print_graph(b.g);
  Graph back = parse_graph(
      text, "", [&](uint64_t hash, DType, const std::vector<int64_t>&) { return hash == t.hash() ? t : Tensor{}; });
  EXPECT_TRUE(constant(back, {0, 0})->equal(t));
  EXPECT_EQ(back.nodes[0].attrs.count("hash"), 0u);
  EXPECT_EQ(print_graph(back), text);
}

TEST(GraphText, RegionsNest) {
  const char* text = R"(graph @top(%0 "c": b1[], %1 "x": f32[2]) -> (%2 "y") {
  %2 = If(%0, %1) : f32[2]  # "if"
    region @then(%0 "x": f32[2]) -> (%1 "t") {
      %1 = Neg(%0) : f32[2]
    }
    region @else(%0 "x": f32[2]) -> (%0 "e") {
    }
}
)";
  Graph g = parse_graph(text);
  EXPECT_EQ(print_graph(g), text);
  ASSERT_EQ(g.nodes[2].regions.size(), 2u);
  EXPECT_TRUE(verify_graph(g).empty());
}

TEST(GraphText, StrangeNamesAreQuoted) {
  GraphBuilder b;
  b.g.name = "torch graph/0";
  Value x = b.input("in\\put\n\xff", Type{DType::f32, {2}});
  b.op("my.ops::Fancy Op", {x}, {{"a key", int64_t{1}}}, Type{DType::f32, {2}}, "n\"1");
  b.g.outputs = {{{1, 0}, "\xc3\xa9"}};
  std::string text = print_graph(b.g);
  Graph back = parse_graph(text);
  EXPECT_EQ(print_graph(back), text);
  EXPECT_EQ(back.name, b.g.name);
  EXPECT_EQ(back.nodes[0].name, b.g.nodes[0].name);
  EXPECT_EQ(back.nodes[1].op, b.g.nodes[1].op);
  EXPECT_EQ(back.outputs[0].name, b.g.outputs[0].name);
}

struct Fault {
  const char* text;
  int line, column;
  const char* message;
};

TEST(GraphText, FaultsAreAnchored) {
  const Fault faults[] = {
      {"graph @g(%0: f32[2]) -> (%1) {\n  %1 = Relu(%2) : f32[2]\n}\n", 2, 13, "%2 is not defined"},
      {"graph @g(%0: f33[2]) -> (%0) {\n}\n", 1, 14, "no element type"},
      {"graph @g(%0: f32[n]) -> (%0) {\n}\n", 1, 18, "size 'n' is not declared"},
      {"graph @g() -> (%3) {\n}\n", 1, 16, "output %3 is not defined"},
      {"graph @g(%0: f32[2]) -> () {\n  %0 = Relu(%0) : f32[2]\n}\n", 2, 3, "%0 is defined twice"},
      {"graph @g(%0: f32[2]) -> () {\n  %1 = Relu(%0) {a=} : f32[2]\n}\n", 2, 20, "expected a number"},
      {"graph @g(%0: f32[2]) -> () {\n  %1 = constant {value=[1,2]} : f32[3]\n}\n", 2, 24, "3 elements"},
      {"graph @g(%0: f32[2]) -> () {\n  %1 = call @k(%0) : f32[2]\n}\n", 2, 14, "kernel @k is not defined"},
      {"graph @g(%0: f32[2]) -> () {\n  %1 = Relu(%0) {s=\"abc\n} : f32[2]\n}\n", 2, 20, "does not end"},
      {"graph @g(%0: f32[2]) -> () {\n", 2, 1, "the end of the text"},
      {"graph @g() -> () {\n  %0 = constant #00ff : f32[1000000,1000000]\n}\n", 2, 3, "no data"},
      {"", 1, 1, "expected 'graph'"},
  };
  for (const Fault& f : faults) {
    try {
      parse_graph(f.text, "t.gaf");
      ADD_FAILURE() << "accepted: " << f.text;
    } catch (const UserError& e) {
      EXPECT_EQ(e.info().code, "GAF3001");
      EXPECT_EQ(e.info().file, "t.gaf");
      EXPECT_EQ(e.info().line, f.line) << f.text << e.info().message;
      EXPECT_EQ(e.info().column, f.column) << f.text << e.info().message;
      EXPECT_NE(e.info().message.find(f.message), std::string::npos) << e.info().message;
    }
  }
}

TEST(GraphText, EveryTruncationIsAnError) {
  std::string text = kMlp;
  for (size_t n = 0; n + 2 < text.size(); n++) EXPECT_THROW(parse_graph(text.substr(0, n)), UserError) << n;
}

}  // namespace
}  // namespace gaf
