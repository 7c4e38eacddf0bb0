// Which outputs may take over an input: safe texts run in place with the same bytes; each unsafe text, forced, gives
// other bytes or a race, so that a pair too many would be noticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/ir/in_place_form.h"
#include "unit/ir/kernel_run.h"

namespace gaf::kir {
namespace {

using testing::IsEmpty;

std::vector<Tensor> buffers_of(const Kernel& k, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> values(k.syms.size(), 0);
  const std::vector<int> symbols = size_symbols(k);
  for (size_t i = 0; i < symbols.size(); i++) values[static_cast<size_t>(symbols[i])] = sizes[i];
  std::mt19937 g(7);
  std::vector<Tensor> v;
  for (const int p : parameters(k)) {
    const Buf& b = k.bufs[static_cast<size_t>(p)];
    std::vector<int64_t> dims;
    for (const Expr& d : b.shape) dims.push_back(d.eval(values));
    v.push_back(Tensor::make(b.type, dims));
    for (int64_t i = 0; i < v.back().numel(); i++) {
      if (is_float(b.type))
        v.back().set(i, std::uniform_real_distribution<double>(-1, 1)(g));
      else
        v.back().set_int(i, static_cast<int64_t>(g() % 8));
    }
  }
  return v;
}

std::string forced(const Kernel& k, const std::vector<int64_t>& sizes, int out, int in) {
  return run_in_place(k, test_target(), buffers_of(k, sizes), sizes, out, in);
}

Kernel checked(const char* text) {
  Kernel k = parse_kernel(text);
  for (const KernelProblem& p : verify_kernel(k, test_target()))
    if (!p.warning) ADD_FAILURE() << p.text << "\n" << text;
  return k;
}

// Exactly these pairs, and each is right for all of the sizes.
void expect_pairs(const char* text, const std::vector<std::pair<int, int>>& pairs,
                  const std::vector<std::vector<int64_t>>& sizes = {{}}) {
  const Kernel k = checked(text);
  EXPECT_EQ(in_place_pairs(k), pairs) << text;
  for (auto [out, in] : pairs)
    for (const auto& s : sizes) EXPECT_EQ(forced(k, s, out, in), "") << out << " in place of " << in << "\n" << text;
}
// No pair, and (out, in) goes wrong if it is forced.
void expect_unsafe(const char* text, int out, int in, const std::vector<int64_t>& sizes = {}) {
  const Kernel k = checked(text);
  EXPECT_THAT(in_place_pairs(k), IsEmpty()) << text;
  EXPECT_NE(forced(k, sizes, out, in), "") << "nothing shows that this is unsafe:\n" << text;
}

TEST(InPlace, PointwiseWithATail) {
  expect_pairs(R"(
kernel @k target test (size N in 1..4096, in %0: f32[N], in %1: f32[N], out %2: f32[N]) {
  for i in 0..N step 8 par {
    tile x: f32[1, 8] @reg
    x = mul(%0[i:min(8, N - i)], %1[i:min(8, N - i)])
    copy %2[i:min(8, N - i)] = x
  }
})",
               {{2, 0}, {2, 1}}, {{1}, {8}, {43}});
}

TEST(InPlace, WidthDecidesNotType) {
  expect_pairs(R"(
kernel @k target test (in %0: i32[32], in %1: f16[32], out %2: f32[32]) {
  for i in 0..32 step 8 par {
    tile x: f32[1, 8] @reg
    tile y: f32[1, 8] @reg
    x = cast(%0[i:8])
    y = cast(%1[i:8])
    x = add(x, y)
    copy %2[i:8] = x
  }
})",
               {{2, 0}});
}

// Three passes over a row, the last one writes; the names of the memory differ between reads and the write.
TEST(InPlace, RowReadSeveralTimes) {
  expect_pairs(R"(
kernel @k target test (size M in 1..64, in %0: f32[1, M, 20], in %1: f32[20], out %2: f32[1, M, 20]) {
  view v = %2: f32[M, 20] strides(20, 1) at 0
  for r in 0..M par {
    tile s: f32[1, 8] @reg
    s = mov(0)
    for c in 0..16 step 8 {
      s = add(s, %0[0, r, c:8])
    }
    tile m: f32[1, 1] @reg
    m = reduce(add, 1, s)
    for d in 0..20 step 8 {
      tile x: f32[1, 8] @reg
      x = sub(%0[0, r, d:min(8, 20 - d)], m)
      x = mul(x, %1[d:min(8, 20 - d)])
      copy v[r, d:min(8, 20 - d)] = x
    }
  }
})",
               {{2, 0}}, {{1}, {7}});
}

constexpr const char* kResidual = R"(
kernel @k target test (in %0: f32[12, 32], in %1: f32[2, 32, 16], in %2: f32[1, 12, 32], out %3: f32[12, 32]) {
  view v = %2: f32[12, 32] strides(32, 1) at 0
  for p in 0..2 par {
    for i in 0..12 step 6 {
      tile acc: f32[6, 16] @reg
      acc = mov(0)
      acc += mma(%0[i:6, 0:32], %1[p, 0:32, 0:16]) prefetch %1[p + 1, 0:32, 0:16], %3[i:6, p*16:16]
      acc = add(v[i:6, p*16:16], acc)
      copy %3[i:6, p*16:16] = acc
    }
  }
})";
TEST(InPlace, ResidualOfAProduct) {
  expect_pairs(kResidual, {{3, 2}});
  EXPECT_NE(forced(parse_kernel(kResidual), {}, 3, 0), "");  // A is read again by the next panel
}

// The store stands in a branch that only the last block of K takes: so does the residual's read.
TEST(InPlace, ResidualOfAProductInBlocksOfK) {
  const char* text = R"(
kernel @k target test (in %0: f32[12, 16], in %1: f32[16, 16], in %2: f32[12, 16], out %3: f32[12, 16]) {
  for p in 0..2 par {
    tile s: f32[6, 16] @scratch
    for kb in 0..2 {
      for t in 0..2 {
        tile acc: f32[3, 16] @reg
        if kb == 0 {
          acc = mov(0)
        } else {
          copy acc = s[t*3:3, 0:16]
        }
        acc += mma(%0[p*6 + t*3:3, kb*8:8], %1[kb*8:8, 0:16])
        if kb == 1 {
          acc = add(acc, %2[p*6 + t*3:3, 0:16])
          copy %3[p*6 + t*3:3, 0:16] = acc
        } else {
          copy s[t*3:3, 0:16] = acc
        }
      }
    }
  }
})";
  // A as well: each store follows the last read of its rows
  expect_pairs(text, {{3, 0}, {3, 2}});
}

// Blocks of queries of one head, the last one shorter: the copy with `else` may leave the buffer, not reach others'
// rows.
TEST(InPlace, BlocksReadPastTheEnd) {
  expect_pairs(R"(
kernel @k target test (in %0: f32[20, 2, 8], out %1: f32[20, 2, 8]) {
  view q = %0: f32[2, 20, 8] strides(8, 16, 1) at 0
  view o = %1: f32[2, 20, 8] strides(8, 16, 1) at 0
  for h in 0..2 par {
    tile s: f32[8, 8] @scratch
    for b in 0..3 {
      copy s = q[h, b*8:8, 0:8] else 0
      for r in 0..min(8, 20 - b*8) {
        tile x: f32[1, 8] @reg
        x = add(s[r:1, 0:8], 1)
        copy o[h, b*8 + r:1, 0:8] = x
      }
    }
  }
})",
               {{1, 0}});
}

// Everything is read before the barrier, so it may be written in any order behind it.
TEST(InPlace, TurnedBehindABarrier) {
  expect_pairs(R"(
kernel @k target test (in %0: f32[8, 8], out %1: f32[8, 8], tmp %2: f32[8, 8]) {
  for r in 0..8 par {
    copy %2[r, 0:8] = %0[r, 0:8]
  }
  barrier
  for s in 0..8 par {
    tile x: f32[1, 8] @reg
    copy x = %2[0:8, s]
    copy %1[s, 0:8] = x
  }
})",
               {{1, 0}});
}

TEST(InPlace, CopyOntoItself) {
  expect_pairs(R"(
kernel @k target test (in %0: f32[6, 4], out %1: f32[24]) {
  view v = %1: f32[6, 4] strides(4, 1) at 0
  for r in 0..6 step 2 par {
    copy v[r:2, 0:4] = %0[r:2, 0:4]
  }
})",
               {{1, 0}});
}

// A read ahead in a sequential loop sees what was there before; a par loop promises no order.
TEST(InPlace, ReadAheadInASequentialLoop) {
  expect_pairs(R"(
kernel @k target test (in %0: f32[3, 32], out %1: f32[3, 32]) {
  for r in 0..3 par {
    for c in 0..32 step 8 {
      tile x: f32[1, 8] @reg
      x = add(%0[r, c:8], %0[r, min(c + 8, 24):8])
      copy %1[r, c:8] = x
    }
  }
})",
               {{1, 0}});
}
TEST(InPlace, ReadAheadInAParLoop) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[32], out %1: f32[32]) {
  for c in 0..32 step 8 par {
    tile x: f32[1, 8] @reg
    x = add(%0[c:8], %0[min(c + 8, 24):8])
    copy %1[c:8] = x
  }
})",
                1, 0);
}
TEST(InPlace, ReadBehind) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[3, 32], out %1: f32[3, 32]) {
  for r in 0..3 par {
    for c in 0..32 step 8 {
      tile x: f32[1, 8] @reg
      x = add(%0[r, c:8], %0[r, max(0, c - 8):8])
      copy %1[r, c:8] = x
    }
  }
})",
                1, 0);
}

// Of two results that need an input, only the last one written may take it over.
TEST(InPlace, SeveralOutputs) {
  const char* text = R"(
kernel @k target test (in %0: f32[32], out %1: f32[32], out %2: f32[32]) {
  for c in 0..32 step 8 par {
    tile x: f32[1, 8] @reg
    x = mul(%0[c:8], 2)
    copy %1[c:8] = x
    x = add(x, %0[c:8])
    copy %2[c:8] = x
  }
})";
  expect_pairs(text, {{2, 0}});
  EXPECT_NE(forced(parse_kernel(text), {}, 1, 0), "");
}

TEST(InPlace, WrittenAndReadAgain) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[32], out %1: f32[32]) {
  for c in 0..32 step 8 par {
    tile x: f32[1, 8] @reg
    x = add(%0[c:8], 1)
    copy %1[c:8] = x
    x = mul(%1[c:8], %0[c:8])
    copy %1[c:8] = x
  }
})",
                1, 0);
}

// The last tile begins early and computes rows again that were stored already.
TEST(InPlace, TilesThatOverlap) {
  expect_unsafe(R"(
kernel @k target test (size M in 4..64, in %0: f32[M, 8], out %1: f32[M, 8]) {
  for p in 0..1 par {
    for i in 0..M step 4 {
      tile x: f32[4, 8] @reg
      x = add(%0[min(i, M - 4):4, 0:8], 1)
      copy %1[min(i, M - 4):4, 0:8] = x
    }
  }
})",
                1, 0, {10});
}

TEST(InPlace, BroadcastRow) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[4, 8], out %1: f32[4, 8]) {
  for r in 0..4 par {
    tile x: f32[1, 8] @reg
    x = add(%0[0, 0:8], 1)
    copy %1[r, 0:8] = x
  }
})",
                1, 0);
}

// One view repeats a row, the other has the same strides but one: no common system.
TEST(InPlace, RepeatedView) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[4, 8], out %1: f32[4, 8]) {
  view v = %0: f32[4, 8] strides(0, 1) at 0
  for r in 0..4 par {
    tile x: f32[1, 8] @reg
    x = add(v[r, 0:8], 1)
    copy %1[r, 0:8] = x
  }
})",
                1, 0);
}

// Rows that overlap in memory: different rows of the view are not different elements.
TEST(InPlace, OverlappingView) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[20], out %1: f32[20]) {
  view v = %0: f32[4, 8] strides(4, 1) at 0
  view w = %1: f32[4, 8] strides(4, 1) at 0
  for p in 0..1 par {
    for r in 0..4 {
      tile x: f32[1, 8] @reg
      x = add(v[r, 0:8], 1)
      copy w[r, 0:8] = x
    }
  }
})",
                1, 0);
}

TEST(InPlace, ShiftedView) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[40], out %1: f32[40]) {
  view v = %0: f32[4, 8] strides(8, 1) at 8
  view w = %1: f32[4, 8] strides(8, 1) at 0
  for r in 0..4 par {
    copy w[r, 0:8] = v[r, 0:8]
  }
})",
                1, 0);
}

TEST(InPlace, TurnedCopy) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[8, 8], out %1: f32[8, 8]) {
  for r in 0..8 step 4 par {
    copy %1[r:4, 0:8] = %0[0:8, r:4]^T
  }
})",
                1, 0);
}
TEST(InPlace, FlippedRows) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[8, 8], out %1: f32[8, 8]) {
  view v = %0: f32[8, 8] strides(-8, 1) at 56
  for r in 0..8 par {
    copy %1[r, 0:8] = v[r, 0:8]
  }
})",
                1, 0);
}

TEST(InPlace, GatheredElements) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[8], in %1: i64[8], out %2: f32[8]) {
  for p in 0..1 par {
    for i in 0..8 {
      tile x: f32[1, 1] @reg
      read k = %1[i] in 0..8
      copy x = %0[k]
      copy %2[i] = x
    }
  }
})",
                2, 0);
}

TEST(InPlace, ProductOfItsRows) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[8, 16], in %1: f32[16, 8], out %2: f32[16, 8]) {
  for p in 0..2, q in 0..2 par {
    tile acc: f32[8, 4] @reg
    acc = mov(0)
    acc += mma(%1[p*8:8, 0:8], %0[0:8, q*4:4])
    copy %2[p*8:8, q*4:4] = acc
  }
})",
                2, 1);
}

// Two par loops without a barrier run side by side.
TEST(InPlace, OtherParLoopReads) {
  expect_unsafe(R"(
kernel @k target test (in %0: f32[32], out %1: f32[32], out %2: f32[8]) {
  for a in 0..32 step 8 par {
    copy %1[a:8] = %0[a:8]
    tile x: f32[1, 8] @reg
    x = add(%0[a:8], 1)
    copy %1[a:8] = x
  }
  for b in 0..1 par {
    copy %2[0:8] = %0[24:8]
  }
})",
                1, 0);
}

// What stands beside a par loop is run by every worker, whenever it comes: with one worker nothing shows.
TEST(InPlace, ReadBesideAParLoop) {
  const Kernel k = checked(R"(
kernel @k target test (in %0: f32[32], out %1: f32[32]) {
  tile t: f32[1, 8] @reg
  copy t = %0[0:8]
  for a in 0..32 step 8 par {
    tile x: f32[1, 8] @reg
    x = add(%0[a:8], t)
    copy %1[a:8] = x
  }
})");
  EXPECT_THAT(in_place_pairs(k), IsEmpty());
}

}  // namespace
}  // namespace gaf::kir
