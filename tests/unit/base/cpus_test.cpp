// CPUs that a process may use.
#include "base/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace gaf {
namespace {

TEST(Cpus, QuotaText) {
  EXPECT_EQ(cpu_quota("max 100000"), 0);
  EXPECT_EQ(cpu_quota("150000 100000"), 1.5);
  EXPECT_EQ(cpu_quota("-1 100000"), 0);
  EXPECT_EQ(cpu_quota(""), 0);
  EXPECT_EQ(cpu_quota("100000"), 0);
  EXPECT_GE(host_cores(), 1);
}

TEST(Cpus, AffinityIsHonoured) {
  std::thread([] {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
      if (CPU_ISSET(cpu, &mask)) {
        CPU_ZERO(&mask);
        CPU_SET(cpu, &mask);
        break;
      }
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    EXPECT_EQ(host_cores(), 1);
  }).join();
}

}  // namespace
}  // namespace gaf
