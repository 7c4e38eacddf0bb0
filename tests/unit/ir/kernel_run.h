// A target by hand (so that no test depends on a shipped file) and a short way to run a kernel's text on vectors.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "ir/kernel.h"

namespace gaf::kir {

inline Target test_target() {
  Target t;
  t.name = "test", t.kind = "cpu", t.isa = "avx2";
  t.cores = 2, t.clock_mhz = 3000, t.max_regs = 16, t.vector_bits = 256, t.lanes = 8;
  t.l1_bytes = 32 << 10, t.l2_bytes = 1 << 20, t.l3_bytes = 8 << 20;
  t.l1_gbps = 200, t.l2_gbps = 80, t.l3_gbps = 30, t.dram_gbps = 20;
  t.launch_us = 0.5, t.fork_join_us = 2;
  t.memories = {{Mem::gm, INT64_MAX, 4}, {Mem::scratch, 256 << 10, 64}, {Mem::reg, 16 * 32, 1}};
  t.edges = {{Mem::gm, Mem::reg, Pipe::v, 64},      {Mem::reg, Mem::gm, Pipe::v, 32},
             {Mem::gm, Mem::scratch, Pipe::v, 32},  {Mem::scratch, Mem::gm, Pipe::v, 32},
             {Mem::scratch, Mem::reg, Pipe::v, 64}, {Mem::reg, Mem::scratch, Pipe::v, 32},
             {Mem::gm, Mem::gm, Pipe::v, 16},       {Mem::scratch, Mem::scratch, Pipe::v, 16},
             {Mem::reg, Mem::reg, Pipe::v, 64}};
  t.map_dst = Mem::reg;
  t.map_src = {Mem::reg, Mem::scratch, Mem::gm};
  t.mma = {{Mem::gm, Mem::scratch}, {Mem::gm, Mem::scratch}, Mem::reg, 8, 1, 16, 32};
  return t;
}

inline std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 g(seed);
  std::uniform_real_distribution<float> d(-1, 1);
  std::vector<float> v(n);
  for (float& x : v) x = d(g);
  return v;
}

template <class... V>
void run_text(std::string_view text, std::vector<int64_t> sizes, V&... vectors) {
  Kernel k = parse_kernel(text);
  std::vector<void*> buffers{static_cast<void*>(vectors.data())...};
  interpret(k, test_target(), buffers, sizes);
}

}  // namespace gaf::kir
