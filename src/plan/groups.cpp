// Groups of nodes: merging, cycles, depth, and turning a group into a kernel function.
#include "plan/groups.h"

#include <algorithm>
#include <map>

#include "base/catalogue.h"

namespace gaf {

bool alias_view(const Node& n) { return n.op == "Reshape" || n.op == "Identity"; }
bool inner_constant(const Graph& g, Value v) {
  const Node& n = g.nodes[v.node];
  if (n.op == "constant") return attr_tensor(n, "value")->numel() == 1;
  return n.args.empty() && n.op == "Extent";
}

namespace {
// Weights are packed and so come in from outside, even one of a single element.
bool takes_weights(const Node& n) { return is_kind(n, OpKind::contraction) || is_kind(n, OpKind::conv); }

bool listed(const std::vector<std::string>& names, const Node& n) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& s) { return s == n.op || s == n.name; });
}
std::string why_host(const Graph&, const Node& n, const FusionConfig& config) {
  const OpRow* row = find_op(n.op);
  if (!row) return n.op + " has no implementation";
  if (listed(config.extern_ops, n)) return n.op + " is listed in extern_ops";
  if (!n.regions.empty()) return n.op + " is control flow";
  if (row->kind == OpKind::other) return n.op + " has no lowering";
  return "";
}
}  // namespace

Groups::Groups(const Graph& graph, const FusionConfig& config) : g(graph), role_(g.nodes.size(), Role::leaf), refusal_(g.nodes.size()), of_(g.nodes.size(), -1) {
  for (uint32_t i = 0; i < g.nodes.size(); i++) {
    const Node& n = g.nodes[i];
    if (n.op == "input" || n.op == "constant" || (n.args.empty() && n.op == "Extent")) continue;
    refusal_[i] = why_host(g, n, config);
    role_[i] = !refusal_[i].empty() ? Role::host : is_kind(n, OpKind::view) ? Role::view : Role::fusable;
    of_[i] = static_cast<int>(members_.size());
    members_.push_back({i});
  }
  readers_ = readers(g);
}

std::vector<int> Groups::all() const {
  std::vector<int> live;
  for (size_t i = 0; i < members_.size(); i++)
    if (!members_[i].empty()) live.push_back(static_cast<int>(i));
  std::sort(live.begin(), live.end(), [&](int a, int b) { return nodes(a).front() < nodes(b).front(); });
  return live;
}

std::vector<uint32_t> Groups::united(int a, int b) const {
  std::vector<uint32_t> u = nodes(a);
  u.insert(u.end(), nodes(b).begin(), nodes(b).end());
  std::sort(u.begin(), u.end());
  return u;
}

void Groups::merge(int a, int b) {
  std::vector<uint32_t> u = united(a, b);
  for (uint32_t n : u) of_[n] = a;
  members_[static_cast<size_t>(a)] = std::move(u);
  members_[static_cast<size_t>(b)].clear();
}

void Groups::dissolve(int group) {
  const std::vector<uint32_t> apart = std::move(members_[static_cast<size_t>(group)]);
  members_[static_cast<size_t>(group)].clear();
  for (uint32_t n : apart) of_[n] = static_cast<int>(members_.size()), members_.push_back({n});
}

bool Groups::makes_cycle(int a, int b) const {
  // From every outside reader of the union, walk on; coming back to the union is a cycle. Groups, not nodes, are the vertices:
  // entering a foreign group means depending on all of it.
  std::set<int> seen;
  std::vector<int> stack;
  auto leave = [&](int group) {
    for (uint32_t n : nodes(group))
      for (uint32_t r : readers_[n])
        if (r != kNoValue.node && of_[r] >= 0 && of_[r] != group && of_[r] != a && of_[r] != b && seen.insert(of_[r]).second) stack.push_back(of_[r]);
  };
  leave(a), leave(b);
  while (!stack.empty()) {
    int x = stack.back();
    stack.pop_back();
    for (uint32_t n : nodes(x))
      for (uint32_t r : readers_[n]) {
        if (r == kNoValue.node || of_[r] < 0) continue;
        if (of_[r] == a || of_[r] == b) return true;
        if (of_[r] != x && seen.insert(of_[r]).second) stack.push_back(of_[r]);
      }
  }
  return false;
}

int Groups::depth(const std::vector<uint32_t>& nodes) const {
  std::map<uint32_t, int> d;
  int most = 0;
  for (uint32_t n : nodes) {
    int in = 0;
    for (Value v : g.nodes[n].args)
      if (v != kNoValue && d.count(v.node)) in = std::max(in, d[v.node]);
    most = std::max(most, d[n] = in + (role_[n] == Role::view ? 0 : 1));
  }
  return most;
}

int Groups::ops(const std::vector<uint32_t>& nodes) const {
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [&](uint32_t n) { return role_[n] != Role::view; }));
}

bool Groups::has_anchor(int group) const {
  return std::any_of(nodes(group).begin(), nodes(group).end(), [&](uint32_t n) {
    const Node& x = g.nodes[n];
    return is_kind(x, OpKind::contraction) || is_kind(x, OpKind::conv) || is_kind(x, OpKind::pool);
  });
}

std::vector<Value> Groups::outputs(const std::vector<uint32_t>& nodes) const {
  std::set<uint32_t> inside(nodes.begin(), nodes.end());
  std::set<Value> out;
  for (uint32_t n : nodes)
    for (uint32_t r : readers_[n]) {
      if (r != kNoValue.node && inside.count(r)) continue;
      if (r == kNoValue.node) {
        for (const Output& o : g.outputs)
          if (o.value.node == n) out.insert(o.value);
      } else {
        for (Value v : g.nodes[r].args)
          if (v.node == n) out.insert(v);
      }
    }
  return {out.begin(), out.end()};
}

std::vector<Value> Groups::inputs(const std::vector<uint32_t>& nodes) const {
  std::set<uint32_t> inside(nodes.begin(), nodes.end());
  std::vector<Value> in;
  for (uint32_t n : nodes)
    for (Value v : g.nodes[n].args)
      if (v != kNoValue && !inside.count(v.node) && (takes_weights(g.nodes[n]) || !inner_constant(g, v)) && std::find(in.begin(), in.end(), v) == in.end()) in.push_back(v);
  return in;
}

Graph Groups::function(const std::vector<uint32_t>& nodes, const std::string& name) const {
  GraphBuilder b;
  b.g.name = name, b.g.syms = g.syms, b.g.opset = g.opset;
  std::map<Value, Value> map;
  for (Value v : inputs(nodes)) {
    const Node& p = g.nodes[v.node];
    Value x = b.input("", g.type(v));
    if (p.op == "constant" || (part_of_graph && attr_int(p, "const", 0))) b.g.nodes[x.node].attrs["const"] = int64_t{1};
    map[v] = x;
  }
  for (uint32_t i : nodes) {
    Node n = g.nodes[i];
    for (Value& v : n.args) {
      if (v == kNoValue) continue;
      if (!map.count(v)) {
        GAF_CHECK(inner_constant(g, v)) << "'" << n.name << "' reads a value from nowhere";
        Node c = g.nodes[v.node];
        c.name.clear(), c.origins.clear();
        map[v] = b.add(std::move(c));
      }
      v = map.at(v);
    }
    size_t results = n.types.size();
    Value v = b.add(std::move(n));
    for (uint32_t r = 0; r < results; r++) map[{i, r}] = {v.node, r};
  }
  for (Value v : outputs(nodes)) b.g.outputs.push_back({map.at(v), ""});
  return std::move(b.g);
}

}  // namespace gaf
