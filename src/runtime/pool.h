// The one thread pool of the process. A job is a range of independent trips; it is cut into more units than threads and
// threads take units by an atomic counter, so a slow or busy core holds nobody up. The calling thread works too.
// Workers spin for some tens of microseconds after a job, then park. Results never depend on who ran which unit.
//
// Workers are not pinned: where the caller runs is the program's affair, and a worker pinned to the caller's CPU, or to
// the one that another process's pool has pinned too, waits while other CPUs are idle. They inherit the affinity mask
// of the thread that first asked for them.
//
// The floating-point environment is left as the process has it: neither flush-to-zero nor denormals-are-zero is set, in
// workers or in callers, so that a kernel gives the same bits in every thread and denormal results are those of IEEE
// 754. Kernels that would hand denormals on (a softmax far below its maximum) clamp them in their own text.
//
// Knows nothing of kernels, plans and tensors.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace gaf {

class Pool {
 public:
  // Runs a part lo..hi of a job. `slot` is 0 for the caller and 1.. for workers, always below the job's `threads`, and
  // no two threads of one job share one: it selects scratch memory. Must not throw.
  using Body = void (*)(void* context, int slot, int64_t lo, int64_t hi);

  // The pool of this process; a child after fork gets its own.
  static Pool& process();

  // Makes sure that jobs may use `threads` threads (workers are started here, never in `run`). Fewer if the system
  // refuses.
  void reserve(int threads);

  // body over [0, trips) in units of about trips / (threads * kUnitsPerThread), by at most `threads` threads; returns
  // when all are done. If the pool is busy with another caller's job, or the call comes from inside a job, the caller
  // does the whole range alone. Allocates nothing.
  void run(int64_t trips, int threads, Body body, void* context);

  int workers() const { return workers_.load(std::memory_order_acquire); }

  static constexpr int kMaxThreads = 1024;
  static constexpr int kUnitsPerThread = 8;

 private:
  struct Job {
    Body body = nullptr;
    void* context = nullptr;
    int64_t trips = 0, unit = 1;
  };
  Pool() = default;
  void worker(int slot);
  void take_units(int slot);
  static void after_fork_in_child();

  // state_: bits 0-11 workers inside the job, 12-23 threads that may take part, 24 open, 32-63 number of the job.
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> next_{0};   // first trip nobody has taken yet
  alignas(64) std::atomic<uint32_t> wake_{0};  // what parked workers wait on
  std::atomic<int> parked_{0};
  std::atomic<bool> busy_{false};  // a caller owns the job slot
  std::atomic<int> workers_{0};
  std::atomic<bool> refused_{false};  // the system has no more threads for us
  Job job_;
};

}  // namespace gaf
