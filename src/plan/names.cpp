// What users read: friendly op names, kernel labels, kinds of groups.
#include <algorithm>
#include <cctype>

#include "plan/groups.h"

namespace gaf {
namespace {

// Add with a vector on the last or the channel axis.
bool bias_add(const Graph& g, const Node& n) {
  if (n.op != "Add") return false;
  auto wide = [](const Dims& d) { return std::count_if(d.begin(), d.end(), [](const Expr& e) { return !e.is(1); }); };
  if (wide(n.types[0].dims) < 2) return wide(n.types[0].dims) == 1 && std::any_of(n.args.begin(), n.args.end(), [&](Value v) { return constant(g, v) || attr_int(g.nodes[v.node], "const", 0); });
  return std::any_of(n.args.begin(), n.args.end(), [&](Value v) { return wide(g.type(v).dims) == 1; });
}

std::string label(const std::string& friendly) {
  if (friendly == "BiasAdd") return "bias";
  std::string s;
  for (char c : friendly)
    if (std::isalnum(static_cast<unsigned char>(c))) s += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

}  // namespace

std::string friendly_name(const Graph& g, const Node& n) {
  if (bias_add(g, n)) return "BiasAdd";
  if (n.op == "Mul" && std::any_of(n.args.begin(), n.args.end(), [&](Value v) { return v != kNoValue && constant(g, v) && constant(g, v)->numel() == 1; })) return "Scale";
  const OpRow* row = find_op(n.op);
  return row && !row->friendly.empty() ? std::string(row->friendly) : n.op;
}

std::string kernel_label(const Graph& g, const std::vector<uint32_t>& nodes) {
  std::vector<std::string> labels;
  for (uint32_t n : nodes)
    if (!alias_view(g.nodes[n])) labels.push_back(label(friendly_name(g, g.nodes[n])));
  if (labels.empty()) labels.push_back("copy");
  if (labels.size() > 6) {
    std::string middle = std::to_string(labels.size() - 5) + "ops";
    labels.erase(labels.begin() + 3, labels.end() - 2);
    labels.insert(labels.begin() + 3, middle);
  }
  std::string s;
  for (const std::string& l : labels) s += (s.empty() ? "" : "_") + l;
  return labels.size() > 1 ? s + "_fused" : s;
}

std::string group_kind(const Graph& g, const std::vector<uint32_t>& nodes) {
  int contractions = 0, convs = 0, reductions = 0;
  for (uint32_t n : nodes) {
    const Node& x = g.nodes[n];
    contractions += is_kind(x, OpKind::contraction);
    convs += is_kind(x, OpKind::conv);
    const OpRow* row = find_op(x.op);
    bool norm = row && row->kind == OpKind::composite;
    reductions += is_kind(x, OpKind::reduction) || norm || is_kind(x, OpKind::pool);
  }
  if (contractions >= 2) return "attention";
  if (contractions + convs > 1) return "mixed";
  return contractions ? "matmul" : convs ? "conv" : reductions ? "reduction" : "elementwise";
}

std::string without_names(std::string verdict) {
  for (size_t at; (at = verdict.find(" ''")) != std::string::npos;) verdict.erase(at, 3);
  return verdict;
}

}  // namespace gaf
