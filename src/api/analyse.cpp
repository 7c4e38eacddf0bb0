// A part of a model as one kernel: the rewrites of the pipeline, then everything that is left in one function for
// `lower`. Where only changes of layout at the border stand in the way of that, the parts become phases of one kernel.
#include <algorithm>
#include <cmath>

#include "api/internal.h"
#include "build.h"
#include "ops/canonical.h"
#include "ops/op.h"
#include "plan/groups.h"
#include "steps.h"

namespace gaf {
namespace {

std::vector<int64_t> hinted_sizes(const kir::Kernel& k, const Graph& g) {
  std::vector<int64_t> sizes;
  for (const int id : kir::size_symbols(k)) {
    const std::string& name = k.syms[static_cast<size_t>(id)].name;
    const auto sym = std::find_if(g.syms.begin(), g.syms.end(), [&](const Sym& s) { return s.name == name; });
    sizes.push_back(sym != g.syms.end() && sym->hint > 0 ? sym->hint : 128);
  }
  return sizes;
}

bool only_views(const Graph& fn) {
  return std::all_of(fn.nodes.begin(), fn.nodes.end(),
                     [](const Node& n) { return n.op == "input" || n.op == "constant" || is_kind(n, OpKind::view); });
}

class Analyser {
 public:
  Analyser(Analysis& a, int workers) : a_(a), workers_(workers), lowerings_(a.target) {}

  Verdict run() {
    RewriteLog log;
    const Graph as_given = infer(canonicalise(infer(a_.source))).graph;
    const Graph g = run_steps(as_given, 2, log, a_.target);
    const Groups groups(g, FusionConfig{});
    std::vector<uint32_t> nodes;
    for (uint32_t i = 0; i < g.nodes.size(); i++) {
      if (groups.role(i) == Role::leaf) continue;
      if (groups.role(i) == Role::host) return Verdict::no("not-fusable-op", groups.refusal(i));
      nodes.push_back(i);
    }
    for (size_t o = 0; o < g.outputs.size(); o++) {
      const Value v = g.outputs[o].value;
      if (groups.role(v.node) == Role::leaf)
        return Verdict::no("graph-output",
                           "'" + g.outputs[o].name + "' is an input or a constant: there is nothing to compute");
      for (size_t p = 0; p < o; p++)
        if (g.outputs[p].value == v)
          return Verdict::no("graph-output",
                             "'" + g.outputs[p].name + "' and '" + g.outputs[o].name + "' are the same value");
    }
    std::vector<uint32_t> given;  // a name that tells what the caller asked for, not what became of it
    for (uint32_t i = 0; i < as_given.nodes.size(); i++)
      if (as_given.nodes[i].op != "input" && !as_given.nodes[i].args.empty()) given.push_back(i);
    a_.kernel_name = kernel_label(as_given, given);
    price_apart(groups, nodes);
    const Verdict no = whole(g, groups, nodes);
    // A layout change that rides on the reads of a heavy kernel can cost more than a phase of its own.
    if (!no || a_.predicted_us > a_.unfused_us) in_phases(g);
    if (a_.kernel.body.empty()) return no;
    a_.kernel.name = a_.kernel_name;
    return Verdict::yes();
  }

 private:
  Analysis& a_;
  int workers_;  // 0: all cores of the target
  Lowerings lowerings_;

  void price_apart(const Groups& groups, const std::vector<uint32_t>& nodes) {
    for (const uint32_t n : nodes) {
      if (alias_view(groups.g.nodes[n])) continue;
      const Graph fn = groups.function({n}, "k");
      const auto price = lowerings_.price(fn, workers_);
      const std::optional<Price> launch = launch_price(fn, a_.target);
      a_.unfused_us += std::holds_alternative<Price>(price) ? std::get<Price>(price).us : launch ? launch->us : NAN;
    }
  }

  Verdict whole(const Graph& g, const Groups& groups, const std::vector<uint32_t>& nodes) {
    Graph fn = groups.function(nodes, a_.kernel_name);
    // The part's own order of outputs.
    const std::vector<Value> inputs = groups.inputs(nodes), made = groups.outputs(nodes);
    std::vector<Output> ordered;
    for (const Output& o : g.outputs)
      ordered.push_back(fn.outputs[static_cast<size_t>(std::find(made.begin(), made.end(), o.value) - made.begin())]);
    fn.outputs = std::move(ordered);
    const auto& made_kernel = lowerings_.get(fn);
    if (const Verdict* no = std::get_if<Verdict>(&made_kernel)) return *no;
    const Lowered& l = std::get<Lowered>(made_kernel);
    std::vector<Analysis::Argument> args;
    for (const KernelArg& arg : l.args) {
      if (arg.kind == KernelArg::input)
        args.push_back(argument(g, inputs[arg.index], arg.pack));
      else if (arg.kind == KernelArg::output)
        args.push_back({.output = static_cast<int>(arg.index)});
    }
    offer(l.kernel, std::move(args), g);
    return Verdict::yes();
  }

  void in_phases(const Graph& g) {
    FusionConfig config;
    config.strategy = Strategy::aggressive;
    const Plan plan =
        plan_kernels(g, a_.target, config, {[&](const Graph& fn) { return lowerings_.price(fn, workers_); }});
    std::vector<const Lowered*> calls;
    int computing = 0;
    for (const Node& n : plan.graph.nodes) {
      if (n.op != "call") continue;
      const Graph& fn = plan.graph.kernels[static_cast<size_t>(n.callee)];
      computing += !only_views(fn);
      const auto& made = lowerings_.get(fn);
      if (!std::holds_alternative<Lowered>(made)) return;
      calls.push_back(&std::get<Lowered>(made));
    }
    if (computing != 1) return;
    std::optional<Chained> chained = chain_kernels(plan.graph, calls);
    if (!chained) return;
    std::vector<Analysis::Argument> args;
    int last = -1;  // `launch` takes outputs in the part's own order
    for (const Chained::Param& p : chained->params) {
      if (p.temp) continue;
      int output = -1;
      for (size_t o = 0; o < plan.graph.outputs.size(); o++)
        if (plan.graph.outputs[o].value == p.value) output = static_cast<int>(o);
      if (output >= 0 && output != last + 1) return;
      if (output >= 0)
        args.push_back({.output = last = output});
      else
        args.push_back(argument(plan.graph, p.value, p.pack));
    }
    for (const kir::KernelProblem& p : kir::verify_kernel(chained->kernel, a_.target))
      GAF_CHECK(p.warning) << "phases of " << a_.kernel_name << ": " << p.text << "\n"
                           << kir::print_kernel(chained->kernel);
    offer(std::move(chained->kernel), std::move(args), g);
  }

  // Takes the kernel if it is the first or faster than the one before.
  void offer(kir::Kernel k, std::vector<Analysis::Argument> args, const Graph& g) {
    const kir::Work w = kir::analyse(k, a_.target, hinted_sizes(k, g), workers_ > 0 ? workers_ : kir::workers_of(k, a_.target));
    if (!a_.kernel.body.empty() && w.us >= a_.predicted_us) return;
    a_.kernel = std::move(k), a_.args = std::move(args);
    a_.predicted_us = w.us, a_.regs = w.regs_added, a_.ub_bytes = 0;
    for (const Mem m : {Mem::scratch, Mem::ub})
      if (const auto it = w.peak.find(m); it != w.peak.end()) a_.ub_bytes += it->second;
  }

  // What the kernel reads: one of the part's inputs, or a weight, re-laid.
  static Analysis::Argument argument(const Graph& g, Value v, const std::optional<Pack>& pack) {
    if (const Tensor* c = constant(g, v)) return {.weight = pack ? apply(*pack, *c) : *c};
    return {.input = static_cast<int>(v.node)};
  }
};

}  // namespace

Analysis analyse_part(Graph source, const Target& t) {
  Analysis a;
  a.source = std::move(source), a.target = t;
  try {
    a.verdict = Analyser(a, t.kind == "cpu" ? default_threads() : 0).run();
  } catch (const InternalError& e) {
    a.verdict = Verdict::no("compile-failed", e.what());
  }
  return a;
}

}  // namespace gaf
