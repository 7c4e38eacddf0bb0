// What the passes of this folder share: a graph being built next to the one that is read, with the map between them.
#pragma once
#include <functional>
#include <map>
#include <optional>

#include "ops/op.h"
#include "rewrite/rewrite.h"

namespace gaf {

class Rebuild {
 public:
  Rebuild(const Graph& from, RewriteLog& log);
  const Graph& from;
  Graph& g() { return out_.g; }
  const Graph& g() const { return out_.g; }

  Value now(Value old) const { return old == kNoValue ? old : map_.at(old.node)[old.result]; }
  void set(Value old, Value now);
  std::vector<Value> args(const Node& old) const;      // operands of an old node, in the new graph
  // How many readers the value had in the old graph (outputs count): an inner value of a pattern should have one.
  int uses(Value now) const;
  void copy(uint32_t old_node);                        // the node as it is, operands mapped

  // A new node with inferred types. `because`: nodes of the new graph it stands for; their origins become its origins.
  Value emit(std::string op, std::vector<Value> args, Attrs attrs, std::span<const Value> because, size_t results = 1);
  Value constant(Tensor t) { return out_.constant(std::move(t)); }
  void note(std::string rule, std::span<const Value> because, std::string effect);
  std::vector<std::string> origins(std::span<const Value> because) const;

  Graph finish();                                      // outputs mapped; metadata, symbols and opset kept

 private:
  GraphBuilder out_;
  RewriteLog& log_;
  std::vector<std::vector<Value>> map_;
  std::vector<std::vector<int>> old_uses_;
  std::map<Value, int> uses_;
};

// Runs `rule` on each node with its operands mapped; what it returns replaces result 0, nothing copies the node.
using Rule = std::function<std::optional<Value>(Rebuild&, const Node&)>;  // node.args are values of the new graph
Graph rewrite(const Graph& g, RewriteLog& log, const Rule& rule);

// ---- looking at nodes ----
bool is_op(const Graph& g, Value v, std::string_view op);
// A constant of one element as a number.
std::optional<double> scalar(const Graph& g, Value v);
// All elements equal: that number.
std::optional<double> splat(const Graph& g, Value v);
std::vector<std::string> node_origins(const Node& n);  // origins, or its own name

}  // namespace gaf
