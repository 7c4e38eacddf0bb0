// The walk that brings a typed graph into canonical form: see canonical.h. Rules of single ops are in
// canonical_nodes.cpp.
#include "ops/canonical.h"

#include <algorithm>
#include <map>

#include "ops/facts.h"
#include "ops/infer_util.h"

namespace gaf {

namespace {

// Condition of an If, where it is known.
std::optional<bool> decided(const Inferred& in, const Node& n) {
  if (n.op != "If" || n.regions.size() != 2) return std::nullopt;
  const auto& known = in.known[n.args[0].node][n.args[0].result];
  if (!known || known->size() != 1 || !(*known)[0].is_num()) return std::nullopt;
  return !(*known)[0].is(0);
}

// Puts the branch that is taken in place of each If whose condition is known.
Graph inline_decided(const Inferred& in) {
  const Graph& g = in.graph;
  GraphBuilder b;
  b.g = g;
  b.g.nodes.clear();
  std::map<Value, Value> now;
  auto renamed = [&](Node n, const std::map<Value, Value>& names) {
    for (Value& v : n.args)
      if (v != kNoValue) v = names.at(v);
    return n;
  };
  for (uint32_t i = 0; i < g.nodes.size(); i++) {
    const Node& n = g.nodes[i];
    if (const auto yes = decided(in, n)) {
      const Graph& region = *n.regions[*yes ? 0 : 1];
      std::map<Value, Value> inner;
      size_t next = 1;  // captured values follow the condition
      for (uint32_t k = 0; k < region.nodes.size(); k++) {
        const Node& m = region.nodes[k];
        if (m.op == "input") {
          inner[{k, 0}] = now.at(n.args[next++]);
          continue;
        }
        const Value v = b.add(renamed(m, inner));
        for (uint32_t r = 0; r < std::max<size_t>(m.types.size(), 1); r++) inner[{k, r}] = {v.node, r};
      }
      for (uint32_t r = 0; r < region.outputs.size(); r++) now[{i, r}] = inner.at(region.outputs[r].value);
      continue;
    }
    const Value v = b.add(renamed(n, now));
    for (uint32_t r = 0; r < std::max<size_t>(n.types.size(), 1); r++) now[{i, r}] = {v.node, r};
  }
  for (Output& o : b.g.outputs) o.value = now.at(o.value);
  return std::move(b.g);
}

bool any_decided(const Inferred& in) {
  return std::any_of(in.graph.nodes.begin(), in.graph.nodes.end(),
                     [&](const Node& n) { return decided(in, n).has_value(); });
}

bool has_number_dims(const Type& t) {
  return std::all_of(t.dims.begin(), t.dims.end(), [](const Expr& e) { return e.is_num(); });
}

class Canonical {
 public:
  explicit Canonical(Inferred in) : in_(std::move(in)), g_(in_.graph) {
    b_.g = g_;
    b_.g.nodes.clear();
    b_.g.opset = std::max(g_.opset, 13);
    for (const Node& n : g_.nodes)
      for (Value v : n.args)
        if (v != kNoValue) most_[v.node] = std::max(most_[v.node], v.result);
    for (const Output& o : g_.outputs) most_[o.value.node] = std::max(most_[o.value.node], o.value.result);
  }

  Graph run() {
    for (uint32_t i = 0; i < g_.nodes.size(); i++) node(i);
    for (Output& o : b_.g.outputs) o.value = now_.at(o.value);
    return std::move(b_.g);
  }

 private:
  void put(uint32_t i, Node n) {
    const size_t results = n.types.size();
    const Value v = b_.add(std::move(n));
    for (uint32_t r = 0; r < results; r++) now_[{i, r}] = {v.node, r};
  }

  // A value whose elements are all known: a constant, or sizes that the host computes.
  bool known_value(Value old) {
    const auto& known = in_.known[old.node][old.result];
    const Type& t = g_.type(old);
    if (!known || !has_number_dims(t) || t.dims.size() > 1) return false;
    const bool numbers = std::all_of(known->begin(), known->end(), [](const Expr& e) { return e.is_num(); });
    const Node& n = g_.node(old);
    if (!numbers && n.op == "HostShape") return false;
    Node out;
    out.name = n.name;
    out.origins = n.origins;
    out.types = {t};
    if (numbers) {
      std::vector<int64_t> dims;
      for (const Expr& e : t.dims) dims.push_back(e.num());
      Tensor value = Tensor::make(t.dtype, dims);
      if (value.numel() != static_cast<int64_t>(known->size())) return false;
      for (size_t k = 0; k < known->size(); k++) value.set_int(static_cast<int64_t>(k), (*known)[k].num());
      if (is_float(t.dtype))
        for (size_t k = 0; k < known->size(); k++)
          value.set(static_cast<int64_t>(k), static_cast<double>((*known)[k].num()));
      out.op = "constant";
      out.attrs["value"] = value;
    } else {
      out.op = "HostShape";
      out.attrs = {{"value", *known}, {"dtype", std::string(name(t.dtype))}};
      if (t.dims.empty()) out.attrs["scalar"] = int64_t{1};
    }
    now_[old] = b_.add(std::move(out));
    return true;
  }

  // ConstantOfShape with a known shape: one element, repeated.
  bool filled(uint32_t i) {
    const Node& n = g_.nodes[i];
    if (n.op != "ConstantOfShape" || n.args.empty() || !in_.known[n.args[0].node][n.args[0].result]) return false;
    const Tensor* value = attr_tensor(n, "value");
    Tensor one = value ? *value : Tensor::make(DType::f32, {});
    one.dims.clear();
    const Type& t = n.types[0];
    const Value element = b_.constant(one);
    if (t.dims.empty()) {
      now_[{i, 0}] = element;
    } else {
      Node e;
      e.op = "Expand";
      e.name = n.name;
      e.args = {element};
      e.attrs = {{"shape", t.dims}};
      e.types = {t};
      put(i, std::move(e));
    }
    return true;
  }

  void node(uint32_t i) {
    const Node& old = g_.nodes[i];
    if (old.op == "input" || old.op == "constant" || old.op == "call") {
      Node n = old;
      for (Value& v : n.args) v = now_.at(v);
      return put(i, std::move(n));
    }
    bool all = true;
    for (uint32_t r = 0; r < old.types.size(); r++) all = known_value({i, r}) && all;
    if (all || filled(i)) return;
    Node n = old;
    if (n.op == "LayerNormalization" || n.op == "MaxPool" || n.op == "BatchNormalization" || n.op == "Dropout")
      n.types.resize(most_[i] + 1, n.types.back());
    const OperandFacts facts(g_, old, in_.known);
    Node typed = old;
    typed.types = n.types;
    InferContext c = facts.context(typed, b_.g.syms, g_.opset);
    const bool alias = canonical_node(c, n);
    if (alias) {
      now_[{i, 0}] = now_.at(old.args[0]);
      return;
    }
    for (Value& v : n.args)
      if (v != kNoValue) v = now_.at(v);
    const size_t results = n.types.size();
    const Value v = b_.add(std::move(n));
    for (uint32_t r = 0; r < results; r++) now_.try_emplace({i, r}, Value{v.node, r});
  }

  const Inferred in_;
  const Graph& g_;
  GraphBuilder b_;
  std::map<Value, Value> now_;
  std::map<uint32_t, uint32_t> most_;  // highest result of a node that is read
};

}  // namespace

Graph canonicalise(Inferred in) {
  while (any_decided(in)) in = infer(inline_decided(in));
  return Canonical(std::move(in)).run();
}

}  // namespace gaf
