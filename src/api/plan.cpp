// The step-by-step part of the public interface up to the kernel's text: analysis, specialisation, budget.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/internal.h"
#include "codegen/npu/npu.h"
#include "frontend/gaf_text.h"

namespace gaf {
namespace {

// A plan that is no kernel has no text and no usage.
const Analysis& kernel_of(const v0::FusionPlan& p) {
  const Analysis& a = *v0::Access::of(p).analysis;
  if (!a.verdict.ok)
    throw UserError(
        ErrorInfo{.code = "GAF5001",
                  .message = fmt::format("these nodes are not one kernel: {}: {}", a.verdict.reason, a.verdict.text),
                  .remedy = "take fewer or other nodes; FusionPlan::explanation() says what is in the way"});
  return a;
}

std::vector<v0::ValueInfo> inputs_of(const Graph& g) {
  std::vector<v0::ValueInfo> all;
  for (size_t i = 0; i < g.num_inputs(); i++) all.push_back(value_info(g.nodes[i].name, g.nodes[i].types[0], g));
  return all;
}

// A dtype or rank that differs is told with both sides, as for the inputs of a run.
void check_input(const Graph& g, const Node& input, const v0::Shape& shape, v0::DataType dtype) {
  const Type& t = input.types[0];
  bool fits = shape.size() == t.dims.size() && own_dtype(dtype) == t.dtype;
  for (size_t d = 0; fits && d < shape.size(); d++)
    fits = shape[d] >= -1 && (shape[d] < 0 || !t.dims[d].is_num() || t.dims[d].is(shape[d]));
  if (!fits)
    throw UserError("GAF3102", fmt::format("input '{}': expected {}, got {} [{}]", input.name, print_type(t, g),
                                           long_name(own_dtype(dtype)), fmt::join(shape, ",")));
}

// Is `usage` at most 80 % of `whole`? In whole numbers, as 0.8 is none in binary.
bool within_budget(size_t usage, size_t whole) { return usage <= whole - (whole / 5 + (whole % 5 != 0)); }

}  // namespace

namespace v0 {

const FusionPlan::Impl& Access::of(const FusionPlan& p) {
  if (!p.impl_) throw UserError("GAF1102", "an empty FusionPlan", "analyze_fusion_opportunity makes plans");
  return *p.impl_;
}
FusionPlan Access::make_plan(std::shared_ptr<const Analysis> a) {
  FusionPlan p;
  p.impl_ = std::make_shared<const FusionPlan::Impl>(FusionPlan::Impl{std::move(a)});
  return p;
}

FusionPlan analyze_fusion_opportunity(const Subgraph& subgraph, const std::string& target) {
  return guarded([&] {
    const Target t = load_target(target);
    const gaf::Graph& g = Access::of(subgraph.graph).model->graph;
    std::variant<gaf::Graph, Verdict> part = part_of(g, subgraph.nodes);
    Analysis a;
    if (Verdict* no = std::get_if<Verdict>(&part))
      a.target = t, a.verdict = std::move(*no);
    else
      a = analyse_part(std::get<gaf::Graph>(std::move(part)), t);
    return Access::make_plan(std::make_shared<const Analysis>(std::move(a)));
  });
}

bool FusionPlan::can_be_one_kernel() const {
  return guarded([&] { return Access::of(*this).analysis->verdict.ok; });
}
std::string FusionPlan::reason() const {
  return guarded([&] { return Access::of(*this).analysis->verdict.reason; });
}
std::string FusionPlan::explanation() const {
  return guarded([&] { return Access::of(*this).analysis->verdict.text; });
}
std::vector<std::string> FusionPlan::nodes() const {
  return guarded([&] {
    std::vector<std::string> names;
    for (const Node& n : Access::of(*this).analysis->source.nodes)
      if (n.op != "input" && n.op != "constant") names.push_back(n.name);
    return names;
  });
}
std::string FusionPlan::kernel_name() const {
  return guarded([&] { return Access::of(*this).analysis->kernel_name; });
}
std::vector<ValueInfo> FusionPlan::inputs() const {
  return guarded([&] { return inputs_of(Access::of(*this).analysis->source); });
}
std::vector<ValueInfo> FusionPlan::outputs() const {
  return guarded([&] {
    const gaf::Graph& g = Access::of(*this).analysis->source;
    std::vector<ValueInfo> all;
    for (const Output& o : g.outputs) all.push_back(value_info(o.name, g.type(o.value), g));
    return all;
  });
}
double FusionPlan::predicted_us() const {
  return guarded([&] { return kernel_of(*this).predicted_us; });
}
double FusionPlan::unfused_us() const {
  return guarded([&] { return kernel_of(*this).unfused_us; });
}

FusionPlan& FusionPlan::specialize(const Shape& shape, DataType dtype) {
  return specialize(std::span<const Shape>(&shape, 1), std::span<const DataType>(&dtype, 1));
}

FusionPlan& FusionPlan::specialize(std::span<const Shape> shapes, std::span<const DataType> dtypes) {
  return guarded([&]() -> FusionPlan& {
    const Analysis& a = *Access::of(*this).analysis;
    const size_t n = a.source.num_inputs();
    if (shapes.size() != n || dtypes.size() != n)
      throw UserError("GAF3102", fmt::format("the plan has {} inputs, {} shapes and {} dtypes given", n, shapes.size(),
                                             dtypes.size()));
    ReadOptions fixed;
    for (size_t i = 0; i < n; i++) {
      check_input(a.source, a.source.nodes[i], shapes[i], dtypes[i]);
      fixed.shapes.emplace_back(a.source.nodes[i].name, shapes[i]);
    }
    auto now = std::make_shared<const Analysis>(analyse_part(bind_sizes(a.source, fixed), a.target));
    impl_ = std::make_shared<const Impl>(Impl{std::move(now)});
    return *this;
  });
}

std::vector<ConstTensorView> FusionPlan::arguments(const std::vector<ConstTensorView>& inputs) const {
  return guarded([&] {
    const Analysis& a = kernel_of(*this);
    if (inputs.size() != a.source.num_inputs())
      throw UserError("GAF3103", fmt::format("the plan has {} inputs, {} given", a.source.num_inputs(), inputs.size()));
    std::vector<ConstTensorView> all;
    for (const Analysis::Argument& arg : a.args) {
      if (arg.input >= 0)
        all.push_back(inputs[static_cast<size_t>(arg.input)]);
      else if (arg.output < 0)
        all.emplace_back(public_dtype(arg.weight.dtype), arg.weight.dims, arg.weight.data.get());
    }
    return all;
  });
}

HWResource hw_resource(const std::string& target) {
  return guarded([&] {
    const Target t = load_target(target);
    return HWResource{static_cast<size_t>(t.max_regs), static_cast<size_t>(t.ub_bytes)};
  });
}
size_t estimate_reg_usage(const FusionPlan& plan) {
  return guarded([&] { return static_cast<size_t>(kernel_of(plan).regs); });
}
size_t estimate_ub_usage(const FusionPlan& plan) {
  return guarded([&] { return static_cast<size_t>(kernel_of(plan).ub_bytes); });
}
bool can_fuse(const FusionPlan& plan, const HWResource& resource) {
  return plan.can_be_one_kernel() && within_budget(estimate_reg_usage(plan), resource.max_regs) &&
         within_budget(estimate_ub_usage(plan), resource.max_ub);
}

std::string codegen_jit(const FusionPlan& plan) {
  return guarded([&] {
    const Analysis& a = kernel_of(plan);
    if (a.target.kind == "cpu") return kir::print_kernel(a.kernel);
    return emit_npu(finish_npu_kernel(a.kernel, a.target), a.target, NpuLanguage::ascendc);
  });
}

std::string compile_to_pto(const FusionPlan& plan) {
  return guarded([&] {
    const Analysis& a = kernel_of(plan);
    if (a.target.kind == "cpu")
      throw UserError("GAF1102", "compile_to_pto writes kernels for an NPU; the plan is for " + a.target.name,
                      "analyse the nodes for an NPU: analyze_fusion_opportunity(part, \"ascend910b\")");
    return emit_npu(finish_npu_kernel(a.kernel, a.target), a.target, NpuLanguage::pto);
  });
}

}  // namespace v0
}  // namespace gaf
