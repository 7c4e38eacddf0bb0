// The verifier accepts the hand-written kernels and names the line and the reason of what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/kernel_bounds.h"
#include "unit/ir/kernel_run.h"
#include "unit/ir/kernel_texts.h"

namespace gaf::kir {
namespace {

using testing::HasSubstr;

std::string problems(const Kernel& k, const Target& t = test_target()) {
  std::string s;
  for (const KernelProblem& p : verify_kernel(k, t))
    s += std::to_string(p.line) + ": " + p.text + (p.warning ? " (warning)\n" : "\n");
  return s;
}

TEST(KernelVerifier, AcceptsHandWrittenKernels) {
  for (std::string_view text : texts::kAll) EXPECT_EQ(problems(parse_kernel(text)), "") << text;
}

TEST(KernelVerifier, AcceptsPlacedKernels) {
  Kernel k = parse_kernel(texts::kAttention);
  auto peak = place(k, test_target());
  EXPECT_EQ(problems(k), "");
  EXPECT_EQ(peak[Mem::scratch], 16 * 32 * 4 + 2 * 12 * 16 * 4 + 2 * 64);
  std::string text = print_kernel(k);
  EXPECT_THAT(text, HasSubstr("tile s: f32[12, 16] @scratch+2048"));
  EXPECT_EQ(print_kernel(parse_kernel(text)), text);
}

// Statements of a kernel with %0 f32[N, 64] in, %1 f32[64, 64] in, %2 i32[64] in, %3 f32[N, 64] out, %4 f16[64] in,
// %5 tmp f32[64], inside a par loop over r in 0..N. The body starts at line 3.
std::string in_loop(std::string_view body) {
  return "kernel @k target test (size N in 1..64, in %0: f32[N, 64], in %1: f32[64, 64], in %2: i32[64], out %3: "
         "f32[N, 64], in %4: f16[64], tmp %5: f32[64]) {\n"
         "  for r in 0..N par {\n" +
         std::string(body) + "  }\n}\n";
}

struct Case {
  std::string_view body, message;
};
class KernelVerifierRefuses : public testing::TestWithParam<Case> {};
TEST_P(KernelVerifierRefuses, AtTheLine) {
  EXPECT_THAT(problems(parse_kernel(in_loop(GetParam().body))), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    , KernelVerifierRefuses,
    testing::Values(
        Case{"tile t: f32[1, 8] @l1\n", "3: target test has no tile memory l1"},
        Case{"tile t: f32[1, 8] @scratch+32\n", "3: tile t is not aligned to 64"},
        Case{"tile t: f32[512, 512] @scratch\n", "3: tile t does not fit scratch"},
        Case{"if r == 0 {\ntile t: f32[1, 8] @reg\nt = mov(0)\n}\ncopy %3[r, 0:8] = t\n",
             "7: tile t is used outside the block"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(%0[r, 60:8])\n", "4: %0[r, 60:8]: index 1 may pass the end by 4"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(%0[r - 1, 0:8])\n", "4: %0[r - 1, 0:8]: index 0 may be negative"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(%0[r + 1, 0:8])\n", "4: %0[r + 1, 0:8]: index 0 may pass the end by 1"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(%0[0:8])\n", "4: %0[0:8] needs 2 indices"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(%1[0, 0:N])\n", "4: mov: [1, N] does not fit t"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(%1[0, 0:0])\n", "4: %1[0, 0:0]: the extent 0 may be empty"},
        Case{"copy %0[r, 0:8] = %1[0, 0:8]\n", "3: writes the input %0[r, 0:8]"},
        Case{"copy %3[0, 0:8] = %1[0, 0:8]\n", "3: par iterations may write the same elements: %3[0, 0:8]"},
        Case{"copy %3[r, 0:8] = %3[63 - r, 0:8]\n", "par iterations may write what others read"},
        Case{"for q in 0..4 par {\n}\n", "3: par must stand outermost"},
        Case{"barrier\n", "3: a barrier must stand outermost"},
        Case{"tile t: f32[1, 8] @reg\ncopy t = %4[0:8]\n", "4: copy: %4[0:8] and t differ in dtype"},
        Case{"tile t: f32[1, 8] @reg\ntile h: f16[1, 8] @reg\nt = mov(0)\nh = mov(t)\n",
             "6: mov: t and h differ in dtype"},
        Case{"tile t: f32[1, 8] @reg\ncopy t = %1[0, 0:8] post relu\n", "4: this copy cannot apply relu"},
        Case{"copy %3[r, 0:8] = %1[0, 0:9]\n", "3: copy: [1, 9] does not fit %3[r, 0:8] [1, 8]"},
        Case{"tile t: f32[1, 8] @reg\nt = add(%1[0, 0:8])\n", "4: add takes 2 operands"},
        Case{"tile t: f32[1, 8] @reg\nt = lt(%1[0, 0:8], 0)\n", "4: lt gives b1"},
        Case{"tile t: f32[2, 8] @reg\nt = add(%1[0:2, 0:8], %1[0:2, 0:7])\n",
             "4: add: %1[0:2, 0:7] [2, 7] does not broadcast to [2, 8]"},
        Case{"tile t: f32[1, 8] @scratch\nt = mov(%1[0, 0:8])\n", "4: the result of mov must lie in reg"},
        Case{"tile t: i32[1, 8] @reg\nt = exp(%2[0:8])\n", "4: exp does not compute in i32"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(%1[0:1, 0:8]^T)\n", "4: %1[0:1, 0:8]^T: ^T stands in copy and mma only"},
        Case{"tile t: f32[1, 1] @reg\nt = reduce(sub, 1, %1[0, 0:8])\n", "4: sub is not a reduction"},
        Case{"tile t: f32[1, 1] @reg\nt = reduce(add, 1, %1[0:2, 0:8])\n", "4: reduce: [2, 1] does not fit t"},
        Case{"tile t: f32[4, 16] @reg\nt = mma(%1[0:4, 0:8], %1[0:9, 0:16])\n", "4: mma: inner sizes 8 and 9 differ"},
        Case{"tile t: f32[9, 16] @reg\nt = mma(%1[0:9, 0:8], %1[0:8, 0:16])\n",
             "4: mma: the register tile is larger than 8x16"},
        Case{"tile t: f32[4, 16] @reg\nt = mov(0)\nt += mma(%1[0:3, 0:8], %1[0:8, 0:16])\n",
             "5: mma: [3, 16] is added to t [4, 16]"},
        Case{"tile t: f32[4, 16] @reg\nt += mma(%1[0:4, 0:8], %1[0:8, 0:16])\n",
             "4: t is read, but nothing has written it"},
        Case{"tile t: f32[1, 8] @reg\nset v mte2 0\n", "4: target test has no pipes"},
        Case{"read k = %0[r, 0] in 0..64\n", "3: read: %0[r, 0] holds no integers"},
        Case{"read k = %2[0:2] in 0..64\n", "3: read: %2[0:2] is more than one element"},
        Case{"read k = %2[r] in 0..65\ntile t: f32[1, 8] @reg\nt = mov(%1[k, 0:8])\n",
             "5: %1[k, 0:8]: index 0 may pass the end by 1"},
        Case{"read k = %2[r] in 0..64\ncopy %5[k] = %1[0, 0]\n", "par iterations may write the same elements: %5[k]"},
        Case{"tile t: f32[1, 8] @reg\nt = gather(%1[0, 0:8], %1[0, 0:8])\n",
             "4: gather: the index %1[0, 0:8] must be i32 or i64"},
        Case{"tile t: f32[1, 8] @reg\nt = iota(2, 0)\n", "4: iota: the axis is 0 or 1"},
        Case{"tile t: f32[1, 8] @reg\ntile w: f32[1, 4] @reg\nt = mov(%1[0, 0:8]) tmp w\n", "5: tmp w needs 32 bytes"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(0)\nt = add(t, 1) tmp t\n", "5: tmp t is an operand"},
        Case{"view v = %1: f32[32, 64] strides(128, 3) at 0\n", "3: view v may pass the end of %1"},
        Case{"view v = %1: f32[64] strides(-1) at 62\n", "3: view v may start before %1"},
        Case{"view v = %1: f32[64] strides(64) at 0\ntile t: f32[1, 8] @reg\nt = mov(v[0:8])\n",
             "5: v[0:8]: columns of stride 64 must be copied first"},
        Case{"tile t: f32[1, 8] @reg\nif r == 0 {\nt = mov(%1[0, 0:4])\n} else {\nt = mov(0)\n}\nt = neg(t)\n",
             "9: the extents of t depend on the path taken"},
        Case{"tile t: f32[1, 8] @reg\nt = mov(0)\nt = max(t, 0)\n",
             "5: max with the constant second loses a NaN: write max(constant, x) (warning)"},
        Case{"for i in 0..4 {\n}\ntile t: f32[1, 8] @reg\nt = mov(%1[i, 0:8])\n", "6: 'i' is used outside its loop"}));

TEST(KernelVerifier, TilesAndWritesBesideParLoops) {
  std::string text =
      "kernel @k target test (in %0: f32[8], out %1: f32[8]) {\n"
      "  tile t: f32[1, 8] @reg\n"
      "  t = mov(0)\n"
      "  copy %1[0:8] = t\n"
      "  for i in 0..8 par {\n"
      "    t = mov(1)\n"
      "    copy %1[i] = t[0:1, i:1]\n"
      "  }\n"
      "}\n";
  std::string p = problems(parse_kernel(text));
  EXPECT_THAT(p, HasSubstr("4: %1[0:8] is written beside the par loops, by every worker"));
  EXPECT_THAT(p, HasSubstr("6: tile t from outside the par loop is written inside"));
}

TEST(KernelVerifier, ScratchOfAllTilesTogether) {
  std::string text =
      "kernel @k target test () {\n  tile a: f32[256, 128] @scratch\n  tile b: f32[256, 128] @scratch\n  tile c: "
      "f32[1, 1] @scratch\n}\n";
  EXPECT_THAT(problems(parse_kernel(text)), HasSubstr("needs 262208 bytes of scratch, there are 262144"));
}

// What intervals alone cannot show.
TEST(KernelVerifier, AcceptsIndicesThatNeedElimination) {
  for (std::string_view body :
       {// taps of a convolution at the edge
        "for kh in max(0, 1 - r)..min(3, N + 1 - r) {\ntile t: f32[1, 8] @reg\nt = mov(%0[r + kh - 1, 0:8])\ncopy "
        "%3[r, 0:8] = t\n}\n",
        // tiles of four rows in whole tiles, then the rest
        "for i in 0..N/4 {\ntile t: f32[4, 8] @reg\nt = mov(%0[i*4:4, 0:8])\n}\nfor j in N/4*4..N {\ntile u: f32[1, 8] "
        "@reg\nu = mov(%0[j, 0:8])\n}\n",
        // ragged extents, twice
        "for i in 0..N step 6 {\ntile t: f32[6, 8] @reg\nt = mov(%0[i:min(6, N - i), 0:8])\nt[0:min(6, N - i), 0:8] = "
        "neg(%0[i:min(6, N - i), 0:8])\n}\n",
        // a branch that guards a whole tile
        "for i in 0..N step 6 {\nif i + 6 <= N {\ntile t: f32[6, 8] @reg\nt = mov(%0[i:6, 0:8])\n}\n}\n",
        "for i in 0..N step 6 {\nif N < i + 6 {\n} else {\ntile t: f32[6, 8] @reg\nt = mov(%0[i:6, 0:8])\n}\n}\n",
        // the last tile recomputes rows
        "if 6 <= N {\ntile t: f32[6, 8] @reg\nt = mov(%0[max(0, min(r*6, N - 6)):6, 0:8])\n}\n",
        // a ragged block in whole tiles of a divisor
        "for q in 0..2 {\nfor v in 0..(min(36, 60 - q*36) + 5)/6 {\ntile t: f32[6, 8] @reg\nt = mov(%1[q*36 + v*6:6, "
        "0:8])\n}\n}\n",
        // whole tiles of 6, whole tiles of 4 of the rest, rows of the rest
        "for i in 0..(N - N/6*6)/4 {\ntile t: f32[4, 8] @reg\nt = mov(%0[N/6*6 + i*4:4, 0:8])\n}\n"
        "for j in 0..N - N/6*6 - (N - N/6*6)/4*4 {\ntile u: f32[1, 8] @reg\nu = mov(%0[N/6*6 + (N - N/6*6)/4*4 + j, "
        "0:8])\n}\n",
        // extents of the last, ragged tile of a ragged block
        "for p in 0..(N + 31)/32 {\nfor w in 0..(min(32, N - p*32) + 7)/8 {\ntile t: f32[8, 8] @reg\n"
        "t = mov(%0[p*32 + w*8:min(8, min(32, N - p*32) - w*8), 0:8])\n}\n}\n",
        // an interior that may be empty
        "for t in 0..max(0, N - 2)/8 {\nfor k in 0..3 {\ntile u: f32[8, 8] @reg\nu = mov(%0[t*8 + k:8, 0:8])\n}\n}\n",
        // rows and columns out of one number
        "for u in 0..64 {\ntile t: f32[1, 8] @reg\nt = mov(%1[u/8*8 + u%8, u%8*8:8])\n}\n"})
    EXPECT_EQ(problems(parse_kernel(in_loop(body))), "") << body;
}

TEST(KernelVerifier, IndependenceOfNestsAndFlatIndices) {
  std::string head =
      "kernel @k target test (size N in 1..9, size C in 16..64 mult 16, in %0: f32[N, C, 8], inout %1: f32[N, C, 8], "
      "inout %2: f32[N*C*8]) {\n";
  for (std::string_view body :
       {"for n in 0..N, c in 0..C par {\ncopy %1[n, c, 0:8] = %0[n, c, 0:8]\n}\n",
        "for n in 0..N, c in 0..C step 16 par {\nfor u in c..c + 16 {\ncopy %1[n, u, 0:8] = %0[n, u, 0:8]\n}\n}\n",
        "for n in 0..N, c in 0..C par {\ncopy %2[(n*C + c)*8:8] = %0[n, c, 0:8]\n}\n",
        "for n in 0..1 par {\nfor i in 0..N*C/12 {\ncopy %2[i*12:12] = %2[i*12:12]\n}\n}\nfor m in 0..1 par {\nfor j "
        "in N*C/4*4..N*C {\ncopy %2[j] = %2[j]\n}\n}\n",
        "for p in 0..(N*C + 95)/96 par {\nfor i in 0..min(96, N*C - p*96)/12 {\ncopy %2[p*96 + i*12:12] = %2[p*96 + "
        "i*12:12]\n}\n"
        "for j in 0..min(96, N*C - p*96) - min(96, N*C - p*96)/12*12 {\ncopy %2[p*96 + min(96, N*C - p*96)/12*12 + j] "
        "= %2[p*96]\n}\n}\n",
        "for n in 0..N par {\ncopy %1[n, 0, 0:8] = %1[n, 1, 0:8]\n}\nfor m in 0..N par {\ncopy %1[m, 2, 0:8] = %0[m, "
        "1, 0:8]\n}\n",
        "for n in 0..N par {\ncopy %1[n, 0, 0:8] = %0[n, 1, 0:8]\n}\nbarrier\nfor m in 0..N par {\ncopy %1[m, 1, 0:8] "
        "= %1[N - m - 1, 0, 0:8]\n}\n"})
    EXPECT_EQ(problems(parse_kernel(head + std::string(body) + "}\n")), "") << body;
  for (std::string_view body : {"for n in 0..N, c in 0..C par {\ncopy %1[n, 0, 0:8] = %0[n, c, 0:8]\n}\n",
                                "for n in 0..N, c in 0..C step 16 par {\nfor u in c..min(c + 17, C) {\ncopy %1[n, u, "
                                "0:8] = %0[n, u, 0:8]\n}\n}\n",
                                "for n in 0..N, c in 0..C par {\ncopy %2[(n + c)*8:8] = %0[n, c, 0:8]\n}\n",
                                "for n in 0..N par {\ncopy %1[n, 0, 0:8] = %0[n, 1, 0:8]\n}\nfor m in 0..N par {\ncopy "
                                "%1[m, 1, 0:8] = %1[N - m - 1, 0, 0:8]\n}\n"})
    EXPECT_THAT(problems(parse_kernel(head + std::string(body) + "}\n")), HasSubstr("par iterations may")) << body;
}

TEST(KernelBounds, UpperBounds) {
  Builder b;
  Expr n = Expr::sym(b.size("n", 1, 100)), m = Expr::sym(b.size("m", 16, 64, 16));
  Bounds x(b.k);
  EXPECT_EQ(x.most(n * 2 - 1), 199);
  EXPECT_EQ(x.most(floordiv(n, 4) * 4 - n), 0);
  EXPECT_EQ(x.most(n - floordiv(n, 4) * 4), 3);
  EXPECT_EQ(x.most(floordiv(m + 15, 16) * 16 - m), 0);
  EXPECT_EQ(x.most(min(n, m) - m), 0);
  EXPECT_EQ(x.most(m - max(n, m)), 0);
  EXPECT_EQ(x.most(mod(n, m) - m), -1);
  EXPECT_EQ(x.most((n - 1) * m + m - 1 - n * m), -1);
}

// Whatever the expression, no value lies above the bound.
TEST(KernelBounds, HoldForRandomExpressions) {
  std::mt19937 g(7);
  auto pick = [&](int n) { return static_cast<int>(g() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 400; round++) {
    Builder b;
    std::vector<Expr> leaves{Expr::sym(b.size("n", 1, 7)), Expr::sym(b.size("m", 4, 12, 4))};
    std::function<Expr(int)> make = [&](int depth) -> Expr {
      if (depth == 0)
        return pick(3) ? leaves[static_cast<size_t>(pick(static_cast<int>(leaves.size())))] : Expr(pick(9) - 3);
      Expr x = make(depth - 1), y = make(depth - 1);
      switch (pick(7)) {
        case 0: return x + y;
        case 1: return x - y;
        case 2: return x * Expr(pick(7) - 3);
        case 3: return min(x, y);
        case 4: return max(x, y);
        case 5: return floordiv(x, 1 + pick(5));
        default: return mod(x, 1 + pick(5));
      }
    };
    Bounds bounds(b.k);
    std::vector<Axis> loops;
    for (int i = 0; i < 2; i++) {
      b.k.syms.push_back({"i", SymKind::loop});
      Axis a{bounds.add_symbol(), make(1), make(2), 1 + pick(3)};
      bounds.enter(a.sym, a.lo, bounds.last_of(a));
      loops.push_back(a);
      leaves.push_back(Expr::sym(a.sym));
    }
    Expr x = make(3);
    int64_t bound = bounds.most(x), top = INT64_MIN;
    std::vector<int64_t> v(4);
    for (v[0] = 1; v[0] <= 7; v[0]++)
      for (v[1] = 4; v[1] <= 12; v[1] += 4)
        for (v[2] = loops[0].lo.eval(v); v[2] < loops[0].hi.eval(v); v[2] += loops[0].step)
          for (v[3] = loops[1].lo.eval(v); v[3] < loops[1].hi.eval(v); v[3] += loops[1].step)
            top = std::max(top, x.eval(v));
    EXPECT_GE(bound, top) << x.str([](int i) { return std::string(1, "nmij"[i]); });
  }
}

}  // namespace
}  // namespace gaf::kir
