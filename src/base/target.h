// A device as data: everything that planner, lowering, verifier, analysis and code generators know of it. One JSON file a
// device in targets/ (embedded in the library; own files by path). No code tests a target's name.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpus.h"
#include "base/dtype.h"

namespace gaf {

enum class Mem : uint8_t { gm, scratch, reg, l1, l0a, l0b, l0c, bt, ub };
inline constexpr std::string_view kMemName[] = {"gm", "scratch", "reg", "l1", "l0a", "l0b", "l0c", "bt", "ub"};
enum class Pipe : uint8_t { s, v, m, mte1, mte2, mte3, fix };  // units that run side by side on one core
inline constexpr std::string_view kPipeName[] = {"s", "v", "m", "mte1", "mte2", "mte3", "fix"};

struct MemoryRow { Mem mem; int64_t bytes; int align; };        // bytes that one worker may use; gm: INT64_MAX
struct EdgeRow { Mem from, to; Pipe pipe; double bytes_per_cycle; bool casts = false; bool relu = false; };  // copies that exist
// Which earlier statements of one pipe a statement waits for only if a fence stands between: none; those that wrote bytes
// it touches; besides these, those that read bytes it writes.
enum class Hazard : uint8_t { none, write, any };
inline constexpr std::string_view kHazardName[] = {"none", "write", "any"};
struct OrderRow { Pipe pipe; Hazard known = Hazard::none, open = Hazard::none; };  // known: documented; open: not settled, at least `known`
struct MmaRow {
  std::vector<Mem> a, b;
  Mem acc = Mem::reg;
  int m = 1, k = 1, n = 1;                                      // granularity (npu) or limits of a register tile (cpu)
  double flops_per_cycle = 0;                                   // one worker; f32 on cpu, f16 on npu
};

struct Target {
  std::string name, kind = "cpu", source;                       // kind: cpu | npu
  // ---- CONTRACT 10 ----
  int cores = 1;                                                // workers
  int cube_cores = 0;                                           // npu: workers of a kernel with mma; `cores` run the others
  double clock_mhz = 0;
  std::string isa;                                              // "sse4.2" "avx2" "avx512"; selects the scalar table's cycle column
  int max_regs = 16, vector_bits = 256;
  double fma_per_cycle = 2;                                     // vector FMA instructions
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0, ub_bytes = 0;
  double l1_gbps = 0, l2_gbps = 0, l3_gbps = 0, dram_gbps = 0;  // one core; dram: chip
  double launch_us = 0, fork_join_us = 0;
  double budget = 0.8;
  // ---- kernel IR ----
  std::vector<MemoryRow> memories;
  std::vector<EdgeRow> edges;
  Mem map_dst = Mem::reg;
  std::vector<Mem> map_src;
  MmaRow mma;
  double issue = 0;                                             // fixed cycles of each vector statement
  bool pipes = false;                                           // needs set, wait, fence
  int events = 0;                                               // ids of one source pipe to get by with
  int event_ids = 0;                                            // ids that one source pipe has
  std::vector<OrderRow> order;                                  // pipes without a row finish their statements in order
  bool strict_order = true;                                     // fence what the open rules want as well
  int64_t tmp_column_bytes = 0;                                 // scratch of a column operand, a row; 0: none
  bool tmp_reduce = false;                                      // a reduction needs scratch like its source
  std::vector<DType> vector_dtypes;                             // dtypes the vector unit computes in (npu)
  // ---- CPU code generation (what fast kernels look like on this ISA) ----
  std::string llvm_cpu;                                         // "haswell"; features follow from it
  int lanes = 8;                                                // f32 lanes of the widest vector
  bool fma = true;
  int tile_rows = 6, tile_vecs = 2;                             // default register tile: tile_rows x tile_vecs*lanes
  int k_unroll = 4;                                             // K steps in one basic block
  int row_lanes = 32;                                           // f32 width of elementwise and row kernels
  int64_t row_block_bytes = 0;                                  // bytes of A in a row block
  bool prefetch_panel = false;                                  // contractions fetch b before its use

  const EdgeRow* edge(Mem from, Mem to) const;
  const MemoryRow* memory(Mem m) const;
  const OrderRow* order_of(Pipe p) const;
  int vector_bytes() const { return vector_bits / 8; }
};

// "host" (probed), a shipped name (case-insensitive), or the path of a JSON file. UserError GAF2201..2204.
Target load_target(std::string_view name_or_path);
std::vector<std::string> shipped_targets();
// Does this machine run code for the target? (cpu kind and the instruction set present)
bool host_runs(const Target& t);

}  // namespace gaf
