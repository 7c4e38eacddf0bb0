// Kernels for the NPU text generators: as `lower` writes them (finished() puts in offsets and sync), and one whose
// offsets and sync stand in the text, for tests that break it.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "codegen/npu/npu.h"

namespace gaf {

inline constexpr const char* kNpuSoftmax =
    R"(kernel @softmax target ascend910b1 (in %0: f16[37, 100], out %1: f16[37, 100]) {
  for i in 0..3 par {
    tile h: f16[16, 112] @ub ring 2
    tile x: f32[16, 112] @ub
    tile m: f32[16, 1] @ub
    tile y: f16[16, 112] @ub ring 2
    copy h = %0[i*16:min(16, 37 - i*16), 0:100]
    x = cast(h)
    m = reduce(max, 1, x)
    x = sub(x, m)
    x = exp(x)
    m = reduce(add, 1, x)
    x = div(x, m)
    y = cast(x)
    copy %1[i*16:min(16, 37 - i*16), 0:100] = y
  }
}
)";

inline constexpr const char* kNpuMatMul =
    R"(kernel @mm target ascend910b1 (in %0: f16[33, 70], in %1: f16[70, 50], in %2: f16[50], out %3: f16[33, 50]) {
  for i in 0..2, j in 0..2 par {
    tile c: f32[32, 32] @l0c ring 2
    tile bl: f16[1, 32] @l1 ring 2
    tile bt: f32[1, 32] @bt ring 2
    copy bl = %2[j*32:min(32, 50 - j*32)]
    copy bt = bl
    for k in 0..70 step 32 {
      tile a1: f16[32, 32] @l1 ring 2
      tile b1: f16[32, 32] @l1 ring 2
      tile a0: f16[32, 32] @l0a ring 2
      tile b0: f16[32, 32] @l0b ring 2
      copy a1 = %0[i*32:min(32, 33 - i*32), k:min(32, 70 - k)]
      copy b1 = %1[k:min(32, 70 - k), j*32:min(32, 50 - j*32)]
      copy a0 = a1
      copy b0 = b1
      if k == 0 {
        c = mma(a0, b0, bt)
      } else {
        c += mma(a0, b0)
      }
    }
    copy %3[i*32:min(32, 33 - i*32), j*32:min(32, 50 - j*32)] = c post relu
  }
}
)";

// Finished: y = exp(x) on f32 rows of 64, two slots each way.
inline constexpr const char* kNpuExp =
    R"(kernel @e target ascend910b1 (in %0: f32[64, 64], out %1: f32[64, 64]) {
  set v mte2 0
  set v mte2 1
  set mte3 v 0
  set mte3 v 1
  for i in 0..8 par {
    tile x: f32[8, 64] @ub+0 ring 2
    tile y: f32[8, 64] @ub+4096 ring 2
    wait v mte2 i%2
    copy x = %0[i*8:8, 0:64]
    set mte2 v i%2
    wait mte2 v i%2
    wait mte3 v i%2
    y = exp(x)
    set v mte2 i%2
    set v mte3 i%2 + 2
    wait v mte3 i%2 + 2
    copy %1[i*8:8, 0:64] = y
    set mte3 v i%2
  }
  wait v mte2 0
  wait v mte2 1
  wait mte3 v 0
  wait mte3 v 1
}
)";

// The pipeline between `lower` and the generator.
inline kir::Kernel finished(const std::string& text, const std::string& target = "ascend910b1") {
  const Target t = load_target(target);
  kir::Kernel k = kir::legalise(kir::parse_kernel(text), t);
  kir::place(k, t);
  k = kir::insert_sync(std::move(k), t);
  for (const kir::KernelProblem& p : kir::verify_kernel(k, t))
    if (!p.warning) ADD_FAILURE() << "line " << p.line << ": " << p.text << "\n" << print_kernel(k);
  return k;
}
inline std::string npu_text(const std::string& text, NpuLanguage l, const std::string& target = "ascend910b1") {
  return emit_npu(finished(text, target), load_target(target), l);
}

// The text with one fragment exchanged; a fragment that is not there fails the test.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in\n" << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace gaf
