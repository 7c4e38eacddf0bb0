// The machinery of the passes: mapping values, inferring types of new nodes, carrying the names of model nodes along.
#include "rewrite/rebuild.h"

#include <algorithm>

#include "base/expr_tidy.h"

namespace gaf {

std::vector<std::string> node_origins(const Node& n) {
  if (!n.origins.empty()) return n.origins;
  return n.name.empty() ? std::vector<std::string>{} : std::vector<std::string>{n.name};
}

Rebuild::Rebuild(const Graph& from, RewriteLog& log) : from(from), log_(log), map_(from.nodes.size()) {
  out_.g.name = from.name, out_.g.syms = from.syms, out_.g.metadata = from.metadata, out_.g.opset = from.opset;
  for (const Node& n : from.nodes) old_uses_.emplace_back(n.types.size(), 0);
  auto count = [&](Value v) {
    if (v != kNoValue) old_uses_[v.node][v.result]++;
  };
  for (const Node& n : from.nodes) std::for_each(n.args.begin(), n.args.end(), count);
  for (const Output& o : from.outputs) count(o.value);
}

void Rebuild::set(Value old, Value now) {
  auto& results = map_[old.node];
  if (results.size() <= old.result) results.resize(from.nodes[old.node].types.size(), kNoValue);
  results[old.result] = now;
  uses_[now] += old_uses_[old.node][old.result];
}

std::vector<Value> Rebuild::args(const Node& old) const {
  std::vector<Value> a;
  for (Value v : old.args) a.push_back(now(v));
  return a;
}

int Rebuild::uses(Value v) const {
  auto it = uses_.find(v);
  return it == uses_.end() ? 0 : it->second;
}

void Rebuild::copy(uint32_t old_node) {
  Node n = from.nodes[old_node];
  n.args = args(n);
  Value v = out_.add(std::move(n));
  for (uint32_t r = 0; r < from.nodes[old_node].types.size(); r++) set({old_node, r}, {v.node, r});
}

std::vector<std::string> Rebuild::origins(std::span<const Value> because) const {
  std::vector<std::string> names;
  for (Value v : because)
    for (std::string& s : node_origins(g().nodes[v.node]))
      if (std::find(names.begin(), names.end(), s) == names.end()) names.push_back(std::move(s));
  return names;
}

Value Rebuild::emit(std::string op, std::vector<Value> args, Attrs attrs, std::span<const Value> because, size_t results) {
  Node n;
  n.op = std::move(op), n.args = std::move(args), n.attrs = std::move(attrs);
  if (n.op == "Reshape")  // a rule says what it means: a 0 is no "as before"
    if (const auto it = n.attrs.find("shape"); it != n.attrs.end())
      if (const Dims* dims = std::get_if<Dims>(&it->second); dims && std::ranges::any_of(*dims, [](const Expr& e) { return e.is(0); }))
        n.attrs["allowzero"] = int64_t{1};
  n.origins = origins(because);
  n.name = because.empty() ? "" : g().nodes[because.back().node].name;
  std::vector<Type> types;
  std::vector<std::optional<std::vector<Expr>>> known(n.args.size());
  std::vector<const Tensor*> constants;
  for (size_t i = 0; i < n.args.size(); i++) {
    Value v = n.args[i];
    types.push_back(v == kNoValue ? Type{} : g().type(v));
    const Tensor* c = v == kNoValue ? nullptr : gaf::constant(g(), v);
    constants.push_back(c);
    if (!c || is_float(c->dtype) || c->numel() > 64) continue;
    known[i].emplace();
    for (int64_t k = 0; k < c->numel(); k++) known[i]->push_back(c->get_int(k));
  }
  InferContext ctx{n, types, known, out_.g.syms, out_.g.opset, constants, {}, {}};
  op_row(n).infer(ctx);
  std::vector<Range> ranges;
  for (const Sym& s : out_.g.syms) ranges.push_back({s.lo, s.hi});
  for (Type& t : ctx.types) tidy(t.dims, ranges);
  GAF_CHECK(ctx.types.size() >= results) << n.op << " has too few results";
  n.types = std::move(ctx.types);
  return out_.add(std::move(n));
}

void Rebuild::note(std::string rule, std::span<const Value> because, std::string effect) {
  log_.entries.push_back({std::move(rule), origins(because), std::move(effect)});
}

Graph Rebuild::finish() {
  for (const Output& o : from.outputs) out_.g.outputs.push_back({now(o.value), o.name});
  return std::move(out_.g);
}

namespace {
// Equal, or two spellings of the same sizes: tried at a few values of the symbols.
bool same_type(const Type& a, const Type& b, const std::vector<Sym>& syms) {
  if (a == b) return true;
  if (a.dtype != b.dtype || a.dims.size() != b.dims.size()) return false;
  for (int64_t at : {1, 7, 64, 129}) {
    std::vector<int64_t> values;
    for (size_t i = 0; i < syms.size(); i++) values.push_back(std::clamp<int64_t>(at + static_cast<int64_t>(i) * 5, syms[i].lo, syms[i].hi));
    for (size_t i = 0; i < a.dims.size(); i++)
      if (a.dims[i].eval(values) != b.dims[i].eval(values)) return false;
  }
  return true;
}

// What a rule made stands for the node it replaced: every new node without a name of its own, and the result in any case.
void name_after(Graph& g, size_t before, Value result, const Node& old) {
  for (size_t i = before; i < g.nodes.size(); i++) {
    Node& n = g.nodes[i];
    if (n.op == "constant") continue;
    if (n.origins.empty()) n.origins = node_origins(old);
    if (n.name.empty() || i == result.node) n.name = old.name;
    if (i != result.node) continue;
    for (const std::string& s : node_origins(old))
      if (std::find(n.origins.begin(), n.origins.end(), s) == n.origins.end()) n.origins.push_back(s);
  }
}
}  // namespace

Graph rewrite(const Graph& from, RewriteLog& log, const Rule& rule) {
  Rebuild b(from, log);
  for (uint32_t i = 0; i < from.nodes.size(); i++) {
    const Node& old = from.nodes[i];
    if (old.op != "input" && old.op != "constant" && old.regions.empty()) {
      Node n = old;
      n.args = b.args(old);
      size_t before = b.g().nodes.size();
      if (std::optional<Value> v = rule(b, n)) {
        name_after(b.g(), before, *v, old);
        GAF_CHECK(same_type(b.g().type(*v), old.types[0], b.g().syms)) << "a rule changed the type of '" << old.name << "' (" << old.op << ") from "
                                                  << print_type(old.types[0], from) << " to " << print_type(b.g().type(*v), b.g());
        b.set({i, 0}, *v);
        continue;
      }
    }
    b.copy(i);
  }
  return b.finish();
}

bool is_op(const Graph& g, Value v, std::string_view op) { return v != kNoValue && g.nodes[v.node].op == op; }

std::optional<double> splat(const Graph& g, Value v) {
  const Tensor* t = v == kNoValue ? nullptr : constant(g, v);
  if (!t || t->numel() == 0 || t->numel() > 4096) return std::nullopt;
  double first = t->get(0);
  for (int64_t i = 1; i < t->numel(); i++)
    if (t->get(i) != first) return std::nullopt;
  return first;
}
std::optional<double> scalar(const Graph& g, Value v) {
  const Tensor* t = v == kNoValue ? nullptr : constant(g, v);
  if (!t || t->numel() != 1) return std::nullopt;
  return t->get(0);
}

}  // namespace gaf
