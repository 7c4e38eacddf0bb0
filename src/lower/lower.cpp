// Which template writes a kernel function: the first that knows it. Reasons of templates that know it but cannot write
// it are kept for the answer "no".
#include "lower/lower.h"

#include "lower/lowering.h"
#include "lower/npu_tiles.h"

namespace gaf {

namespace {

using Template = Attempt (*)(const Graph&, const Target&);

// Heaviest op first: a template takes the function with everything around that op.
constexpr Template kTemplates[] = {lower_attention, lower_contraction, lower_conv, lower_depthwise,
                                   lower_pool,      lower_row,         lower_move, lower_pointwise};
// The same for targets whose statements work on tiles in local memories.
constexpr Template kTiledTemplates[] = {lower_tiled_contraction, lower_tiled_row};

std::span<const Template> templates(const Target& t) {
  if (works_on_tiles(t)) return kTiledTemplates;
  return kTemplates;
}

void verify(const Lowered& l, const Target& t) {
  std::string problems;
  for (const kir::KernelProblem& p : kir::verify_kernel(l.kernel, t))
    if (!p.warning) problems += p.text + "\n";
  GAF_CHECK(problems.empty()) << "template " << l.template_name << " wrote a wrong kernel:\n"
                              << problems << kir::print_kernel(l.kernel);
}

Verdict refuse_on_tiles(const Graph& fn, const Target& t) {
  for (const Node& n : fn.nodes)
    if (n.op != "input" && n.op != "constant")
      return Verdict::no("backend-limit", std::string(op_row(n).friendly) + " '" + n.name + "' has no kernel on target " +
                                              t.name + "; Softmax over the last axis and MatMul with a bias and Relu have");
  return Verdict::no("backend-limit", "nothing to compute");
}

}  // namespace

std::variant<Lowered, Verdict> lower(const Graph& fn, const Target& t) {
  std::optional<Verdict> no;
  for (const Template attempt : templates(t)) {
    Attempt a = attempt(fn, t);
    if (!a) continue;
    if (auto* done = std::get_if<Lowered>(&*a)) {
#ifndef NDEBUG
      verify(*done, t);
#else
      (void)verify;
#endif
      if (works_on_tiles(t)) done->kernel = kir::legalise(std::move(done->kernel), t);
      return std::move(*done);
    }
    if (!no) no = std::get<Verdict>(std::move(*a));
  }
  if (no) return std::move(*no);
  for (const Node& n : fn.nodes) {
    if (n.op == "input" || n.op == "constant") continue;
    const OpKind kind = op_row(n).kind;
    if (kind == OpKind::other)
      return Verdict::no("not-fusable-op", std::string(op_row(n).friendly) + " has no lowering");
  }
  if (works_on_tiles(t)) return refuse_on_tiles(fn, t);
  return Verdict::no("iteration-mismatch", "no kernel template fits these operators together");
}

}  // namespace gaf
