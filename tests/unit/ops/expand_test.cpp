// What composites say they are, in primitives, against their own evaluation; with static and with symbolic sizes.
#include <gtest/gtest.h>

#include "graphs.h"

namespace gaf {
namespace {

using namespace testing;

struct Sample {
  std::string op;
  std::vector<std::vector<int64_t>> shapes;
  Attrs attrs;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"ReduceMean", {{3, 4, 5}}, {{"axes", std::vector<int64_t>{1, 2}}}},
      {"ReduceMean", {{3, 4, 5}}, {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{0}}}},
      {"ReduceL1", {{3, 4, 5}}, {{"axes", std::vector<int64_t>{0}}}},
      {"ReduceL2", {{3, 4, 5}}, {{"axes", std::vector<int64_t>{0, 2}}, {"keepdims", int64_t{0}}}},
      {"ReduceSumSquare", {{3, 4, 5}}, {}},
      {"ReduceLogSum", {{1, 4}}, {{"axes", std::vector<int64_t>{1}}}},
      {"ReduceLogSumExp", {{3, 4, 5}}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}}},
      {"Softmax", {{3, 4, 5}}, {{"axis", int64_t{1}}}},
      {"Softmax", {{3, 4, 5}}, {{"axis", int64_t{1}}, {"flatten", int64_t{1}}}},
      {"LogSoftmax", {{3, 4, 5}}, {}},
      {"LayerNormalization", {{3, 4, 5}, {5}, {5}}, {}},
      {"LayerNormalization", {{3, 4, 5}, {4, 5}}, {{"axis", int64_t{1}}, {"epsilon", 1e-2}}},
      {"RMSNormalization", {{3, 4, 5}, {5}}, {}},
      {"BatchNormalization", {{3, 4, 5, 2}, {4}, {4}, {4}, {4}}, {{"epsilon", 5.0}}},
      {"BatchNormalization", {{3, 5, 2, 4}, {4}, {4}, {4}, {4}}, {{"epsilon", 5.0}, {"layout", std::string("NHWC")}}},
      {"InstanceNormalization", {{3, 4, 5, 2}, {4}, {4}}, {}},
      {"GroupNormalization", {{3, 4, 5, 2}, {4}, {4}}, {{"num_groups", int64_t{2}}}},
      {"GroupNormalization", {{3, 5, 2, 4}, {4}, {4}}, {{"num_groups", int64_t{2}}, {"layout", std::string("NHWC")}}},
      {"MeanVarianceNormalization", {{3, 4, 5, 2}}, {}},
      {"GlobalAveragePool", {{3, 4, 5, 2}}, {}},
      {"GlobalAveragePool", {{3, 5, 2, 4}}, {{"layout", std::string("NHWC")}}},
      {"GlobalMaxPool", {{3, 4, 5, 2}}, {}},
      {"DepthToSpace", {{2, 8, 3, 2}}, {{"blocksize", int64_t{2}}}},
      {"DepthToSpace", {{2, 8, 3, 2}}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}}},
      {"SpaceToDepth", {{2, 2, 4, 6}}, {{"blocksize", int64_t{2}}}},
      {"FusedMatMul", {{2, 4, 3}, {2, 5, 4}}, {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5}}},
  };
  return all;
}

// The node in primitives, nested composites included.
Value expanded(GraphBuilder& b, const Node& n, std::vector<Value> args) {
  const OpRow& r = op_row(n);
  if (!r.expand) {
    Node copy = n;
    copy.args = std::move(args);
    return b.add(copy);
  }
  return r.expand(b, n, args);
}

void check(const Sample& s, bool symbolic) {
  SCOPED_TRACE(s.op + (symbolic ? " with symbolic dims" : ""));
  std::vector<Tensor> args;
  for (const auto& shape : s.shapes) args.push_back(wavy(shape, static_cast<double>(args.size())));
  Graph g = one_node(s.op, args, s.attrs);
  g.nodes.back().types.resize(1);
  if (symbolic) {
    g.syms = {{"a", 1, 64, 0}};
    g.nodes[0].types[0].dims[0] = Expr::sym(0);
    if (s.op == "FusedMatMul") g.nodes[1].types[0].dims[0] = Expr::sym(0);
  }
  const Graph whole = canonicalise(infer(g));
  GraphBuilder b;
  b.g.opset = whole.opset;
  b.g.syms = whole.syms;
  std::vector<Value> now;
  for (const Node& n : whole.nodes) {
    std::vector<Value> operands;
    for (Value v : n.args) operands.push_back(v == kNoValue ? v : now[v.node]);
    now.push_back(n.op == "input" || n.op == "constant" ? b.add(n) : expanded(b, n, operands));
  }
  b.g.outputs = {{now[whole.outputs[0].value.node], "y"}};
  for (const Node& n : b.g.nodes) EXPECT_FALSE(is_kind(n, OpKind::composite)) << n.op;
  const Type& t = b.g.type(b.g.outputs[0].value);
  EXPECT_EQ(t, whole.type(whole.outputs[0].value));
  const Tensor want = interpret_graph(whole, args)[0], got = interpret_graph(b.g, args)[0];
  ASSERT_EQ(got.dims, want.dims);
  for (int64_t i = 0; i < want.numel(); i++) {
    if (std::isnan(want.get(i))) continue;
    ASSERT_NEAR(got.get(i), want.get(i), 1e-5 * (1 + std::fabs(want.get(i)))) << "element " << i;
  }
  // inference agrees with the types the expansion wrote
  const Graph again = infer(b.g).graph;
  for (size_t i = 0; i < again.nodes.size(); i++)
    EXPECT_EQ(again.nodes[i].types, b.g.nodes[i].types) << again.nodes[i].op;
}

TEST(Expansion, AgreesWithEvaluation) {
  for (const Sample& s : samples()) {
    check(s, false);
    check(s, true);
  }
}

TEST(Expansion, EveryCompositeHasASample) {
  for (const OpRow& r : all_ops()) {
    if (r.kind != OpKind::composite) continue;
    bool found = false;
    for (const Sample& s : samples()) found = found || s.op == r.name;
    EXPECT_TRUE(found) << r.name;
  }
}

}  // namespace
}  // namespace gaf
