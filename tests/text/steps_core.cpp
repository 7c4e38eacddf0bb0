// Steps over whole graphs: each rewrite of the pipeline by its name, planning, and lowering of one kernel function.
#include <fmt/format.h>

#include "base/error.h"
#include "build.h"
#include "ops/op.h"
#include "plan/plan.h"
#include "steps.h"
#include "text_steps.h"

namespace gaf::text {
namespace {

std::string option(const Options& o, const std::string& key, const std::string& fallback) {
  auto it = o.find(key);
  return it == o.end() ? fallback : it->second;
}

Graph typed(const std::string& input) { return infer(parse_graph(input)).graph; }

Result checked(const Graph& g, const RewriteLog& log) {
  std::string text = print_graph(g), rewrites;
  for (const RewriteLog::Entry& e : log.entries) rewrites += fmt::format("{}: {}: {}\n", e.name, fmt::join(e.nodes, " "), e.effect);
  Result r{{{"graph", text}, {"rewrites", rewrites}}, {}};
  for (const gaf::Problem& p : verify_graph(g)) r.problems.push_back({0, p.text});
  return r;
}

// The plan is IR: the graph with kernel functions and calls. `report`: groups and refused edges, without their numbers, which
// change with every better price.
Result plan(const std::string& input, const Options& options) {
  FusionConfig config;
  std::string strategy = option(options, "strategy", "balanced");
  config.strategy = strategy == "conservative" ? Strategy::conservative : strategy == "aggressive" ? Strategy::aggressive : Strategy::balanced;
  config.level = std::stoi(option(options, "level", "2"));
  if (options.count("depth")) config.max_fusion_depth = std::stoi(option(options, "depth", ""));
  if (options.count("threshold")) config.cost_threshold = std::stod(option(options, "threshold", ""));
  Lowerings lowerings(load_target(option(options, "target", "x86-64-avx2")));
  PlanServices services{[&](const Graph& fn) { return lowerings.price(fn, 1); }};
  Plan p = plan_kernels(typed(input), lowerings.target(), config, services);
  std::string report;
  for (const GroupReport& g : p.groups) report += fmt::format("{} {}: {}\n", g.id, g.kernel, fmt::join(g.nodes, " + "));
  for (const EdgeReport& e : p.not_fused) report += fmt::format("{} -> {}: {}\n", e.from, e.to, e.reason);
  return {{{"plan", print_graph(p.graph)}, {"report", report}}, {}};
}

// The whole graph as one kernel function.
Result lower_one(const std::string& input, const Options& options) {
  Graph fn = typed(input);
  auto lowered = lower(fn, load_target(option(options, "target", "x86-64-avx2")));
  if (auto* no = std::get_if<Verdict>(&lowered)) return {{{"refused", no->reason + ": " + no->text + "\n"}}, {}};
  const Lowered& l = std::get<Lowered>(lowered);
  return {{{"kernel", kir::print_kernel(l.kernel)}, {"template", std::string(l.template_name) + "\n"}}, {}};
}

}  // namespace

void add_steps_core(Steps& all) {
  for (const gaf::Step& s : gaf::steps())
    all[std::string(s.name)] = [run = s.run](const std::string& input, const Options&) {
      RewriteLog log;
      return checked(run(typed(input), log), log);
    };
  all["plan"] = plan;
  all["lower"] = lower_one;
  all["infer"] = [](const std::string& input, const Options&) { return Result{{{"graph", print_graph(typed(input))}}, {}}; };
}

}  // namespace gaf::text
