// Types of the regions of control-flow nodes: see regions.h.
#include "ops/regions.h"

#include <fmt/format.h>

namespace gaf {

size_t captures(const Node& n) {
  if (n.op == "If") return n.args.size() - 1;
  return static_cast<size_t>(attr_int(n, "captures", 0));
}

namespace {

using Values = std::vector<std::vector<std::optional<std::vector<Expr>>>>;

// Carried values of a Loop: dims that the body changes become symbols, the same in and out. True if any did.
bool generalise(Graph& body, size_t carried, std::vector<Sym>& syms) {
  bool changed = false;
  for (size_t i = 0; i < carried; i++) {
    Dims& in = body.nodes[i + 2].types[0].dims;
    const Dims& out = body.type(body.outputs[i + 1].value).dims;
    if (in.size() != out.size()) throw UserError("GAF3101", "a carried value changes its rank");
    for (size_t d = 0; d < in.size(); d++) {
      if (in[d] == out[d]) continue;
      const auto id = static_cast<int>(syms.size());
      syms.push_back({"u" + std::to_string(id), 0, 1 << 20, 0});
      in[d] = Expr::sym(id);
      changed = true;
    }
  }
  return changed;
}

// Formal inputs of a body: Loop has the iteration number, the condition and the carried values; Scan its states and
// slices.
void type_formals(const Node& n, Graph& g, std::span<const Type> args, size_t formal) {
  const auto scanned = static_cast<size_t>(attr_int(n, "num_scan_inputs", 0));
  const auto axes = attr_ints(n, "scan_input_axes");
  for (size_t i = 0; i < formal; i++) {
    Type& t = g.nodes[i].types.at(0);
    if (n.op == "Loop") {
      t = i == 0 ? Type{DType::i64, {}} : i == 1 ? Type{DType::b1, {}} : args[i];
    } else if (n.op == "Scan") {
      t = args[i];
      if (i < formal - scanned || t.dims.empty()) continue;
      const size_t k = i - (formal - scanned);
      int64_t axis = k < axes.size() ? axes[k] : 0;
      if (axis < 0) axis += static_cast<int64_t>(t.dims.size());
      t.dims.erase(t.dims.begin() + axis);
    }
  }
}

}  // namespace

void infer_regions(Node& n, std::span<const Type> args, std::span<const std::optional<std::vector<Expr>>> known,
                   std::vector<Sym>& syms) {
  const size_t own = args.size() - captures(n);
  const auto& condition = known.empty() ? std::nullopt : known[0];
  for (auto& region : n.regions) {
    // the branch of an If that cannot be taken may be nonsense for these shapes
    if (n.op == "If" && condition && condition->size() == 1 && (*condition)[0].is_num() &&
        (&region == &n.regions[0]) == (*condition)[0].is(0))
      continue;
    Graph g = *region;
    const size_t inputs = g.num_inputs();
    if (inputs < captures(n)) throw UserError("GAF3101", "a region has too few inputs").at(n.name, n.op);
    const size_t formal = inputs - captures(n);
    if (formal > own)
      throw UserError("GAF3101", fmt::format("the body takes {} inputs, {} are given", formal, own)).at(n.name, n.op);
    type_formals(n, g, args, formal);
    for (int round = 0; round < 3; round++) {
      Values values(g.nodes.size());
      for (size_t i = 0; i < inputs; i++) {
        values[i] = {std::nullopt};
        if (i < formal) continue;
        const size_t from = own + (i - formal);
        g.nodes[i].types = {args[from]};
        values[i] = {known[from]};
      }
      infer_nodes(g, syms, values);
      if (n.op != "Loop" || formal < 2 || g.outputs.size() < formal - 1 || !generalise(g, formal - 2, syms)) break;
    }
    g.syms = syms;
    region = std::make_shared<const Graph>(std::move(g));
  }
}

}  // namespace gaf
