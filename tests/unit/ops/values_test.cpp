// Evaluation against numbers computed by hand, and shape inference with symbols. The node conformance cases cover the
// rest.
#include <gtest/gtest.h>

#include "graphs.h"

namespace gaf {
namespace {

using namespace testing;
using Ints = std::vector<int64_t>;

TEST(Eval, SoftmaxBothMeanings) {
  const Tensor x = floats({1, 2, 2}, {0, 0, std::log(3.0), 0});
  expect_near(run("Softmax", {x}, {{"axis", int64_t{2}}})[0], {1, 2, 2}, {0.5, 0.5, 0.75, 0.25});
  // before opset 13 everything from the axis on is one row
  expect_near(run("Softmax", {x}, {{"axis", int64_t{1}}}, false, 1, 11)[0], {1, 2, 2},
              {1.0 / 6, 1.0 / 6, 0.5, 1.0 / 6});
}

TEST(Eval, MatMulRanks) {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = floats({3, 2}, {1, 0, 0, 1, 1, 1});
  expect_near(run("MatMul", {a, b})[0], {2, 2}, {4, 5, 10, 11});
  expect_near(run("MatMul", {a, floats({3}, {1, 1, 1})})[0], {2}, {6, 15});
  expect_near(run("MatMul", {floats({2}, {1, 1}), a})[0], {3}, {5, 7, 9});
  try {
    run("MatMul", {a, a});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF3101");
    EXPECT_EQ(e.info().node, "node");
    EXPECT_EQ(e.info().message, "inner dimensions 3 and 2 differ");
  }
}

TEST(Eval, Gemm) {
  const Tensor a = floats({2, 1}, {1, 2}), b = floats({3, 1}, {1, 2, 3}), c = floats({3}, {1, 1, 1});
  expect_near(run("Gemm", {a, b, c}, {{"transB", int64_t{1}}, {"alpha", 2.0}, {"beta", 3.0}})[0], {2, 3},
              {5, 7, 9, 7, 11, 15});
}

TEST(Eval, ConvolutionInBothLayouts) {
  const Tensor x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), w = floats({1, 1, 2, 2}, {1, 0, 0, 1}),
               b = floats({1}, {10});
  expect_near(run("Conv", {x, w, b})[0], {1, 1, 2, 2}, {16, 18, 22, 24});
  expect_near(run("Conv", {x, w, b}, {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}})[0],
              {1, 1, 2, 2}, {16, 13, 17, 19});
  Tensor last = x;
  last.dims = {1, 3, 3, 1};
  expect_near(run("Conv", {last, w, b}, {{"layout", std::string("NHWC")}, {"pads", Ints{1, 1, 0, 0}}})[0], {1, 3, 3, 1},
              {11, 12, 13, 14, 16, 18, 17, 22, 24});
}

TEST(Eval, Pools) {
  const Tensor x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  expect_near(run("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}})[0], {1, 1, 2, 2}, {5, 6, 8, 9});
  expect_near(
      run("AveragePool", {x}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}})[0],
      {1, 1, 2, 2}, {3, 4.5, 7.5, 9});
}

TEST(Eval, SliceAndPadBothForms) {
  const Tensor x = floats({5}, {0, 1, 2, 3, 4});
  auto list = [](Ints v) { return tensor_i64(std::move(v)); };
  expect_near(run("Slice", {x, list({4}), list({-100}), list({0}), list({-2})}, {}, true)[0], {3}, {4, 2, 0});
  expect_near(run("Slice", {x, list({-3}), list({99})}, {}, true)[0], {3}, {2, 3, 4});
  expect_near(run("Slice", {x, list({-3}), list({99})})[0], {3}, {2, 3, 4});  // bounds only known at run time
  expect_near(run("Pad", {x, list({1, 2})}, {{"mode", std::string("reflect")}}, true)[0], {8},
              {1, 0, 1, 2, 3, 4, 3, 2});
}

TEST(Eval, CastRules) {
  const Tensor x = floats({4}, {1.9, -1.9, 300, 0.4});
  EXPECT_EQ(values(run("Cast", {x}, {{"to", int64_t{3}}})[0]), (std::vector<double>{1, -1, 127, 0}));
  EXPECT_EQ(values(run("Cast", {x}, {{"to", int64_t{9}}})[0]), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(values(run("Cast", {of_type(DType::i32, {2}, {300, -1})}, {{"to", int64_t{2}}})[0]),
            (std::vector<double>{44, 255}));
}

TEST(Infer, ShapeProgramFoldsToSizes) {
  // Reshape(x, Concat(Gather(Shape(x), 0), -1)) of x: [batch, 3, 4]
  GraphBuilder b;
  b.g.syms = {{"batch", 1, 64, 0}};
  const Value x = b.input("x", {DType::f32, {Expr::sym(0), 3, 4}});
  auto add = [&](std::string op, std::vector<Value> args, Attrs attrs = {}) {
    Node n;
    n.op = std::move(op);
    n.args = std::move(args);
    n.attrs = std::move(attrs);
    n.types.resize(1);
    return b.add(n);
  };
  const Value shape = add("Shape", {x});
  const Value first = add("Gather", {shape, b.constant(tensor_i64({0}))});
  const Value wanted = add("Concat", {first, b.constant(tensor_i64({-1}))}, {{"axis", int64_t{0}}});
  const Value y = add("Reshape", {x, wanted});
  b.g.outputs = {{y, "y"}};
  const Inferred in = infer(b.g);
  EXPECT_EQ(in.graph.type(y).dims, (Dims{Expr::sym(0), 12}));
  const Graph g = canonicalise(in);
  const Node& reshape = g.node(g.outputs[0].value);
  EXPECT_EQ(reshape.op, "Reshape");
  EXPECT_EQ(reshape.args.size(), 1u);
  EXPECT_EQ(attr_exprs(reshape, "shape"), (Dims{Expr::sym(0), 12}));
  const Tensor data = wavy({2, 3, 4});
  EXPECT_EQ(interpret_graph(g, std::vector{data})[0].dims, (Ints{2, 12}));
}

TEST(Infer, SymbolicWindows) {
  Graph g = one_node("Conv", {wavy({1, 1, 9, 9}), wavy({4, 1, 3, 3})},
                     {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}, true);
  g.syms = {{"h", 1, 4096, 0}};
  g.nodes[0].types[0].dims[2] = Expr::sym(0);
  const Graph typed = infer(g).graph;
  EXPECT_EQ(typed.nodes.back().types[0].dims, (Dims{1, 4, floordiv(Expr::sym(0) - Expr(1), Expr(2)) + Expr(1), 5}));
}

TEST(Infer, BroadcastErrorsNameTheNode) {
  try {
    infer(one_node("Add", {wavy({2, 3}), wavy({2, 4})}));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF3101");
    EXPECT_EQ(e.info().op_type, "Add");
    EXPECT_NE(e.info().message.find("[2,3] and [2,4]"), std::string::npos) << e.info().message;
  }
}

TEST(Canonical, RemovesWhatDoesNothing) {
  for (const char* op : {"Identity", "Dropout", "Sum", "Max"}) {
    const Graph g = canonicalise(infer(one_node(op, {wavy({3})})));
    EXPECT_EQ(g.outputs[0].value, (Value{0, 0})) << op;
  }
  const Graph cast = canonicalise(infer(one_node("Cast", {wavy({3})}, {{"to", int64_t{1}}})));
  EXPECT_EQ(cast.outputs[0].value, (Value{0, 0}));
}

TEST(Canonical, IfWithAKnownConditionIsItsBranch) {
  auto branch = [](const char* op) {
    GraphBuilder r;
    const Value x = r.input("x", {DType::f32, {3}});
    Node n;
    n.op = op;
    n.args = {x};
    n.types.resize(1);
    r.g.outputs = {{r.add(n), "y"}};
    return std::make_shared<const Graph>(r.g);
  };
  for (bool known : {true, false}) {
    GraphBuilder b;
    const Value x = b.input("x", {DType::f32, {3}});
    const Value cond = known ? b.constant(of_type(DType::b1, {}, {1})) : b.input("c", {DType::b1, {}});
    Node n;
    n.op = "If";
    n.args = {cond, x};
    n.attrs["captures"] = int64_t{1};
    n.regions = {branch("Neg"), branch("Abs")};
    n.types.resize(1);
    b.g.outputs = {{b.add(n), "y"}};
    const Graph g = canonicalise(infer(b.g));
    EXPECT_EQ(g.node(g.outputs[0].value).op, known ? "Neg" : "If");
    std::vector<Tensor> in{floats({3}, {1, -2, 3})};
    if (!known) in.push_back(of_type(DType::b1, {}, {0}));
    expect_near(interpret_graph(g, in)[0], {3}, known ? std::vector<double>{-1, 2, -3} : std::vector<double>{1, 2, 3});
  }
}

}  // namespace
}  // namespace gaf
