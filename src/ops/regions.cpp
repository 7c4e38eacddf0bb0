// Types of the regions of control-flow nodes: see regions.h.
#include "ops/regions.h"

namespace gaf {

size_t captures(const Node& n) {
  if (n.op == "If") return n.args.size() - 1;
  return static_cast<size_t>(attr_int(n, "captures", 0));
}

void infer_regions(Node& n, std::span<const Type> args, std::span<const std::optional<std::vector<Expr>>> known, std::vector<Sym>& syms) {
  const size_t own = args.size() - captures(n);
  for (auto& region : n.regions) {
    Graph g = *region;
    std::vector<std::vector<std::optional<std::vector<Expr>>>> values(g.nodes.size());
    const size_t inputs = g.num_inputs(), formal = inputs - captures(n);
    for (size_t i = 0; i < inputs; i++) {
      const bool captured = i >= formal;
      const size_t from = captured ? own + (i - formal) : i;
      values[i] = {std::nullopt};
      if (captured) {
        g.nodes[i].types = {args[from]};
        values[i] = {known[from]};
      } else if (n.op == "Loop") {
        // iteration number, condition, then the carried values, whose types are those they start with
        if (i == 0) g.nodes[i].types = {{DType::i64, {}}};
        else if (i == 1) g.nodes[i].types = {{DType::b1, {}}};
        else g.nodes[i].types = {args[i]};
      }
    }
    infer_nodes(g, syms, values);
    g.syms = syms;
    region = std::make_shared<const Graph>(std::move(g));
  }
}

}  // namespace gaf
