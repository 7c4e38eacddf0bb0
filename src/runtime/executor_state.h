// What the executor's files share: the context of one call, and the state of an executor. Included by executor*.cpp
// only.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "runtime/binding.h"
#include "runtime/plan.h"

namespace gaf {

using Clock = std::chrono::steady_clock;
inline double us_since(Clock::time_point t) {
  return std::chrono::duration<double, std::micro>(Clock::now() - t).count();
}

// All that one call at a time needs.
struct Context {
  std::vector<int64_t> values;                   // of symbols
  std::vector<std::vector<BoundSegment>> bound;  // per segment, latest first
  std::vector<std::shared_ptr<void>> arena;      // per segment
  std::vector<int64_t> arena_size;
  std::shared_ptr<void> scratch;
  std::vector<char*> address;                     // per buffer that is no alias
  std::vector<const std::vector<int64_t>*> dims;  // per buffer
  std::vector<std::shared_ptr<const void>> held;  // per buffer: results of host steps
  std::vector<void*> args;
  std::vector<Tensor> given;  // per output: caller's buffer that overlaps something, filled at the end

  char* at(const std::vector<int>& root, int buffer) const {
    return address[static_cast<size_t>(root[static_cast<size_t>(buffer)])];
  }
};

struct Executor::State {
  RunPlan plan;
  Schedule schedule;
  int threads;
  int64_t scratch_stride = 0, constant_bytes = 0;
  std::vector<std::unique_ptr<Context>> free;  // under g_contexts
  std::atomic<int64_t> arena_bytes{0};
  std::atomic<int> regions{0};

  State(RunPlan p, int wanted);

  // executor.cpp: contexts, sizes, memory, the loop over steps
  std::unique_ptr<Context> take();
  void give_back(std::unique_ptr<Context> c);
  BoundSegment& bind(Context& c, size_t segment);
  void check_memory(const Context& c, int64_t more) const;
  void begin_segment(Context& c, const BoundSegment& b, size_t segment, std::vector<Tensor>& out);
  RunInfo run(std::span<const Tensor> inputs, std::vector<Tensor>& out, double* step_us);

  // executor_steps.cpp: one step
  void run_kernel(Context& c, const KernelStep& k, BoundStep& b);
  void run_host(Context& c, const HostStep& h, std::vector<Tensor>& results);
  void place_results(Context& c, const HostStep& h, std::vector<Tensor>& results, std::vector<Tensor>& out);

  // executor_outputs.cpp: the caller's buffers
  void check_given(size_t output, const Tensor& t, const std::vector<int64_t>& dims) const;
  void set_aside_overlapping(Context& c, std::span<const Tensor> inputs, std::vector<Tensor>& out);
  void finish(Context& c, std::vector<Tensor>& out, RunInfo& info);
};

}  // namespace gaf
