// Rectangles of every form: run-time rows and columns, strides that are sizes, two strides of rows, flips, broadcasts,
// `else` on each side, transposes, copies between memories; and the forms of mma. Against the interpreter, on each x86
// target.
#include "unit/codegen/run_kernel.h"

namespace gaf {
namespace {

void run(std::string text, std::vector<std::vector<int64_t>> sizes = {{}}, double tolerance = 2e-6) {
  for (const auto& s : sizes) {
    SCOPED_TRACE("sizes " + (s.empty() ? std::string("none") : std::to_string(s[0])));
    expect_compiled_like_interpreted({text, s, {}, tolerance});
    if (::testing::Test::HasFatalFailure()) return;
  }
  if (!sizes[0].empty()) expect_compiled_at_random_sizes({text, {}, {}, tolerance}, 4);
}

// ---- elementwise ----
TEST(Shapes, RaggedRowsAndColumns) {
  run(R"(kernel @k target t (size M in 1..40, size N in 1..70, in %0: f32[M, N], in %1: f32[N], in %2: f32[M], out %3: f32[M, N]) {
  for i in 0..(M + 3)/4, j in 0..(N + 15)/16 par {
    tile x: f32[4, 16] @reg
    tile c: f32[4, 1] @reg
    copy c = %2[i*4:min(4, M - i*4)] else 0
    copy x = %0[i*4:min(4, M - i*4), j*16:min(16, N - j*16)]
    x = mul(x, %1[j*16:min(16, N - j*16)])
    x = add(x, c[0:min(4, M - i*4), 0:1])
    copy %3[i*4:min(4, M - i*4), j*16:min(16, N - j*16)] = x
  }
}
)",
      {{1, 1}, {3, 17}, {8, 32}, {40, 70}});
}
TEST(Shapes, TilesThatAreNoPowersOfTwo) {
  for (int n : {3, 5, 12, 20, 40, 48})
    run("kernel @k target t (in %0: f32[7, " + std::to_string(n) + "], out %1: f32[7, " + std::to_string(n) +
        "], out %2: f32[7]) {\n  tile x: f32[7, " + std::to_string(n) +
        "] @reg\n  tile s: f32[7, 1] @reg\n  copy x = %0[0:7, 0:" + std::to_string(n) +
        "]\n  x[1:2, 1:2] = mul(x[1:2, 1:2], 3)\n  x = add(x, x[0:7, 2:1])\n  s = reduce(max, 1, x)\n  copy %2[0:7] = "
        "s\n  copy %1[0:7, 0:" +
        std::to_string(n) + "] = x\n}\n");
}
TEST(Shapes, MapsIntoMemoryOfAllWidths) {
  for (int n : {3, 16, 20, 48, 64, 72, 128, 200, 256}) {
    const std::string w = std::to_string(n);
    run("kernel @k target t (in %0: f32[3, " + w + "], out %1: f32[3, " + w +
        "]) {\n  for i in 0..3 par {\n    tile x: f32[1, " + w + "] @scratch\n    x[0:1, 0:" + w +
        "] = mov(7)\n    %1[i, 0:" + w + "] = add(%0[i, 0:" + w + "], x[0:1, 0:" + w + "])\n  }\n}\n");
  }
}
TEST(Shapes, ViewsWithSizesInStrides) {
  run(R"(kernel @k target t (size M in 1..9, size N in 1..40, in %0: f32[M, N, 4], out %1: f32[4, N, M]) {
  view t = %0: f32[4, N, M] strides(1, 4, 4*N) at 0
  view back = %0: f32[M, N, 4] strides(-4*N, -4, -1) at 4*M*N - 1
  for a in 0..4, b in 0..N par {
    tile x: f32[1, 16] @reg
    copy x[0:1, 0:M] = t[a, b, 0:M]
    x[0:1, 0:M] = add(x[0:1, 0:M], back[0, 0, 1])
    copy %1[a, b, 0:M] = x[0:1, 0:M]
  }
}
)",
      {{1, 1}, {9, 5}, {8, 40}});
}
TEST(Shapes, TwoStridesOfRows) {
  run(R"(kernel @k target t (in %0: f32[3, 6, 7, 16], out %1: f32[3, 2, 3, 16]) {
  for i in 0..3 par {
    tile x: f32[6, 16] @reg
    copy x = %0[i, 1:2, 2:3, 0:16]
    x = mul(x, 2)
    copy %1[i, 0:2, 0:3, 0:16] = x
  }
}
)");
  run(R"(kernel @k target t (in %0: f32[3, 9, 9, 6], out %1: f32[3, 3, 3, 6]) {
  for i in 0..3 par {
    tile x: f32[9, 6] @reg
    x = add(%0[i, 0:3:3, 1:3:2, 0:6], 1)
    copy %1[i, 0:3, 0:3, 0:6] = x
  }
}
)");
}
TEST(Shapes, MapsIntoScratch) {
  run(R"(kernel @k target t (size N in 1..600, in %0: f32[20, N], in %1: f32[20], out %2: f32[20, N]) {
  for i in 0..2 par {
    tile s: f32[10, 600] @scratch
    s[0:10, 0:N] = mov(%0[i*10:10, 0:N])
    s[0:10, 0:N] = mul(s[0:10, 0:N], s[0:10, 0:N])
    s[2:5, 0:N] = add(s[2:5, 0:N], %1[i*10 + 2])
    copy %2[i*10:10, 0:N] = s[0:10, 0:N]
  }
}
)",
      {{1}, {16}, {70}, {333}, {600}});
}
TEST(Shapes, ReadsInsideLoops) {
  expect_compiled_like_interpreted(
      {R"(kernel @k target t (in %0: f32[16, 24], in %1: i64[8], in %2: u8[8], out %3: f32[8, 24]) {
  for i in 0..8 par {
    tile x: f32[1, 24] @reg
    x = mov(0)
    read a = %1[i] in 0..16
    read n = %2[i] in 0..16
    for j in a..min(16, a + n) {
      x = add(x, %0[j, 0:24])
    }
    if n <= 3 {
      x = mul(x, -1)
    }
    copy %3[i, 0:24] = x
  }
}
)",
       {},
       {},
       2e-6});
}
TEST(Shapes, IotaAndGather) {
  expect_compiled_like_interpreted(
      {R"(kernel @k target t (size N in 1..30, in %0: f16[64], in %1: i64[5, N], in %2: b1[16], out %3: f16[5, N], out %4: i64[5, N], out %5: b1[5, N]) {
  for i in 0..5 par {
    tile ix: i64[1, 32] @reg
    tile n: i64[1, 32] @reg
    tile g: f16[1, 32] @reg
    tile b: b1[1, 32] @reg
    copy ix = %1[i, 0:N]
    g = gather(%0[0:64], ix)
    b = gather(%2[0:16], ix)
    n = iota(1, i*100)
    copy %3[i, 0:N] = g
    copy %4[i, 0:N] = n[0:1, 0:N]
    copy %5[i, 0:N] = b
  }
}
)",
       {17},
       {},
       2e-6});
}
TEST(Shapes, NestsSplitAnywhere) {
  run(R"(kernel @k target t (size A in 1..5, size B in 1..5, out %0: i32[A, B, 3, 4]) {
  for a in 0..A, b in 0..B, c in 0..3 par {
    tile x: i32[1, 4] @reg
    x = iota(1, a*1000 + b*100 + c*10)
    copy %0[a, b, c, 0:4] = x
  }
}
)",
      {{1, 1}, {5, 3}, {4, 5}});
  run(R"(kernel @k target t (size N in 1..50, out %0: i32[N], out %1: i32[9, 2]) {
  for i in 0..N step 4 par {
    tile x: i32[1, 4] @reg
    x = iota(1, i)
    copy %0[i:min(4, N - i)] = x[0:1, 0:min(4, N - i)]
  }
  for r in 2..9 step 3, c in 0..2 par {
    tile y: i32[1, 1] @reg
    y = iota(1, r + c)
    copy %1[r, c] = y
  }
}
)",
      {{1}, {7}, {50}});
}

// ---- else ----
TEST(Shapes, ElseOnEverySide) {
  for (const char* mem : {"reg", "scratch"})
    run(std::string("kernel @k target t (size H in 1..9, size W in 1..9, in %0: f32[H, W, 3], out %1: f32[H, W, 25, "
                    "3]) {\n  for i in 0..H, j in 0..W par {\n    tile p: f32[25, 3] @") +
            mem + "\n    copy p = %0[i - 2:5, j - 2:5, 0:3] else 0.5\n    copy %1[i, j, 0:25, 0:3] = p\n  }\n}\n",
        {{1, 1}, {2, 9}, {9, 9}});
  run(R"(kernel @k target t (size N in 1..90, in %0: f32[4, N], out %1: f32[4, 100]) {
  for i in 0..6 par {
    tile p: f32[1, 100] @scratch
    tile q: f32[1, 40] @reg
    copy p = %0[i - 1, -7:100] else -1
    copy q = %0[i - 1, N - 20:40] else -2
    if 0 < i {
      if i <= 4 {
        copy %1[i - 1, 0:100] = p
        copy %1[i - 1, 60:40] = q
      }
    }
  }
}
)",
      {{1}, {8}, {90}});
}

// ---- transposes and moves ----
TEST(Shapes, Transposes) {
  run(R"(kernel @k target t (size M in 1..40, size N in 1..40, in %0: f32[M, N], out %1: f32[N, M]) {
  for i in 0..(M + 15)/16, j in 0..(N + 7)/8 par {
    tile x: f32[8, 16] @reg
    copy x = %0[i*16:min(16, M - i*16), j*8:min(8, N - j*8)]^T else 0
    copy %1[j*8:min(8, N - j*8), i*16:min(16, M - i*16)] = x[0:min(8, N - j*8), 0:min(16, M - i*16)]
  }
}
)",
      {{1, 1}, {16, 8}, {19, 21}, {40, 40}});
  for (const char* type : {"f32", "i64", "f16", "b1"})
    run(std::string("kernel @k target t (size M in 1..70, size N in 1..70, in %0: ") + type + "[M, N], out %1: " +
            type + "[N, M]) {\n  for q in 0..1 par {\n    copy %1[0:N, 0:M] = %0[0:M, 0:N]^T\n  }\n}\n",
        {{1, 1}, {8, 24}, {33, 70}});
  run(R"(kernel @k target t (size S in 1..50, in %0: f32[S, 24], out %1: f32[24, 64]) {
  for p in 0..2 par {
    tile kt: f32[24, 32] @scratch
    copy kt = %0[p*32:max(0, min(32, S - p*32)), 0:24]^T else 0
    copy %1[0:24, p*32:32] = kt
  }
}
)",
      {{1}, {32}, {45}, {50}});
}
TEST(Shapes, MovesBetweenMemories) {
  for (const char* type : {"f32", "i8", "f64", "u16"})
    run(std::string("kernel @k target t (size M in 1..9, size N in 1..300, in %0: ") + type +
            "[M, N], out %1: " + type + "[M, N], out %2: " + type + "[N]) {\n  view flip = %0: " + type +
            "[M, N] strides(N, -1) at N - 1\n  view spread = %0: " + type +
            "[M, N] strides(N, 0) at 0\n  for i in 0..M par {\n    tile s: " + type +
            "[1, 300] @scratch\n    copy s[0:1, 0:N] = flip[i, 0:N]\n    copy %1[i, 0:N] = s[0:1, 0:N]\n  }\n  "
            "barrier\n  copy %2[0:N] = spread[M - 1, 0:N]\n}\n",
        {{1, 1}, {3, 40}, {9, 299}});
}

// ---- mma ----
TEST(Mma, RunTimeKAndRows) {
  run(R"(kernel @k target t (size M in 1..20, size K in 1..50, size N in 1..40, in %0: f32[M, K], in %1: f32[K, N], in %2: f32[N], out %3: f32[M, N]) {
  for i in 0..(M + 3)/4, j in 0..(N + 15)/16 par {
    tile acc: f32[4, 16] @reg
    acc = mov(0)
    acc[0:min(4, M - i*4), 0:min(16, N - j*16)] += mma(%0[i*4:min(4, M - i*4), 0:K], %1[0:K, j*16:min(16, N - j*16)])
    acc[0:min(4, M - i*4), 0:min(16, N - j*16)] = add(acc[0:min(4, M - i*4), 0:min(16, N - j*16)], %2[j*16:min(16, N - j*16)])
    copy %3[i*4:min(4, M - i*4), j*16:min(16, N - j*16)] = acc[0:min(4, M - i*4), 0:min(16, N - j*16)]
  }
}
)",
      {{1, 1, 1}, {4, 4, 16}, {7, 3, 17}, {20, 50, 40}});
}
TEST(Mma, WholeRowsOfRunTimeStride) {
  run(R"(kernel @k target t (size K in 1..70 mult 2, in %0: f32[6, K], in %1: f32[K, 32], in %2: f32[32], out %3: f32[6, 32]) {
  for j in 0..2 par {
    tile acc: f32[6, 16] @reg
    acc = mma(%0[0:6, 0:K], %1[0:K, j*16:16], %2[j*16:16])
    copy %3[0:6, j*16:16] = acc
  }
}
)",
      {{2}, {8}, {70}});
}
TEST(Mma, OddDepths) {
  for (int k : {1, 2, 3, 5, 7, 9, 23, 49, 53})
    run("kernel @k target t (in %0: f32[5, " + std::to_string(k) + "], in %1: f32[" + std::to_string(k) +
        ", 32], out %2: f32[5, 32]) {\n  tile acc: f32[5, 32] @reg\n  acc = mov(1)\n  acc += mma(%0[0:5, 0:" +
        std::to_string(k) + "], %1[0:" + std::to_string(k) + ", 0:32])\n  copy %2[0:5, 0:32] = acc\n}\n");
}
TEST(Mma, NarrowAndOddColumns) {
  for (int n : {1, 2, 4, 6, 8, 20, 24, 48})
    run("kernel @k target t (in %0: f32[3, 10], in %1: f32[10, " + std::to_string(n) + "], out %2: f32[3, " +
        std::to_string(n) + "]) {\n  tile acc: f32[3, " + std::to_string(n) +
        "] @reg\n  acc = mov(0)\n  acc += mma(%0[0:3, 0:10], %1[0:10, 0:" + std::to_string(n) +
        "])\n  acc = max(0, acc)\n  copy %2[0:3, 0:" + std::to_string(n) + "] = acc\n}\n");
}
TEST(Mma, TransposedOperands) {
  run(R"(kernel @k target t (in %0: f32[12, 6], in %1: f32[16, 12], out %2: f32[6, 16]) {
  tile acc: f32[6, 16] @reg
  acc = mma(%0[0:12, 0:6]^T, %1[0:16, 0:12]^T)
  copy %2[0:6, 0:16] = acc
}
)");
}
TEST(Mma, OtherTypes) {
  const char* const types[][2] = {{"f64", "f64"}, {"f16", "f32"}, {"bf16", "f32"}, {"i8", "i32"},
                                  {"u8", "i32"},  {"i32", "i32"}, {"i64", "i64"}};
  for (auto [in, acc] : types)
    run(std::string("kernel @k target t (in %0: ") + in + "[4, 18], in %1: " + in + "[18, 16], out %2: " + acc +
        "[4, 16]) {\n  tile acc: " + acc +
        "[4, 16] @reg\n  acc = mov(2)\n  acc += mma(%0[0:4, 0:18], %1[0:18, 0:16])\n  copy %2[0:4, 0:16] = acc\n}\n");
}
TEST(Mma, RowsOfTwoStridesFromScratch) {
  run(R"(kernel @k target t (size W in 8..30, in %0: f32[5, W, 4], in %1: f32[12, 16], out %2: f32[4, 16]) {
  for i in 0..1 par {
    tile p: f32[40, 4] @scratch
    copy p = %0[0:5, 0:8, 0:4] else 0
    tile acc: f32[4, 16] @reg
    acc = mov(0)
    for t in 0..3 {
      acc += mma(%0[t:2, t:2:3, 0:4], %1[t*4:4, 0:16])
      acc[1:2, 0:16] += mma(p[t + 1:2:8, 0:4], %1[t*4:4, 0:16])
    }
    copy %2[0:4, 0:16] = acc
  }
}
)",
      {{8}, {30}});
}

}  // namespace
}  // namespace gaf
