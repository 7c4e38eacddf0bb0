// The inverse of planning: calls of kernel functions become the functions' nodes again, so that a saved plan loads as a model.
#include "rewrite/rebuild.h"

namespace gaf {

Graph inline_kernels(const Graph& from) {
  if (from.kernels.empty()) return from;
  GraphBuilder b;
  b.g.name = from.name, b.g.syms = from.syms, b.g.metadata = from.metadata, b.g.opset = from.opset;
  std::map<Value, Value> map;
  auto copy = [&b](const Node& old, std::map<Value, Value>& values, uint32_t index) {
    Node n = old;
    for (Value& v : n.args)
      if (v != kNoValue) v = values.at(v);
    size_t results = n.types.size();
    uint32_t made = b.add(std::move(n)).node;
    for (uint32_t r = 0; r < results; r++) values[{index, r}] = {made, r};
  };
  for (uint32_t i = 0; i < from.nodes.size(); i++) {
    const Node& n = from.nodes[i];
    if (n.op != "call") {
      copy(n, map, i);
      continue;
    }
    const Graph& fn = from.kernels.at(static_cast<size_t>(n.callee));
    std::map<Value, Value> inner;
    for (uint32_t k = 0; k < fn.nodes.size(); k++) {
      if (fn.nodes[k].op == "input") inner[{k, 0}] = map.at(n.args.at(k));
      else copy(fn.nodes[k], inner, k);
    }
    for (uint32_t r = 0; r < fn.outputs.size(); r++) map[{i, r}] = inner.at(fn.outputs[r].value);
  }
  for (const Output& o : from.outputs) b.g.outputs.push_back({map.at(o.value), o.name});
  return std::move(b.g);
}

}  // namespace gaf
