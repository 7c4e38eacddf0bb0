// The pipeline: load -> rewrite -> plan -> build -> run. Each stage is one function of another file; this one puts them
// in order and keeps the record that reports are made of.
#include "compile.h"

#include <algorithm>
#include <map>
#include <set>

#include "account.h"
#include "build.h"
#include "frontend/gaf_text.h"
#include "frontend/onnx.h"
#include "ops/op.h"
#include "runtime/cache.h"
#include "steps.h"

namespace gaf {
namespace {

// Rewriting may leave several nodes under the name of one node of the model (a convolution and the transposes around
// it). The one that is that op keeps the name, else one that is no view; the others are told apart, as every record
// names nodes.
void make_names_unique(Graph& g, const Graph& model) {
  std::map<std::string, std::string> ops;
  for (const Node& n : model.nodes)
    if (in_file(n)) ops[n.name] = n.op;
  std::map<std::string, std::vector<uint32_t>> users;
  for (uint32_t i = 0; i < g.nodes.size(); i++)
    if (in_file(g.nodes[i])) users[g.nodes[i].name].push_back(i);
  std::set<std::string> taken;
  for (const auto& [name, nodes] : users) taken.insert(name);
  for (const auto& [name, nodes] : users) {
    auto op = ops.find(name);
    auto same_op = [&](uint32_t i) { return op != ops.end() && g.nodes[i].op == op->second; };
    auto no_view = [&](uint32_t i) { return !is_kind(g.nodes[i], OpKind::view); };  // a pattern's composite
    uint32_t keeper = nodes.back();
    if (auto it = std::ranges::find_if(nodes, same_op); it != nodes.end())
      keeper = *it;
    else if (auto last = std::find_if(nodes.rbegin(), nodes.rend(), no_view); last != nodes.rend())
      keeper = *last;
    for (uint32_t i : nodes) {
      if (i == keeper && !name.empty()) continue;
      Node& n = g.nodes[i];
      if (n.origins.empty() && !name.empty()) n.origins = {name};
      std::string other = name + (name.empty() ? "" : "/") + n.op;
      for (int k = 1; !taken.insert(other).second; k++)
        other = name + (name.empty() ? "" : "/") + n.op + "_" + std::to_string(k);
      n.name = other;
    }
  }
}

// A file that was fused before lists its groups: those that are planned again keep their names, whose numbers would
// otherwise follow the order of the nodes in the file.
void restore_names(const Model& m, Graph& g, Report& r) {
  std::map<std::set<std::string>, std::string> stored;
  for (const FusedGroup& f : fused_groups(m.graph)) stored[{f.nodes.begin(), f.nodes.end()}] = f.name;
  if (stored.empty()) return;
  std::map<std::string, std::string> renamed;  // kernel as planned -> its name
  std::set<std::string> taken;
  for (const GroupReport& x : r.groups)
    if (auto it = stored.find({x.original_nodes.begin(), x.original_nodes.end()});
        it != stored.end() && taken.insert(it->second).second)
      renamed[x.kernel] = it->second;
  for (const GroupReport& x : r.groups) {
    if (renamed.contains(x.kernel)) continue;
    std::string name = x.kernel;
    for (int k = 1; !taken.insert(name).second; k++) name = x.kernel + "_" + std::to_string(k);
    renamed[x.kernel] = name;
  }
  auto now = [&](const std::string& name) {
    auto it = renamed.find(name);
    return it == renamed.end() ? name : it->second;
  };
  for (GroupReport& x : r.groups) x.kernel = now(x.kernel);
  for (Node& n : g.nodes)
    if (n.op == "call") n.name = now(n.name);
  for (Graph& k : g.kernels) k.name = now(k.name);
}

Planned plan_with(const Model& m, const Settings& s, Lowerings& lowerings) {
  Planned p;
  p.model = m, p.config = s.config, p.target = lowerings.target();
  RewriteLog log;
  Graph g = run_steps(m.graph, s.config.level, log, p.target);
  make_names_unique(g, m.graph);
  const bool cpu = p.target.kind == "cpu";
  const int threads = s.config.threads > 0 ? s.config.threads : default_threads();
  // Priced for all cores of the target, whatever the thread count: the plan decides what is computed in one expression,
  // and with it the last bit, which no thread count may change.
  PlanServices services{[&](const Graph& fn) { return lowerings.price(fn, 0); }};
  Plan plan = plan_kernels(g, p.target, s.config, services);

  Report& r = p.report;
  r.model = m.name, r.target = p.target.name, r.threads = cpu ? threads : p.target.cores, r.simulated = !cpu,
  r.settings = s.values;
  r.totals = plan.totals, r.groups = plan.groups, r.not_fused = plan.not_fused;
  r.totals.ops_before = num_ops(m.graph);
  for (const RewriteLog::Entry& e : log.entries) r.rewrites.push_back({e.name, e.effect, e.nodes});
  for (const std::string& w : m.warnings) r.warnings.push_back({"", w, ""});
  for (const std::string& w : s.warnings) r.warnings.push_back({"", w, ""});
  for (const Sym& sym : m.graph.syms)
    r.guards.push_back({sym.name + " priced at " + std::to_string(sym.hint), "range"});
  r.graph_hash = hash_key(print_graph(m.graph));
  account_for_nodes(m, g, plan, r);
  account_for_edges(m, g, r);
  restore_names(m, plan.graph, r);
  p.graph = std::move(plan.graph);
  return p;
}

std::vector<FusedGroup> groups_to_write(const Planned& p) {
  std::vector<FusedGroup> groups;
  for (const GroupReport& g : p.report.groups)
    if (!g.original_nodes.empty())
      groups.push_back({g.kernel, g.original_nodes, g.why, g.predicted_us.before - g.predicted_us.after});
  std::sort(groups.begin(), groups.end(), [](const FusedGroup& a, const FusedGroup& b) { return a.name < b.name; });
  return groups;
}

std::map<std::string, std::string> metadata() { return {{"gaf.version", GAF_VERSION}}; }

FileBytes original(const Model& m) {
  if (m.onnx) return hold(m.onnx);
  if (m.path.empty() || m.path.ends_with(".gaf"))
    throw UserError("GAF1102", "only a model that came as ONNX can be written as ONNX", "save it as .gaf");
  return map_file(m.path);
}

}  // namespace

Planned plan_model(const Model& m, const Settings& s) {
  Lowerings lowerings(load_target(s.config.target));
  return plan_with(m, s, lowerings);
}

std::string fused_onnx(const Planned& p) {
  FusedOnnx f = write_fused_onnx(original(p.model), p.model.folder, groups_to_write(p), metadata());
  if (!f.data.empty())
    throw UserError("GAF8002", "the model is too large for one file",
                    "save it to a path: weights then go into a file beside it");
  return f.bytes;
}

std::vector<std::string> save_model(const Planned& p, const std::string& path) {
  if (path.ends_with(".gaf")) {
    write_gaf_text(p.graph, path);
    return {};
  }
  if (!path.ends_with(".onnx"))
    throw UserError("GAF1102", "cannot write '" + path + "': unknown suffix", "use .onnx or .gaf");
  return save_fused_onnx(path, original(p.model), p.model.folder, groups_to_write(p), metadata());
}

struct CompiledModel::State {
  Planned planned;
  Stats stats;
  std::vector<std::pair<std::string, std::string>> sources;
  std::unique_ptr<Executor> executor;
};

CompiledModel::CompiledModel(const Model& m, const Settings& s) : state_(std::make_unique<State>()) {
  Lowerings lowerings(load_target(s.config.target));
  if (!host_runs(lowerings.target()))
    throw UserError("GAF6005", "this machine does not run code for target " + lowerings.target().name,
                    lowerings.target().kind == "npu"
                        ? "choose target host; for this one there are predictions (explain, fuse) and kernels as text "
                          "(gaf emit --backend ascendc|pto)"
                        : "choose target host, or ask only for predictions (explain, fuse)");
  State& st = *state_;
  st.planned = plan_with(m, s, lowerings);
  for (const Node& n : st.planned.graph.nodes)
    if (n.op != "input" && n.op != "constant" && n.op != "call") {
      const OpRow* row = find_op(n.op);
      if (!row || !row->eval)
        throw UserError(ErrorInfo{.code = "GAF4001",
                                  .message = "operator " + n.op + " has no implementation",
                                  .node = n.name,
                                  .op_type = n.op,
                                  .remedy = "register it, or replace it in the model"});
      if (s.config.strict && row->kind != OpKind::view && n.op != "HostShape")
        throw UserError(ErrorInfo{.code = "GAF4002",
                                  .message = n.op + " has no lowering and would run as extern; --strict forbids that",
                                  .node = n.name,
                                  .op_type = n.op});
    }
  Report& r = st.planned.report;
  Built b = s.config.enable_superkernel ? build(st.planned, lowerings, r) : build_reference(st.planned.graph);
  st.stats = b.stats, st.sources = std::move(b.sources);
  b.plan.memory_limit = s.config.max_memory;
  st.executor = std::make_unique<Executor>(std::move(b.plan), s.config.threads);
  r.totals.compile_ms = b.stats.compile_ms, r.totals.compiled = b.stats.compiled,
  r.totals.cache_hits = b.stats.cache_hits;
  r.totals.externs = b.stats.externs;
}
CompiledModel::~CompiledModel() = default;

const Planned& CompiledModel::planned() const { return state_->planned; }
const Report& CompiledModel::report() const { return state_->planned.report; }
const std::vector<std::pair<std::string, std::string>>& CompiledModel::sources() const { return state_->sources; }

std::vector<std::string> CompiledModel::input_names() const {
  std::vector<std::string> names;
  const Graph& g = state_->planned.graph;
  for (size_t i = 0; i < g.num_inputs(); i++) names.push_back(g.nodes[i].name);
  return names;
}
std::vector<std::string> CompiledModel::output_names() const {
  std::vector<std::string> names;
  for (const Output& o : state_->planned.graph.outputs) names.push_back(o.name);
  return names;
}
std::vector<Type> CompiledModel::input_types() const {
  std::vector<Type> types;
  const Graph& g = state_->planned.graph;
  for (size_t i = 0; i < g.num_inputs(); i++) types.push_back(g.nodes[i].types[0]);
  return types;
}

RunInfo CompiledModel::run(std::span<const Tensor> inputs, std::vector<Tensor>& out) {
  const Graph& g = state_->planned.graph;
  if (inputs.size() != g.num_inputs())
    throw UserError("GAF3103", "the model needs " + std::to_string(g.num_inputs()) + " inputs, got " +
                                   std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); i++)
    if (inputs[i].dtype != g.nodes[i].types[0].dtype)
      throw UserError("GAF3107",
                      "input '" + g.nodes[i].name + "': dtype " + std::string(long_name(inputs[i].dtype)) + " given, " +
                          std::string(long_name(g.nodes[i].types[0].dtype)) + " expected",
                      "convert the array; there are no silent casts");
  return state_->executor->run(inputs, out);
}

Stats CompiledModel::stats() const {
  Stats s = state_->stats;
  s.allocations = state_->executor->allocations();
  return s;
}

std::vector<std::pair<std::string, double>> CompiledModel::profile(std::span<const Tensor> inputs) {
  std::vector<double> us = state_->executor->profile(inputs);
  std::vector<std::pair<std::string, double>> named;
  const RunPlan& plan = state_->executor->plan();
  for (size_t i = 0; i < us.size() && i < plan.steps.size(); i++)
    named.push_back({plan.steps[i].kernel ? plan.steps[i].kernel->name : plan.steps[i].host->name, us[i]});
  return named;
}

std::unique_ptr<CompiledModel> compile_model(const Model& m, const Settings& s) {
  return std::make_unique<CompiledModel>(m, s);
}

}  // namespace gaf
