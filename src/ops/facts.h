// What is known of a node's operands in a typed graph: the input of `infer` functions and of canonicalisation.
#pragma once
#include <vector>

#include "ops/op.h"

namespace gaf {

using KnownValues = std::vector<std::vector<std::optional<std::vector<Expr>>>>;  // [node][result]

struct OperandFacts {
  std::vector<Type> types;
  std::vector<std::optional<std::vector<Expr>>> known;
  std::vector<const Tensor*> constants;

  OperandFacts(const Graph& g, const Node& n, const KnownValues& values)
      : types(n.args.size()), known(n.args.size()), constants(n.args.size(), nullptr) {
    for (size_t k = 0; k < n.args.size(); k++) {
      const Value v = n.args[k];
      if (v == kNoValue) continue;
      types[k] = g.type(v);
      known[k] = values[v.node][v.result];
      constants[k] = constant(g, v);
    }
  }
  InferContext context(const Node& n, std::vector<Sym>& syms, int opset) const {
    return {n, types, known, syms, opset, constants, {}, {}};
  }
};

}  // namespace gaf
