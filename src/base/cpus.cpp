// How many CPUs this process may use, see cpus.h: affinity mask and cgroup files. Must not know what they are used for.
#include "base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace gaf {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

int affinity_cpus() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());  // more than CPU_SETSIZE CPUs
}

// The tightest quota from `folder` up to `root`: a parent's limit holds for all below it.
template <class Read>
double tightest(const std::string& root, std::string below, Read read) {
  double best = 0;
  for (;;) {
    const double q = read(root + below);
    if (q > 0 && (best == 0 || q < best)) best = q;
    const size_t slash = below.rfind('/');
    if (below.empty() || slash == std::string::npos) return best;
    below.resize(slash);
  }
}

double quota_v2(const std::string& folder) { return cpu_quota(first_line(folder + "/cpu.max").c_str()); }
double quota_v1(const std::string& folder) {
  const std::string quota = first_line(folder + "/cpu.cfs_quota_us"),
                    period = first_line(folder + "/cpu.cfs_period_us");
  return cpu_quota((quota + " " + period).c_str());
}

double container_cpus() {
  double best = 0;
  auto take = [&](double q) {
    if (q > 0 && (best == 0 || q < best)) best = q;
  };
  std::ifstream groups("/proc/self/cgroup");  // lines "number:controllers:path"
  for (std::string line; std::getline(groups, line);) {
    const size_t a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    const std::string controllers = "," + line.substr(a + 1, b - a - 1) + ",";
    std::string path = line.substr(b + 1);
    if (path == "/") path.clear();
    if (controllers == ",,")
      take(tightest("/sys/fs/cgroup", path, quota_v2));
    else if (controllers.find(",cpu,") != std::string::npos)
      take(tightest("/sys/fs/cgroup/cpu", path, quota_v1));
  }
  return best;
}

}  // namespace

double cpu_quota(const char* cpu_max) {
  char* end = nullptr;
  const double quota = std::strtod(cpu_max, &end);
  if (end == cpu_max || !(quota > 0)) return 0;  // "max", "-1" or nothing
  const double period = std::strtod(end, nullptr);
  return period > 0 ? quota / period : 0;
}

int host_cores() {
  int n = affinity_cpus();
  if (const double quota = container_cpus(); quota > 0) n = std::min(n, static_cast<int>(std::ceil(quota)));
  return std::max(n, 1);
}

}  // namespace gaf
