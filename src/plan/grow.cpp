// The driver: single-op groups, attention first, then growth along edges in topological order; a record of each refusal.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/grow.h"

namespace gaf {

namespace {
constexpr double kTie = 0.005;        // of the time of the parts, for each kernel that fusion saves
constexpr double kLessTraffic = 0.1;  // share of the parts' activations that fusion saves
}  // namespace

Growth::Growth(const Graph& g, const Target& t, const FusionConfig& config, const PlanServices& services)
    : groups(g, config), t_(t), config_(config), services_(services) {}

const std::variant<Price, Verdict>& Growth::price(const std::vector<uint32_t>& nodes) {
  Graph fn = groups.function(nodes, "k");
  for (Node& n : fn.nodes) n.name.clear(), n.origins.clear();
  std::string text = print_graph(fn);
  auto it = prices_.find(text);
  if (it == prices_.end()) it = prices_.emplace(std::move(text), services_.price(fn)).first;
  return it->second;
}

double Growth::cost(int group) {
  const std::vector<uint32_t>& nodes = groups.nodes(group);
  if (std::all_of(nodes.begin(), nodes.end(), [&](uint32_t n) { return groups.role(n) == Role::view && alias_view(groups.g.nodes[n]); })) return 0;
  const auto& p = price(nodes);
  return std::holds_alternative<Price>(p) ? std::get<Price>(p).us : std::numeric_limits<double>::infinity();
}

double Growth::activations(int group) {
  const auto* p = cost(group) > 0 ? std::get_if<Price>(&price(groups.nodes(group))) : nullptr;
  return p ? p->activation_bytes : 0;
}

double Growth::alone(const std::vector<uint32_t>& nodes) {
  double us = 0;
  for (uint32_t n : nodes) {
    if (groups.role(n) == Role::view && alias_view(groups.g.nodes[n])) continue;
    if (const std::optional<Price> p = apart(n)) us += p->us;
  }
  return us;
}

std::optional<Price> Growth::apart(uint32_t node) {
  const auto& p = price({node});
  if (const Price* known = std::get_if<Price>(&p)) return *known;
  return launch_price(groups.function({node}, "k"), t_);
}

std::optional<Price> launch_price(const Graph& fn, const Target& t) {
  if (t.kind == "cpu" || t.dram_gbps <= 0) return std::nullopt;
  std::vector<int64_t> hints;
  for (const Sym& s : fn.syms) hints.push_back(s.hint > 0 ? s.hint : 128);
  auto size = [&](const Type& type) { return static_cast<double>(product(type.dims).eval(hints)) * bytes(type.dtype); };
  Price p;
  for (const Node& n : fn.nodes)
    if (n.op == "input") p.bytes += size(n.types[0]);
  for (const Output& o : fn.outputs) p.bytes += size(fn.type(o.value));
  p.launch_us = t.launch_us, p.memory_us = p.bytes / (t.dram_gbps * 1e3), p.us = p.launch_us + p.memory_us;
  return p;
}

// Cheap checks first, one a line, each with the sentence that a user will read.
Verdict Growth::legal(int a, int b) {
  auto first = [&](int x) -> const Node& { return groups.g.nodes[groups.nodes(x).front()]; };
  for (int x : {a, b})
    if (uint32_t n = groups.nodes(x).front(); groups.role(n) == Role::host) return Verdict::no("not-fusable-op", groups.refusal(n) + "; runs as extern");
  if (config_.level == 0) return Verdict::no("level-off", "fusion is off (level 0)");
  if (!config_.enable_autofuse) return Verdict::no("level-off", "automatic discovery is off (enable_autofuse)");
  std::vector<uint32_t> u = groups.united(a, b);
  if (int n = groups.ops(u); n > config_.max_fusion_size)
    return Verdict::no("size-limit", fmt::format("{} ops, limit {}", n, config_.max_fusion_size), {{"ops", n}, {"limit", config_.max_fusion_size}});
  if (int d = groups.depth(u); d > config_.depth_limit())
    return Verdict::no("depth-limit", fmt::format("depth {}, limit {}", d, config_.depth_limit()), {{"depth", d}, {"limit", config_.depth_limit()}});
  if (groups.has_anchor(a) && groups.has_anchor(b))
    return Verdict::no("compute-compute", fmt::format("{} and {} each need a kernel's loops of their own", friendly_name(groups.g, first(a)), friendly_name(groups.g, first(b))));
  if (groups.makes_cycle(a, b)) return Verdict::no("cycle", "another path between the two leads through ops outside");
  if (config_.strategy == Strategy::conservative)
    for (uint32_t n : groups.nodes(a)) {
      std::vector<Value> out = groups.outputs(u);
      bool leaks = std::any_of(out.begin(), out.end(), [&](Value v) { return v.node == n; });
      bool read = std::any_of(groups.nodes(b).begin(), groups.nodes(b).end(), [&](uint32_t m) {
        const auto& args = groups.g.nodes[m].args;
        return std::any_of(args.begin(), args.end(), [&](Value v) { return v != kNoValue && v.node == n; });
      });
      if (leaks && read) return Verdict::no("multi-use", "the value has readers outside; strategy conservative fuses none of them");
    }
  return Verdict::yes();
}

Verdict Growth::worth(int a, int b, double slack) {
  return pays(groups.united(a, b), {cost(a) + cost(b), activations(a) + activations(b), 2}, slack);
}

Verdict Growth::pays(const std::vector<uint32_t>& u, const Parts& parts, double slack) {
  const auto& p = price(u);
  if (const Verdict* no = std::get_if<Verdict>(&p)) {
    Verdict v = *no;
    v.text = without_names(std::move(v.text));
    return v;
  }
  const Price& fused = std::get<Price>(p);
  if (fused.reg > config_.resource_budget)
    return Verdict::no("resource-registers", fmt::format("{:.0f} % of the vector registers, budget {:.0f} %", 100 * fused.reg, 100 * config_.resource_budget), {{"reg", fused.reg}, {"budget", config_.resource_budget}});
  if (fused.ub > config_.resource_budget)
    return Verdict::no("resource-local-memory", fmt::format("{:.1f} KiB of local memory, budget {:.1f} KiB", static_cast<double>(fused.ub_bytes) / 1024, config_.resource_budget * static_cast<double>(t_.ub_bytes) / 1024),
                       {{"ub_bytes", static_cast<double>(fused.ub_bytes)}, {"budget_bytes", config_.resource_budget * static_cast<double>(t_.ub_bytes)}});
  const double apart = parts.us;
  if (std::isinf(apart)) return Verdict::yes();  // a part that cannot stand alone
  double unfused = alone(u), gain = unfused > 0 ? (unfused - fused.us) / unfused : 0;
  // Times that the model cannot tell apart are decided by traffic: what it prices at the bandwidth of an idle machine costs
  // more beside other work.
  double less = 1 - fused.activation_bytes / parts.activation_bytes;
  bool tie = fused.us < apart * (1 + kTie * (parts.kernels - 1)) && less >= std::max(kLessTraffic, config_.threshold());
  bool pays = tie || (fused.us < apart && gain >= config_.threshold());
  if (!pays && fused.us > apart + slack)
    return Verdict::no("gain-below-threshold", fmt::format("{:.2f} us together, {:.2f} us apart", fused.us, apart), {{"fused_us", fused.us}, {"unfused_us", apart}});
  if (!pays && slack == 0)
    return Verdict::no("gain-below-threshold", fmt::format("gain {:.1f} %, threshold {:.1f} %", 100 * gain, 100 * config_.threshold()), {{"gain", 100 * gain}, {"threshold", 100 * config_.threshold()}});
  return Verdict::yes();
}

bool Growth::try_merge(uint32_t from, uint32_t to) {
  int a = groups.of(from), b = groups.of(to);
  if (a < 0 || b < 0 || a == b) return false;
  bool views = groups.ops(groups.nodes(a)) == 0 || groups.ops(groups.nodes(b)) == 0;
  Verdict v = legal(a, b);
  // a view costs nothing alone: it may join without a gain, to bring what is behind it within reach, unless it would make
  // the kernel write a value twice
  if (v && views && groups.outputs(groups.united(a, b)).size() > std::max<size_t>(1, groups.outputs(groups.nodes(b)).size()) )
    v = Verdict::no("multi-use", "the value behind the view has other readers");
  if (v) v = worth(a, b, views ? 1e-3 : 0);
  if (!v) {
    // what kept attention apart says more than why the two alone do not fit
    if (!settled_.contains({from, to})) refused_[{from, to}] = v;
    return false;
  }
  groups.merge(a, b);
  return true;
}

// Attention is one kernel only as long as its probabilities are nobody else's: says so of the edge to the second MatMul.
void Growth::note_output_between(uint32_t softmax) {
  const Graph& g = groups.g;
  for (const Output& o : g.outputs)
    for (uint32_t n = 0; n < g.nodes.size() && o.value.node == softmax; n++)
      if (is_kind(g.nodes[n], OpKind::contraction) && std::ranges::find(g.nodes[n].args, Value{softmax, 0}) != g.nodes[n].args.end())
        settled_.insert({softmax, n}), refused_[{softmax, n}] = Verdict::no("graph-output", fmt::format("'{}' is an output of the model, so attention cannot keep it to itself", o.name));
}

// Softmax between two MatMuls, with the pointwise ops before it: one group if the attention template takes it. It
// is judged when its neighbours have joined it (take_back_attention).
void Growth::attention() {
  const Graph& g = groups.g;
  std::vector<std::vector<uint32_t>> read = readers(g);
  for (uint32_t s = 0; s < g.nodes.size(); s++) {
    if (g.nodes[s].op != "Softmax" || groups.role(s) != Role::fusable) continue;
    std::vector<uint32_t> nodes{s};
    auto single = [&](uint32_t n) { return read[n].size() == 1 && read[n][0] != kNoValue.node; };
    uint32_t at = s;
    bool found = false;
    for (int steps = 0; steps < 8 && !found; steps++) {  // up the scores
      uint32_t next = UINT32_MAX;
      for (Value v : g.nodes[at].args) {
        if (v == kNoValue || groups.of(v.node) < 0 || groups.role(v.node) == Role::host || !single(v.node)) continue;
        const Node& p = g.nodes[v.node];
        if (g.type(v).dims != g.nodes[s].types[0].dims) continue;
        if (is_kind(p, OpKind::contraction) || is_kind(p, OpKind::pointwise)) next = next == UINT32_MAX || is_kind(p, OpKind::contraction) ? v.node : next;
      }
      if (next == UINT32_MAX) break;
      nodes.push_back(next);
      found = is_kind(g.nodes[next], OpKind::contraction);
      at = next;
    }
    at = s;
    bool down = false;
    while (found && single(at)) {
      at = read[at][0];
      if (groups.of(at) < 0 || groups.role(at) == Role::host) break;
      nodes.push_back(at);
      down = is_kind(g.nodes[at], OpKind::contraction);
      if (down || !is_kind(g.nodes[at], OpKind::pointwise)) break;
    }
    if (found && !down && !single(s)) note_output_between(s);
    if (!found || !down) continue;
    std::sort(nodes.begin(), nodes.end());
    if (std::any_of(nodes.begin(), nodes.end(), [&](uint32_t n) { return groups.nodes(groups.of(n)).size() > 1; })) continue;
    if (groups.ops(nodes) > config_.max_fusion_size || groups.depth(nodes) > config_.depth_limit()) continue;
    if (!std::holds_alternative<Price>(price(nodes))) continue;  // the edges say why two of them are no kernel
    const Price& fused = std::get<Price>(price(nodes));
    if (fused.reg > config_.resource_budget || fused.ub > config_.resource_budget) continue;
    int group = groups.of(nodes[0]);
    for (size_t i = 1; i < nodes.size(); i++) groups.merge(group, groups.of(nodes[i]));
    attentions_.push_back(s);
  }
}

// What growth makes of the nodes of a group when none of them may become attention.
Growth::Parts Growth::without_attention(const std::vector<uint32_t>& nodes) {
  const Graph fn = groups.function(nodes, "k");
  Growth other(fn, t_, config_, services_);
  other.groups.part_of_graph = true;
  other.grow();
  Parts parts;
  for (int group : other.groups.all())
    if (const double us = other.cost(group); us > 0) parts.us += us, parts.activation_bytes += other.activations(group), parts.kernels++;
  return parts;
}

// Attention is found whole, not grown pair by pair, so it is compared with what growth makes of the same nodes. Where that is
// cheaper the group falls apart. Says whether any did.
bool Growth::take_back_attention() {
  bool any = false;
  std::map<std::string, Verdict> verdicts;  // of equal groups, by text
  for (uint32_t s : attentions_) {
    const std::vector<uint32_t> nodes = groups.nodes(groups.of(s));
    Graph fn = groups.function(nodes, "k");
    for (Node& n : fn.nodes) n.name.clear(), n.origins.clear();
    std::string text = print_graph(fn);
    auto it = verdicts.find(text);
    if (it == verdicts.end()) it = verdicts.emplace(std::move(text), pays(nodes, without_attention(nodes), 0)).first;
    if (it->second) continue;
    for (uint32_t n : nodes)
      if (std::ranges::find(groups.g.nodes[n].args, Value{s, 0}) != groups.g.nodes[n].args.end()) settled_.insert({s, n}), refused_[{s, n}] = it->second;
    groups.dissolve(groups.of(s));
    any = true;
  }
  return any;
}

void Growth::run() {
  if (config_.level > 1 && config_.enable_autofuse && config_.strategy != Strategy::conservative) attention();
  grow();
  if (take_back_attention()) grow();
}

void Growth::grow() {
  const bool on = config_.level > 0 && config_.enable_autofuse;
  for (int round = 0; round < 4; round++) {
    bool changed = false;
    for (uint32_t n = 0; n < groups.g.nodes.size(); n++) {
      if (groups.of(n) < 0) continue;
      std::vector<uint32_t> from;  // latest producer first: the edge that is ready last
      for (Value v : groups.g.nodes[n].args)
        if (v != kNoValue && groups.of(v.node) >= 0) from.push_back(v.node);
      std::sort(from.rbegin(), from.rend());
      from.erase(std::unique(from.begin(), from.end()), from.end());
      for (uint32_t p : from) changed = try_merge(p, n) || changed;
    }
    if (!changed || !on) break;
  }
}

}  // namespace gaf
