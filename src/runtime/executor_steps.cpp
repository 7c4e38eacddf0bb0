// One step of a run: a kernel through the pool or on this thread, a host step with views of its buffers. Part of the
// executor, see plan.h. Must not know what a kernel computes.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "runtime/executor_state.h"
#include "base/memory.h"
#include "runtime/pool.h"

namespace gaf {
namespace {

// A job with hot workers costs the caller 0.1 to 0.5 us, waking parked ones about 20 us (two cores of a virtual Xeon;
// the disabled test Pool.Times prints both). Below this, a second thread gains nothing.
constexpr double kWorthSharingUs = 10;
constexpr int kMeasureRuns = 3;           // the shortest of these runs on one thread decides
constexpr int64_t kSurelyLong = 4 << 20;  // bytes: over 100 us at any core's speed, shared without a measurement

struct Job {
  RunFn run;
  void* const* buffers;
  const int64_t* sizes;
  char* scratch;
  int64_t stride;
};
void run_part(void* context, int slot, int64_t lo, int64_t hi) {
  const Job& j = *static_cast<const Job*>(context);
  j.run(j.buffers, j.sizes, j.scratch + j.stride * slot, lo, hi);
}

Tensor view(const PlanBuffer& b, const std::vector<int64_t>& dims, void* address) {
  return {b.dtype, dims, std::shared_ptr<const void>(std::shared_ptr<const void>(), address)};  // owns nothing
}

}  // namespace

void Executor::State::run_kernel(Context& c, const KernelStep& k, BoundStep& b) {
  for (size_t i = 0; i < k.args.size(); i++) c.args[i] = c.at(schedule.root, k.args[i]);
  Job job{nullptr, c.args.data(), b.sizes.data(), static_cast<char*>(c.scratch.get()), scratch_stride};
  // A prediction is believed where it says "long"; "short" is measured, as a wrong one would cost threads for ever.
  const bool known = b.measured >= kMeasureRuns || b.alone_us > 4 * kWorthSharingUs;
  const bool measure = threads > 1 && !known && b.bytes < kSurelyLong;
  const bool share = threads > 1 && !measure && (b.bytes >= kSurelyLong || b.alone_us > kWorthSharingUs);
  const auto start = measure ? Clock::now() : Clock::time_point{};
  for (size_t p = 0; p < b.trips.size(); p++) {
    job.run = k.kernel.phases[p].run;
    if (share)
      Pool::process().run(b.trips[p], threads, run_part, &job);
    else if (b.trips[p] > 0)
      run_part(&job, 0, 0, b.trips[p]);
  }
  if (!measure) return;
  const double us = us_since(start);
  b.alone_us = b.measured++ == 0 ? us : std::min(b.alone_us, us);
}

void Executor::State::run_host(Context& c, const HostStep& h, std::vector<Tensor>& results) {
  std::vector<Tensor> args;
  args.reserve(h.args.size());
  for (int a : h.args) {
    const auto id = static_cast<size_t>(a);
    const PlanBuffer& b = plan.buffers[id];
    if (b.kind == PlanBuffer::constant)
      args.push_back(b.data);
    else
      args.push_back(view(b, *c.dims[id], c.at(schedule.root, a)));
  }
  results = h.run(args, c.values);
  GAF_CHECK(results.size() == h.results.size())
      << h.name << " returned " << results.size() << " of " << h.results.size() << " results";
  for (size_t i = 0; i < results.size(); i++) {
    const PlanBuffer& b = plan.buffers[static_cast<size_t>(h.results[i])];
    GAF_CHECK(results[i].dtype == b.dtype) << h.name << ": result " << i << " is " << name(results[i].dtype);
    // A view of somebody's bytes: they may be gone or rewritten before the last reader. Keep a copy.
    if (results[i].data.use_count() == 0) {
      Tensor own = allocate_tensor(results[i].dtype, results[i].dims);
      if (own.size_bytes() > 0)
        std::memcpy(own.mut<void>(), results[i].data.get(), static_cast<size_t>(own.size_bytes()));
      results[i] = std::move(own);
    }
    GAF_CHECK(bind_result(b.dims, results[i], c.values))
        << h.name << ": result " << i << " has dims that the plan excludes";
  }
  for (auto [symbol, position, element] : h.binds) {
    const auto at = static_cast<size_t>(position);
    const Tensor& t = at < args.size() ? args[at] : results[at - args.size()];
    GAF_CHECK(element < t.numel()) << h.name << ": binds element " << element << " of " << t.numel();
    c.values[static_cast<size_t>(symbol)] = t.get_int(element);
  }
}

// Results stay the tensors that the step returned, but for outputs with a buffer of the caller's.
void Executor::State::place_results(Context& c, const HostStep& h, std::vector<Tensor>& results,
                                    std::vector<Tensor>& out) {
  for (size_t i = 0; i < results.size(); i++) {
    const auto id = static_cast<size_t>(h.results[i]);
    const Place& p = schedule.place[id];
    Tensor& r = results[i];
    GAF_CHECK(c.dims[id] && *c.dims[id] == r.dims)
        << h.name << ": result " << i << " has other dims than the plan says";
    if (p.kind == Place::output && out[static_cast<size_t>(p.index)].data) {
      if (r.size_bytes() > 0)
        std::memcpy(out[static_cast<size_t>(p.index)].mut<void>(), r.data.get(), static_cast<size_t>(r.size_bytes()));
      c.address[id] = out[static_cast<size_t>(p.index)].mut<char>();
    } else {
      c.address[id] = r.mut<char>();
      if (p.kind == Place::output)
        out[static_cast<size_t>(p.index)] = std::move(r);
      else
        c.held[id] = std::move(r.data);
    }
  }
}

}  // namespace gaf
