// The thread pool, see pool.h. One job at a time: a caller that finds it taken works alone, so there is no queue,
// nothing to deadlock on, and a job never waits for another. Must not know what a job computes.
#include "runtime/pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <system_error>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gaf {
namespace {

constexpr uint64_t kActiveMask = 0xfff;
constexpr int kThreadsShift = 12;
constexpr uint64_t kThreadsMask = 0xfff;
constexpr uint64_t kOpen = uint64_t{1} << 24;
constexpr int kNumberShift = 32;

// Between two kernels of one run lie well under 50 us; a parked worker needs 30 to 60 us to come back, a spinning one a
// quarter of one. About 40 us of `pause` (some 40 ns each on current cores).
constexpr int kSpins = 1000;

std::atomic<Pool*> g_pool{nullptr};
thread_local bool t_inside = false;  // this thread is running units of a job

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint64_t number_of(uint64_t state) { return state >> kNumberShift; }
int threads_of(uint64_t state) { return static_cast<int>(state >> kThreadsShift & kThreadsMask); }

}  // namespace

Pool& Pool::process() {
  Pool* p = g_pool.load(std::memory_order_acquire);
  if (p) return *p;
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) pthread_atfork(nullptr, nullptr, after_fork_in_child);
  auto* fresh = new Pool;  // never freed: workers may be parked on it while the process exits
  if (g_pool.compare_exchange_strong(p, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *p;
}

// The parent's workers do not exist in the child, and its job slot may be taken for ever: forget it all.
void Pool::after_fork_in_child() {
  g_pool.store(nullptr, std::memory_order_release);
  t_inside = false;
}

void Pool::reserve(int threads) {
  threads = std::min(threads, kMaxThreads);
  if (threads - 1 <= workers() || refused_.load(std::memory_order_relaxed)) return;
  while (busy_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  // Signals go to the program's own threads (Ctrl-C must interrupt the caller, not a worker).
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  for (int slot = workers() + 1; slot < threads; slot++) {
    try {
      std::thread([this, slot] { worker(slot); }).detach();
    } catch (const std::system_error&) {
      refused_.store(true, std::memory_order_relaxed);  // work with those that started, and do not ask again
      break;
    }
    workers_.store(slot, std::memory_order_release);
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  busy_.store(false, std::memory_order_release);
}

void Pool::take_units(int slot) {
  const Job job = job_;
  for (;;) {
    const int64_t lo = next_.fetch_add(job.unit, std::memory_order_relaxed);
    if (lo >= job.trips) return;
    job.body(job.context, slot, lo, std::min(lo + job.unit, job.trips));
  }
}

void Pool::run(int64_t trips, int threads, Body body, void* context) {
  if (trips <= 0) return;
  threads = static_cast<int>(std::min<int64_t>({threads, int64_t{workers()} + 1, trips}));
  if (threads <= 1 || t_inside || busy_.exchange(true, std::memory_order_acquire)) {
    body(context, 0, 0, trips);
    return;
  }
  job_ = {body, context, trips, std::max<int64_t>(1, trips / (int64_t{threads} * kUnitsPerThread))};
  next_.store(0, std::memory_order_relaxed);
  const uint64_t number = number_of(state_.load(std::memory_order_relaxed)) + 1;
  // seq_cst on both sides: either a worker about to park sees this job, or this thread sees that worker parked.
  state_.store(number << kNumberShift | kOpen | uint64_t(threads) << kThreadsShift, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) {
    wake_.fetch_add(1, std::memory_order_release);
    wake_.notify_all();
  }
  t_inside = true;
  take_units(0);
  t_inside = false;
  // No unit is left. Close the job, so that late workers stay out, and wait for those inside to finish their last unit.
  uint64_t left = state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int i = 0; left & kActiveMask; left = state_.load(std::memory_order_acquire))
    if (++i < kSpins)
      relax();
    else
      std::this_thread::yield();
  busy_.store(false, std::memory_order_release);
}

void Pool::worker(int slot) {
  uint64_t seen = 0;  // number of the last job this worker looked at
  t_inside = true;    // a nested call from a unit runs alone
  for (;;) {
    uint64_t state = state_.load(std::memory_order_acquire);
    for (int i = 0; i < kSpins && number_of(state) == seen; i++) {
      relax();
      state = state_.load(std::memory_order_acquire);
    }
    if (number_of(state) == seen) {
      const uint32_t ticket = wake_.load(std::memory_order_acquire);
      parked_.fetch_add(1, std::memory_order_seq_cst);
      if (number_of(state_.load(std::memory_order_seq_cst)) == seen) wake_.wait(ticket, std::memory_order_acquire);
      parked_.fetch_sub(1, std::memory_order_seq_cst);
      continue;
    }
    seen = number_of(state);
    if (slot >= threads_of(state)) continue;
    // Enter only while the job is open and still the same one.
    bool entered = false;
    while (!entered && (state & kOpen) && number_of(state) == seen)
      entered = state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel);
    if (!entered) continue;
    take_units(slot);
    state_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace gaf
