// Kernels as text for an NPU: each kernel function of a planned model is lowered, gets addresses and synchronisation,
// is checked and printed. Nothing is written here; either all texts come back or everything that is in the way.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "build.h"
#include "codegen/npu/npu.h"
#include "compile.h"
#include "ops/op.h"
#include "plan/groups.h"

namespace gaf {
namespace {

std::string_view spelling(NpuBackend b) { return b == NpuBackend::ascendc ? "ascendc" : "pto"; }

struct Form {
  NpuLanguage language;
  const char* suffix;
};
std::vector<Form> forms(NpuBackend b) {
  if (b == NpuBackend::ascendc) return {{NpuLanguage::ascendc, ".cpp"}};
  return {{NpuLanguage::pto, ".cpp"}, {NpuLanguage::pto_text, ".pto"}};
}

void need_numbers(const Graph& g) {
  std::vector<ErrorInfo> free;
  for (size_t i = 0; i < g.num_inputs(); i++)
    for (const Expr& d : g.nodes[i].types[0].dims)
      if (!d.is_num())
        free.push_back(
            {.code = "GAF3105",
             .message = fmt::format("input '{}' has free dimension '{}'", g.nodes[i].name,
                                    d.str([&](int s) { return g.syms[static_cast<size_t>(s)].name; })),
             .remedy = fmt::format("give --shape {}:D0,D1,... or --dim NAME=N; NPU kernels are for fixed sizes",
                                   g.nodes[i].name)});
  if (!free.empty()) throw UserError(std::move(free));
}

// Ops that no kernel took, with the planner's reason, all at once.
void need_kernels(const Planned& p, NpuBackend b) {
  std::vector<ErrorInfo> faults;
  for (const Node& n : p.graph.nodes) {
    if (n.op == "input" || n.op == "constant" || n.op == "call" || alias_view(n)) continue;
    if (!n.regions.empty()) {
      faults.push_back({.code = "GAF4003",
                        .message = fmt::format("control flow '{}' on target {}", n.op, p.target.name),
                        .node = n.name,
                        .op_type = n.op});
      continue;
    }
    std::string why;
    for (const auto& [name, node] : p.report.nodes)
      if (name == n.name) why = node.reason;
    faults.push_back(
        {.code = "GAF4002",
         .message =
             fmt::format("{} is not supported by back end {}{}", n.op, spelling(b), why.empty() ? "" : ": " + why),
         .node = n.name,
         .op_type = n.op,
         .remedy = "take the op out of the model, or write one of the other kernels with --group; target host "
                   "runs the whole model"});
  }
  if (!faults.empty()) throw UserError(std::move(faults));
}

std::string value_name(const Graph& g, Value v) {
  for (const Output& o : g.outputs)
    if (o.value == v) return o.name;
  return g.nodes[v.node].name;
}

EmittedKernel emit_one(const Graph& g, uint32_t call, const Lowered& l, const Target& t, NpuBackend b) {
  const Node& n = g.nodes[call];
  EmittedKernel out;
  out.name = n.name;
  kir::Kernel k = l.kernel;
  k.name = n.name;
  try {
    k = finish_npu_kernel(std::move(k), t);
    for (const Form& f : forms(b)) out.files.emplace_back(n.name + f.suffix, emit_npu(k, t, f.language));
  } catch (const UserError& e) {
    std::vector<ErrorInfo> all = e.all();
    for (ErrorInfo& i : all) {
      const std::string named = fmt::format("kernel {}", n.name);
      if (!i.message.starts_with(named)) i.message = named + ": " + i.message;
      i.message = fmt::format("back end {}: {}", spelling(b), i.message);
      if (i.node.empty() && !n.origins.empty()) i.node = n.origins.front();
    }
    throw UserError(std::move(all));
  }
  const std::vector<int> params = kir::parameters(k);
  for (size_t i = 0; i < params.size(); i++) {
    const kir::Buf& buf = k.bufs[static_cast<size_t>(params[i])];
    const KernelArg& arg = l.args[i];
    const bool output = arg.kind == KernelArg::output;
    EmittedKernel::Buffer made{
        value_name(g, output ? Value{call, arg.index} : n.args[arg.index]), output, buf.type, {}};
    for (const Expr& d : buf.shape) made.dims.push_back(d.num());
    out.buffers.push_back(std::move(made));
  }
  const kir::Work w = kir::analyse(k, t, {}, kir::workers_of(k, t));
  for (const auto& [mem, bytes] : w.peak) out.peak_bytes.emplace_back(kMemName[static_cast<int>(mem)], bytes);
  for (const auto& [edge, bytes] : w.moved) {  // the analysis weighs samples of long loops: whole but for rounding
    if (edge.first == Mem::gm) out.gm_read_bytes += std::llround(bytes);
    if (edge.second == Mem::gm) out.gm_write_bytes += std::llround(bytes);
  }
  out.predicted_us = w.us;
  out.blocks = npu_blocks(k, t);
  return out;
}

}  // namespace

void need_npu(const Target& t, NpuBackend b) {
  if (t.kind != "npu")
    throw UserError("GAF1102",
                    fmt::format("back end {} writes kernels for an NPU; target {} is a CPU", spelling(b), t.name),
                    "add --target ascend910b, or ascend910b1 to ascend910b4");
}

kir::Kernel finish_npu_kernel(kir::Kernel k, const Target& t) {
  k = kir::legalise(std::move(k), t);
  kir::place(k, t);
  k = kir::insert_sync(std::move(k), t);
  std::vector<ErrorInfo> faults;
  for (const kir::KernelProblem& p : kir::verify_kernel(k, t))
    if (!p.warning) faults.push_back({.code = "GAF5004", .message = p.text, .line = p.line});
  if (!faults.empty()) throw UserError(std::move(faults));
  return k;
}

std::vector<EmittedKernel> emit_kernels(const Planned& p, NpuBackend b, const std::string& only) {
  need_npu(p.target, b);
  need_numbers(p.model.graph);
  if (only.empty()) need_kernels(p, b);
  Lowerings lowerings(p.target);
  std::vector<EmittedKernel> all;
  for (uint32_t i = 0; i < p.graph.nodes.size(); i++) {
    const Node& n = p.graph.nodes[i];
    if (n.op != "call" || (!only.empty() && n.name != only)) continue;
    const auto& made = lowerings.get(p.graph.kernels[static_cast<size_t>(n.callee)]);
    const Lowered* l = std::get_if<Lowered>(&made);
    GAF_CHECK(l) << "planned kernel " << n.name << " cannot be lowered: " << std::get<Verdict>(made).text;
    all.push_back(emit_one(p.graph, i, *l, p.target, b));
    for (const GroupReport& g : p.report.groups)
      if (g.kernel == n.name) all.back().group = g.id;
  }
  return all;
}

}  // namespace gaf
