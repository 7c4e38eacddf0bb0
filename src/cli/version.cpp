// gaf --version: version, what this machine's CPU offers to generated code, and the back ends.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"

namespace gaf {
namespace {

std::vector<std::string> cpu_features() {
  std::vector<std::string> f;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) f.emplace_back("sse4.2");
  if (__builtin_cpu_supports("avx2")) f.emplace_back("avx2");
  if (__builtin_cpu_supports("fma")) f.emplace_back("fma");
  if (__builtin_cpu_supports("f16c")) f.emplace_back("f16c");
  if (__builtin_cpu_supports("avx512f")) f.emplace_back("avx512f");
  if (__builtin_cpu_supports("avx512bw")) f.emplace_back("avx512bw");
  if (__builtin_cpu_supports("avx512vl")) f.emplace_back("avx512vl");
  if (__builtin_cpu_supports("avx512vnni")) f.emplace_back("avx512vnni");
#endif
  return f;
}

}  // namespace

int command_version(bool json) {
  const std::vector<std::string> cpu = cpu_features();
  if (json)
    fmt::print("{}\n", Json::object({{"schema", "gaf.version/1"},
                                     {"version", GAF_VERSION},
                                     {"cpu", Json::array_of(cpu)},
                                     {"backends", Json::array({"cpu", "ascendc", "pto"})},
                                     {"targets", Json::array_of(shipped_targets())}})
                           .dump());
  else
    fmt::print("gaf {} (cpu: {}; backends: cpu ascendc pto)\n", GAF_VERSION, fmt::join(cpu, " "));
  return 0;
}

}  // namespace gaf
