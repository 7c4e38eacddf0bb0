// A target with pipes by hand, and kernels for it as `lower` writes them: softmax and matmul + bias + relu, whole and
// ragged.
#pragma once
#include <array>
#include <random>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "ir/kernel.h"

namespace gaf::kir {

inline Target npu_target() {
  Target t;
  t.name = "npu", t.kind = "npu", t.pipes = true, t.events = 6, t.event_ids = 8, t.vector_bits = 2048, t.max_regs = 0;
  t.cores = 40, t.cube_cores = 20, t.clock_mhz = 1800, t.issue = 24, t.launch_us = 20, t.l2_bytes = 192 << 20,
  t.l2_gbps = 5000, t.dram_gbps = 1600;
  t.memories = {{Mem::gm, INT64_MAX, 32}, {Mem::ub, 188416, 32},  {Mem::l1, 524288, 32}, {Mem::l0a, 65536, 512},
                {Mem::l0b, 65536, 512},   {Mem::l0c, 131072, 64}, {Mem::bt, 1024, 64}};
  t.edges = {{Mem::gm, Mem::ub, Pipe::mte2, 85},
             {Mem::ub, Mem::gm, Pipe::mte3, 85},
             {Mem::gm, Mem::l1, Pipe::mte2, 85},
             {Mem::l1, Mem::l0a, Pipe::mte1, 256},
             {Mem::l1, Mem::l0b, Pipe::mte1, 128},
             {Mem::l1, Mem::bt, Pipe::mte1, 64, true},
             {Mem::l0c, Mem::gm, Pipe::fix, 64, true, true}};
  t.map_dst = Mem::ub, t.map_src = {Mem::ub};
  t.mma = {{Mem::l0a}, {Mem::l0b}, Mem::l0c, 16, 16, 16, 8192};
  t.vector_dtypes = {DType::f16, DType::f32, DType::i16, DType::i32};
  t.order = {{Pipe::v, Hazard::write, Hazard::any}, {Pipe::m, Hazard::none, Hazard::write}};
  for (Pipe p : {Pipe::mte1, Pipe::mte2, Pipe::mte3, Pipe::fix}) t.order.push_back({p, Hazard::write, Hazard::write});
  t.tmp_reduce = true, t.tmp_column_bytes = 32;
  return t;
}

struct NpuText {
  const char* name;
  const char* text;
};
inline constexpr NpuText kNpuTexts[] = {
    {"softmax", R"(kernel @softmax target npu (in %0: f16[24, 32], out %1: f16[24, 32]) {
  for i in 0..6 par {
    tile xh: f16[4, 32] @ub ring 2
    tile x: f32[4, 32] @ub
    tile m: f32[8, 1] @ub
    tile yh: f16[4, 32] @ub ring 2
    copy xh = %0[i*4:4, 0:32]
    x = cast(xh)
    m = reduce(max, 1, x)
    x = sub(x, m)
    x = exp(x)
    m = reduce(add, 1, x)
    x = div(x, m)
    yh = cast(x)
    copy %1[i*4:4, 0:32] = yh
  }
}
)"},
    {"ragged softmax", R"(kernel @softmax target npu (in %0: f16[23, 21], out %1: f16[23, 21]) {
  for i in 0..6 par {
    tile xh: f16[4, 32] @ub ring 2
    tile x: f32[4, 32] @ub
    tile m: f32[8, 1] @ub
    tile yh: f16[4, 32] @ub ring 2
    copy xh = %0[i*4:min(4, 23 - i*4), 0:21]
    x = cast(xh)
    m = reduce(max, 1, x)
    x = sub(x, m)
    x = exp(x)
    m = reduce(add, 1, x)
    x = div(x, m)
    yh = cast(x)
    copy %1[i*4:min(4, 23 - i*4), 0:21] = yh
  }
}
)"},
    {"f32 softmax in place, one slot", R"(kernel @softmax target npu (in %0: f32[6, 21], out %1: f32[6, 21]) {
  for i in 0..3 par {
    tile x: f32[2, 24] @ub
    tile m: f32[8, 1] @ub
    copy x = %0[i*2:2, 0:21]
    m = reduce(max, 1, x)
    x = sub(x, m)
    x = exp(x)
    m = reduce(add, 1, x)
    x = div(x, m)
    copy %1[i*2:2, 0:21] = x
  }
}
)"},
    {"matmul", R"(kernel @mm target npu (in %0: f16[64, 96], in %1: f16[96, 64], in %2: f16[64], out %3: f16[64, 64]) {
  for i in 0..2, j in 0..2 par {
    tile c: f32[32, 32] @l0c ring 2
    tile bl: f16[1, 32] @l1 ring 2
    tile bt: f32[1, 32] @bt ring 2
    copy bl = %2[j*32:32]
    copy bt = bl
    for k in 0..96 step 32 {
      tile a1: f16[32, 32] @l1 ring 2
      tile b1: f16[32, 32] @l1 ring 2
      tile a0: f16[32, 32] @l0a ring 2
      tile b0: f16[32, 32] @l0b ring 2
      copy a1 = %0[i*32:32, k:32]
      copy b1 = %1[k:32, j*32:32]
      copy a0 = a1
      copy b0 = b1
      if k == 0 {
        c = mma(a0, b0, bt)
      } else {
        c += mma(a0, b0)
      }
    }
    copy %3[i*32:32, j*32:32] = c post relu
  }
}
)"},
    {"ragged matmul",
     R"(kernel @mm target npu (in %0: f16[37, 50], in %1: f16[50, 41], in %2: f16[41], out %3: f16[37, 41]) {
  for i in 0..3, j in 0..2 par {
    tile c: f32[16, 32] @l0c
    tile bl: f16[1, 32] @l1 ring 2
    tile bt: f32[1, 32] @bt
    copy bl = %2[j*32:min(32, 41 - j*32)]
    copy bt = bl
    for k in 0..50 step 32 {
      tile a1: f16[16, 32] @l1 ring 2
      tile b1: f16[32, 32] @l1 ring 2
      tile a0: f16[16, 32] @l0a ring 2
      tile b0: f16[32, 32] @l0b ring 2
      copy a1 = %0[i*16:min(16, 37 - i*16), k:min(32, 50 - k)]
      copy b1 = %1[k:min(32, 50 - k), j*32:min(32, 41 - j*32)]
      copy a0 = a1
      copy b0 = b1
      if k == 0 {
        c = mma(a0, b0, bt)
      } else {
        c += mma(a0, b0)
      }
    }
    copy %3[i*16:min(16, 37 - i*16), j*32:min(32, 41 - j*32)] = c post relu
  }
}
)"},
    {"matmul, K in one step",
     R"(kernel @mm target npu (in %0: f16[40, 16], in %1: f16[16, 32], in %2: f16[32], out %3: f16[40, 32]) {
  for i in 0..5 par {
    tile c: f32[16, 32] @l0c ring 2
    tile bl: f16[1, 32] @l1 ring 2
    tile bt: f32[1, 32] @bt ring 2
    tile a1: f16[16, 16] @l1 ring 2
    tile b1: f16[16, 32] @l1 ring 2
    tile a0: f16[16, 16] @l0a ring 2
    tile b0: f16[16, 32] @l0b ring 2
    copy bl = %2[0:32]
    copy bt = bl
    copy a1 = %0[i*8:8, 0:16]
    copy b1 = %1[0:16, 0:32]
    copy a0 = a1
    copy b0 = b1
    c = mma(a0, b0, bt)
    copy %3[i*8:8, 0:32] = c post relu
  }
}
)"},
    {"residual in column steps, bias kept",
     R"(kernel @res target npu (in %0: f32[10, 48], in %1: f32[10, 48], in %2: f32[48], out %3: f32[10, 48]) {
  tile b: f32[1, 48] @ub
  copy b = %2[0:48]
  for i in 0..10 par {
    for c in 0..48 step 16 {
      tile x: f32[1, 16] @ub ring 2
      tile z: f32[1, 16] @ub ring 2
      tile y: f32[1, 16] @ub ring 2
      copy x = %0[i, c:16]
      copy z = %1[i, c:16]
      x = add(x, z)
      y = add(x, b[0:1, c:16])
      copy %3[i, c:16] = y
    }
  }
}
)"},
    {"inner loops of other lengths", R"(kernel @tri target npu (in %0: f32[8, 64], out %1: f32[8, 64]) {
  for i in 0..8 par {
    for c in 0..min(i, 4) {
      tile x: f32[1, 16] @ub ring 3
      tile y: f32[1, 16] @ub ring 2
      copy x = %0[i, c*16:16]
      y = exp(x)
      copy %1[i, c*16:16] = y
    }
  }
}
)"},
};

// Memory for a kernel's buffers: random values, as in f16 or f32 by the buffer's dtype.
struct NpuMemory {
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<void*> pointers;
  explicit NpuMemory(const Kernel& k) {
    std::mt19937 g(1);
    std::uniform_real_distribution<float> d(-1, 1);
    for (int id : parameters(k)) {
      const Buf& b = k.bufs[static_cast<size_t>(id)];
      int64_t n = product(b.shape).eval({});
      std::vector<uint8_t> v(static_cast<size_t>(n * gaf::bytes(b.type)));
      for (int64_t i = 0; i < n; i++)
        if (b.type == DType::f16)
          reinterpret_cast<uint16_t*>(v.data())[i] = f32_to_f16(d(g));
        else
          reinterpret_cast<float*>(v.data())[i] = d(g);
      bytes.push_back(std::move(v));
    }
    for (auto& v : bytes) pointers.push_back(v.data());
  }
};

}  // namespace gaf::kir
