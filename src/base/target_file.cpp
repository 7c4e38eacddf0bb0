// Target files: read, checked, completed. Unknown keys, missing keys and numbers out of range are all reported at once with
// their lines. A file that says nothing of memories, edges, map, mma or code generation gets those of the shipped target of
// the same kind and instruction set, with its own memory sizes put in. Which files exist is target.cpp's.
#include "base/target_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>

#include "base/catalogue.h"
#include "base/error.h"

namespace gaf {
namespace {

template <class Enum, size_t N>
std::optional<Enum> named(const std::string_view (&names)[N], std::string_view s) {
  for (size_t i = 0; i < N; i++)
    if (names[i] == s) return static_cast<Enum>(i);
  return std::nullopt;
}

// One object of the file. Each read marks its key as known; `finish` reports the keys that nobody asked for.
class Fields {
 public:
  Fields(const Json& object, std::string file, std::string where, std::vector<ErrorInfo>& errors)
      : object_(object), file_(std::move(file)), where_(std::move(where)), errors_(errors) {}

  const Json* get(const std::string& key, bool required = true) {
    known_.push_back(key);
    const Json* v = object_.find(key);
    if (!v && required) report("GAF2201", object_.line(), fmt::format("missing key '{}'", where_ + key));
    return v;
  }
  void report(const char* code, int line, std::string message) {
    ErrorInfo e;
    e.code = code, e.message = std::move(message), e.file = file_, e.line = line;
    errors_.push_back(std::move(e));
  }
  void wrong(const Json& v, const std::string& key, std::string_view what) {
    report("GAF2202", v.line(), fmt::format("'{}' {}, got {}", where_ + key, what, v.is_object() || v.is_array() ? "a list" : v.dump()));
  }
  // above 0, or at least 0 where `zero` is allowed
  template <class T>
  void number(const std::string& key, T& out, bool zero = false, bool required = true) {
    const Json* v = get(key, required);
    if (!v) return;
    double limit = std::is_same_v<T, int> ? std::numeric_limits<int>::max() : 1e18;
    if (!v->is_number() || !(v->number() > 0 || (zero && v->number() == 0)) || v->number() > limit)
      return wrong(*v, key, zero ? "must be at least 0" : "must be above 0");
    if (std::is_integral_v<T> && !v->is_integer()) return wrong(*v, key, "must be a whole number");
    out = static_cast<T>(v->number());
  }
  void flag(const std::string& key, bool& out, bool required = true) {
    const Json* v = get(key, required);
    if (!v) return;
    if (!v->is_bool()) return wrong(*v, key, "must be true or false");
    out = v->boolean();
  }
  void text(const std::string& key, std::string& out, bool required = true) {
    const Json* v = get(key, required);
    if (!v) return;
    if (!v->is_string()) return wrong(*v, key, "must be text");
    out = v->str();
  }
  void one_of(const std::string& key, std::string& out, std::vector<std::string> legal, bool required = true) {
    const Json* v = get(key, required);
    if (!v) return;
    if (!v->is_string() || std::find(legal.begin(), legal.end(), v->str()) == legal.end())
      return wrong(*v, key, fmt::format("must be one of {}", fmt::join(legal, ", ")));
    out = v->str();
  }
  void memory(const std::string& key, Mem& out) {
    const Json* v = get(key);
    if (!v) return;
    auto m = v->is_string() ? named<Mem>(kMemName, v->str()) : std::nullopt;
    if (!m) return wrong(*v, key, "must name a memory");
    out = *m;
  }
  void memories(const std::string& key, std::vector<Mem>& out) {
    const Json* v = get(key);
    if (!v) return;
    if (!v->is_array() || v->items().empty()) return wrong(*v, key, "must be a list of memories");
    for (const Json& x : v->items()) {
      auto m = x.is_string() ? named<Mem>(kMemName, x.str()) : std::nullopt;
      if (!m) return wrong(x, key, "must name memories");
      out.push_back(*m);
    }
  }
  void dtypes(const std::string& key, std::vector<DType>& out) {
    const Json* v = get(key);
    if (!v) return;
    if (!v->is_array()) return wrong(*v, key, "must be a list of dtypes");
    for (const Json& x : v->items()) {
      auto t = x.is_string() ? dtype_named(x.str()) : std::nullopt;
      if (!t) return wrong(x, key, "must name dtypes");
      out.push_back(*t);
    }
  }
  void object(const std::string& key, bool required, const std::function<void(Fields&)>& read) {
    const Json* v = get(key, required);
    if (v) inside(*v, key, read);
  }
  void rows(const std::string& key, const std::function<void(Fields&)>& read) {
    const Json* v = get(key);
    if (!v) return;
    if (!v->is_array()) return wrong(*v, key, "must be a list of objects");
    for (const Json& row : v->items()) inside(row, key, read);
  }
  void finish() {
    for (const auto& [key, value] : object_.members())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        report("GAF2203", value.line(), fmt::format("unknown key '{}'{}", where_ + key, did_you_mean(key, known_)));
  }

 private:
  void inside(const Json& v, const std::string& key, const std::function<void(Fields&)>& read) {
    if (!v.is_object()) return wrong(v, key, "must be an object");
    Fields f(v, file_, where_ + key + ".", errors_);
    read(f);
    f.finish();
  }
  const Json& object_;
  std::string file_, where_;
  std::vector<ErrorInfo>& errors_;
  std::vector<std::string> known_;
};

void read_cpu_header(Fields& f, Target& t) {
  f.number("cores", t.cores);
  f.number("clock_mhz", t.clock_mhz);
  f.one_of("isa", t.isa, {"sse4.2", "avx2", "avx512"});
  f.number("max_regs", t.max_regs);
  f.number("vector_bits", t.vector_bits);
  if (const Json* v = f.get("max_regs", false); v && v->is_integer() && t.max_regs != 16 && t.max_regs != 32)
    f.wrong(*v, "max_regs", "must be 16 or 32");
  if (const Json* v = f.get("vector_bits", false); v && v->is_integer() && t.vector_bits != 128 && t.vector_bits != 256 && t.vector_bits != 512)
    f.wrong(*v, "vector_bits", "must be 128, 256 or 512");
  f.number("fma_per_cycle", t.fma_per_cycle);
  f.number("l1_bytes", t.l1_bytes);
  f.number("l2_bytes", t.l2_bytes);
  f.number("l3_bytes", t.l3_bytes, true);
  f.number("l1_gbps", t.l1_gbps);
  f.number("l2_gbps", t.l2_gbps);
  f.number("l3_gbps", t.l3_gbps, true);
  f.number("dram_gbps", t.dram_gbps);
  f.number("fork_join_us", t.fork_join_us);
  f.number("ub_bytes", t.ub_bytes);
}

struct NpuMemory {  // of the header; the kernel sections follow it where a file leaves them out
  int64_t ub = 0, reserved = 0, l1 = 0, l0a = 0, l0b = 0, l0c = 0;
};

void read_npu_header(Fields& f, Target& t, NpuMemory& local) {
  double sync_us = 0, rate = 0;
  int64_t bytes = 0;
  f.number("cube_cores", t.cube_cores);
  f.number("vector_cores", t.cores);
  f.number("clock_mhz", t.clock_mhz);
  f.number("max_regs", t.max_regs);
  f.number("core_sync_us", sync_us);
  f.object("global_memory", true, [&](Fields& m) {
    m.number("bytes", bytes);
    m.number("gbps", t.dram_gbps);
    m.number("bytes_per_cycle_per_core", rate);
  });
  f.object("shared_cache", true, [&](Fields& m) {
    m.number("bytes", t.l2_bytes);
    m.number("gbps", t.l2_gbps);
  });
  f.object("local_memory", true, [&](Fields& m) {
    m.number("ub_bytes", local.ub);
    m.number("ub_reserved_bytes", local.reserved, true);
    m.number("l1_bytes", local.l1);
    m.number("l0a_bytes", local.l0a);
    m.number("l0b_bytes", local.l0b);
    m.number("l0c_bytes", local.l0c);
    if (local.reserved >= local.ub) m.report("GAF2202", 0, "'local_memory.ub_reserved_bytes' must be below ub_bytes");
  });
  t.ub_bytes = local.ub - local.reserved;
  t.l1_bytes = local.l1;
  f.object("vector", true, [&](Fields& m) {
    int width = 0;
    m.number("bytes_per_cycle", width);
    m.number("op_overhead_cycles", t.issue, true);
    t.vector_bits = width * 8;
  });
  f.object("cube", true, [&](Fields& m) {
    int k_int8 = 0;
    m.number("m", t.mma.m);
    m.number("k", t.mma.k);
    m.number("n", t.mma.n);
    m.number("k_int8", k_int8);
  });
  f.object("alignment", true, [&](Fields& m) {
    int align = 0;
    for (const char* key : {"ub", "l0a", "l0b", "l0c", "bt", "global"}) m.number(key, align);
  });
  f.object("dtypes", true, [&](Fields& m) {
    std::vector<DType> cube;
    m.dtypes("vector", t.vector_dtypes);
    m.dtypes("cube", cube);
  });
}

constexpr const char* kKernelSections[] = {"memories", "edges", "map", "mma", "scalar", "issue", "pipes", "events", "sync", "tmp", "cpu"};

void read_kernel_sections(Fields& f, Target& t) {
  t.memories = {{Mem::gm, std::numeric_limits<int64_t>::max(), t.kind == "cpu" ? 4 : 32}};
  f.rows("memories", [&](Fields& m) {
    MemoryRow r{Mem::gm, 0, 1};
    m.memory("name", r.mem);
    if (r.mem == Mem::reg) {
      int count = 0, width = 0;
      m.number("count", count);
      m.number("vector_bytes", width);
      r.bytes = int64_t{count} * width;
    } else {
      m.number("bytes", r.bytes);
      m.number("align", r.align);
    }
    t.memories.push_back(r);
  });
  f.rows("edges", [&](Fields& m) {
    EdgeRow r{Mem::gm, Mem::gm, Pipe::v, 0};
    std::string pipe = "v", post;
    m.memory("from", r.from);
    m.memory("to", r.to);
    m.one_of("pipe", pipe, {kPipeName, kPipeName + std::size(kPipeName)});
    m.number("bytes_per_cycle", r.bytes_per_cycle);
    m.flag("casts", r.casts, false);
    m.one_of("post", post, {"relu"}, false);
    r.pipe = *named<Pipe>(kPipeName, pipe);
    r.relu = post == "relu";
    t.edges.push_back(r);
  });
  f.object("map", true, [&](Fields& m) {
    m.memory("dst", t.map_dst);
    m.memories("src", t.map_src);
  });
  f.object("mma", true, [&](Fields& m) {
    m.memories("a", t.mma.a);
    m.memories("b", t.mma.b);
    m.memory("acc", t.mma.acc);
    m.number("m", t.mma.m);
    m.number("k", t.mma.k);
    m.number("n", t.mma.n);
    m.number("flops_per_cycle", t.mma.flops_per_cycle);
  });
  f.one_of("scalar", t.isa, {"sse4.2", "avx2", "avx512", "npu"});
  f.number("issue", t.issue, true);
  f.flag("pipes", t.pipes);
  f.number("events", t.events, true);
  f.object("sync", t.pipes, [&](Fields& m) {
    m.number("event_ids", t.event_ids);
    m.flag("strict", t.strict_order);
    m.rows("order", [&](Fields& r) {
      std::string pipe = "v", known = "none", open = "none";
      std::vector<std::string> hazards(std::begin(kHazardName), std::end(kHazardName));
      r.one_of("pipe", pipe, {kPipeName, kPipeName + std::size(kPipeName)});
      r.one_of("known", known, hazards);
      r.one_of("open", open, hazards);
      OrderRow row{*named<Pipe>(kPipeName, pipe), *named<Hazard>(kHazardName, known), *named<Hazard>(kHazardName, open)};
      row.open = std::max(row.open, row.known);
      t.order.push_back(row);
    });
  });
  f.object("tmp", false, [&](Fields& m) {
    std::string reduce, column;
    m.one_of("reduce", reduce, {"like_src", "none"}, false);
    m.text("column_operand", column, false);
    t.tmp_reduce = reduce == "like_src";
    const Json* v = m.get("column_operand", false);
    if (v && v->is_string() && column != "none" && std::sscanf(column.c_str(), "rows x %" SCNd64 " B", &t.tmp_column_bytes) != 1)
      m.wrong(*v, "column_operand", "must read 'rows x N B'");
  });
  f.object("cpu", t.kind == "cpu", [&](Fields& m) {
    m.text("llvm_cpu", t.llvm_cpu);
    m.number("lanes", t.lanes);
    m.flag("fma", t.fma);
    m.number("tile_rows", t.tile_rows);
    m.number("tile_vecs", t.tile_vecs);
    m.number("k_unroll", t.k_unroll);
    m.number("row_lanes", t.row_lanes);
    m.number("row_block_bytes", t.row_block_bytes);
    m.flag("prefetch_panel", t.prefetch_panel);
  });
}

}  // namespace

Target read_target(std::string_view text, const std::string& file, const Json* (*like)(const Json&)) {
  const Json own = parse_json(text, file, "GAF2201");
  std::vector<ErrorInfo> errors;
  Fields f(own, file, "", errors);
  if (!own.is_object()) {
    f.report("GAF2201", own.line(), "a target file is a JSON object");
    throw UserError(std::move(errors));
  }
  Target t;
  std::string schema;
  f.one_of("schema", schema, {"gaf.target/1"});
  f.text("name", t.name);
  f.one_of("kind", t.kind, {"cpu", "npu"});
  f.text("source", t.source, false);
  f.get("aliases", false);
  f.get("calibration", false);
  NpuMemory local;
  if (own["kind"].is_string() && t.kind == own["kind"].str()) {
    if (t.kind == "cpu") read_cpu_header(f, t);
    else read_npu_header(f, t, local);
    f.number("launch_us", t.launch_us);
    f.number("budget", t.budget, false, t.kind == "npu");
    if (const Json* v = f.get("budget", false); v && t.budget > 1) f.wrong(*v, "budget", "must lie in (0, 1]");
    bool own_memories = own.find("memories") != nullptr;
    Json completed = own;
    if (const Json* sibling = errors.empty() ? like(own) : nullptr)
      for (const char* key : kKernelSections)
        if (const Json* v = sibling->find(key); v && !own.find(key)) completed.set(key, *v);
    if (errors.empty()) {
      Fields sections(completed, file, "", errors);
      read_kernel_sections(sections, t);
    }
    for (const char* key : kKernelSections) f.get(key, false);
    if (!own_memories) fit_memories(t, local.l0a, local.l0b, local.l0c);
  }
  f.finish();
  if (!errors.empty()) throw UserError(std::move(errors));
  return t;
}

// Sizes of local memories from the header: on a CPU a kernel's scratch may take half of the L2.
void fit_memories(Target& t, int64_t l0a, int64_t l0b, int64_t l0c) {
  for (MemoryRow& m : t.memories) {
    if (t.kind == "cpu" && m.mem == Mem::scratch) m.bytes = t.l2_bytes / 2 / m.align * m.align;
    if (t.kind == "cpu" && m.mem == Mem::reg) m.bytes = int64_t{t.max_regs} * t.vector_bytes();
    if (m.mem == Mem::ub) m.bytes = t.ub_bytes;
    if (m.mem == Mem::l1) m.bytes = t.l1_bytes;
    if (m.mem == Mem::l0a) m.bytes = l0a;
    if (m.mem == Mem::l0b) m.bytes = l0b;
    if (m.mem == Mem::l0c) m.bytes = l0c;
  }
}

}  // namespace gaf
