// Kernels written by hand that several tests run: small sizes, one per kind of group. Each is in printed form.
#pragma once
#include <string_view>

namespace gaf::kir::texts {

inline constexpr std::string_view kBiasGelu =
    R"(kernel @bias_gelu target test (size M in 1..64, in %0: f32[M, 40], in %1: f32[40], out %2: f32[M, 40]) {
  for r in 0..M par {
    for c in 0..40 step 32 {
      tile x: f32[1, 32] @reg
      tile g: f32[1, 32] @reg
      x = add(%0[r, c:min(32, -c + 40)], %1[c:min(32, -c + 40)])
      g = mul(x, 0.7071067811865476)
      g = erf(g)
      g = fma(g, 0.5, 0.5)
      x = mul(x, g)
      copy %2[r, c:min(32, -c + 40)] = x
    }
  }
}
)";

inline constexpr std::string_view kResidualNormGelu =
    R"(kernel @residual_norm_gelu target test (size M in 1..64, in %0: f32[M, 64], in %1: f32[M, 64], in %2: f32[64], in %3: f32[64], out %4: f32[M, 64]) {
  for r in 0..M par {
    tile sum: f32[1, 32] @reg
    tile mean: f32[1, 1] @reg
    tile inv: f32[1, 1] @reg
    sum = mov(0)
    for c in 0..64 step 32 {
      tile x: f32[1, 32] @reg
      x = add(%0[r, c:32], %1[r, c:32])
      sum = add(sum, x)
      copy %4[r, c:32] = x
    }
    mean = reduce(add, 1, sum)
    mean = mul(mean, 0.015625)
    sum = mov(0)
    for c1 in 0..64 step 32 {
      tile d: f32[1, 32] @reg
      d = sub(%4[r, c1:32], mean)
      sum = fma(d, d, sum)
    }
    inv = reduce(add, 1, sum)
    inv = fma(inv, 0.015625, 1e-05)
    inv = rsqrt(inv)
    for c2 in 0..64 step 32 {
      tile y: f32[1, 32] @reg
      tile g: f32[1, 32] @reg
      y = sub(%4[r, c2:32], mean)
      y = mul(y, inv)
      y = fma(y, %2[c2:32], %3[c2:32])
      g = mul(y, 0.7071067811865476)
      g = erf(g)
      g = fma(g, 0.5, 0.5)
      y = mul(y, g)
      copy %4[r, c2:32] = y
    }
  }
}
)";

// 6 + 6 + 5 rows, three packed panels of 16 columns, the next panel and the result prefetched.
inline constexpr std::string_view kMatmulBiasRelu =
    R"(kernel @matmul_bias_relu target test (in %0: f32[17, 24], in %1: f32[3, 24, 16], in %2: f32[48], out %3: f32[17, 48]) {
  for p in 0..3 par {
    for i in 0..12 step 6 {
      tile acc: f32[6, 16] @reg
      acc = mov(0)
      acc += mma(%0[i:6, 0:24], %1[p, 0:24, 0:16]) prefetch %1[p + 1, 0:24, 0:16], %3[i:6, p*16:16]
      acc = add(acc, %2[p*16:16])
      acc = max(0, acc)
      copy %3[i:6, p*16:16] = acc
    }
    tile last: f32[5, 16] @reg
    last = mov(%2[p*16:16])
    for k in 0..24 step 8 {
      last += mma(%0[12:5, k:8], %1[p, k:8, 0:16])
    }
    last = max(0, last)
    copy %3[12:5, p*16:16] = last
  }
}
)";

// Rows of A are a size: whole tiles, then single rows.
inline constexpr std::string_view kMatmulRows =
    R"(kernel @matmul_rows target test (size M in 1..32, in %0: f32[M, 8], in %1: f32[8, 16], out %2: f32[M, 16]) {
  for p in 0..M/4 par {
    tile acc: f32[4, 16] @reg
    acc = mov(0)
    acc += mma(%0[p*4:4, 0:8], %1[0:8, 0:16])
    copy %2[p*4:4, 0:16] = acc
  }
  for q in (M/4)*4..M par {
    tile one: f32[1, 16] @reg
    one = mma(%0[q, 0:8], %1[0:8, 0:16])
    copy %2[q, 0:16] = one
  }
}
)";

// 3x3, padding 1, channels last; the padded patch of one output row is copied to scratch, then one body for all pixels.
inline constexpr std::string_view kConv =
    R"(kernel @conv target test (size H in 1..16, in %0: f32[H, 7, 4], in %1: f32[3, 12, 16], in %2: f32[16], in %3: f32[H, 7, 16], out %4: f32[H, 7, 16]) {
  for oh in 0..H par {
    tile patch: f32[27, 4] @scratch
    for kh in 0..3 {
      copy patch[kh*9:9, 0:4] = %0[oh + kh - 1, -1:9, 0:4] else 0
    }
    tile acc: f32[7, 16] @reg
    acc = mov(%2[0:16])
    for kh1 in 0..3 {
      for kw in 0..3 {
        acc += mma(patch[kh1*9 + kw:7, 0:4], %1[kh1, kw*4:4, 0:16])
      }
    }
    acc = add(acc, %3[oh, 0:7, 0:16])
    acc = max(0, acc)
    copy %4[oh, 0:7, 0:16] = acc
  }
}
)";

// One head a unit, 12 queries, 32 keys in two blocks, head size 16; running maximum and sum.
inline constexpr std::string_view kAttention =
    R"(kernel @attention target test (in %0: f32[2, 12, 16], in %1: f32[2, 32, 16], in %2: f32[2, 32, 16], in %3: f32[12, 32], out %4: f32[2, 12, 16]) {
  for h in 0..2 par {
    tile kt: f32[16, 32] @scratch
    tile s: f32[12, 16] @scratch
    tile o: f32[12, 16] @scratch
    tile m: f32[12, 1] @scratch
    tile l: f32[12, 1] @scratch
    copy kt = %1[h, 0:32, 0:16]^T
    m = mov(-inf)
    l = mov(0)
    o = mov(0)
    for kb in 0..32 step 16 {
      for r in 0..12 step 6 {
        tile acc: f32[6, 16] @reg
        acc = mma(%0[h, r:6, 0:16], kt[0:16, kb:16])
        acc = fma(acc, 0.25, %3[r:6, kb:16])
        copy s[r:6, 0:16] = acc
      }
      for r1 in 0..12 {
        tile v: f32[1, 16] @reg
        tile mn: f32[1, 1] @reg
        tile z: b1[1, 1] @reg
        tile ms: f32[1, 1] @reg
        tile su: f32[1, 1] @reg
        tile al: f32[1, 1] @reg
        tile ov: f32[1, 16] @reg
        copy v = s[r1:1, 0:16]
        mn = reduce(max, 1, v)
        mn = max(m[r1:1, 0:1], mn)
        z = eq(mn, -inf)
        ms = select(z, 0, mn)
        v = sub(v, ms)
        v = expn(v)
        copy s[r1:1, 0:16] = v
        su = reduce(add, 1, v)
        al = sub(m[r1:1, 0:1], ms)
        al = expn(al)
        su = fma(l[r1:1, 0:1], al, su)
        copy l[r1:1, 0:1] = su
        copy m[r1:1, 0:1] = mn
        ov = mul(o[r1:1, 0:16], al)
        copy o[r1:1, 0:16] = ov
      }
      for r2 in 0..12 step 6 {
        tile ob: f32[6, 16] @reg
        copy ob = o[r2:6, 0:16]
        ob += mma(s[r2:6, 0:16], %2[h, kb:16, 0:16])
        copy o[r2:6, 0:16] = ob
      }
    }
    for r3 in 0..12 {
      tile y: f32[1, 16] @reg
      tile w: f32[1, 1] @reg
      w = recip(l[r3:1, 0:1])
      y = mul(o[r3:1, 0:16], w)
      copy %4[h, r3, 0:16] = y
    }
  }
}
)";

inline constexpr std::string_view kSoftmaxLoss =
    R"(kernel @softmax_loss target test (size B in 1..16, in %0: f32[B, 64], in %1: i64[B], out %2: f32[B]) {
  for r in 0..B par {
    tile top: f32[1, 32] @reg
    tile m: f32[1, 1] @reg
    tile sum: f32[1, 32] @reg
    tile s: f32[1, 1] @reg
    top = mov(-inf)
    for c in 0..64 step 32 {
      top = max(top, %0[r, c:32])
    }
    m = reduce(max, 1, top)
    sum = mov(0)
    for c1 in 0..64 step 32 {
      tile e: f32[1, 32] @reg
      e = sub(%0[r, c1:32], m)
      e = expn(e)
      sum = add(sum, e)
    }
    s = reduce(add, 1, sum)
    s = log(s)
    s = add(s, m)
    read y = %1[r] in 0..64
    s = sub(s, %0[r, y])
    copy %2[r] = s
  }
}
)";

// y[i, j] = table[ids[i], j] * scale[j] + a[j, i]; 20 columns as 8 + 8 + 4
inline constexpr std::string_view kGatherTranspose =
    R"(kernel @gather_transpose target test (in %0: f32[50, 20], in %1: i32[16], in %2: f32[20], in %3: f32[20, 16], out %4: f32[16, 20]) {
  view sc = %2: f32[16, 20] strides(0, 1) at 0
  for i in 0..16 step 4 par {
    for j in 0..20 step 8 {
      tile e: f32[4, 8] @reg
      tile t: f32[4, 8] @reg
      tile f: f32[4, 8] @reg
      for u in 0..4 unroll {
        read k = %1[i + u] in 0..50
        copy e[u:1, 0:8] = %0[k, j:8] else 0
      }
      copy t = %3[j:8, i:4]^T else 0
      copy f = sc[i:4, j:8] else 0
      e = fma(e, f, t)
      copy %4[i:4, j:min(8, -j + 20)] = e[0:4, 0:min(8, -j + 20)]
    }
  }
}
)";

// f16 in memory, f32 inside: a cast map each way.
inline constexpr std::string_view kHalf =
    R"(kernel @half target test (in %0: f16[4, 32], in %1: bf16[32], out %2: f16[4, 32]) {
  for r in 0..4 par {
    tile x: f32[1, 32] @reg
    tile b: f32[1, 32] @reg
    tile y: f16[1, 32] @reg
    x = cast(%0[r, 0:32])
    b = cast(%1[0:32])
    x = mul(x, b)
    y = cast(x)
    copy %2[r, 0:32] = y
  }
}
)";

// Two phases: partial sums, then their sum; a number of parts that the thread count does not change.
inline constexpr std::string_view kSplitSum =
    R"(kernel @split_sum target test (in %0: i32[4, 32], tmp %1: i32[4], out %2: i32[1]) {
  for p in 0..4 par {
    tile s: i32[1, 1] @reg
    s = reduce(add, 1, %0[p, 0:32])
    copy %1[p] = s
  }
  barrier
  for q in 0..1 par {
    tile t: i32[1, 1] @reg
    t = reduce(add, 1, %1[0:4])
    copy %2[q] = t
  }
}
)";

// Causal mask from iota, flipped columns through a view, an index gather, an in-place parameter.
inline constexpr std::string_view kMask =
    R"(kernel @mask target test (inout %0: f32[8, 16], in %1: f32[16], in %2: i32[8, 16], out %3: f32[8, 16]) {
  view rev = %1: f32[16] strides(-1) at 15
  for r in 0..8 par {
    tile col: i32[1, 16] @reg
    tile lim: i32[1, 1] @reg
    tile far: b1[1, 16] @reg
    tile x: f32[1, 16] @reg
    tile g: f32[1, 16] @reg
    tile ix: i32[1, 16] @reg
    col = iota(1, 0)
    lim = iota(0, r)
    far = lt(lim, col)
    x = select(far, -inf, %0[r, 0:16])
    x = add(x, rev[0:16])
    copy %0[r, 0:16] = x
    copy ix = %2[r, 0:16]
    g = gather(%1[0:16], ix)
    copy %3[r, 0:16] = g
  }
}
)";

// batch x row as a nest of par axes; integer and boolean arithmetic.
inline constexpr std::string_view kIntegers =
    R"(kernel @integers target test (size N in 1..4, in %0: i64[N, 3, 8], in %1: u8[N, 3, 8], out %2: i64[N, 3, 8], out %3: b1[N, 3, 8]) {
  for n in 0..N, c in 0..3 par {
    tile a: i64[1, 8] @reg
    tile b: i64[1, 8] @reg
    tile q: b1[1, 8] @reg
    copy a = %0[n, c, 0:8]
    b = cast(%1[n, c, 0:8])
    if c == 1 {
      a = rem(a, 5)
    } else {
      a = mul(a, b)
    }
    q = lt(a, b)
    q = not(q)
    copy %2[n, c, 0:8] = a
    copy %3[n, c, 0:8] = q
  }
}
)";

inline constexpr std::string_view kAll[] = {kBiasGelu, kResidualNormGelu, kMatmulBiasRelu, kMatmulRows,
                                            kConv,     kAttention,        kSoftmaxLoss,    kGatherTranspose,
                                            kHalf,     kSplitSum,         kMask,           kIntegers};

}  // namespace gaf::kir::texts
