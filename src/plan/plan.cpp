// From groups to the planned graph (kernel functions and calls) and to the record of decisions.
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>

#include "base/log.h"
#include "plan/grow.h"

namespace gaf {
namespace {

double hinted(const Expr& e, const Graph& g) {
  std::vector<int64_t> v;
  for (const Sym& s : g.syms) v.push_back(s.hint > 0 ? s.hint : 128);
  return static_cast<double>(e.eval(v));
}
double value_bytes(const Graph& g, Value v) { return hinted(product(g.type(v).dims), g) * bytes(g.type(v).dtype); }

std::string size_text(double b) {
  return b >= 1e6 ? fmt::format("{:.2f} MB", b / 1e6) : fmt::format("{:.1f} KB", b / 1e3);
}

class Writer {
 public:
  Writer(const Graph& g, const Target& t, const FusionConfig& c, Growth& growth)
      : g_(g), t_(t), config_(c), growth_(growth) {}
  Plan run() {
    out_.g.name = g_.name, out_.g.syms = g_.syms, out_.g.opset = g_.opset, out_.g.metadata = g_.metadata;
    for (uint32_t i = 0; i < g_.nodes.size() && g_.nodes[i].op == "input"; i++) leaf({i, 0});
    for (int group : in_order()) emit(group);
    for (const Output& o : g_.outputs) {
      leaf(o.value);
      out_.g.outputs.push_back({map_.at(o.value), o.name});
    }
    edges();
    plan_.graph = std::move(out_.g);
    return std::move(plan_);
  }

 private:
  const Graph& g_;
  const Target& t_;
  const FusionConfig& config_;
  Growth& growth_;
  GraphBuilder out_;
  Plan plan_;
  std::map<Value, Value> map_;
  std::map<std::string, int> used_;  // kernel labels
  std::map<int, std::string> group_id_;

  // Groups so that each comes after what it reads; among those that are ready the one that stands first in the graph.
  std::vector<int> in_order() {
    const Groups& groups = growth_.groups;
    std::map<int, std::set<int>> needs, feeds;
    for (int group : groups.all())
      for (Value v : groups.inputs(groups.nodes(group)))
        if (int p = groups.of(v.node); p >= 0) needs[group].insert(p), feeds[p].insert(group);
    auto later = [&](int a, int b) { return groups.nodes(a).front() > groups.nodes(b).front(); };
    std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
    for (int group : groups.all())
      if (needs[group].empty()) ready.push(group);
    std::vector<int> order;
    while (!ready.empty()) {
      int x = ready.top();
      ready.pop();
      order.push_back(x);
      for (int f : feeds[x])
        if (needs[f].erase(x); needs[f].empty()) ready.push(f);
    }
    GAF_CHECK(order.size() == groups.all().size()) << "the groups depend on each other in a circle";
    return order;
  }

  // An op of its own: a view that moves bytes (a transpose) is one, a view of the same bytes is not.
  bool moves(uint32_t n) const { return growth_.groups.role(n) != Role::view || !alias_view(g_.nodes[n]); }

  void leaf(Value v) {
    if (v == kNoValue || map_.count(v)) return;
    const Node& n = g_.nodes[v.node];
    GAF_CHECK(n.args.empty()) << "'" << n.name << "' is read before it is made";
    Value x = out_.add(n);
    map_[v] = x;
  }

  void emit(int group) {
    const Groups& groups = growth_.groups;
    const std::vector<uint32_t>& nodes = groups.nodes(group);
    bool host = groups.role(nodes[0]) == Role::host;
    bool alias = std::all_of(nodes.begin(), nodes.end(),
                             [&](uint32_t n) { return groups.role(n) == Role::view && alias_view(g_.nodes[n]); });
    const std::variant<Price, Verdict>* price = host || alias ? nullptr : &growth_.price(nodes);
    if (host || alias || std::holds_alternative<Verdict>(*price)) return plain(group, host || (!alias && !host), price);
    call(group, std::get<Price>(*price));
  }

  // Nodes that stay nodes: views of the same bytes, and ops that run outside generated code.
  void plain(int group, bool host, const std::variant<Price, Verdict>* refused) {
    for (uint32_t i : growth_.groups.nodes(group)) {
      Node n = g_.nodes[i];
      for (Value& v : n.args) {
        leaf(v);
        if (v != kNoValue) v = map_.at(v);
      }
      uint32_t made = out_.add(std::move(n)).node;
      for (uint32_t r = 0; r < g_.nodes[i].types.size(); r++) map_[{i, r}] = {made, r};
      const std::string why = refused ? without_names(std::get<Verdict>(*refused).text) : growth_.groups.refusal(i);
      record(i, host ? "extern" : "view", "", host ? why : "", 0, 0);
      if (!host) continue;
      plan_.totals.externs++, plan_.totals.ops_before++, plan_.totals.ops_after++;
    }
  }

  void record(uint32_t node, std::string fate, std::string group, std::string reason, double us, double b) {
    const Node& n = g_.nodes[node];
    plan_.nodes.push_back(
        {n.name, {friendly_name(g_, n), std::move(fate), std::move(group), std::move(reason), us, b}});
  }

  void call(int group, const Price& p) {
    const Groups& groups = growth_.groups;
    std::vector<uint32_t> nodes = groups.nodes(group);
    std::string label = kernel_label(g_, nodes);
    int repeat = used_[label]++;
    std::string name = repeat ? label + "_" + std::to_string(repeat) : label;
    std::vector<Value> inputs = groups.inputs(nodes), outputs = groups.outputs(nodes);
    Node call;
    call.op = "call", call.name = name, call.callee = static_cast<int>(out_.g.kernels.size());
    for (Value v : inputs) {
      leaf(v);
      call.args.push_back(map_.at(v));
    }
    for (Value v : outputs) call.types.push_back(g_.type(v));
    for (uint32_t n : nodes)
      for (const std::string& s :
           g_.nodes[n].origins.empty() ? std::vector<std::string>{g_.nodes[n].name} : g_.nodes[n].origins)
        call.origins.push_back(s);
    out_.g.kernels.push_back(groups.function(nodes, name));
    uint32_t made = out_.add(std::move(call)).node;
    for (uint32_t r = 0; r < outputs.size(); r++) map_[outputs[r]] = {made, r};

    int ops = static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [&](uint32_t n) { return moves(n); }));
    double us_before = 0, bytes_before = 0;
    std::string id = ops > 1 ? "g" + std::to_string(plan_.groups.size()) : "";
    for (uint32_t n : nodes) {
      const std::optional<Price> alone = !moves(n) ? std::nullopt : ops == 1 ? p : growth_.apart(n);
      double us = alone ? alone->us : 0, b = alone ? alone->bytes : 0;
      us_before += us, bytes_before += b;
      record(n, ops > 1 ? "group" : moves(n) ? "alone" : "view", id, "", us, b);
    }
    Totals& t = plan_.totals;
    t.ops_before += ops, t.ops_after += ops > 0;
    t.kernels_before += ops;
    t.kernels_after++;
    t.bytes_before += bytes_before, t.bytes_after += p.bytes;
    t.predicted_us_before += us_before, t.predicted_us_after += p.us;
    group_id_[group] = id;
    if (ops > 1) report_group(nodes, name, id, p, us_before, bytes_before);
  }

  void report_group(const std::vector<uint32_t>& nodes, const std::string& name, const std::string& id, const Price& p,
                    double us, double b) {
    GroupReport r;
    r.id = id, r.kernel = name, r.kind = group_kind(g_, nodes);
    double inner = 0;
    int values = 0;
    std::vector<Value> out = growth_.groups.outputs(nodes);
    for (uint32_t n : nodes) {
      const Node& x = g_.nodes[n];
      if (moves(n)) r.nodes.push_back(friendly_name(g_, x));
      std::vector<std::string> names = x.origins.empty() ? std::vector<std::string>{x.name} : x.origins;
      r.original_nodes.insert(r.original_nodes.end(), names.begin(), names.end());
      if (std::find(out.begin(), out.end(), Value{n, 0}) == out.end()) values++, inner += value_bytes(g_, {n, 0});
    }
    r.simulated = t_.kind == "npu";
    r.bytes = {b, p.bytes}, r.predicted_us = {us, p.us};
    r.gain = us > 0 ? 100 * (us - p.us) / us : 0;
    r.launches_saved = static_cast<int>(r.nodes.size()) - 1;
    r.reg = p.reg, r.ub = p.ub, r.ub_bytes = p.ub_bytes;
    std::string what = r.kind == "matmul"      ? "epilogue of a compute-bound MatMul"
                       : r.kind == "conv"      ? "neighbours of a compute-bound Conv"
                       : r.kind == "attention" ? "scores stay in local memory between the two MatMuls"
                       : r.kind == "reduction" ? "one pass over each row"
                                               : "one pass over the elements";
    r.why = fmt::format("{}: {} intermediate{} ({} in all) never reach{} memory", what, values, values == 1 ? "" : "s",
                        size_text(inner), values == 1 ? "es" : "");
    std::string chain, arrow_text;
    for (const std::string& s : r.nodes) chain += (chain.empty() ? "" : " → ") + s;
    log_line(LogLevel::info, "found", "Found fusable subgraph: " + chain,
             {{"group", id}, {"nodes", Json::array_of(r.nodes)}});
    log_line(LogLevel::debug, "resources",
             fmt::format("Resource estimate: reg={}%, ub={}% → within budget", std::ceil(100 * p.reg),
                         std::ceil(100 * p.ub)),
             {{"group", id}, {"reg", p.reg}, {"ub", p.ub}});
    plan_.groups.push_back(std::move(r));
  }

  // Every pair of neighbouring ops, views of the same bytes between them looked through, that is not inside one group.
  void edges() {
    const Groups& groups = growth_.groups;
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (uint32_t n = 0; n < g_.nodes.size(); n++) {
      if (groups.of(n) < 0 || !moves(n)) continue;
      for (Value v : g_.nodes[n].args) {
        if (v == kNoValue || groups.of(v.node) < 0) continue;
        uint32_t to = n, link_from = v.node, link_to = n;
        uint32_t from = v.node;
        bool found = groups.of(from) != groups.of(to);
        while (!moves(from) && !g_.nodes[from].args.empty() && groups.of(g_.nodes[from].args[0].node) >= 0) {
          to = from, from = g_.nodes[from].args[0].node;
          if (!found && groups.of(from) != groups.of(to)) found = true, link_from = from, link_to = to;
        }
        if (!found || !moves(from) || groups.of(from) == groups.of(n) || !seen.insert({from, n}).second) continue;
        auto it = growth_.refused().find({link_from, link_to});
        Verdict why =
            it != growth_.refused().end() ? it->second : growth_.legal(groups.of(link_from), groups.of(link_to));
        if (why) why = Verdict::no("gain-below-threshold", "no gain found for the two together");
        EdgeReport e;
        e.from = g_.nodes[from].name, e.to = g_.nodes[n].name, e.value = g_.nodes[v.node].name;
        e.bytes = value_bytes(g_, v), e.reason = why.reason, e.text = why.text;
        e.numbers = why.numbers;
        e.numbers.push_back({"bytes", e.bytes});
        double bandwidth = e.bytes > static_cast<double>(t_.l2_bytes) ? t_.dram_gbps : t_.l3_gbps;
        e.could_save_us = t_.launch_us + (bandwidth > 0 ? 2 * e.bytes / (bandwidth * 1e3) : 0);
        log_line(LogLevel::debug, "not-fused",
                 "Not fused: " + friendly_name(g_, g_.nodes[from]) + " → " + friendly_name(g_, g_.nodes[n]) + ": " +
                     e.reason + ": " + e.text,
                 {{"from", e.from}, {"to", e.to}, {"reason", e.reason}});
        plan_.not_fused.push_back(std::move(e));
      }
    }
  }
};

}  // namespace

Plan plan_kernels(const Graph& g, const Target& t, const FusionConfig& config, const PlanServices& services) {
  Growth growth(g, t, config, services);
  growth.run();
  return Writer(g, t, config, growth).run();
}

}  // namespace gaf
