// Kernel IR text to something that runs: checks, code, and a launch through the executor as a plan of one step.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/internal.h"
#include "codegen/codegen.h"
#include "runtime/binding.h"

namespace gaf {
namespace {

// Everything wrong with a kernel, reported together.
void check_rules(const kir::Kernel& k, const Target& t) {
  std::vector<ErrorInfo> faults;
  for (const kir::KernelProblem& p : kir::verify_kernel(k, t))
    if (!p.warning)
      faults.push_back({.code = "GAF5004", .message = fmt::format("kernel {}: {}", k.name, p.text), .line = p.line});
  if (!faults.empty()) throw UserError(std::move(faults));
}

PlanBuffer::Kind kind_of(kir::Role r) {
  if (r == kir::Role::out) return PlanBuffer::output;
  return r == kir::Role::tmp ? PlanBuffer::arena : PlanBuffer::input;  // inout: read and written in the caller's memory
}

// The kernel as a plan: its sizes are the symbols, its parameters the buffers.
RunPlan plan_of(const kir::Kernel& k, LoadedKernel code) {
  RunPlan plan;
  KernelStep step;
  step.name = k.name, step.kernel = std::move(code);
  for (const int s : kir::size_symbols(k)) {
    plan.symbols.push_back(k.syms[static_cast<size_t>(s)].name);
    step.sizes.push_back(Expr::sym(static_cast<int>(step.sizes.size())));
  }
  for (const int p : kir::parameters(k)) {
    const kir::Buf& buf = k.bufs[static_cast<size_t>(p)];
    const int id = static_cast<int>(plan.buffers.size());
    PlanBuffer b;
    b.kind = kind_of(buf.role), b.dtype = buf.type, b.dims = buf.shape, b.name = buf.name;
    if (b.kind == PlanBuffer::input) b.index = static_cast<int>(plan.inputs.size()), plan.inputs.push_back(id);
    if (b.kind == PlanBuffer::output) b.index = static_cast<int>(plan.outputs.size()), plan.outputs.push_back(id);
    step.args.push_back(id);
    plan.buffers.push_back(std::move(b));
  }
  plan.steps.push_back({std::move(step), {}});
  return plan;
}

void check_dtype(const kir::Buf& b, const Tensor& t) {
  if (t.dtype != b.type)
    throw UserError("GAF3107", fmt::format("parameter {}: dtype {} given, {} expected", b.name, long_name(t.dtype),
                                           long_name(b.type)));
}

// A kernel is made for a range of sizes, and may use that each is a multiple of a number. Outputs must have the very
// shape, not only as many bytes.
void check_sizes(const kir::Kernel& k, const RunPlan& plan, std::span<const Tensor> inputs,
                 std::span<const Tensor> outputs) {
  std::vector<int64_t> values;
  bind_inputs(plan, inputs, values);
  const std::vector<int> ids = kir::size_symbols(k);
  for (size_t i = 0; i < ids.size(); i++) {
    const kir::Symbol& s = k.syms[static_cast<size_t>(ids[i])];
    if (values[i] == kUnbound)
      throw UserError("GAF3105", fmt::format("kernel {}: no input's shape gives size {} a value", k.name, s.name));
    if (values[i] < s.lo || values[i] > s.hi || values[i] % s.mult != 0)
      throw UserError("GAF3102", fmt::format("kernel {}: size {} is {}, the kernel is for {}..{}, multiples of {}",
                                             k.name, s.name, values[i], s.lo, s.hi, s.mult));
  }
  for (size_t o = 0; o < outputs.size(); o++) {
    const PlanBuffer& b = plan.buffers[static_cast<size_t>(plan.outputs[o])];
    std::vector<int64_t> want;
    for (const Dim& d : b.dims) want.push_back(d.eval(values));
    if (want != outputs[o].dims)
      throw UserError("GAF3102", fmt::format("parameter {}: expected [{}], got [{}]", b.name, fmt::join(want, ","),
                                             fmt::join(outputs[o].dims, ",")));
  }
}

}  // namespace

namespace v0 {

struct ExecutableKernel::Impl {
  kir::Kernel kernel;
  std::unique_ptr<Executor> executor;

  std::vector<const kir::Buf*> inputs, outputs;  // outputs: inout too

  explicit Impl(kir::Kernel k, const Target& t) : kernel(std::move(k)) {
    executor = std::make_unique<Executor>(plan_of(kernel, load(compile_cpu(kernel, t))), 0);
    for (const int p : kir::parameters(kernel)) {
      const kir::Buf& b = kernel.bufs[static_cast<size_t>(p)];
      if (b.role == kir::Role::in) inputs.push_back(&b);
      if (b.role == kir::Role::out || b.role == kir::Role::inout) outputs.push_back(&b);
    }
  }
  std::vector<ValueInfo> infos(const std::vector<const kir::Buf*>& bufs) const {
    std::vector<ValueInfo> all;
    for (const kir::Buf* b : bufs)
      all.push_back(
          value_info(b->name, b->type, b->shape, [&](int s) { return kernel.syms[static_cast<size_t>(s)].name; }));
    return all;
  }
};

const ExecutableKernel::Impl& Access::of(const ExecutableKernel& k) {
  if (!k.impl_) throw UserError("GAF1102", "an empty ExecutableKernel", "compile_kernel makes kernels");
  return *k.impl_;
}
ExecutableKernel Access::make_kernel(kir::Kernel k, const Target& t) {
  ExecutableKernel out;
  out.impl_ = std::make_shared<const ExecutableKernel::Impl>(std::move(k), t);
  return out;
}

std::string ExecutableKernel::name() const {
  return guarded([&] { return Access::of(*this).kernel.name; });
}
std::vector<ValueInfo> ExecutableKernel::inputs() const {
  return guarded([&] { return Access::of(*this).infos(Access::of(*this).inputs); });
}
std::vector<ValueInfo> ExecutableKernel::outputs() const {
  return guarded([&] { return Access::of(*this).infos(Access::of(*this).outputs); });
}

ExecutableKernel compile_kernel(const std::string& kernel_ir) {
  return guarded([&] {
    kir::Kernel k = kir::number_symbols(kir::parse_kernel(kernel_ir));
    const Target t = load_target(k.target);
    if (t.kind != "cpu") throw UserError("GAF4009", "code for target " + t.name + " is not available in this version");
    if (!host_runs(t)) throw UserError("GAF6005", "this machine does not run code for target " + t.name);
    check_rules(k, t);
    return Access::make_kernel(std::move(k), t);
  });
}

RunInfo launch(const ExecutableKernel& kernel, const std::vector<ConstTensorView>& inputs,
               const std::vector<TensorView>& outputs) {
  return guarded([&] {
    const auto& k = Access::of(kernel);
    if (inputs.size() != k.inputs.size() || outputs.size() != k.outputs.size())
      throw UserError("GAF3103", fmt::format("kernel {} takes {} inputs and {} outputs, {} and {} given", k.kernel.name,
                                             k.inputs.size(), k.outputs.size(), inputs.size(), outputs.size()));
    const std::vector<gaf::Tensor> in = own_views(inputs), out = own_views(outputs);
    std::vector<gaf::Tensor> read, written;  // as the plan has them: an inout buffer is an input there
    size_t next_in = 0, next_out = 0;
    for (const int p : kir::parameters(k.kernel)) {
      const kir::Buf& b = k.kernel.bufs[static_cast<size_t>(p)];
      if (b.role == kir::Role::tmp) continue;
      const gaf::Tensor& t = b.role == kir::Role::in ? in[next_in++] : out[next_out++];
      check_dtype(b, t);
      (b.role == kir::Role::out ? written : read).push_back(t);
    }
    check_sizes(k.kernel, k.executor->plan(), read, written);
    return public_info(k.executor->run(read, written));
  });
}

}  // namespace v0
}  // namespace gaf
