// Runs a plan, see plan.h: one context (arena, scratch, addresses, bound sizes) a call, kept in a free list; kernels go
// through the pool, host steps are called with views. Must not know what a kernel computes or why steps were fused.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/cpus.h"
#include "base/error.h"
#include "runtime/binding.h"
#include "runtime/memory.h"
#include "runtime/plan.h"
#include "runtime/pool.h"

namespace gaf {
namespace {

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point t) { return std::chrono::duration<double, std::micro>(Clock::now() - t).count(); }

// A job with hot workers costs the caller 0.1 to 0.5 us, waking parked ones about 20 us (two cores of a virtual Xeon; the
// disabled test Pool.Times prints both). Below this, a second thread gains nothing.
constexpr double kWorthSharingUs = 10;
constexpr int kMeasureRuns = 3;            // the shortest of these runs on one thread decides
constexpr int64_t kSurelyLong = 4 << 20;   // bytes: over 100 us at any core's speed, shared without a measurement
constexpr size_t kKeptBindings = 8;        // sizes remembered per segment and context
constexpr int64_t kScratchGap = 128;       // between two threads' scratch: no shared line, also with adjacent-line prefetch

std::atomic<void (*)()> g_interrupt{nullptr};

// Guards every executor's free list, for a few instructions. One for the process, so that fork finds it unlocked.
std::mutex g_contexts;
void lock_contexts() { g_contexts.lock(); }
void unlock_contexts() { g_contexts.unlock(); }

// All that one call at a time needs.
struct Context {
  std::vector<int64_t> values;                        // of symbols
  std::vector<std::vector<BoundSegment>> bound;       // per segment, latest first
  std::vector<std::shared_ptr<void>> arena;           // per segment
  std::vector<int64_t> arena_size;
  std::shared_ptr<void> scratch;
  std::vector<char*> address;                         // per buffer that is no alias
  std::vector<const std::vector<int64_t>*> dims;      // per buffer
  std::vector<std::shared_ptr<const void>> held;      // per buffer: results of host steps
  std::vector<void*> args;
  std::vector<Tensor> given;                          // per output: caller's buffer that overlaps something, filled at the end

  char* at(const std::vector<int>& root, int buffer) const { return address[static_cast<size_t>(root[static_cast<size_t>(buffer)])]; }
};

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

// "3.1 GiB"
std::string byte_text(int64_t n) {
  auto v = static_cast<double>(n);
  for (const char* unit : {"B", "KiB", "MiB"}) {
    if (v < 1024) return fmt::format("{:.{}f} {}", v, *unit == 'B' ? 0 : 1, unit);
    v /= 1024;
  }
  return fmt::format("{:.1f} GiB", v);
}

bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + static_cast<uintptr_t>(b_bytes) && y < x + static_cast<uintptr_t>(a_bytes);
}

}  // namespace

struct Executor::State {
  RunPlan plan;
  Schedule schedule;
  int threads;
  int64_t scratch_stride = 0, constant_bytes = 0;
  std::vector<std::unique_ptr<Context>> free;   // under g_contexts
  std::atomic<int64_t> arena_bytes{0};
  std::atomic<int> regions{0};

  State(RunPlan p, int wanted) : plan(std::move(p)), schedule(plan), threads(wanted > 0 ? wanted : default_threads()) {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(lock_contexts, unlock_contexts, unlock_contexts); });
    for (size_t i = 0; i < plan.buffers.size(); i++) {
      PlanBuffer& b = plan.buffers[i];
      if (b.kind != PlanBuffer::constant || schedule.place[i].first < 0) continue;
      // Small constants of a mapped file may lie anywhere; large ones stay where they are unless their type forbids it.
      const auto at = reinterpret_cast<uintptr_t>(b.data.data.get());
      if (at % static_cast<uintptr_t>(bytes(b.dtype)) != 0 || (at % kBlockAlign != 0 && b.data.size_bytes() <= (1 << 20))) {
        Tensor moved = allocate_tensor(b.data.dtype, b.data.dims);
        if (b.data.size_bytes() > 0) std::memcpy(moved.mut<void>(), b.data.data.get(), static_cast<size_t>(b.data.size_bytes()));
        b.data = std::move(moved);
      }
      constant_bytes += b.data.size_bytes();
    }
    int64_t scratch = 0;
    for (const PlanStep& s : plan.steps)
      if (s.kernel) scratch = std::max(scratch, s.kernel->kernel.scratch_bytes);
    scratch_stride = scratch ? align_up(scratch, kBlockAlign) + kScratchGap : 0;
  }

  std::unique_ptr<Context> take();
  void give_back(std::unique_ptr<Context> c);
  BoundSegment& bind(Context& c, size_t segment);
  void check_memory(const Context& c, int64_t more) const;
  void check_given(size_t output, const Tensor& t, const std::vector<int64_t>& dims) const;
  void begin_segment(Context& c, const BoundSegment& b, size_t segment, std::vector<Tensor>& out);
  void run_kernel(Context& c, const KernelStep& k, BoundStep& b);
  void run_host(Context& c, const HostStep& h, std::vector<Tensor>& results);
  void place_results(Context& c, const HostStep& h, std::vector<Tensor>& results, std::vector<Tensor>& out);
  void set_aside_overlapping(Context& c, std::span<const Tensor> inputs, std::vector<Tensor>& out);
  void finish(Context& c, std::vector<Tensor>& out, RunInfo& info);
  RunInfo run(std::span<const Tensor> inputs, std::vector<Tensor>& out, double* step_us);
};

std::unique_ptr<Context> Executor::State::take() {
  {
    std::lock_guard lock(g_contexts);
    if (!free.empty()) {
      auto c = std::move(free.back());
      free.pop_back();
      return c;
    }
  }
  auto c = std::make_unique<Context>();
  const size_t buffers = plan.buffers.size();
  c->bound.resize(schedule.segments.size());
  c->arena.resize(schedule.segments.size());
  c->arena_size.resize(schedule.segments.size(), 0);
  c->address.resize(buffers, nullptr);
  c->dims.resize(buffers, nullptr);
  c->held.resize(buffers);
  c->args.resize(static_cast<size_t>(std::max<int64_t>(schedule.max_args, 1)));
  c->given.resize(plan.outputs.size());
  if (scratch_stride) c->scratch = allocate_block(scratch_stride * threads);
  for (size_t b = 0; b < buffers; b++)
    if (plan.buffers[b].kind == PlanBuffer::constant) c->address[b] = static_cast<char*>(const_cast<void*>(plan.buffers[b].data.data.get()));
  return c;
}

void Executor::State::give_back(std::unique_ptr<Context> c) {
  std::fill(c->held.begin(), c->held.end(), nullptr);
  for (Tensor& t : c->given) t.data = nullptr;
  std::lock_guard lock(g_contexts);
  free.push_back(std::move(c));
}

// The segment's numbers for the present symbol values: remembered or computed.
BoundSegment& Executor::State::bind(Context& c, size_t segment) {
  std::vector<BoundSegment>& kept = c.bound[segment];
  auto at = std::find_if(kept.begin(), kept.end(), [&](const BoundSegment& b) { return b.key == c.values; });
  if (at == kept.end()) {
    if (kept.size() == kKeptBindings) kept.pop_back();
    at = kept.insert(kept.end(), bind_segment(plan, schedule, segment, c.values));
  }
  std::rotate(kept.begin(), at, at + 1);
  return kept.front();
}

// `more`: bytes about to be allocated.
void Executor::State::check_memory(const Context& c, int64_t more) const {
  if (plan.memory_limit <= 0) return;
  int64_t need = constant_bytes + scratch_stride * threads + more;
  for (int64_t a : c.arena_size) need += a;
  if (need > plan.memory_limit)
    throw UserError("GAF6003", fmt::format("needs {}, limit {}", byte_text(need), byte_text(plan.memory_limit)), "raise the limit, or use smaller shapes");
}

void Executor::State::check_given(size_t output, const Tensor& t, const std::vector<int64_t>& dims) const {
  const PlanBuffer& b = plan.buffers[static_cast<size_t>(plan.outputs[output])];
  if (t.dtype == b.dtype && t.dims == dims) return;
  throw UserError("GAF3102", fmt::format("output '{}': the buffer given is {} [{}], the result is {} [{}]", b.name, long_name(t.dtype),
                                         fmt::join(t.dims, ","), long_name(b.dtype), fmt::join(dims, ",")));
}

// Sets dims and addresses of the segment's buffers; allocates its arena, and outputs that the caller did not bring.
void Executor::State::begin_segment(Context& c, const BoundSegment& b, size_t segment, std::vector<Tensor>& out) {
  const std::vector<int>& buffers = schedule.segments[segment].buffers;
  if (c.arena_size[segment] < b.arena_bytes) {
    c.arena[segment] = nullptr;  // the old one goes first
    c.arena_size[segment] = 0;
    check_memory(c, b.arena_bytes);
    c.arena[segment] = allocate_block(b.arena_bytes);
    c.arena_size[segment] = b.arena_bytes;
  }
  char* arena = static_cast<char*>(c.arena[segment].get());
  for (size_t i = 0; i < buffers.size(); i++) c.dims[static_cast<size_t>(buffers[i])] = &b.dims[i];
  int64_t output_bytes = 0;
  for (size_t i = 0; i < buffers.size(); i++) {
    const auto id = static_cast<size_t>(buffers[i]);
    const Place& p = schedule.place[id];
    if (schedule.root[id] != buffers[i]) continue;
    if (p.kind == Place::arena) c.address[id] = arena + b.offset[i];
    if (p.kind != Place::output) continue;
    Tensor& t = out[static_cast<size_t>(p.index)];
    if (!t.data && !p.by_host) {
      output_bytes += b.bytes[i];
      check_memory(c, output_bytes);
      t.dtype = plan.buffers[id].dtype;
      t.dims = b.dims[i];
      t.data = allocate_block(b.bytes[i]);
    } else if (t.data && t.size_bytes() != b.bytes[i]) {
      check_given(static_cast<size_t>(p.index), t, b.dims[i]);
    }
    c.address[id] = static_cast<char*>(const_cast<void*>(t.data.get()));
  }
}

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
    if (share) Pool::process().run(b.trips[p], threads, run_part, &job);
    else if (b.trips[p] > 0) run_part(&job, 0, 0, b.trips[p]);
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
    if (b.kind == PlanBuffer::constant) args.push_back(b.data);
    else args.push_back(view(b, *c.dims[id], c.at(schedule.root, a)));
  }
  results = h.run(args);
  GAF_CHECK(results.size() == h.results.size()) << h.name << " returned " << results.size() << " of " << h.results.size() << " results";
  for (size_t i = 0; i < results.size(); i++) {
    const PlanBuffer& b = plan.buffers[static_cast<size_t>(h.results[i])];
    GAF_CHECK(results[i].dtype == b.dtype) << h.name << ": result " << i << " is " << name(results[i].dtype);
    // A view of somebody's bytes: they may be gone or rewritten before the last reader. Keep a copy.
    if (results[i].data.use_count() == 0) {
      Tensor own = allocate_tensor(results[i].dtype, results[i].dims);
      if (own.size_bytes() > 0) std::memcpy(own.mut<void>(), results[i].data.get(), static_cast<size_t>(own.size_bytes()));
      results[i] = std::move(own);
    }
    GAF_CHECK(bind_result(b.dims, results[i], c.values)) << h.name << ": result " << i << " has dims that the plan excludes";
  }
  for (auto [symbol, position, element] : h.binds) {
    const auto at = static_cast<size_t>(position);
    const Tensor& t = at < args.size() ? args[at] : results[at - args.size()];
    GAF_CHECK(element < t.numel()) << h.name << ": binds element " << element << " of " << t.numel();
    c.values[static_cast<size_t>(symbol)] = t.get_int(element);
  }
}

// Results stay the tensors that the step returned, but for outputs with a buffer of the caller's.
void Executor::State::place_results(Context& c, const HostStep& h, std::vector<Tensor>& results, std::vector<Tensor>& out) {
  for (size_t i = 0; i < results.size(); i++) {
    const auto id = static_cast<size_t>(h.results[i]);
    const Place& p = schedule.place[id];
    Tensor& r = results[i];
    GAF_CHECK(c.dims[id] && *c.dims[id] == r.dims) << h.name << ": result " << i << " has other dims than the plan says";
    if (p.kind == Place::output && out[static_cast<size_t>(p.index)].data) {
      if (r.size_bytes() > 0) std::memcpy(out[static_cast<size_t>(p.index)].mut<void>(), r.data.get(), static_cast<size_t>(r.size_bytes()));
      c.address[id] = out[static_cast<size_t>(p.index)].mut<char>();
    } else {
      c.address[id] = r.mut<char>();
      if (p.kind == Place::output) out[static_cast<size_t>(p.index)] = std::move(r);
      else c.held[id] = std::move(r.data);
    }
  }
}

// A caller's output buffer that shares bytes with an input or another output would change what is still to be read: it is
// filled at the end.
void Executor::State::set_aside_overlapping(Context& c, std::span<const Tensor> inputs, std::vector<Tensor>& out) {
  for (size_t i = 0; i < out.size(); i++) {
    if (!out[i].data) continue;
    bool shared = false;
    for (const Tensor& x : inputs) shared |= overlap(out[i].data.get(), out[i].size_bytes(), x.data.get(), x.size_bytes());
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
    if (t.data) check_given(static_cast<size_t>(position), t, *c.dims[id]);
    else t = allocate_tensor(plan.buffers[id].dtype, *c.dims[id]);
    if (t.size_bytes() > 0) std::memcpy(t.mut<void>(), c.at(schedule.root, buffer), static_cast<size_t>(t.size_bytes()));
    info.copies++;
  }
  for (size_t i = 0; i < out.size(); i++) {
    const PlanBuffer& b = plan.buffers[static_cast<size_t>(plan.outputs[i])];
    const std::vector<int64_t>& dims = *c.dims[static_cast<size_t>(plan.outputs[i])];
    out[i].dtype = b.dtype;
    if (out[i].dims != dims) out[i].dims = dims;  // a view of the tensor that was computed
    if (!c.given[i].data) continue;
    check_given(i, c.given[i], dims);
    if (out[i].size_bytes() > 0) std::memmove(c.given[i].mut<void>(), out[i].data.get(), static_cast<size_t>(out[i].size_bytes()));
    out[i] = std::move(c.given[i]);
    info.copies++;
  }
}

RunInfo Executor::State::run(std::span<const Tensor> inputs, std::vector<Tensor>& out, double* step_us) {
  const auto start = Clock::now();
  struct Lease {
    State& state;
    std::unique_ptr<Context> context;
    ~Lease() { state.give_back(std::move(context)); }
  } lease{*this, take()};
  Context& c = *lease.context;
  RunInfo info;

  if (threads > 1) Pool::process().reserve(threads);  // in a child after fork: new workers
  bind_inputs(plan, inputs, c.values);
  out.resize(plan.outputs.size());
  set_aside_overlapping(c, inputs, out);
  for (size_t i = 0; i < inputs.size(); i++) c.address[static_cast<size_t>(plan.inputs[i])] = static_cast<char*>(const_cast<void*>(inputs[i].data.get()));

  int64_t arena = 0;
  int regions = 0;
  std::vector<Tensor> results;  // of the host step that ended a segment
  const HostStep* pending = nullptr;
  for (size_t s = 0; s < schedule.segments.size(); s++) {
    BoundSegment& b = bind(c, s);
    begin_segment(c, b, s, out);
    arena += b.arena_bytes;
    regions += b.regions;
    if (pending) place_results(c, *std::exchange(pending, nullptr), results, out);
    const Segment& segment = schedule.segments[s];
    for (int i = segment.begin; i < segment.end; i++) {
      if (auto check = g_interrupt.load(std::memory_order_relaxed)) check();
      const PlanStep& step = plan.steps[static_cast<size_t>(i)];
      const auto step_start = step_us ? Clock::now() : Clock::time_point{};
      if (step.kernel) {
        run_kernel(c, *step.kernel, b.steps[static_cast<size_t>(i - segment.begin)]);
        info.kernels++;
      } else {
        run_host(c, *step.host, results);
        info.fallbacks += step.host->fallback;
        const bool last = i + 1 == segment.end && s + 1 < schedule.segments.size();
        if (last) pending = &*step.host;
        else place_results(c, *step.host, results, out);
      }
      for (int dead : schedule.released[static_cast<size_t>(i)]) c.held[static_cast<size_t>(dead)] = nullptr;
      if (step_us) step_us[i] = us_since(step_start);
    }
  }
  finish(c, out, info);
  arena_bytes.store(arena, std::memory_order_relaxed);
  this->regions.store(regions, std::memory_order_relaxed);
  info.latency_us = us_since(start);
  return info;
}

Executor::Executor(RunPlan plan, int threads) : state_(std::make_unique<State>(std::move(plan), threads)) {}
Executor::~Executor() = default;
RunInfo Executor::run(std::span<const Tensor> inputs, std::vector<Tensor>& out) { return state_->run(inputs, out, nullptr); }
int64_t Executor::arena_bytes() const { return state_->arena_bytes.load(std::memory_order_relaxed); }
int Executor::allocations() const { return state_->regions.load(std::memory_order_relaxed); }
const RunPlan& Executor::plan() const { return state_->plan; }

std::vector<double> Executor::profile(std::span<const Tensor> inputs) {
  std::vector<double> us(state_->plan.steps.size(), 0);
  std::vector<Tensor> out;
  state_->run(inputs, out, us.data());
  return us;
}

int default_threads() { return std::min(host_cores(), Pool::kMaxThreads); }

void set_interrupt_check(void (*check)()) { g_interrupt.store(check, std::memory_order_relaxed); }

}  // namespace gaf
