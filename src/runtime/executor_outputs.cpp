// The caller's output buffers: checked, kept apart where they share bytes with something that is still to be read, and
// filled at the end where no step writes them directly. Part of the executor, see plan.h. Must not know of kernels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "base/error.h"
#include "runtime/executor_state.h"
#include "base/memory.h"

namespace gaf {
namespace {

bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + static_cast<uintptr_t>(b_bytes) && y < x + static_cast<uintptr_t>(a_bytes);
}

}  // namespace

void Executor::State::check_given(size_t output, const Tensor& t, const std::vector<int64_t>& dims) const {
  const PlanBuffer& b = plan.buffers[static_cast<size_t>(plan.outputs[output])];
  if (t.dtype == b.dtype && t.dims == dims) return;
  throw UserError("GAF3102",
                  fmt::format("output '{}': the buffer given is {} [{}], the result is {} [{}]", b.name,
                              long_name(t.dtype), fmt::join(t.dims, ","), long_name(b.dtype), fmt::join(dims, ",")));
}

// A caller's output buffer that shares bytes with an input or another output would change what is still to be read: it
// is filled at the end.
void Executor::State::set_aside_overlapping(Context& c, std::span<const Tensor> inputs, std::vector<Tensor>& out) {
  for (size_t i = 0; i < out.size(); i++) {
    if (!out[i].data) continue;
    bool shared = false;
    for (const Tensor& x : inputs)
      shared |= overlap(out[i].data.get(), out[i].size_bytes(), x.data.get(), x.size_bytes());
    for (size_t j = 0; j < i; j++)
      for (const Tensor* o : {&out[j], &c.given[j]})
        shared |= o->data && overlap(out[i].data.get(), out[i].size_bytes(), o->data.get(), o->size_bytes());
    if (shared) {
      c.given[i] = out[i];
      out[i].data = nullptr;
    }
  }
}

// Copies outputs that no step computes in place, and those whose buffer had to wait.
void Executor::State::finish(Context& c, std::vector<Tensor>& out, RunInfo& info) {
  for (auto [position, buffer] : schedule.copies) {
    Tensor& t = out[static_cast<size_t>(position)];
    const auto id = static_cast<size_t>(buffer);
    if (t.data)
      check_given(static_cast<size_t>(position), t, *c.dims[id]);
    else
      t = allocate_tensor(plan.buffers[id].dtype, *c.dims[id]);
    if (t.size_bytes() > 0)
      std::memcpy(t.mut<void>(), c.at(schedule.root, buffer), static_cast<size_t>(t.size_bytes()));
    info.copies++;
  }
  for (size_t i = 0; i < out.size(); i++) {
    const PlanBuffer& b = plan.buffers[static_cast<size_t>(plan.outputs[i])];
    const std::vector<int64_t>& dims = *c.dims[static_cast<size_t>(plan.outputs[i])];
    out[i].dtype = b.dtype;
    if (out[i].dims != dims) out[i].dims = dims;  // a view of the tensor that was computed
    if (!c.given[i].data) continue;
    check_given(i, c.given[i], dims);
    if (out[i].size_bytes() > 0)
      std::memmove(c.given[i].mut<void>(), out[i].data.get(), static_cast<size_t>(out[i].size_bytes()));
    out[i] = std::move(c.given[i]);
    info.copies++;
  }
}

}  // namespace gaf
