// Rows fetched ahead: which loads are followed by a prefetch of the next row, and that results do not change by it.
#include "unit/codegen/run_kernel.h"

namespace gaf {
namespace {

int64_t prefetches(const std::string& text) {
  const std::string ir = llvm_ir(kir::parse_kernel(text), load_target("x86-64-avx512"));
  int64_t n = 0;
  for (size_t at = 0; (at = ir.find("call void @llvm.prefetch", at)) != std::string::npos; at++) n++;
  return n;
}

// Rows of `columns`: a maximum and, in a second sweep, what is left over it, times an input that is the same for all
// rows.
std::string rows_text(int64_t columns, bool second_sweep) {
  const std::string n = std::to_string(columns);
  return "kernel @k target t (in %0: f32[40, " + n + "], in %1: f32[" + n + "], out %2: f32[40, " + n +
         R"(], out %3: f32[40, 1]) {
  for p in 0..5 par {
    for i in 0..8 {
      tile a: f32[1, 64] @reg
      tile s: f32[1, 1] @reg
      a = mov(-inf)
      for c in 0..)" +
         n + R"( step 64 {
        a = max(a, %0[p*8 + i, c:64])
      }
      s = reduce(max, 1, a)
      copy %3[p*8 + i, 0:1] = s
)" +
         (second_sweep ? "      for d in 0.." + n + R"( step 64 {
        tile t: f32[1, 64] @reg
        t = sub(%0[p*8 + i, d:64], s)
        t = mul(t, %1[d:64])
        copy %2[p*8 + i, d:64] = t
      }
)"
                       : "") +
         "    }\n  }\n}\n";
}

TEST(Ahead, TheFirstSweepFetchesTheNextRow) {
  EXPECT_EQ(prefetches(rows_text(512, true)), 4);       // 64 floats are four lines; %1 is no row, %2 is written
  EXPECT_EQ(prefetches(rows_text(512, false)), 0);      // one sweep is a stream
  EXPECT_EQ(prefetches(rows_text(64 << 10, true)), 0);  // and so is a row that no near cache holds
}

TEST(Ahead, ResultsStayAsTheyAre) { expect_compiled_like_interpreted({rows_text(192, true), {}, {}}); }

}  // namespace
}  // namespace gaf
