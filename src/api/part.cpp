// Some nodes of a model as a small graph of their own: what they read from outside becomes its inputs, the weights they
// read stand inside, and what is read outside becomes its outputs.
#include <algorithm>
#include <map>
#include <set>

#include "api/internal.h"
#include "base/catalogue.h"

namespace gaf {
namespace {

std::string node_name(const Graph& g, uint32_t i) {
  return g.nodes[i].name.empty() ? g.nodes[i].op + "_" + std::to_string(i) : g.nodes[i].name;
}
std::string value_name(const Graph& g, Value v) {
  for (const Output& o : g.outputs)
    if (o.value == v) return o.name;
  return node_name(g, v.node) + (v.result ? ":" + std::to_string(v.result) : "");
}

// Stands inside a part instead of being one of its inputs.
bool travels(const Node& n) { return n.op == "constant" || (n.args.empty() && n.op != "input"); }

std::set<uint32_t> find_nodes(const Graph& g, const std::vector<std::string>& names) {
  std::map<std::string, uint32_t> by_name;
  std::vector<std::string> all;
  for (uint32_t i = 0; i < g.nodes.size(); i++) {
    if (g.nodes[i].op == "input" || g.nodes[i].op == "constant") continue;
    all.push_back(node_name(g, i));
    by_name[all.back()] = i;
  }
  if (names.empty()) throw UserError("GAF1102", "a subgraph needs at least one node", "name nodes of the graph");
  std::set<uint32_t> found;
  for (const std::string& name : names) {
    const auto it = by_name.find(name);
    if (it == by_name.end())
      throw UserError("GAF1102", "the graph has no node '" + name + "'" + did_you_mean(name, all),
                      "see Graph::ops() for the nodes as loaded");
    found.insert(it->second);
  }
  return found;
}

// A way out of the part and back in would make the kernel depend on itself.
std::optional<Verdict> cycle(const Graph& g, const std::set<uint32_t>& inside) {
  std::set<uint32_t> after;  // nodes outside that depend on the part
  for (uint32_t i = 0; i < g.nodes.size(); i++)
    for (const Value v : g.nodes[i].args) {
      if (v == kNoValue) continue;
      if (!inside.count(i) && (inside.count(v.node) || after.count(v.node))) after.insert(i);
      if (inside.count(i) && after.count(v.node))
        return Verdict::no("cycle", "'" + node_name(g, i) + "' depends on the other nodes through '" +
                                        node_name(g, v.node) + "', which is not among them");
    }
  return std::nullopt;
}

std::vector<Value> results_read_outside(const Graph& g, const std::set<uint32_t>& inside) {
  std::set<Value> read;
  for (uint32_t i = 0; i < g.nodes.size(); i++)
    if (!inside.count(i)) read.insert(g.nodes[i].args.begin(), g.nodes[i].args.end());
  for (const Output& o : g.outputs) read.insert(o.value);
  std::vector<Value> out;
  for (const Value v : read)
    if (v != kNoValue && inside.count(v.node)) out.push_back(v);
  return out;
}

}  // namespace

std::variant<Graph, Verdict> part_of(const Graph& g, const std::vector<std::string>& names) {
  const std::set<uint32_t> inside = find_nodes(g, names);
  if (std::optional<Verdict> no = cycle(g, inside)) return std::move(*no);
  GraphBuilder b;
  b.g.name = "part", b.g.syms = g.syms, b.g.opset = g.opset;
  std::map<Value, Value> map;
  for (const uint32_t i : inside)  // inputs stand first, in the order in which they are read
    for (const Value v : g.nodes[i].args)
      if (v != kNoValue && !inside.count(v.node) && !travels(g.nodes[v.node]) && !map.count(v))
        map[v] = b.input(value_name(g, v), g.type(v));
  for (const uint32_t i : inside) {
    Node n = g.nodes[i];
    for (Value& v : n.args) {
      if (v == kNoValue) continue;
      if (!map.count(v)) map[v] = b.add(g.nodes[v.node]);
      v = map.at(v);
    }
    const auto results = static_cast<uint32_t>(n.types.size());
    const Value made = b.add(std::move(n));
    for (uint32_t r = 0; r < results; r++) map[{i, r}] = {made.node, r};
  }
  for (const Value v : results_read_outside(g, inside)) b.g.outputs.push_back({map.at(v), value_name(g, v)});
  if (b.g.outputs.empty()) return Verdict::no("not-fusable-op", "nothing reads the results of these nodes");
  return std::move(b.g);
}

}  // namespace gaf
