// The thread pool: every trip exactly once, slots unique, nested and parallel callers, fork.
#include "runtime/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace gaf {
namespace {

struct Counts {
  std::vector<std::atomic<int>> seen;
  std::atomic<int> in_slot[64] = {};
  std::atomic<bool> clash{false};
  explicit Counts(size_t n) : seen(n) {}
  static void body(void* p, int slot, int64_t lo, int64_t hi) {
    auto& c = *static_cast<Counts*>(p);
    if (c.in_slot[slot].fetch_add(1) != 0) c.clash = true;
    for (int64_t i = lo; i < hi; i++) c.seen[static_cast<size_t>(i)]++;
    c.in_slot[slot].fetch_sub(1);
  }
  bool each_once() const {
    for (const auto& s : seen)
      if (s != 1) return false;
    return true;
  }
};

TEST(Pool, EveryTripOnce) {
  Pool& pool = Pool::process();
  pool.reserve(4);
  for (int64_t trips : {0, 1, 2, 3, 7, 33, 1000}) {
    for (int threads : {1, 2, 4, 64}) {
      Counts c(static_cast<size_t>(trips));
      pool.run(trips, threads, Counts::body, &c);
      EXPECT_TRUE(c.each_once()) << trips << " trips, " << threads << " threads";
      EXPECT_FALSE(c.clash);
    }
  }
}

TEST(Pool, ManyShortJobs) {
  Pool& pool = Pool::process();
  pool.reserve(3);
  for (int i = 0; i < 3000; i++) {
    Counts c(5);
    pool.run(5, 3, Counts::body, &c);
    ASSERT_TRUE(c.each_once()) << "job " << i;
  }
}

TEST(Pool, ParkedWorkersWakeUp) {
  Pool& pool = Pool::process();
  pool.reserve(2);
  std::atomic<int> helped{0};
  for (int i = 0; i < 20 && helped == 0; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // long past spinning
    struct Ctx {
      std::atomic<int>* helped;
    } ctx{&helped};
    pool.run(
        2, 2,
        [](void* p, int slot, int64_t, int64_t) {
          if (slot > 0)
            (*static_cast<Ctx*>(p)->helped)++;
          else
            std::this_thread::sleep_for(std::chrono::milliseconds(20));  // leaves the other unit to the worker
        },
        &ctx);
  }
  EXPECT_GT(helped, 0);
}

TEST(Pool, NestedCallsRunAlone) {
  Pool& pool = Pool::process();
  pool.reserve(3);
  std::atomic<int> inner{0};
  pool.run(
      6, 3,
      [](void* p, int, int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; i++)
          Pool::process().run(
              10, 3,
              [](void* q, int slot, int64_t l, int64_t h) {
                EXPECT_EQ(slot, 0);
                *static_cast<std::atomic<int>*>(q) += static_cast<int>(h - l);
              },
              p);
      },
      &inner);
  EXPECT_EQ(inner, 60);
}

TEST(Pool, CallersFromManyThreads) {
  Pool::process().reserve(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; t++)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; i++) {
        Counts c(37);
        Pool::process().run(37, 3, Counts::body, &c);
        if (!c.each_once() || c.clash) wrong++;
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer's own runtime does not survive fork with threads
TEST(Pool, ChildAfterForkBuildsItsOwn) {
  Pool& pool = Pool::process();
  pool.reserve(3);
  Counts before(100);
  pool.run(100, 3, Counts::body, &before);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    Pool& own = Pool::process();
    if (&own == &pool || own.workers() != 0) _exit(1);
    own.reserve(3);
    Counts c(100);
    own.run(100, 3, Counts::body, &c);
    _exit(c.each_once() && own.workers() == 2 ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Counts after(100);
  pool.run(100, 3, Counts::body, &after);
  EXPECT_TRUE(after.each_once());
}

TEST(Pool, ForkWhileAnotherThreadRunsAJob) {
  Pool::process().reserve(2);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      Counts c(64);
      Pool::process().run(64, 2, Counts::body, &c);
    }
  });
  for (int i = 0; i < 10; i++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      Pool::process().reserve(2);
      Counts c(64);
      Pool::process().run(64, 2, Counts::body, &c);
      _exit(c.each_once() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  other.join();
}
#endif

// Prints what a job costs. Run with --gtest_also_run_disabled_tests --gtest_filter=*Times
TEST(Pool, DISABLED_Times) {
  Pool& pool = Pool::process();
  pool.reserve(2);
  for (const bool parked : {false, true}) {
    std::vector<double> us;
    for (int i = 0; i < (parked ? 100 : 10000); i++) {
      if (parked) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const auto start = std::chrono::steady_clock::now();
      pool.run(
          2, 2, [](void*, int, int64_t, int64_t) {}, nullptr);
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(us.begin(), us.end());
    std::printf("%s: median %.2f us, p90 %.2f us\n", parked ? "parked" : "hot", us[us.size() / 2],
                us[us.size() * 9 / 10]);
  }
}

}  // namespace
}  // namespace gaf
