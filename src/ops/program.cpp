// The scalar program of a pointwise node: its row's text (or function), with the node's attributes filled in.
#include <fmt/format.h>

#include "ops/elementwise.h"
#include "ops/op.h"

namespace gaf {

kir::ScalarProgram scalar_program(const Graph& g, const Node& n) {
  const OpRow& r = op_row(n);
  GAF_CHECK(r.kind == OpKind::pointwise) << n.op << " is not elementwise";
  GAF_CHECK(!n.types.empty()) << "node '" << n.name << "' has no type";
  std::vector<DType> types;
  for (Value v : n.args) types.push_back(v == kNoValue ? n.types[0].dtype : g.type(v).dtype);
  const DType result = n.types[0].dtype;
  if (r.program) return r.program(n, types, result);
  std::map<std::string, double> params;
  const auto values = parameters(n);
  for (size_t i = 0; i < values.size(); i++) params[std::string(r.defaults[i].first)] = values[i];
  return kir::parse_scalar(r.scalar, types, result, params);
}

}  // namespace gaf
