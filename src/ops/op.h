// The op table: one row per graph op, everything the compiler knows of it. Rows live in ops/<family>.cpp, one file per
// family; `all_ops()` joins them. Adding an op: one row (and one function where the op is not elementwise).
// docs/adding.md.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/scalar.h"

namespace gaf {

enum class OpKind : uint8_t {
  pointwise,    // elementwise with numpy broadcasting; has a scalar program
  reduction,    // ReduceSum ReduceMax ReduceMin ReduceProd: primitive; attr axes (normalised), keepdims
  contraction,  // MatMul, Gemm
  conv,         // Conv, ConvTranspose
  pool,         // MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool ...
  view,         // Reshape Squeeze Unsqueeze Flatten Transpose Expand Slice Identity ...: no arithmetic, an index map
  move,         // Concat Gather Pad Split Tile ...: data movement that is not one view
  composite,    // has `expand` into the rows above: Softmax, LayerNormalization, Gelu, ReduceMean ...
  other,        // runs through `eval` only
};

// What is known while types are inferred. Integer tensors whose elements are known, perhaps only as expressions of
// symbolic dims, are carried as `known` values (row-major), so that Shape -> Gather -> Concat -> Reshape folds.
struct InferContext {
  const Node& node;
  std::span<const Type> args;                               // absent operand: check has_arg
  std::span<const std::optional<std::vector<Expr>>> known;  // per operand
  std::vector<Sym>& syms;                                   // an op may add a symbol for a size only known at run time
  int opset;
  std::span<const Tensor* const> constants;               // per operand: its value where it is a constant, else null
  std::vector<Type> types;                                // out: one per result; `node.types` tells how many are wanted
  std::vector<std::optional<std::vector<Expr>>> results;  // out: known values of results, where they are known

  bool has_arg(size_t i) const { return i < node.args.size() && node.args[i] != kNoValue; }
  const Type& arg(size_t i) const;  // UserError if absent
  // elements of operand i as integers; nullopt if not known
  const std::optional<std::vector<Expr>>& value(size_t i) const;
  [[noreturn]] void fail(std::string code, std::string message,
                         std::string remedy = "") const;  // UserError naming the node
};

struct EvalContext {
  const Node& node;
  std::span<const Tensor* const> args;  // null where absent
  std::span<const Type> types;          // result types as inferred; dims may be symbolic
  std::vector<Tensor> results;          // out
  int opset = 17;
  std::vector<int64_t> syms = {};  // values of the graph's symbols, INT64_MIN where not known; for regions
};

struct OpRow {
  std::string_view name;      // ONNX type; also the spelling in graph text
  std::string_view friendly;  // what users read ("ReLU", "LayerNorm"); its lower-case form labels kernels
  OpKind kind;
  int min_args, max_args;  // max < 0: variadic
  int results = 1;         // -1: as many as the node has
  void (*infer)(InferContext&) = nullptr;
  void (*eval)(EvalContext&) = nullptr;  // by the op's definition; sums in double; the oracle
  std::string_view scalar;               // pointwise: text of ir/scalar.h, attributes as $name with defaults below
  kir::ScalarProgram (*program)(const Node&, std::span<const DType> args,
                                DType result) = nullptr;  // pointwise, where text is not enough
  Value (*expand)(GraphBuilder&, const Node&, std::span<const Value> args) =
      nullptr;  // composite: writes primitive nodes, with types; first result
  std::vector<std::pair<std::string_view, double>> defaults;  // attributes of `scalar`
  int ulp = 4;        // tolerance of a generated kernel, in units of the result's dtype
  bool cheap = true;  // worth recomputing instead of storing (no transcendental)
};

std::span<const OpRow> all_ops();
const OpRow* find_op(std::string_view name);  // null if unknown; `domain.Type` and com.microsoft spellings resolve too
const OpRow& op_row(const Node& n);           // UserError GAF4001 if unknown
bool is_kind(const Node& n, OpKind k);        // false for input, constant, call

// The scalar program of a pointwise node, parameters filled in.
kir::ScalarProgram scalar_program(const Graph& g, const Node& n);

// Types, shapes and known values of a whole graph, from its inputs on (declared shapes are not trusted). Returns the
// graph with every node typed; nodes whose integer results are fully known stay, `known` tells their values.
struct Inferred {
  Graph graph;
  std::vector<std::vector<std::optional<std::vector<Expr>>>> known;  // [node][result]
};
Inferred infer(Graph g);

// The reference: runs a graph op by op through `eval`. Inputs in the graph's order.
std::vector<Tensor> interpret_graph(const Graph& g, std::span<const Tensor> inputs);
Tensor eval_node_single(const Node& n, std::span<const Tensor> args);  // one-result convenience for folding

}  // namespace gaf
