// The graph verifier finds each kind of fault, names its node, and accepts what is sound; attribute access refuses
// kinds.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/graph.h"

namespace gaf {
namespace {

Graph sound() {
  return parse_graph(R"(kernel @k0(%0: f32[n,4]) -> (%1) {
  %1 = Relu(%0) : f32[n,4]
}
graph @g(size n, %0 "x": f32[n,4], %1 "c": b1[]) -> (%4 "y") {
  %2 = constant {value=[1.0,2.0,3.0,4.0]} : f32[4]
  %3 = call @k0(%0) : f32[n,4]
  %4 = If(%1, %3) : f32[n,4]
    region @then(%0: f32[n,4]) -> (%1 "t") {
      %1 = Neg(%0) : f32[n,4]
    }
}
)");
}

// The graph with one change has exactly one problem, at that node, with these words.
void expect_problem(const std::function<void(Graph&)>& change, uint32_t node, const std::string& words) {
  Graph g = sound();
  change(g);
  auto problems = verify_graph(g);
  ASSERT_FALSE(problems.empty()) << words;
  EXPECT_EQ(problems[0].node, node) << problems[0].text;
  EXPECT_NE(problems[0].text.find(words), std::string::npos) << problems[0].text;
}

TEST(GraphVerify, SoundGraphHasNoProblem) { EXPECT_TRUE(verify_graph(sound()).empty()); }

TEST(GraphVerify, EachFaultIsFound) {
  expect_problem([](Graph& g) { g.nodes[3].args[0] = {4, 0}; }, 3, "later one");
  expect_problem([](Graph& g) { g.nodes[3].args[0] = {99, 0}; }, 3, "no value of the graph");
  expect_problem([](Graph& g) { g.nodes[3].args[0] = {0, 1}; }, 3, "no value of the graph");
  expect_problem([](Graph& g) { g.nodes[0].types[0].dims[1] = -4; }, 0, "a dim is -4");
  expect_problem([](Graph& g) { g.nodes[4].types[0].dims[0] = Expr::sym(7); }, 4, "uses size 7");
  expect_problem([](Graph& g) { std::swap(g.nodes[1], g.nodes[2]); }, 2, "behind other nodes");
  expect_problem([](Graph& g) { g.nodes[1].name = "x"; }, 1, "two inputs");
  expect_problem([](Graph& g) { g.nodes[2].types[0].dtype = DType::i32; }, 2, "type of the constant");
  expect_problem([](Graph& g) { g.nodes[2].attrs.clear(); }, 2, "one tensor");
  expect_problem([](Graph& g) { g.nodes[3].callee = 5; }, 3, "names no kernel");
  expect_problem([](Graph& g) { g.nodes[3].args.push_back({0, 0}); }, 3, "takes 1 operands, the call has 2");
  expect_problem([](Graph& g) { g.nodes[3].types.push_back({}); }, 3, "1 results");
  expect_problem([](Graph& g) { g.nodes[3].types[0].dims[1] = 5; }, 3, "not of the type");
  expect_problem([](Graph& g) { g.nodes[4].args.push_back({0, 0}); }, 4, "its node passes 2");
  expect_problem([](Graph& g) { g.nodes[4].callee = 0; }, 4, "only a call");
  expect_problem([](Graph& g) { g.kernels[0].nodes[1].args[0] = {1, 0}; }, kNoValue.node, "kernel @k0: node 1");
  expect_problem([](Graph& g) { g.kernels.push_back(g.kernels[0]); }, kNoValue.node, "two kernels");
  expect_problem([](Graph& g) { g.syms.push_back(g.syms[0]); }, kNoValue.node, "two sizes");
  expect_problem([](Graph& g) { g.outputs[0].value = kNoValue; }, kNoValue.node, "output 'y'");
}

TEST(GraphAttributes, WrongKindNamesTheNode) {
  Node n;
  n.op = "Softmax";
  n.name = "sm";
  n.attrs = {{"axis", std::string("one")}, {"list", std::vector<int64_t>{1, 2}}, {"whole", int64_t{2}}};
  EXPECT_EQ(attr_int(n, "absent", 7), 7);
  EXPECT_EQ(attr_float(n, "whole", 0), 2.0);
  EXPECT_EQ(attr_exprs(n, "list"), (Dims{1, 2}));
  EXPECT_EQ(attr_floats(n, "list"), (std::vector<double>{1, 2}));
  try {
    attr_int(n, "axis", 0);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().node, "sm");
    EXPECT_EQ(e.info().op_type, "Softmax");
    EXPECT_NE(e.info().message.find("axis"), std::string::npos);
  }
}

TEST(GraphReaders, ListsEachReaderOnceAndOutputs) {
  Graph g = parse_graph(R"(graph @g(%0 "x": f32[2]) -> (%1 "a", %2 "b") {
  %1 = Mul(%0, %0) : f32[2]
  %2 = Add(%0, %1) : f32[2]
}
)");
  auto r = readers(g);
  EXPECT_EQ(r[0], (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(r[1], (std::vector<uint32_t>{2, kNoValue.node}));
  EXPECT_EQ(r[2], (std::vector<uint32_t>{kNoValue.node}));
}

}  // namespace
}  // namespace gaf
