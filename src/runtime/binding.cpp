// Binding sizes, see binding.h.
#include "runtime/binding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace gaf {
namespace {

bool known(const Expr& e, std::span<const int64_t> values) {
  for (int s = 0; s <= e.max_sym(); s++)
    if (e.mentions(s) && values[static_cast<size_t>(s)] == kUnbound) return false;
  return true;
}

// e == got, where e is k * symbol + c of one unknown symbol: sets the symbol.
bool solve(const Expr& e, int64_t got, std::vector<int64_t>& values) {
  int symbol = -1;
  for (int s = 0; s <= e.max_sym(); s++)
    if (e.mentions(s) && values[static_cast<size_t>(s)] == kUnbound) {
      if (symbol >= 0) return false;
      symbol = s;
    }
  if (symbol < 0 || !linear(e).rest.empty()) return false;
  int64_t& v = values[static_cast<size_t>(symbol)];
  v = 0;
  const int64_t c = e.eval(values);
  v = 1;
  const int64_t k = e.eval(values) - c;
  const int64_t above = got - c;
  v = kUnbound;
  if (k == 0 || above % k != 0 || above / k < 0) return false;
  v = above / k;
  return true;
}

// One dim against its size: binds, solves or compares. False = they differ; true also where it cannot be said yet.
bool match(const Expr& e, int64_t got, std::vector<int64_t>& values) {
  if (e.op() == ExprOp::sym) {
    int64_t& v = values[static_cast<size_t>(e.sym_id())];
    if (v == kUnbound) v = got;
    return v == got;
  }
  if (!known(e, values)) {
    solve(e, got, values);
    return true;
  }
  return e.eval(values) == got;
}

// "[batch=4,8]"
std::string expected_shape(const RunPlan& plan, const Dims& dims, std::span<const int64_t> values) {
  std::vector<std::string> parts;
  for (const Expr& d : dims) {
    std::string s = d.str([&](int id) { return plan.symbols[static_cast<size_t>(id)]; });
    if (!d.is_num() && known(d, values)) s += fmt::format("={}", d.eval(values));
    parts.push_back(std::move(s));
  }
  return fmt::format("[{}]", fmt::join(parts, ","));
}

[[noreturn]] void wrong_shape(const RunPlan& plan, size_t input, const Tensor& got, std::span<const int64_t> values) {
  const PlanBuffer& b = plan.buffers[static_cast<size_t>(plan.inputs[input])];
  ErrorInfo e{.code = "GAF3102",
              .message = fmt::format("input '{}': expected {} {}, got [{}]", b.name, long_name(b.dtype),
                                     expected_shape(plan, b.dims, values), fmt::join(got.dims, ","))};
  // Which earlier input a symbol's value comes from.
  for (size_t d = 0; d < b.dims.size() && d < got.dims.size() && e.cause.empty(); d++)
    for (size_t i = 0; i < input && b.dims[d].op() == ExprOp::sym && e.cause.empty(); i++) {
      const PlanBuffer& other = plan.buffers[static_cast<size_t>(plan.inputs[i])];
      const int64_t value = values[static_cast<size_t>(b.dims[d].sym_id())];
      if (value != got.dims[d] && std::find(other.dims.begin(), other.dims.end(), b.dims[d]) != other.dims.end())
        e.cause = fmt::format("'{}' is {} in input '{}'", plan.symbols[static_cast<size_t>(b.dims[d].sym_id())], value,
                              other.name);
    }
  throw UserError(std::move(e));
}

}  // namespace

void bind_inputs(const RunPlan& plan, std::span<const Tensor> inputs, std::vector<int64_t>& values) {
  GAF_CHECK(inputs.size() == plan.inputs.size())
      << "plan has " << plan.inputs.size() << " inputs, got " << inputs.size();
  values.assign(plan.symbols.size(), kUnbound);
  // First what gives symbols their values, so that the order of inputs does not matter; then everything is checked.
  for (const bool expressions : {false, true})
    for (size_t i = 0; i < inputs.size(); i++) {
      const Dims& dims = plan.buffers[static_cast<size_t>(plan.inputs[i])].dims;
      if (inputs[i].dims.size() != dims.size()) wrong_shape(plan, i, inputs[i], values);
      for (size_t d = 0; d < dims.size(); d++)
        if (expressions || dims[d].op() == ExprOp::sym)
          if (!match(dims[d], inputs[i].dims[d], values)) wrong_shape(plan, i, inputs[i], values);
    }
  for (size_t i = 0; i < inputs.size(); i++) {
    const PlanBuffer& b = plan.buffers[static_cast<size_t>(plan.inputs[i])];
    for (size_t d = 0; d < b.dims.size(); d++) {
      if (!known(b.dims[d], values)) {
        match(b.dims[d], inputs[i].dims[d], values);
        if (!known(b.dims[d], values) && linear(b.dims[d]).rest.empty()) wrong_shape(plan, i, inputs[i], values);
        if (!known(b.dims[d], values))
          throw UserError("GAF3105", fmt::format("input '{}': its shape {} does not give every dimension a value",
                                                 b.name, expected_shape(plan, b.dims, values)));
      }
      if (b.dims[d].eval(values) != inputs[i].dims[d]) wrong_shape(plan, i, inputs[i], values);
      if (b.dims[d].op() != ExprOp::sym) continue;
      const auto symbol = static_cast<size_t>(b.dims[d].sym_id());
      auto refuse = [&](const char* limit, int64_t n) {
        throw UserError("GAF3102", fmt::format("input '{}': dimension '{}' is {}, the model takes at {} {}", b.name,
                                               plan.symbols[symbol], values[symbol], limit, n));
      };
      if (!plan.most.empty() && values[symbol] > plan.most[symbol]) refuse("most", plan.most[symbol]);
      if (!plan.least.empty() && values[symbol] < plan.least[symbol]) refuse("least", plan.least[symbol]);
    }
  }
}

bool bind_result(const Dims& dims, const Tensor& result, std::vector<int64_t>& values) {
  if (dims.size() != result.dims.size()) return false;
  for (size_t d = 0; d < dims.size(); d++)
    if (!match(dims[d], result.dims[d], values)) return false;
  return true;
}

int64_t checked_bytes(std::span<const int64_t> dims, DType t, const std::string& name) {
  int64_t n = bytes(t);
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0)
      throw UserError("GAF3102", fmt::format("tensor '{}' would have the shape [{}]", name, fmt::join(dims, ",")),
                      "give inputs with larger dimensions");
    empty |= d == 0;
  }
  if (empty) return 0;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(n, d, &n) || n > int64_t{1} << 60)
      throw UserError("GAF3106",
                      fmt::format("tensor '{}' of shape [{}] would be too large", name, fmt::join(dims, ",")));
  return n;
}

BoundSegment bind_segment(const RunPlan& plan, const Schedule& schedule, size_t segment,
                          std::span<const int64_t> values) {
  const Segment& s = schedule.segments[segment];
  BoundSegment r;
  r.key.assign(values.begin(), values.end());

  std::vector<ArenaItem> items;
  std::vector<int> item_of(plan.buffers.size(), -1);  // root -> item
  std::vector<int64_t> bytes_of(plan.buffers.size(), 0);
  std::vector<size_t> in_arena;  // entries of s.buffers, in order of first use
  for (int b : s.buffers) {
    const PlanBuffer& buffer = plan.buffers[static_cast<size_t>(b)];
    std::vector<int64_t> dims;
    for (const Expr& d : buffer.dims) dims.push_back(d.eval(values));
    const int64_t size = checked_bytes(dims, buffer.dtype, buffer.name);
    bytes_of[static_cast<size_t>(b)] = size;
    if (schedule.place[static_cast<size_t>(b)].kind == Place::arena && schedule.root[static_cast<size_t>(b)] == b)
      in_arena.push_back(r.bytes.size());
    r.dims.push_back(std::move(dims));
    r.bytes.push_back(size);
  }
  auto place_of = [&](size_t entry) -> const Place& { return schedule.place[static_cast<size_t>(s.buffers[entry])]; };
  std::stable_sort(in_arena.begin(), in_arena.end(),
                   [&](size_t a, size_t b) { return place_of(a).first < place_of(b).first; });
  for (size_t entry : in_arena) {
    const Place& p = place_of(entry);
    const int from =
        p.in_place_of >= 0 ? item_of[static_cast<size_t>(p.in_place_of)] : -1;  // -1 also: in another segment
    item_of[static_cast<size_t>(s.buffers[entry])] = static_cast<int>(items.size());
    items.push_back({r.bytes[entry], p.first, p.last, from});
  }
  const ArenaLayout layout = plan_arena(items);
  r.arena_bytes = layout.bytes;
  r.regions = layout.regions;
  for (int b : s.buffers) {
    const int item = item_of[static_cast<size_t>(schedule.root[static_cast<size_t>(b)])];
    r.offset.push_back(item < 0 ? 0 : layout.offset[static_cast<size_t>(item)]);
  }

  for (int i = s.begin; i < s.end; i++) {
    BoundStep& step = r.steps.emplace_back();
    const auto& kernel = plan.steps[static_cast<size_t>(i)].kernel;
    if (!kernel) continue;
    for (const Expr& e : kernel->sizes) step.sizes.push_back(e.eval(values));
    const bool empty = !kernel->results.empty() && std::all_of(kernel->results.begin(), kernel->results.end(),
                                                               [&](int b) { return bytes_of[static_cast<size_t>(b)] == 0; });
    if (!empty && std::find(step.sizes.begin(), step.sizes.end(), 0) != step.sizes.end())  // kernels count on sizes of at least one
      throw UserError("GAF3102", "kernel '" + kernel->name + "' does not take a dimension of size 0",
                      "give at least one element, or run unfused without generated code (enable_superkernel=False)");
    for (const LoadedKernel::Phase& p : kernel->kernel.phases)
      step.trips.push_back(empty ? 0 : p.trips(step.sizes.data()));
    for (int b : kernel->args) step.bytes += bytes_of[static_cast<size_t>(b)];
    if (kernel->sizes.empty()) step.alone_us = kernel->us;  // else it was said for other sizes
  }
  return r;
}

}  // namespace gaf
