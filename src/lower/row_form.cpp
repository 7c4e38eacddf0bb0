// Brings a function of rows into one form: composites expanded, every reduction keeps its dims, so that each value has the
// shape of the reduced tensor or of its rows. Also what a reduction's axes are, however they are given.
#include <algorithm>

#include "lower/row_plan.h"

namespace gaf {

std::vector<int64_t> axes_of(const Graph& g, const Node& n) {
  const size_t rank = g.type(n.args[0]).dims.size();
  std::vector<int64_t> axes = attr_ints(n, "axes");
  if (const Tensor* t = n.args.size() > 1 ? constant(g, n.args[1]) : nullptr)
    for (int64_t i = 0; i < t->numel(); i++) axes.push_back(t->get_int(i));
  if (axes.empty() && !attr_int(n, "noop_with_empty_axes", 0))
    for (size_t d = 0; d < rank; d++) axes.push_back(static_cast<int64_t>(d));
  for (int64_t& a : axes)
    if (a < 0) a += static_cast<int64_t>(rank);
  std::ranges::sort(axes);
  return axes;
}

bool run_time_axes(const Graph& g, const Node& n) {
  return n.args.size() > 1 && n.args[1] != kNoValue && !constant(g, n.args[1]);
}

Dims ones_at(Dims dims, const std::vector<int64_t>& axes) {
  for (int64_t a : axes) dims[static_cast<size_t>(a)] = 1;
  return dims;
}

// The reduction whose operand is the space: the first that an output needs.
std::optional<uint32_t> first_reduction(const Graph& g) {
  std::vector<bool> live(g.nodes.size(), false);
  for (const Output& o : g.outputs) live[o.value.node] = true;
  std::optional<uint32_t> found;
  for (size_t i = g.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    if (is_kind(g.nodes[i], OpKind::reduction)) found = static_cast<uint32_t>(i);
    for (Value a : g.nodes[i].args)
      if (a != kNoValue) live[a.node] = true;
  }
  return found;
}

std::optional<Graph> row_form(const Graph& fn) {
  const Graph g = expand_composites(fn);
  if (!only_elementwise(g, {OpKind::reduction})) return {};
  const std::optional<uint32_t> first = first_reduction(g);
  if (!first || run_time_axes(g, g.nodes[*first])) return {};
  GraphBuilder b;
  b.g.name = g.name, b.g.syms = g.syms, b.g.opset = g.opset;
  std::vector<std::vector<Value>> now(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); i++) {
    Node n = g.nodes[i];
    for (Value& a : n.args)
      if (a != kNoValue) a = now[a.node][a.result];
    const Type type = n.types[0];
    bool squeezed = false;
    if (is_kind(n, OpKind::reduction) && !run_time_axes(g, g.nodes[i])) {
      const std::vector<int64_t> axes = axes_of(g, g.nodes[i]);
      n.attrs = {{"axes", axes}, {"keepdims", int64_t{1}}, {"noop_with_empty_axes", int64_t{1}}};
      n.args.resize(1);
      n.types[0].dims = ones_at(g.type(g.nodes[i].args[0]).dims, axes);
      squeezed = n.types[0].dims != type.dims;
    }
    const size_t results = n.types.size();
    Value v = b.add(std::move(n));
    if (squeezed) v = b.op("Reshape", {v}, {{"shape", type.dims}}, type);
    for (uint32_t r = 0; r < results; r++) now[i].push_back(squeezed ? v : Value{v.node, r});
  }
  for (const Output& o : g.outputs) b.g.outputs.push_back({now[o.value.node][o.value.result], o.name});

  // An output of another shape than the space or its rows is written through a reshape that puts it there.
  const Dims space = g.type(g.nodes[*first].args[0]).dims, rows = ones_at(space, axes_of(g, g.nodes[*first]));
  for (size_t o = 0; o < b.g.outputs.size(); o++) {
    Value v = b.g.outputs[o].value;
    for (;;) {
      const Type type = b.g.type(v);
      for (const Dims* dims : {&space, &rows})
        if (type.dims != *dims && product(type.dims) == product(*dims))
          b.op("Reshape", {v}, {{"shape", *dims}}, {type.dtype, *dims});
      const Node& n = b.g.node(v);
      if (!is_kind(n, OpKind::view) || n.args.empty()) break;
      v = n.args[0];
    }
  }
  return std::move(b.g);
}

}  // namespace gaf
