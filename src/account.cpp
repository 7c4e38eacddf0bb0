// From planned nodes and edges back to the model's; see account.h.
#include "account.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "ops/op.h"
#include "plan/groups.h"

namespace gaf {
namespace {

using Names = std::vector<std::string>;

Names names_of(const Node& n) {
  Names all = n.origins;
  if (std::ranges::find(all, n.name) == all.end()) all.push_back(n.name);
  return all;
}

// Name of a model's node -> planned nodes that stand for it.
std::map<std::string, std::vector<uint32_t>> carriers_in(const Graph& planned) {
  std::map<std::string, std::vector<uint32_t>> all;
  for (uint32_t i = 0; i < planned.nodes.size(); i++)
    if (in_file(planned.nodes[i]))
      for (const std::string& name : names_of(planned.nodes[i])) all[name].push_back(i);
  return all;
}

// Reads its operand's size, not its data.
bool reads_sizes(const Node& n) { return n.op == "Shape" || n.op == "Size" || n.op == "HostShape" || n.op == "Extent"; }

// Where the ops of the model and of the planned graph are: in a group or a kernel of their own.
class Edges {
 public:
  Edges(const Model& m, const Graph& planned, Report& r) : m_(m), g_(planned), r_(r), carriers_(carriers_in(planned)) {
    for (const auto& [name, n] : r.nodes) reports_[name] = &n;
    for (size_t i = 0; i < r.not_fused.size(); i++) lines_[{r.not_fused[i].from, r.not_fused[i].to}] = i;
    for (const Node& n : m.graph.nodes)
      if (in_file(n)) model_.insert(n.name);
  }

  void run() {
    for (uint32_t to = 0; to < m_.graph.nodes.size(); to++)
      if (in_file(m_.graph.nodes[to]) && !home(m_.graph.nodes[to].name).empty())
        for (uint32_t from : sources(to)) account(m_.graph.nodes[from].name, m_.graph.nodes[to].name);
  }

 private:
  const Model& m_;
  const Graph& g_;
  Report& r_;
  std::map<std::string, std::vector<uint32_t>> carriers_;
  std::map<std::string, const NodeReport*> reports_;
  std::map<std::pair<std::string, std::string>, size_t> lines_;
  std::set<std::string> model_;

  // The group or kernel that a node of the model or of the planned graph runs in; empty for what is gone and for views
  // of the same bytes, which are no ops wherever they are.
  std::string home(const std::string& name) const {
    const auto it = reports_.find(name);
    if (it == reports_.end()) return "";
    const NodeReport& n = *it->second;
    if (n.op == "Reshape" || n.op == "Identity") return "";
    if (!n.group.empty()) return n.group;
    return n.fate == "alone" || n.fate == "extern" ? name : n.part_of;
  }

  // Ops of the model whose results reach it, through nodes that are gone at most.
  std::set<uint32_t> sources(uint32_t to) const {
    std::set<uint32_t> found, seen;
    std::deque<uint32_t> open{to};
    while (!open.empty()) {
      const Node& n = m_.graph.nodes[open.front()];
      open.pop_front();
      if (reads_sizes(n)) continue;
      for (Value v : n.args) {
        if (v == kNoValue || !seen.insert(v.node).second) continue;
        const Node& p = m_.graph.nodes[v.node];
        if (!in_file(p)) continue;
        if (!home(p.name).empty())
          found.insert(v.node);
        else if (reports_.at(p.name)->fate != "folded")
          open.push_back(v.node);
      }
    }
    found.erase(to);
    return found;
  }

  void account(const std::string& from, const std::string& to) {
    if (home(from) == home(to)) return;
    std::optional<size_t> line = line_between(from, to);
    if (!line) line = removed(from, to);
    r_.not_fused[*line].edges.emplace_back(from, to);
  }

  // The line that tells of the planned edge by which data goes from one to the other.
  std::optional<size_t> line_between(const std::string& from, const std::string& to) const {
    if (auto it = lines_.find({from, to}); it != lines_.end()) return it->second;
    for (const auto& [a, b] : way(from, to))
      if (auto it = lines_.find({g_.nodes[a].name, g_.nodes[b].name}); it != lines_.end()) return it->second;
    return std::nullopt;
  }

  // The shortest way in the planned graph from what `from` is there to what `to` is, through views, what rewriting
  // added, and the groups of the two; as edges between nodes that are no views.
  std::vector<std::pair<uint32_t, uint32_t>> way(const std::string& from, const std::string& to) const {
    const std::string first = home(from), last = home(to);
    // Rewriting names a layout after the op that asked for it, and may leave a copy elsewhere: the op is where the
    // report has it.
    auto is = [&](uint32_t n, const std::string& name, const std::string& at) {
      auto it = carriers_.find(name);
      return it != carriers_.end() && std::ranges::find(it->second, n) != it->second.end() &&
             home(g_.nodes[n].name) == at;
    };
    std::map<uint32_t, uint32_t> next;  // on the way, towards `to`
    std::deque<uint32_t> open;
    for (uint32_t n = 0; n < g_.nodes.size(); n++)
      if (is(n, to, last)) next[n] = n, open.push_back(n);
    while (!open.empty()) {
      const uint32_t n = open.front();
      open.pop_front();
      if (is(n, from, first)) {
        std::vector<std::pair<uint32_t, uint32_t>> steps;
        for (uint32_t a = n, b; a != next.at(a); a = b) {
          for (b = next.at(a); alias_view(g_.nodes[b]) && b != next.at(b);) b = next.at(b);
          steps.emplace_back(a, b);
        }
        return steps;
      }
      const std::string at = home(g_.nodes[n].name);
      if (!alias_view(g_.nodes[n]) && model_.contains(g_.nodes[n].name) && at != first && at != last) continue;
      for (Value v : g_.nodes[n].args)
        if (v != kNoValue && in_file(g_.nodes[v.node]) && next.try_emplace(v.node, n).second) open.push_back(v.node);
    }
    return {};
  }

  size_t removed(const std::string& from, const std::string& to) {
    EdgeReport e;
    e.from = from, e.to = to, e.value = from, e.reason = "no-shared-data";
    e.text = "a rewrite gave " + to + " another operand: nothing passes between the two";
    e.numbers = {{"bytes", 0}}, e.could_save_us = 0;
    r_.not_fused.push_back(std::move(e));
    return r_.not_fused.size() - 1;
  }
};

}  // namespace

void account_for_nodes(const Model& m, const Graph& planned, const Plan& plan, Report& r) {
  const std::map<std::string, std::vector<uint32_t>> carriers = carriers_in(planned);
  const std::map<std::string, NodeReport> told(plan.nodes.begin(), plan.nodes.end());
  std::map<std::string, std::string> carried;  // origin -> group
  for (const GroupReport& g : r.groups)
    for (const std::string& name : g.original_nodes) carried.try_emplace(name, g.id);
  std::set<std::string> folded, listed;
  for (const RewriteReport& w : r.rewrites)
    if (w.name == "fold-constants") folded.insert(w.nodes.begin(), w.nodes.end());
  // The kernel of its own, or the extern op, that stands for a node under another name; layouts around it are named
  // after it too.
  auto whole = [&](const Node& n) -> std::string {
    std::string found;
    if (auto it = carriers.find(n.name); it != carriers.end())
      for (uint32_t i : it->second) {
        const Node& x = planned.nodes[i];
        auto p = told.find(x.name);
        if (p == told.end() || (p->second.fate != "alone" && p->second.fate != "extern")) continue;
        if (found.empty() || !is_kind(x, OpKind::view)) found = x.name;
        if (x.op == n.op) return x.name;
      }
    return found;
  };
  std::map<std::string, std::string> group_of;
  for (const Node& n : m.graph.nodes) {
    if (!in_file(n)) continue;
    NodeReport x;
    x.op = n.op, x.fate = folded.contains(n.name) ? "folded" : is_kind(n, OpKind::view) ? "view" : "eliminated";
    if (auto it = told.find(n.name); it != told.end()) x = it->second;
    if (auto it = carried.find(n.name);
        it != carried.end() && x.group.empty() && x.fate != "alone" && x.fate != "extern")
      x.fate = "group", x.group = it->second;
    if (x.fate == "eliminated") x.part_of = whole(n);
    if (!x.group.empty()) group_of[n.name] = x.group;
    listed.insert(n.name);
    r.nodes.push_back({n.name, x});
  }
  for (const Model::Gone& n : m.gone)
    if (!told.contains(n.name) && listed.insert(n.name).second)
      r.nodes.push_back({n.name, {.op = n.op, .fate = n.folded ? "folded" : "eliminated"}});
  for (const auto& [name, x] : plan.nodes)
    if (!listed.contains(name)) r.nodes.push_back({name, x});
  for (GroupReport& g : r.groups) {
    Names own;
    for (const std::string& name : g.original_nodes)
      if (auto it = group_of.find(name); it != group_of.end() && it->second == g.id) {
        own.push_back(name);
        group_of.erase(it);
      }
    g.original_nodes = std::move(own);
  }
}

void account_for_edges(const Model& m, const Graph& planned, Report& r) { Edges(m, planned, r).run(); }

}  // namespace gaf
