// Joins the families of the op table and looks rows up by name.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "ops/elementwise.h"
#include "ops/rows.h"

namespace gaf {

std::span<const OpRow> all_ops() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all;
    for (auto family :
         {pointwise_rows, logic_rows,       activation_rows, convert_rows,  reduction_rows, softmax_rows,
          norm_rows,      contraction_rows, conv_rows,       pool_rows,     shape_rows,     move_rows,
          index_rows,     scatter_rows,     order_rows,      resize_rows,   control_rows,   recurrent_rows,
          attention_rows, state_space_rows, loss_rows,       quantize_rows, einsum_rows,    vision_rows,
          patch_rows,     signal_rows,      draw_rows})
      for (const OpRow& r : family()) all.push_back(r);
    return all;
  }();
  return rows;
}

// Of domain com.microsoft, only ops that mean there what our row means.
static bool microsoft(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {"Gelu", "FastGelu", "BiasGelu", "QuickGelu",
                                                             "FusedMatMul"};
  return names.contains(name);
}

const OpRow* find_op(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const OpRow*> m;
    for (const OpRow& r : all_ops()) m.emplace(r.name, &r);
    return m;
  }();
  constexpr std::string_view onnx = "ai.onnx.", contrib = "com.microsoft.";
  if (name.starts_with(onnx)) name.remove_prefix(onnx.size());
  if (name.starts_with(contrib)) {
    name.remove_prefix(contrib.size());
    if (!microsoft(name)) return nullptr;
  }
  auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

const OpRow& op_row(const Node& n) {
  if (const OpRow* r = find_op(n.op)) return *r;
  throw UserError("GAF4001", fmt::format("operator {} has no implementation", n.op)).at(n.name, n.op);
}

bool is_kind(const Node& n, OpKind k) {
  if (n.op == "input" || n.op == "constant" || n.op == "call") return false;
  const OpRow* r = find_op(n.op);
  return r && r->kind == k;
}

static double parameter(const Node& n, std::string_view key, double fallback) {
  auto it = n.attrs.find(std::string(key));
  if (it == n.attrs.end()) return fallback;
  if (const auto* i = std::get_if<int64_t>(&it->second)) return static_cast<double>(*i);
  return attr_float(n, std::string(key), fallback);
}

std::vector<double> parameters(const Node& n) {
  std::vector<double> out;
  for (const auto& [key, fallback] : op_row(n).defaults) out.push_back(parameter(n, key, fallback));
  return out;
}

Ints result_shape(const EvalContext& c) {
  std::vector<Ints> all;
  for (size_t i = 0; i < c.args.size(); i++)
    if (has(c, i)) all.push_back(c.args[i]->dims);
  return broadcast_shape(c.node, all);
}

}  // namespace gaf
