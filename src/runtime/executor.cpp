// Runs a plan, see plan.h: one context (arena, scratch, addresses, bound sizes) a call, kept in a free list, and the
// loop over segments and steps. Must not know what a step computes or why steps were fused.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/cpus.h"
#include "base/error.h"
#include "runtime/executor_state.h"
#include "base/memory.h"
#include "runtime/pool.h"

namespace gaf {
namespace {

constexpr size_t kKeptBindings = 8;   // sizes remembered per segment and context
constexpr int64_t kScratchGap = 128;  // between two threads' scratch: no shared line, also with adjacent-line prefetch

std::atomic<void (*)()> g_interrupt{nullptr};

// Guards every executor's free list, for a few instructions. One for the process, so that fork finds it unlocked.
std::mutex g_contexts;
void lock_contexts() { g_contexts.lock(); }
void unlock_contexts() { g_contexts.unlock(); }

// "3.1 GiB"
std::string byte_text(int64_t n) {
  auto v = static_cast<double>(n);
  for (const char* unit : {"B", "KiB", "MiB"}) {
    if (v < 1024) return fmt::format("{:.{}f} {}", v, *unit == 'B' ? 0 : 1, unit);
    v /= 1024;
  }
  return fmt::format("{:.1f} GiB", v);
}

}  // namespace

Executor::State::State(RunPlan p, int wanted)
    : plan(std::move(p)), schedule(plan), threads(wanted > 0 ? wanted : default_threads()) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(lock_contexts, unlock_contexts, unlock_contexts); });
  for (size_t i = 0; i < plan.buffers.size(); i++) {
    PlanBuffer& b = plan.buffers[i];
    if (b.kind != PlanBuffer::constant || schedule.place[i].first < 0) continue;
    // Small constants of a mapped file may lie anywhere; large ones stay where they are unless their type forbids it.
    const auto at = reinterpret_cast<uintptr_t>(b.data.data.get());
    if (at % static_cast<uintptr_t>(bytes(b.dtype)) != 0 ||
        (at % kBlockAlign != 0 && b.data.size_bytes() <= (1 << 20))) {
      Tensor moved = allocate_tensor(b.data.dtype, b.data.dims);
      if (b.data.size_bytes() > 0)
        std::memcpy(moved.mut<void>(), b.data.data.get(), static_cast<size_t>(b.data.size_bytes()));
      b.data = std::move(moved);
    }
    constant_bytes += b.data.size_bytes();
  }
  int64_t scratch = 0;
  for (const PlanStep& s : plan.steps)
    if (s.kernel) scratch = std::max(scratch, s.kernel->kernel.scratch_bytes);
  scratch_stride = scratch ? align_up(scratch, kBlockAlign) + kScratchGap : 0;
}

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
    if (plan.buffers[b].kind == PlanBuffer::constant)
      c->address[b] = static_cast<char*>(const_cast<void*>(plan.buffers[b].data.data.get()));
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
    throw UserError("GAF6003", fmt::format("needs {}, limit {}", byte_text(need), byte_text(plan.memory_limit)),
                    "raise the limit, or use smaller shapes");
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
    if (p.kind != Place::output || p.lent) continue;
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
  for (int id : buffers)
    if (const Place& p = schedule.place[static_cast<size_t>(id)]; p.lent)
      c.address[static_cast<size_t>(id)] = out[static_cast<size_t>(p.index)].mut<char>();
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
  for (size_t i = 0; i < inputs.size(); i++)
    c.address[static_cast<size_t>(plan.inputs[i])] = static_cast<char*>(const_cast<void*>(inputs[i].data.get()));

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
        if (last)
          pending = &*step.host;
        else
          place_results(c, *step.host, results, out);
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
RunInfo Executor::run(std::span<const Tensor> inputs, std::vector<Tensor>& out) {
  return state_->run(inputs, out, nullptr);
}
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
