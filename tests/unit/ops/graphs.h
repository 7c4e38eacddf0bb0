// Small graphs for the tests of the op table: one node with given operands and attributes, typed and run.
#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "ops/canonical.h"
#include "ops/op.h"

namespace gaf::testing {

inline Tensor floats(std::vector<int64_t> dims, const std::vector<double>& v) {
  Tensor t = Tensor::make(DType::f32, std::move(dims));
  EXPECT_EQ(t.numel(), static_cast<int64_t>(v.size()));
  for (size_t i = 0; i < v.size(); i++) t.set(static_cast<int64_t>(i), v[i]);
  return t;
}

inline Tensor of_type(DType d, std::vector<int64_t> dims, const std::vector<int64_t>& v) {
  Tensor t = Tensor::make(d, std::move(dims));
  for (size_t i = 0; i < v.size(); i++) t.set_int(static_cast<int64_t>(i), v[i]);
  return t;
}

// Smooth numbers without repeats, between -2 and 2.
inline Tensor wavy(std::vector<int64_t> dims, double phase = 0) {
  Tensor t = Tensor::make(DType::f32, std::move(dims));
  for (int64_t i = 0; i < t.numel(); i++) t.set(i, 2 * std::sin(0.7 * static_cast<double>(i) + phase));
  return t;
}

inline std::vector<double> values(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.numel(); i++) v.push_back(t.get(i));
  return v;
}

// A graph of one node over inputs like the given tensors; with `constants`, operands from 1 on are constants.
inline Graph one_node(const std::string& op, const std::vector<Tensor>& args, Attrs attrs = {}, bool constants = false,
                      size_t results = 1, int opset = 21) {
  GraphBuilder b;
  b.g.opset = opset;
  Node n;
  n.op = op;
  n.name = "node";
  n.attrs = std::move(attrs);
  for (size_t i = 0; i < args.size(); i++) {
    const Type t{args[i].dtype, Dims(args[i].dims.begin(), args[i].dims.end())};
    n.args.push_back(constants && i > 0 ? b.constant(args[i]) : b.input("x" + std::to_string(i), t));
  }
  n.types.resize(results);
  const Value v = b.add(n);
  for (uint32_t i = 0; i < results; i++) b.g.outputs.push_back({{v.node, i}, "y" + std::to_string(i)});
  return std::move(b.g);
}

// Runs the node as written and in canonical form; both must agree, and with the inferred type. Returns the results.
inline std::vector<Tensor> run(const std::string& op, const std::vector<Tensor>& args, Attrs attrs = {},
                               bool constants = false, size_t results = 1, int opset = 21) {
  const Inferred typed = infer(one_node(op, args, std::move(attrs), constants, results, opset));
  const std::vector<Tensor> inputs = constants ? std::vector<Tensor>{args[0]} : args;
  std::vector<Tensor> out = interpret_graph(typed.graph, inputs);
  const std::vector<Tensor> canonical = interpret_graph(canonicalise(typed), inputs);
  for (size_t i = 0; i < out.size(); i++) EXPECT_TRUE(out[i].equal(canonical[i])) << op << ": canonical form differs";
  const Type& t = typed.graph.type(typed.graph.outputs[0].value);
  EXPECT_EQ(t.dtype, out[0].dtype);
  EXPECT_EQ(t.dims.size(), out[0].dims.size()) << op;
  for (size_t i = 0; i < t.dims.size() && i < out[0].dims.size(); i++)
    EXPECT_TRUE(!t.dims[i].is_num() || t.dims[i].is(out[0].dims[i])) << op << ": inferred dim " << i;
  return out;
}

inline void expect_near(const Tensor& got, const std::vector<int64_t>& dims, const std::vector<double>& want,
                        double tolerance = 1e-6) {
  ASSERT_EQ(got.dims, dims);
  for (size_t i = 0; i < want.size(); i++)
    EXPECT_NEAR(got.get(static_cast<int64_t>(i)), want[i], tolerance) << "element " << i;
}

}  // namespace gaf::testing
