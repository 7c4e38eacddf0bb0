// Targets by name: the shipped files (embedded at build time), a user's own file by path, and `host`, which is the best
// shipped level that this machine runs with the machine's own cores and caches put in.
#include "base/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include "base/catalogue.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"
#include "base/target_file.h"

namespace gaf {
namespace {

std::string lower_case(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// A shipped file by its name or by one of the "aliases" it declares.
const EmbeddedFile* shipped(std::string_view name) {
  std::string wanted = lower_case(name);
  for (const EmbeddedFile& f : embedded_targets()) {
    if (f.name == wanted) return &f;
    Json j = parse_json(f.text, f.name, "GAF2201");
    if (const Json* aliases = j.find("aliases"))
      for (const Json& a : aliases->items())
        if (a.str() == wanted) return &f;
  }
  return nullptr;
}

// The shipped target whose kernel sections stand in for those that a file of this kind leaves out.
const Json* shipped_like(const Json& file) {
  static const std::vector<Json> all = [] {
    std::vector<Json> files;
    for (const EmbeddedFile& f : embedded_targets()) files.push_back(parse_json(f.text, f.name, "GAF2201"));
    return files;
  }();
  for (const Json& f : all) {
    if (f["kind"].str() != file["kind"].str()) continue;
    if (f["kind"].str() == "npu" || f["isa"].str() == file["isa"].str()) return &f;
  }
  return nullptr;
}

// ---- this machine ----

struct Level {  // what a shipped CPU target needs of the machine
  const char* isa;
  const char* shipped;
};
constexpr Level kLevels[] = {{"avx512", "x86-64-avx512"}, {"avx2", "x86-64-avx2"}, {"sse4.2", "x86-64-sse"}};  // best first

bool host_has(std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "sse4.2") return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (isa == "avx2") return avx2;
  if (isa == "avx512")
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return false;
}

std::string first_line(const std::string& path) {
  std::ifstream f(path);
  std::string s;
  std::getline(f, s);
  return s;
}

// Bytes of the data or unified cache of a level as one core sees it; 0 if the system does not say.
int64_t cache_bytes(int level) {
  for (int i = 0; i < 8; i++) {
    std::string dir = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    if (first_line(dir + "level") != std::to_string(level) || first_line(dir + "type") == "Instruction") continue;
    std::string size = first_line(dir + "size");  // as in 2048K
    if (size.empty()) return 0;
    int64_t unit = size.back() == 'K' ? 1 << 10 : size.back() == 'M' ? 1 << 20 : 1;
    return std::atoll(size.c_str()) * unit;
  }
  return 0;
}

// The best shipped level that this machine runs, with its own cores, caches and clock put in. Bandwidths stay the shipped
// ones until they are calibrated: measuring here would make plans differ from run to run.
Target probe_host() {
  const char* name = kLevels[std::size(kLevels) - 1].shipped;  // without SSE4.2 nothing generated runs: host_runs says no
  for (const Level& l : kLevels)
    if (host_has(l.isa)) {
      name = l.shipped;
      break;
    }
  Target t = load_target(name);
  t.name = "host";
  t.source = fmt::format("{} with this machine's cores and caches", name);
  t.cores = host_cores();
  if (int64_t l1 = cache_bytes(1)) t.l1_bytes = l1;
  if (int64_t l2 = cache_bytes(2)) {
    t.l2_bytes = l2;
    t.ub_bytes = l2;
    t.row_block_bytes = l2 / 5;
  }
  t.l3_bytes = cache_bytes(3);
  if (double khz = std::atof(first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").c_str()); khz > 0) t.clock_mhz = khz / 1000;
  fit_memories(t);
  return t;
}

}  // namespace

const EdgeRow* Target::edge(Mem from, Mem to) const {
  for (const EdgeRow& e : edges)
    if (e.from == from && e.to == to) return &e;
  return nullptr;
}

const MemoryRow* Target::memory(Mem m) const {
  for (const MemoryRow& r : memories)
    if (r.mem == m) return &r;
  return nullptr;
}

const OrderRow* Target::order_of(Pipe p) const {
  for (const OrderRow& r : order)
    if (r.pipe == p) return &r;
  return nullptr;
}

std::vector<std::string> shipped_targets() {
  std::vector<std::string> names = {"host"};
  for (const EmbeddedFile& f : embedded_targets()) names.emplace_back(f.name);
  return names;
}

Target load_target(std::string_view name_or_path) {
  if (lower_case(name_or_path) == "host") {
    static const Target host = probe_host();
    return host;
  }
  bool path = name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json");
  if (path) {
    constexpr int64_t kLargestFile = 1 << 20;
    return read_target(read_file(std::string(name_or_path), kLargestFile), std::string(name_or_path), shipped_like);
  }
  if (const EmbeddedFile* f = shipped(name_or_path)) return read_target(f->text, std::string(f->name) + ".json", shipped_like);
  throw UserError("GAF2204", fmt::format("unknown target '{}'{}", name_or_path, did_you_mean(name_or_path, shipped_targets())));
}

bool host_runs(const Target& t) { return t.kind == "cpu" && host_has(t.isa); }

}  // namespace gaf
