// Constant folding with a size cap, merging of equal nodes, removal of dead ones.
#include <map>

#include "rewrite/rebuild.h"

namespace gaf {

Graph fold_constants(const Graph& from, RewriteLog& log, int64_t cap_bytes) {
  Rebuild b(from, log);
  for (uint32_t i = 0; i < from.nodes.size(); i++) {
    const Node& old = from.nodes[i];
    b.copy(i);
    if (old.op == "input" || old.op == "constant" || !old.regions.empty() || old.args.empty()) continue;
    const OpRow* row = find_op(old.op);
    if (!row || !row->eval || old.op.starts_with("Random") || old.op == "Bernoulli" || old.op == "Multinomial") continue;
    std::vector<const Tensor*> args;
    int64_t in_bytes = 0, out_bytes = 0;
    bool known = true;
    for (Value v : b.args(old)) {
      const Tensor* t = v == kNoValue ? nullptr : constant(b.g(), v);
      known = known && (t || v == kNoValue);
      args.push_back(t);
      if (t) in_bytes += t->size_bytes();
    }
    for (const Type& t : old.types) {
      Expr n = product(t.dims);
      known = known && n.is_num();
      if (known) out_bytes += n.num() * bytes(t.dtype);
    }
    if (!known || out_bytes > cap_bytes || out_bytes > std::max<int64_t>(8 * in_bytes, 1 << 20)) continue;
    EvalContext ctx{old, args, old.types, {}, from.opset};
    row->eval(ctx);
    Value self{static_cast<uint32_t>(b.g().nodes.size() - 1), 0};
    b.note("fold-constants", std::span(&self, 1), "computed once, at load");
    for (uint32_t r = 0; r < ctx.results.size() && r < old.types.size(); r++) {
      Value c = b.constant(std::move(ctx.results[r]));
      b.g().nodes[c.node].origins = node_origins(old);
      b.set({i, r}, c);
    }
  }
  return drop_dead(b.finish(), log);
}

Graph merge_equal(const Graph& from, RewriteLog& log) {
  Rebuild b(from, log);
  std::map<std::string, uint32_t> seen;  // text of op, operands and attributes -> new node
  for (uint32_t i = 0; i < from.nodes.size(); i++) {
    const Node& n = from.nodes[i];
    const Tensor* c = n.op == "constant" ? attr_tensor(n, "value") : nullptr;
    bool random = n.op.starts_with("Random") || n.op == "Bernoulli" || n.op == "Multinomial";
    if (n.op == "input" || random || !n.regions.empty() || (c && c->size_bytes() > 4096)) {
      b.copy(i);
      continue;
    }
    std::string key = n.op;
    for (Value v : b.args(n)) key += " " + std::to_string(v.node) + "." + std::to_string(v.result);
    Graph alone;  // the printed attributes, without a second printer
    alone.syms = from.syms;
    Node bare = n;
    bare.args.clear(), bare.name.clear(), bare.origins.clear();
    alone.nodes.push_back(std::move(bare));
    key += print_graph(alone);
    auto [it, fresh] = seen.try_emplace(key, static_cast<uint32_t>(b.g().nodes.size()));
    if (fresh) {
      b.copy(i);
      continue;
    }
    for (uint32_t r = 0; r < n.types.size(); r++) b.set({i, r}, {it->second, r});
    if (n.op != "constant") {
      Node& kept = b.g().nodes[it->second];
      std::vector<std::string> names = node_origins(kept);
      for (std::string& s : node_origins(n)) names.push_back(std::move(s));
      kept.origins = std::move(names);
    }
  }
  return drop_dead(b.finish(), log);
}

Graph drop_dead(const Graph& from, RewriteLog& log) {
  std::vector<bool> live(from.nodes.size());
  for (const Output& o : from.outputs) live[o.value.node] = true;
  for (size_t i = from.nodes.size(); i-- > 0;) {
    if (from.nodes[i].op == "input") live[i] = true;
    if (!live[i]) continue;
    for (Value v : from.nodes[i].args)
      if (v != kNoValue) live[v.node] = true;
  }
  Rebuild b(from, log);
  for (uint32_t i = 0; i < from.nodes.size(); i++)
    if (live[i]) b.copy(i);
  return b.finish();
}

}  // namespace gaf
