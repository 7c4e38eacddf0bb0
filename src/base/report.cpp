// The report as text and as JSON. Both read the same struct; neither computes anything but sums and roundings.
#include "base/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/catalogue.h"
#include "base/error.h"

namespace gaf {
namespace {

std::string mb(double b) {
  if (b >= 1e8) return fmt::format("{:.0f} MB", b / 1e6);
  if (b >= 1e5) return fmt::format("{:.2f} MB", b / 1e6);
  return fmt::format("{:.1f} KB", b / 1e3);
}
std::string us(double v) { return std::isnan(v) ? "-" : fmt::format("{:.1f}", v); }
double change(BeforeAfter x) { return x.before > 0 ? 100 * (x.after - x.before) / x.before : 0; }

Json pair(BeforeAfter x) { return Json::object({{"before", x.before}, {"after", x.after}}); }
Json measured(BeforeAfter x) { return std::isnan(x.before) && std::isnan(x.after) ? Json() : pair(x); }

std::string join(const std::vector<std::string>& v, const char* between) {
  std::string s;
  for (const std::string& x : v) s += (s.empty() ? "" : between) + x;
  return s;
}

std::string setting(const Report& r, const std::string& name) {
  auto it = r.settings.find(name);
  return it == r.settings.end() ? "" : it->second.value;
}

}  // namespace

std::string Report::text() const {
  std::string s = fmt::format("model {}   target {} ({} {}{})   strategy {}   level {}\n", model, target, threads,
                              simulated ? "core" : "thread", threads == 1 ? "" : "s", setting(*this, "strategy"),
                              setting(*this, "level"));
  const std::string unit = simulated ? "us simulated" : "us";
  s +=
      fmt::format("ops {} -> {}   kernels {} -> {}   bytes {} -> {}   predicted {} -> {} {} ({:+.1f} %)",
                  totals.ops_before, totals.ops_after, totals.kernels_before, totals.kernels_after,
                  mb(totals.bytes_before), mb(totals.bytes_after), us(totals.predicted_us_before),
                  us(totals.predicted_us_after), unit, change({totals.predicted_us_before, totals.predicted_us_after}));
  if (!std::isnan(totals.measured_us_before))
    s += fmt::format("   measured {} -> {} us", us(totals.measured_us_before), us(totals.measured_us_after));
  s += "\n";
  for (const GroupReport& g : groups) {
    s += fmt::format("\n{:<3} {}{}   gain {:.1f} %", g.id, g.kernel, g.rule.empty() ? "" : "   rule " + g.rule, g.gain);
    if (!std::isnan(g.compile_ms))
      s += fmt::format("   kernel {:.1f} ms to compile ({})", g.compile_ms, g.cached ? "cache hit" : "cache miss");
    s += fmt::format("\n    {} ({})\n    why       {}\n", join(g.nodes, " + "), join(g.original_nodes, " "), g.why);
    s += fmt::format("    predicted {} -> {} {}", us(g.predicted_us.before), us(g.predicted_us.after), unit);
    if (!std::isnan(g.measured_us.before))
      s += fmt::format("    measured {} -> {} us", us(g.measured_us.before), us(g.measured_us.after));
    s += fmt::format("    bytes {} -> {}    reg {:.0f} %  ub {:.0f} %{}\n", mb(g.bytes.before), mb(g.bytes.after),
                     100 * g.reg, 100 * g.ub, g.status == "fused" ? "" : "    " + g.status);
  }
  if (!not_fused.empty()) {
    s += "not fused\n";
    size_t edge = 0, reason = 0;
    for (const EdgeReport& e : not_fused)
      edge = std::max(edge, e.from.size() + e.to.size() + 4), reason = std::max(reason, e.reason.size());
    edge = std::min<size_t>(edge, 60);
    for (const EdgeReport& e : not_fused) {
      s += fmt::format("    {:<{}} {:<{}} {}; {} between them, at most {} us to save", e.from + " -> " + e.to, edge,
                       e.reason, reason, e.text, mb(e.bytes), us(e.could_save_us));
      if (!e.other_reasons.empty()) s += "; also " + join(e.other_reasons, ", ");
      std::vector<std::string> others;
      for (const auto& [from, to] : e.edges)
        if (from != e.from || to != e.to) others.push_back(from + " -> " + to);
      if (!others.empty()) s += "; stands for " + join(others, ", ");
      s += "\n";
    }
  }
  std::map<std::string, std::vector<std::string>> fates;
  for (const auto& [name, n] : nodes)
    if (n.fate != "group") {
      const std::string more = n.part_of.empty() ? n.reason : "part of " + n.part_of;
      fates[n.fate].push_back(name + (more.empty() ? "" : " (" + more + ")"));
    }
  for (const char* fate : {"alone", "extern", "eliminated", "folded", "view"})
    if (auto it = fates.find(fate); it != fates.end()) s += fmt::format("{:<10} {}\n", fate, join(it->second, " "));
  for (const auto& [expr, kind] : guards) s += "hint       " + expr + "\n";
  for (const WarningReport& w : warnings) s += "warning    " + (w.code.empty() ? "" : w.code + ": ") + w.text + "\n";
  return s;
}

Json Report::json() const {
  Json set = Json::object();
  for (const auto& [name, v] : settings) set.set(name, Json::object({{"value", v.value}, {"origin", v.origin}}));
  const Totals& t = totals;
  Json tot = Json::object({{"ops_before", t.ops_before},
                           {"ops_after", t.ops_after},
                           {"kernels_before", t.kernels_before},
                           {"kernels_after", t.kernels_after},
                           {"bytes_before", t.bytes_before},
                           {"bytes_after", t.bytes_after},
                           {"predicted_us_before", t.predicted_us_before},
                           {"predicted_us_after", t.predicted_us_after},
                           {"measured_us_before", t.measured_us_before},
                           {"measured_us_after", t.measured_us_after},
                           {"plan_gap", t.plan_gap},
                           {"compile_ms", t.compile_ms},
                           {"compiled", t.compiled},
                           {"cache_hits", t.cache_hits},
                           {"allocations", t.allocations},
                           {"externs", t.externs}});
  Json gs = Json::array();
  for (const GroupReport& g : groups)
    gs.push(Json::object(
        {{"id", g.id},
         {"kernel", g.kernel},
         {"nodes", Json::array_of(g.nodes)},
         {"original_nodes", Json::array_of(g.original_nodes)},
         {"kind", g.kind},
         {"rule", g.rule.empty() ? Json() : Json(g.rule)},
         {"why", g.why},
         {"gain", g.gain},
         {"bytes_before", g.bytes.before},
         {"bytes_after", g.bytes.after},
         {"launches_saved", g.launches_saved},
         {"predicted_us", pair(g.predicted_us)},
         {"measured_us", measured(g.measured_us)},
         {"resources", Json::object({{"reg", g.reg}, {"ub", g.ub}, {"ub_bytes", g.ub_bytes}, {"spill", 0}})},
         {"budget_steps", Json::array_of(g.budget_steps)},
         {"compile_ms", g.compile_ms},
         {"cached", g.cached},
         {"variants", Json::array()},
         {"status", g.status},
         {"simulated", g.simulated}}));
  Json edges = Json::array();
  for (const EdgeReport& e : not_fused) {
    Json numbers = Json::object();
    for (const auto& [k, v] : e.numbers) numbers.set(k, v);
    Json of_model = Json::array();
    for (const auto& [from, to] : e.edges) of_model.push(Json::array_of(std::vector<std::string>{from, to}));
    edges.push(Json::object({{"from", e.from},
                             {"to", e.to},
                             {"value", e.value},
                             {"bytes", e.bytes},
                             {"reason", e.reason},
                             {"text", e.text},
                             {"numbers", numbers},
                             {"other_reasons", Json::array_of(e.other_reasons)},
                             {"could_save_us", e.could_save_us},
                             {"edges", of_model}}));
  }
  Json ns = Json::object();
  for (const auto& [name, n] : nodes)
    ns.set(name, Json::object({{"op", n.op},
                               {"fate", n.fate},
                               {"group", n.group.empty() ? Json() : Json(n.group)},
                               {"reason", n.reason},
                               {"part_of", n.part_of.empty() ? Json() : Json(n.part_of)},
                               {"predicted_us", n.predicted_us},
                               {"bytes", n.bytes}}));
  Json rw = Json::array(), gd = Json::array(), ws = Json::array();
  for (const RewriteReport& r : rewrites)
    rw.push(Json::object({{"name", r.name}, {"nodes", Json::array_of(r.nodes)}, {"effect", r.effect}}));
  for (const auto& [expr, kind] : guards) gd.push(Json::object({{"expr", expr}, {"kind", kind}, {"group", Json()}}));
  for (const WarningReport& w : warnings) ws.push(Json::object({{"code", w.code}, {"text", w.text}, {"node", w.node}}));
  return Json::object({{"schema", "gaf.report/1"},
                       {"gaf_version", GAF_VERSION},
                       {"model", model},
                       {"graph_hash", graph_hash},
                       {"target", target},
                       {"threads", threads},
                       {"simulated", simulated},
                       {"settings", set},
                       {"totals", tot},
                       {"groups", gs},
                       {"not_fused", edges},
                       {"nodes", ns},
                       {"rewrites", rw},
                       {"passes", Json::array()},
                       {"guards", gd},
                       {"warnings", ws}});
}

std::string Report::why(const std::string& a, const std::string& b) const {
  std::vector<std::string> names;
  for (const auto& [name, n] : nodes) names.push_back(name);
  auto find = [&](const std::string& x) {
    auto it = std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n.first == x; });
    if (it == nodes.end())
      throw UserError("GAF3002", "the model has no node '" + x + "'" + did_you_mean(x, names),
                      "gaf explain without --node and --edge lists the nodes");
    return it;
  };
  auto first = find(a);
  auto in_group = [&](const std::string& id) -> std::string {
    for (const GroupReport& g : groups)
      if (g.id == id) return g.id + " " + g.kernel + ": " + g.why;
    return id;
  };
  auto fate = [&](const std::string& name, const NodeReport& n) {
    std::string s = name + " (" + n.op + "): " + n.fate;
    if (!n.group.empty()) s += " " + in_group(n.group);
    if (!n.part_of.empty()) s += ", part of " + n.part_of;
    return n.reason.empty() ? s : s + ": " + n.reason;
  };
  const NodeReport& x = first->second;
  if (b.empty()) return fate(a, x);
  const NodeReport& y = find(b)->second;
  const std::string edge = a + " -> " + b + ": ";
  if (!x.group.empty() && x.group == y.group) return edge + "fused in " + in_group(x.group);
  for (const EdgeReport& e : not_fused) {
    auto stands_for = [&](const std::string& from, const std::string& to) {
      return (e.from == from && e.to == to) || std::ranges::find(e.edges, std::pair{from, to}) != e.edges.end();
    };
    if (!stands_for(a, b) && !stands_for(b, a)) continue;
    const bool same = (e.from == a && e.to == b) || (e.from == b && e.to == a);
    return edge + (same ? "" : "as " + e.from + " -> " + e.to + ": ") + "not fused: " + e.reason + ": " + e.text +
           fmt::format("; {} between them, at most {} us to save", mb(e.bytes), us(e.could_save_us));
  }
  auto kernel = [](const std::string& name, const NodeReport& n) { return n.part_of.empty() ? name : n.part_of; };
  if (x.group.empty() && y.group.empty() && kernel(a, x) == kernel(b, y))
    return edge + "one op: " + kernel(a, x) + " stands for both";
  auto gone = [](const NodeReport& n) { return n.fate == "eliminated" || n.fate == "folded" || n.fate == "view"; };
  if (gone(x)) return edge + "no op is at its start: " + fate(a, x);
  if (gone(y)) return edge + "no op is at its end: " + fate(b, y);
  return edge + "no data goes from one to the other";
}

}  // namespace gaf
