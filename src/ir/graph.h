// Graph IR: what a model is between the front end and `lower`. Nodes are rows in topological order, values are numbers
// {node, result}. A pass reads one graph and builds the next. Behaviour of ops lives in the op table (ops/), not here.
//
// Text form (print_graph / parse_graph):
//   kernel @k0(%0: f32[8,256], %1: f32[256,64] const) -> (%4) {
//     %2 = MatMul(%0, %1) : f32[8,64]
//     %3 = constant {value=[0.5]} : f32[]
//     %4 = Mul(%2, %3) : f32[8,64]            # "layer0/scale"
//   }
//   graph @mlp(size batch, size seq in 1..512 hint 128, %0 "x": f32[batch,256], ...) -> (%7 "y") {
//     %5 = call @k0(%0, %1) : f32[8,64]
//     %6, %7 = Split(%5, _) {axis=0} : f32[4,64], f32[4,64]   # "node name" from "model node", "model node"
//     %8 = constant #01f3... : f32[1000,64]
//     %9 = If(%2, %5) : f32[8,64]
//       region @then(%0 "captured": f32[8,64]) -> (%1 "out") {
//         ...
//       }
//   }
// One form, no options; dense numbering of values; types always printed; attributes sorted; floats shortest-exact. `_`
// is an absent operand. A comment that starts with a quoted string is the node's name (and its origins), all others are
// nothing. Kernels and regions use the graph's sizes. Attributes: 3, 0.5 (float32; 0.1d where only a double is exact),
// "text", [1,2], [0.5], ["a"], ints[] floats[] strings[] where empty, (batch,4) for dims, f32[2]:[0.5,1.0] for a
// tensor. Opset (if not 17) and metadata stand before all: `opset 13`, `metadata "key" = "value"`. A constant node of
// more than 16 elements is written by its content hash. Where the reader has no data for a hash, it makes numbers up
// from it, always the same ones (graph_parse.cpp), so that a test can hold large weights; the hash is then kept as
// attribute `hash` and printed again.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/expr.h"
#include "base/tensor.h"

namespace gaf {

struct Type {
  DType dtype = DType::f32;
  Dims dims;  // numbers or expressions over Graph::syms
  friend bool operator==(const Type&, const Type&) = default;
};

struct Value {
  uint32_t node = 0, result = 0;
  friend bool operator==(Value, Value) = default;
  friend auto operator<=>(Value, Value) = default;
};
inline constexpr Value kNoValue{UINT32_MAX, 0};  // an optional operand that is absent

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>, Tensor, Dims>;
using Attrs = std::map<std::string, Attr>;

struct Graph;

struct Node {
  std::string op;           // row of the op table ("MatMul"); or "input", "constant", "call"
  std::vector<Value> args;  // kNoValue where an optional operand is absent
  Attrs attrs;
  std::vector<Type> types;  // one per result
  std::string name;         // the model's name for the node (inputs: of the input), rides along in every message
  std::vector<std::string> origins;  // model nodes this one stands for, when it is not just `name`
  int callee = -1;                   // call: index into Graph::kernels
  std::vector<std::shared_ptr<const Graph>>
      regions;  // If: then, else; Loop, Scan: body. Captured values follow the op's own args
};

// A symbolic dim. Range and hint serve pricing and the kernel's size class; the value is bound at run time.
struct Sym {
  std::string name;
  int64_t lo = 1, hi = 1 << 20;
  int64_t hint = 0;  // 0: none given
  friend bool operator==(const Sym&, const Sym&) = default;
};

struct Output {
  Value value;
  std::string name;
};

struct Graph {
  std::string name;
  std::vector<Sym> syms;
  std::vector<Node> nodes;  // inputs first (op "input", in order), then the rest
  std::vector<Output> outputs;
  std::vector<Graph> kernels;  // functions that `call` nodes name: the plan is IR. Their syms are the caller's
  std::map<std::string, std::string> metadata;  // of the model file
  int opset = 17;

  const Type& type(Value v) const { return nodes[v.node].types[v.result]; }
  const Node& node(Value v) const { return nodes[v.node]; }
  size_t num_inputs() const;
};

// attribute access with defaults; a wrong kind is a UserError that names the node
int64_t attr_int(const Node& n, const std::string& key, int64_t fallback);
double attr_float(const Node& n, const std::string& key, double fallback);
std::string attr_str(const Node& n, const std::string& key, const std::string& fallback);
std::vector<int64_t> attr_ints(const Node& n, const std::string& key, std::vector<int64_t> fallback = {});
std::vector<double> attr_floats(const Node& n, const std::string& key, std::vector<double> fallback = {});
std::vector<std::string> attr_strs(const Node& n, const std::string& key);
const Tensor* attr_tensor(const Node& n, const std::string& key);
const Dims* attr_dims(const Node& n, const std::string& key);  // also accepts ints through attr_exprs
Dims attr_exprs(const Node& n, const std::string& key);        // ints or Dims as Dims; empty if absent

// The value of a `constant` node, else null.
inline const Tensor* constant(const Graph& g, Value v) {
  if (v == kNoValue || g.nodes[v.node].op != "constant") return nullptr;
  return attr_tensor(g.nodes[v.node], "value");
}

// Builds a graph node by node; a pass holds one and a map from old values to new ones.
struct GraphBuilder {
  Graph g;
  Value add(Node n) {
    g.nodes.push_back(std::move(n));
    return {static_cast<uint32_t>(g.nodes.size() - 1), 0};
  }
  Value input(std::string name, Type t);
  Value constant(Tensor t, std::string name = "");
  Value op(std::string op, std::vector<Value> args, Attrs attrs, Type type, std::string name = "");
};

std::string print_graph(const Graph& g);
std::string print_type(const Type& t, const Graph& g);
Graph parse_graph(std::string_view text, std::string_view file = "");
// The same with the data of the constants that the text names by hash; null data pointer: not known.
using ConstantSource = std::function<Tensor(uint64_t hash, DType dtype, const std::vector<int64_t>& dims)>;
Graph parse_graph(std::string_view text, std::string_view file, const ConstantSource& source);
// What the text calls a constant: attribute `hash` if it was read from text without data, else the content hash.
uint64_t constant_hash(const Node& constant);
inline constexpr int64_t kInlineElements = 16;  // constants up to this size print their values
// Everything that is wrong with a graph, anchored to its node: topological order, arities, result counts, symbols in
// range, callee exists and agrees. Empty = fine. Op-specific checks are the op table's (ops/check.h).
struct Problem {
  uint32_t node;
  std::string text;
};
std::vector<Problem> verify_graph(const Graph& g);

// readers[v] = nodes that read any result of v; outputs count as reader kNoValue.node
std::vector<std::vector<uint32_t>> readers(const Graph& g);

}  // namespace gaf
