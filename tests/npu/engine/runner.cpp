// The case file, the runs and their report.
#include "runner.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "checks.h"

namespace npu {
namespace {

constexpr int kSchedules = 50;

struct Buffer {
  bool output = false;
  std::vector<uint8_t> bytes;    // inputs
  std::vector<double> expected;  // outputs
};
struct Case {
  std::string name;
  size_t kernel = 0;
  std::vector<Buffer> buffers;
  std::vector<int64_t> blocks;
  int mutate = 0;
  std::string dump;
};

std::vector<uint8_t> read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  if (!in) {
    std::cerr << "cannot read " << name << "\n";
    exit(2);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Case> read_cases(const char* name) {
  std::vector<Case> cases;
  std::ifstream in(name);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string what, file;
    words >> what;
    if (what == "case") {
      words >> cases.emplace_back().name >> cases.back().kernel;
    } else if (what == "in") {
      words >> file;
      cases.back().buffers.push_back({false, read_file(file), {}});
    } else if (what == "out") {
      size_t bytes;
      words >> bytes >> file;
      const std::vector<uint8_t> raw = read_file(file);
      Buffer b{true, std::vector<uint8_t>(bytes), std::vector<double>(raw.size() / 8)};
      memcpy(b.expected.data(), raw.data(), raw.size());
      cases.back().buffers.push_back(std::move(b));
    } else if (what == "blocks") {
      for (int64_t n; words >> n;) cases.back().blocks.push_back(n);
    } else if (what == "dump") {
      words >> cases.back().dump;
    } else if (what == "mutate") {
      words >> cases.back().mutate;
    }
  }
  return cases;
}

// Distance in units in the last place of f16 at the expected value.
double ulps(float got, double expected) {
  if (std::isnan(got)) return HUGE_VAL;
  int exponent = 0;
  std::frexp(expected, &exponent);
  return std::fabs(double(got) - expected) / std::ldexp(1.0, std::max(exponent - 1, -14) - 10);
}

std::string quoted(const std::string& s) {
  return "\"" + s + "\"";
}  // texts of ours hold neither quotes nor backslashes

std::string json(const std::map<std::string, int>& m) {
  std::string s;
  for (const auto& [text, n] : m) s += (s.empty() ? "" : ", ") + quoted(text) + ": " + std::to_string(n);
  return "{" + s + "}";
}
std::string json(const std::vector<std::string>& v) {
  std::string s;
  for (const std::string& x : v) s += (s.empty() ? "" : ", ") + quoted(x);
  return "[" + s + "]";
}
std::string json(const Mutation& m) {
  return "{\"removed\": " + std::to_string(m.removed) + ", \"noticed\": " + std::to_string(m.noticed) +
         ", \"open\": " + std::to_string(m.open) + ", \"idle\": " + std::to_string(m.idle) +
         ", \"missed\": " + json(m.missed) + "}";
}

struct Run {
  const Case& c;
  KernelFunction kernel;
  std::vector<uint8_t*> pointers;

  void record(int64_t block, int64_t blocks) {
    core.start(block, blocks);
    kernel(pointers.data());
  }
  double worst() const {
    double w = 0;
    for (size_t i = 0; i < c.buffers.size(); i++)
      for (size_t j = 0; j < c.buffers[i].expected.size(); j++)
        w = std::max(w, ulps(load(pointers[i] + 2 * j, Type::f16), c.buffers[i].expected[j]));
    return w;
  }
  std::vector<uint8_t> outputs() const {
    std::vector<uint8_t> all;
    for (size_t i = 0; i < c.buffers.size(); i++)
      if (c.buffers[i].output) all.insert(all.end(), pointers[i], pointers[i] + c.buffers[i].bytes.size());
    return all;
  }
};

std::string place_name(size_t at) {
  for (int i = 0; i < kMemories; i++)
    if (at >= core.base[i] && at < core.base[i] + kMemory[i].bytes)
      return std::string(kMemory[i].name) + "+" + std::to_string(at - core.base[i]);
  for (size_t i = 0; i < core.gm.size(); i++)
    if (const Range& r = core.gm[i].range; at >= r.at && at < r.at + r.bytes)
      return "g" + std::to_string(i) + "+" + std::to_string(at - r.at);
  return "nowhere";
}

// A line an operation: a sync, or what runs, where its result begins, the result's bytes, where its lowest source
// begins.
void dump(const std::vector<Op>& trace, const std::string& file) {
  std::ofstream out(file);
  for (const Op& op : trace) {
    if (op.kind == Kind::barrier) out << "barrier " << kPipeName[op.pipe] << "\n";
    if (op.kind == Kind::set)
      out << "set " << kPipeName[op.pipe] << " " << kPipeName[op.other] << " " << op.event << "\n";
    if (op.kind == Kind::wait)
      out << "wait " << kPipeName[op.other] << " " << kPipeName[op.pipe] << " " << op.event << "\n";
    if (op.kind != Kind::run) continue;
    size_t bytes = 0;
    for (const Range& r : op.defines) bytes += r.bytes;
    out << op.what << " " << place_name(op.defines.front().at) << " " << bytes << " "
        << (op.needs.empty() ? "" : place_name(op.needs.front().at)) << "\n";
  }
}

// Every block of every count: nothing found in any, no byte of an output written by two, the same results.
std::vector<std::string> split_over_blocks(Run& run, const std::vector<uint8_t>& want) {
  std::vector<std::string> bad;
  for (const int64_t n : run.c.blocks) {
    const std::string count = std::to_string(n) + " blocks: ";
    core.fill_undefined();
    Ranges written;
    for (int64_t b = 0; b < n; b++) {
      run.record(b, n);
      const std::string block = count + "block " + std::to_string(b) + ": ";
      for (const auto& x : core.misuse) bad.push_back(block + x.first);
      for (const auto& x : run_in_order(core.trace, true)) bad.push_back(block + x.first);
      for (const auto& x : find_races(core.trace, Cells(core.trace)).faults) bad.push_back(block + x.first);
      Ranges own;
      for (const Op& op : core.trace)
        for (const Range& r : op.writes)
          if (!core.gm.empty() && r.at >= core.gm[0].range.at) own.push_back(r);
      own = merged(std::move(own));
      if (without(own, written) != own) bad.push_back(block + "writes what another block wrote");
      written = joined(std::move(written), own);
    }
    if (run.outputs() != want) bad.push_back(count + "other results");
  }
  return bad;
}

void report(const Case& c, KernelFunction kernel) {
  std::vector<std::pair<size_t, bool>> sizes;
  for (const Buffer& b : c.buffers) sizes.emplace_back(b.bytes.size(), b.output);
  core.reset(sizes);
  Run run{c, kernel, {}};
  for (size_t i = 0; i < c.buffers.size(); i++) {
    run.pointers.push_back(core.pointer(core.gm[i].range.at));
    if (!c.buffers[i].output) memcpy(run.pointers[i], c.buffers[i].bytes.data(), c.buffers[i].bytes.size());
  }
  run.record(0, 1);
  const std::vector<Op> trace = core.trace;
  const auto misused = core.misuse;
  if (!c.dump.empty()) dump(trace, c.dump);
  const Traffic traffic = core.traffic;
  std::string peaks;
  for (int i = 0; i < kMemories; i++)
    peaks += (i ? ", " : "") + quoted(kMemory[i].name) + ": " + std::to_string(core.peak[i]);
  const auto undefined = run_in_order(trace);
  const double worst = run.worst();
  const std::vector<uint8_t> want = run.outputs();
  const Findings races = find_races(trace, Cells(trace));
  std::vector<std::string> schedules;
  for (uint32_t seed = 0; seed < kSchedules; seed++) {
    for (const bool by_source : {false, true}) {
      const std::string seen = run_scheduled(trace, seed, by_source, !by_source);
      const std::string which = "schedule " + std::to_string(seed) + (by_source ? " (flags by source): " : ": ");
      if (!seen.empty())
        schedules.push_back(which + seen);
      else if (!by_source && run.outputs() != want)
        schedules.push_back(which + "other results");
    }
  }
  size_t syncs = 0;
  for (const Op& op : trace) syncs += op.kind != Kind::run;
  std::cout << "{\"name\": " << quoted(c.name) << ", \"operations\": " << trace.size() << ", \"syncs\": " << syncs
            << ", \"ulp\": " << (std::isfinite(worst) ? std::to_string(worst) : "1e9")
            << ",\n \"misuse\": " << json(misused) << ", \"undefined\": " << json(undefined)
            << ", \"races\": " << json(races.faults) << ", \"open\": " << json(races.open)
            << ",\n \"schedules\": " << json(schedules) << ", \"peak\": {" << peaks << "}, \"read\": " << traffic.read
            << ", \"written\": " << traffic.written << ",\n \"blocks\": " << json(split_over_blocks(run, want));
  if (c.mutate >= 1) std::cout << ",\n \"statements\": " << json(drop_each_statement(trace));
  if (c.mutate >= 2) std::cout << ",\n \"single\": " << json(drop_each_operation(trace));
  std::cout << "}";
}

}  // namespace

int run_cases(int argc, char** argv, const std::vector<KernelFunction>& kernels) {
  if (argc != 2) return 2;
  std::cout << "[";
  bool first = true;
  for (const Case& c : read_cases(argv[1])) {
    std::cout << (first ? "" : ",\n");
    first = false;
    report(c, kernels.at(c.kernel));
  }
  std::cout << "]\n";
  return 0;
}

}  // namespace npu
