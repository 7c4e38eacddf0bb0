// Uses, names and order of the nodes of an ONNX graph; see onnx_order.h.
#include "frontend/onnx_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "base/error.h"

namespace gaf::onnx {

std::vector<View> Uses::of(const Node& n) {
  std::vector<View> out;
  std::unordered_set<View> seen;
  auto add = [&](View v) {
    if (!v.empty() && seen.insert(v).second) out.push_back(v);
  };
  for (View v : n.inputs) add(v);
  for (const Attribute& a : n.attributes)
    if (a.g)
      for (View v : free_names(*a.g)) add(v);
  return out;
}

const std::vector<View>& Uses::free_names(const Graph& g) {
  if (auto it = memo_.find(&g); it != memo_.end()) return it->second;
  std::unordered_set<View> defined;
  for (const ValueInfo& v : g.inputs) defined.insert(v.name);
  for (const Tensor& t : g.initializers) defined.insert(t.name);
  defined.insert(g.sparse_initializers.begin(), g.sparse_initializers.end());
  for (const Node& n : g.nodes) defined.insert(n.outputs.begin(), n.outputs.end());
  std::vector<View> free;
  std::unordered_set<View> seen;
  auto add = [&](View v) {
    if (!v.empty() && !defined.contains(v) && seen.insert(v).second) free.push_back(v);
  };
  for (const Node& n : g.nodes)
    for (View v : of(n)) add(v);
  for (View v : g.outputs) add(v);
  return memo_.emplace(&g, std::move(free)).first->second;
}

std::vector<const Node*> pointers(const std::vector<Node>& nodes) {
  std::vector<const Node*> out;
  for (const Node& n : nodes) out.push_back(&n);
  return out;
}

std::vector<std::string> node_names(const std::vector<const Node*>& nodes) {
  std::unordered_set<std::string> taken;
  std::vector<bool> own(nodes.size());
  for (size_t i = 0; i < nodes.size(); i++)
    own[i] = !nodes[i]->name.empty() && taken.insert(std::string(nodes[i]->name)).second;
  std::unordered_map<std::string, int> next;  // number behind a name that is taken
  std::vector<std::string> out;
  for (size_t i = 0; i < nodes.size(); i++) {
    std::string name(nodes[i]->name);
    if (!own[i]) {
      std::string stem = name.empty() ? fmt::format("{}_{}", nodes[i]->op_type, i) : name;
      name = stem;
      int& k = next.emplace(stem, 2).first->second;
      while (!taken.insert(name).second) name = fmt::format("{}_{}", stem, k++);
    }
    out.push_back(std::move(name));
  }
  return out;
}

namespace {

// Of the nodes that wait for one another, those on one cycle, for the message.
[[noreturn]] void report_cycle(const std::vector<std::vector<size_t>>& reads, const std::vector<bool>& done,
                               const std::vector<std::string>& names, const std::vector<const Node*>& nodes) {
  size_t at = std::find(done.begin(), done.end(), false) - done.begin();
  std::vector<size_t> path;
  std::vector<bool> seen(done.size());
  while (!seen[at]) {
    seen[at] = true;
    path.push_back(at);
    at = *std::find_if(reads[at].begin(), reads[at].end(), [&](size_t r) { return !done[r]; });
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::reverse(path.begin(), path.end());  // in the direction of the data, from the node that stands first
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  std::string text;
  for (size_t i = 0; i < path.size() && i < 8; i++) text += fmt::format("{}'{}'", i ? ", " : "", names[path[i]]);
  UserError e("GAF3003", fmt::format("graph has a cycle through {}{}", text, path.size() > 8 ? ", ..." : ""));
  throw e.at(names[path[0]], std::string(nodes[path[0]]->op_type));
}

}  // namespace

std::vector<size_t> run_order(const std::vector<const Node*>& nodes, const std::vector<std::string>& names,
                              Uses& uses) {
  std::unordered_map<View, size_t> maker;
  for (size_t i = 0; i < nodes.size(); i++)
    for (View v : nodes[i]->outputs)
      if (!v.empty() && !maker.emplace(v, i).second)
        throw UserError("GAF3002",
                        fmt::format("value '{}' is defined twice, by '{}' and '{}'", v, names[maker[v]], names[i]))
            .at(names[i], std::string(nodes[i]->op_type));
  std::vector<std::vector<size_t>> reads(nodes.size()), readers(nodes.size());
  std::vector<size_t> waits(nodes.size());
  for (size_t i = 0; i < nodes.size(); i++)
    for (View v : uses.of(*nodes[i]))
      if (auto it = maker.find(v); it != maker.end()) {
        reads[i].push_back(it->second);
        readers[it->second].push_back(i);
        waits[i]++;
      }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); i++)
    if (waits[i] == 0) ready.push(i);
  std::vector<size_t> order;
  std::vector<bool> done(nodes.size());
  while (!ready.empty()) {
    size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    done[i] = true;
    for (size_t r : readers[i])
      if (--waits[r] == 0) ready.push(r);
  }
  if (order.size() < nodes.size()) report_cycle(reads, done, names, nodes);
  return order;
}

}  // namespace gaf::onnx
