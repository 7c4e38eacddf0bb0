// Elementary functions in f32. Errors against correctly rounded results are in tests/unit/codegen/maths_test.cpp; NaN,
// infinities, both zeros and denormals are handled in the straight line. Coefficients are minimax fits (Remez exchange
// in 50 digits, relative error) unless a series is named; pow goes through f64, whose extra digits it needs.
#include <cmath>

#include "codegen/cpu/maths_build.h"

namespace gaf::cpu {

using kir::S;

namespace {

constexpr double kLog2e = 0x1.715476p0;
// ln 2 in two parts, the first with enough trailing zeros that n * high is exact
constexpr double kLn2High = 0x1.62e400p-1, kLn2Low = 0x1.7f7d1cp-20;
constexpr double kRound = 12582912;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits

struct Reduced {
  Val t, r;  // bits of t hold n, where x = n ln 2 + r, |r| <= ln 2 / 2
};
Reduced reduce(const Maths& m, Val x) {
  Val t = m.fma(x, m.c(kLog2e), m.c(kRound)), n = m.sub(t, m.c(kRound));
  Val r = m.fma(n, m.c(-kLn2High), x);
  return {t, m.fma(n, m.c(-kLn2Low), r)};
}
// 2^n from the bits of t: what is above the exponent field falls off by the shift
Val scale(const Maths& m, Val t) { return m.value(m.ir.add(m.ir.shl(m.bits(t), 23), m.ci(0x3f800000))); }

// exp(r) for a reduced r
Val exp_reduced(const Maths& m, Val r) {
  static constexpr double k[] = {1, 1, 0x1.fffffap-2, 0x1.55549p-3, 0x1.555a22p-5, 0x1.123b04p-7, 0x1.695414p-10};
  return m.poly(r, k);
}
// exp(r) - 1, accurate near 0
Val expm1_reduced(const Maths& m, Val r) {
  static constexpr double k[] = {0x1.fffffep-2, 0x1.5554aep-3, 0x1.555712p-5, 0x1.12292ep-7, 0x1.6b79b2p-10};
  return m.fma(m.mul(r, r), m.poly(r, k), r);
}

// exp(x) for -105 <= x <= 89, denormal results rounded once, 2^128 reached: in two half scales where no instruction
// does it
Val exp_between(const Maths& m, Val x) {
  const Reduced q = reduce(m, x);
  if (m.ir.machine().avx512) return m.ir.scale(exp_reduced(m, q.r), m.sub(q.t, m.c(kRound)));
  Val n = m.ir.sub(m.bits(q.t), m.ci(0x4b400000)), half = m.ir.ashr(n, 1);
  return m.mul(m.mul(exp_reduced(m, q.r), m.power_of_two(half)), m.power_of_two(m.ir.sub(n, half)));
}
Val exp(const Maths& m, Val x) { return exp_between(m, m.clamp(x, -105, 89)); }
// For x <= 0: below -87.68 the clamp makes the scale itself 0, so there is no denormal and no select.
Val expn(const Maths& m, Val x) {
  const Reduced q = reduce(m, m.max(m.c(-88), x));
  return m.mul(exp_reduced(m, q.r), scale(m, q.t));
}

// 2 (s p + s - 1/2) with s = 2^(n-1): near 0 exactly p, and 2^128 does not overflow on the way
Val expm1(const Maths& m, Val x) {
  const Reduced q = reduce(m, m.clamp(x, -20, 89));
  Val n = m.ir.sub(m.bits(q.t), m.ci(0x4b400000 + 1)), s = m.power_of_two(n);
  Val r = m.fma(s, expm1_reduced(m, q.r), m.sub(s, m.c(0.5)));
  return m.ir.select(m.ir.fcmp(Pred::eq, x, m.c(0)), x, m.add(r, r));
}

// x = 2^k m with m in [sqrt(1/2), sqrt(2)); a denormal x is scaled first
struct Split {
  Val k, f;  // f = m - 1
};
Split split(const Maths& m, Val x) {
  Val small = m.less(x, m.c(0x1p-126));
  x = m.ir.select(small, m.mul(x, m.c(0x1p23)), x);
  Val bits = m.ir.sub(m.bits(x), m.ci(0x3f3504f3)), k = m.ir.from_int(m.ir.ashr(bits, 23), Elem::f32, true);
  k = m.sub(k, m.ir.select(small, m.c(23), m.c(0)));
  Val mantissa = m.value(m.ir.add(m.ir.and_(bits, m.ci(0x7fffff)), m.ci(0x3f3504f3)));
  return {k, m.sub(mantissa, m.c(1))};
}
Val log(const Maths& m, Val x) {
  static constexpr double k[] = {0x1.555548p-2,  -0x1.000006p-2, 0x1.99a4b6p-3,  -0x1.555c4ep-3, 0x1.23374p-3,
                                 -0x1.fc220ap-4, 0x1.e6f06ap-4,  -0x1.de3c04p-4, 0x1.145796p-4};
  const Split s = split(m, x);
  Val f2 = m.mul(s.f, s.f), tail = m.mul(m.mul(f2, s.f), m.poly(s.f, k));
  tail = m.fma(s.k, m.c(-2.12194440e-4), tail);  // ln 2 = 0.693359375 - 2.12194440e-4
  tail = m.fma(f2, m.c(-0.5), tail);
  Val r = m.fma(s.k, m.c(0.693359375), m.add(s.f, tail));
  r = m.ir.select(m.ir.fcmp(Pred::eq, x, m.c(0)), m.c(-HUGE_VAL), r);
  r = m.ir.select(m.ir.fcmp(Pred::lt, x, m.c(0)), m.c(NAN), r);
  return m.ir.select(m.less(x, m.c(HUGE_VAL)), r, m.add(x, x) /* inf, NaN */);
}
// log(u) with u = 1 + x rounded, and what the rounding lost
Val log1p(const Maths& m, Val x) {
  Val u = m.add(m.c(1), x), lost = m.div(m.sub(x, m.sub(u, m.c(1))), u), l = log(m, u);
  Val usual = m.ir.and_(m.ir.fcmp(Pred::gt, u, m.c(0)), m.less(u, m.c(HUGE_VAL)));
  Val r = m.ir.select(usual, m.add(l, lost), l);
  return m.ir.select(m.ir.fcmp(Pred::eq, u, m.c(1)), x, r);
}

// Accurate in both tails; 0 where the result would be denormal.
Val sigmoid(const Maths& m, Val x) {
  if (m.ir.machine().avx512) {
    constexpr double end = 87.3;
    Val b = m.add(m.c(1), exp_between(m, m.clamp(m.ir.fneg(x), -end, end)));
    return m.ir.select(m.less(x, m.c(-end)), m.c(0), m.quotient(m.c(1), b));
  }
  Val e = expn(m, m.ir.fneg(m.ir.fabs(x)));
  return m.div(m.ir.select(m.less(x, m.c(0)), e, m.c(1)), m.add(m.c(1), e));
}

// x P(x^2) / Q(x^2): no exp, one division
template <size_t N, size_t D>
Val rational(const Maths& m, Val x, const double (&p)[N], const double (&q)[D]) {
  Val s = m.mul(x, x);
  return m.div(m.mul(x, m.poly(s, p)), m.poly(s, q));
}
// Sixteen polynomials in the distance from k * 519 / 2048: half the error and two thirds of the instructions, where a
// table of sixteen numbers is one. Least squares of the largest error each; the first is odd.
Val erf_by_table(const Maths& m, Val x) {
  static constexpr double k[6][16] = {
      {0, 0x1.1eaa42p-2, 0x1.0d8fa6p-1, 0x1.6f760cp-1, 0x1.b2543ap-1, 0x1.da8cf8p-1, 0x1.efdb58p-1, 0x1.f9cbc4p-1,
       0x1.fde106p-1, 0x1.ff5b2ap-1, 0x1.ffd3ap-1, 0x1.fff56cp-1, 0x1.fffdc4p-1, 0x1.ffff96p-1, 0x1.ffffeep-1,
       0x1.fffffep-1},
      {0x1.20dd76p+0, 0x1.0ee5a8p+0, 0x1.bed9bep-1, 0x1.441f4ep-1, 0x1.9d86f8p-2, 0x1.dp-3, 0x1.c9e0f6p-4, 0x1.8d604p-5,
       0x1.2f4c9ep-6, 0x1.972ee4p-8, 0x1.e0c226p-10, 0x1.f3359p-12, 0x1.c7e308p-14, 0x1.6e247ep-16, 0x1.029eb8p-18,
       0x1.414f16p-21},
      {0, -0x1.12984p-2, -0x1.c4f3d6p-2, -0x1.ecd3a2p-2, -0x1.a32e8ap-2, -0x1.25f7d2p-2, -0x1.5c1c1p-3, -0x1.607666p-4,
       -0x1.337222p-5, -0x1.d05462p-7, -0x1.308e8ap-8, -0x1.5bd78p-10, -0x1.5a7e38p-12, -0x1.2d6d12p-14, -0x1.ca79bp-17,
       -0x1.31109p-19},
      {-0x1.812e78p-2, -0x1.3acd2p-2, -0x1.21b362p-3, 0x1.0d996ep-5, 0x1.22dc2ep-3, 0x1.55f8e8p-3, 0x1.148d3ep-3,
       0x1.5e98c6p-4, 0x1.6cfc74p-5, 0x1.3f16ap-6, 0x1.da8218p-8, 0x1.2e747cp-9, 0x1.4c4e72p-11, 0x1.3bdac4p-13,
       0x1.04717ep-15, 0x1.756418p-18},
      {0, 0x1.04d5aep-3, 0x1.74f136p-3, 0x1.2dac48p-3, 0x1.08a74cp-4, -0x1.39d2f8p-7, -0x1.753056p-5, -0x1.81617ap-5,
       -0x1.0b83f2p-5, -0x1.1fad48p-6, -0x1.f7eb36p-8, -0x1.704ec4p-9, -0x1.c78f9ap-11, -0x1.e10418p-13,
       -0x1.b429f4p-15, -0x1.551908p-17},
      {0x1.d398a2p-4, 0x1.42e9bcp-4, 0x1.631b78p-8, -0x1.bdb762p-5, -0x1.18268p-4, -0x1.6fe0aap-5, -0x1.9ea0f2p-7,
       0x1.f86eccp-8, 0x1.ab4c68p-7, 0x1.4aee38p-7, 0x1.6d2608p-8, 0x1.3c9fa6p-9, 0x1.c11794p-11, 0x1.09f85ep-12,
       0x1.0a64eep-14, 0x1.c6f6aap-17},
  };
  constexpr double step = 519.0 / 2048;
  Val a = m.min(m.c(3.925), m.ir.fabs(x)), t = m.fma(a, m.c(1 / step), m.c(kRound));
  Val d = m.fma(m.sub(t, m.c(kRound)), m.c(-step), a), p = m.ir.lookup(k[5], m.bits(t));
  for (int i = 5; i-- > 0;) p = m.fma(p, d, m.ir.lookup(k[i], m.bits(t)));
  return m.ir.copysign(p, x);
}
Val erf(const Maths& m, Val x) {
  if (m.ir.machine().avx512) return erf_by_table(m, x);
  static constexpr double p[] = {0x1.20dd74p+0, 0x1.85f2e2p-3,  0x1.b01d9cp-5,
                                 0x1.ed8e96p-9, 0x1.2ab838p-12, 0x1.13290ap-19};
  static constexpr double q[] = {1, 0x1.010fe8p-1, 0x1.d3634ep-4, 0x1.ea81ap-7, 0x1.30bf38p-10, 0x1.3f898ap-15};
  return rational(m, m.clamp(x, -3.92, 3.92), p, q);
}
// (e - 1) / (e + 1) with e = exp(2|x|): no cancellation near 0
Val tanh(const Maths& m, Val x) {
  Val a = m.min(m.c(9.02), m.ir.fabs(x));
  const Reduced q = reduce(m, m.add(a, a));
  Val s = scale(m, q.t), e = m.fma(s, expm1_reduced(m, q.r), m.sub(s, m.c(1)));
  return m.ir.copysign(m.quotient(e, m.add(e, m.c(2))), x);
}

// ---- sin, cos ----
// For |x| >= 2^17: x = k 2^e with a 24-bit k, so only three words of 2/pi, from the bit that e points to on, have a
// part in x * 2/pi mod 4 (Payne and Hanek). Returns the quadrant and the rest as an angle in f64.
struct Angle {
  Val quadrant, r;  // i32; f64
};
Angle reduce_large(const Maths& m, Val x) {
  // floor(2/pi * 2^(24 + 8i)) modulo 2^32: words that begin at every eighth bit
  static constexpr uint32_t kTwoOverPi[] = {0x00a2f983, 0xa2f9836e, 0xf9836e4e, 0x836e4e44, 0x6e4e4415, 0x4e441529,
                                            0x441529fc, 0x1529fc27, 0x29fc2757, 0xfc2757d1, 0x2757d1f5, 0x57d1f534,
                                            0xd1f534dd, 0xf534ddc0, 0x34ddc0db, 0xddc0db62, 0xc0db6295, 0xdb629599,
                                            0x6295993c, 0x95993c43, 0x993c4390, 0x3c439041};
  Ir& ir = m.ir;
  const int n = m.t.lanes;
  auto i32 = [&](int64_t v) { return ir.inum({Elem::i32, n}, v); };
  auto i64 = [&](int64_t v) { return ir.inum({Elem::i64, n}, v); };
  Val bits = ir.and_(m.bits(x), i32(0x7fffffff)), table = ir.table(kTwoOverPi);
  Val k = ir.or_(ir.and_(bits, i32(0x7fffff)), i32(0x800000));
  // the exponent from 2^17 on: eights choose the words, the rest shifts k; so the first product counts 2^-30
  Val e = ir.smin(ir.smax(ir.sub(ir.lshr(bits, 23), i32(127 + 17)), i32(0)), i32(110));
  Val shift = ir.and_(e, i32(7)), at = ir.lshr(e, 3);
  auto word = [&](int64_t further) {
    Val index = ir.add(at, i32(further));
    if (n == 1)
      return ir.zext(ir.load({Elem::i32, 1}, ir.offset(table, ir.mul(ir.sext(index, Elem::i64), ir.i64(4))), 4),
                     Elem::i64);
    return ir.zext(ir.gather({Elem::i32, n}, table, index, ir.inum({Elem::i1, n}, 1)), Elem::i64);
  };
  Val wide = ir.shl(ir.zext(k, Elem::i64), ir.zext(shift, Elem::i64));  // below 2^31
  // product of wide and 96 bits, kept modulo 2^64 above the last 32: two bits of quadrant, 62 of fraction
  Val high = ir.shl(ir.mul(wide, word(0)), 32), middle = ir.mul(wide, word(4)),
      low = ir.lshr(ir.mul(wide, word(8)), 32);
  Val sum = ir.add(ir.add(high, middle), low);
  Val quadrant = ir.lshr(ir.add(sum, i64(int64_t{1} << 61)), 62);
  Val rest = ir.sub(sum, ir.shl(quadrant, 62));
  Val r = ir.fmul(ir.from_int(rest, Elem::f64, true), ir.num({Elem::f64, n}, 0x1.921fb54442d18p-62));  // pi/2 * 2^-62
  Val negative = ir.icmp(Pred::lt, m.bits(x), i32(0));
  Val q = ir.narrow(quadrant, Elem::i32);
  return {ir.select(negative, ir.sub(i32(0), q), q), ir.select(negative, ir.fneg(r), r)};
}

// sin(x + quarter * pi / 2). The reduction is done in f64: there x - n pi/2 keeps enough digits without tricks.
Val circle(const Maths& m, Val x, int quarter) {
  static constexpr double s[] = {-0x1.555546p-3, 0x1.11073ap-7, -0x1.994388p-13};
  static constexpr double k[] = {0x1.55554ap-5, -0x1.6c0c32p-10, 0x1.99eb4ap-16};
  Ir& ir = m.ir;
  Val wide = ir.fext(x);
  const Maths d(ir, wide);
  Val t = d.fma(wide, d.c(0x1.45f306dc9c883p-1), d.c(0x1.8p52)), n = d.sub(t, d.c(0x1.8p52));
  Val rest = d.fma(n, d.c(-0x1.921fb54p0), wide);  // 27 bits of pi/2: the product is exact
  rest = d.fma(n, d.c(-0x1.10b4611a62633p-30), rest);
  Val q = ir.narrow(d.bits(t), Elem::i32);
  Val large = ir.fcmp(Pred::ge, ir.fabs(x), m.c(0x1p17));
  Block usual = ir.here(), slow = ir.block("large_angle"), join = ir.block("angle");
  ir.br(ir.any(large), slow, join);
  ir.enter(slow);
  const Angle a = reduce_large(m, x);
  Val slow_q = ir.select(large, a.quadrant, q), slow_rest = ir.select(large, a.r, rest);
  Block slow_end = ir.here();
  ir.br(join);
  ir.enter(join);
  Val rp = ir.phi(d.t), qp = ir.phi(m.ints());
  ir.incoming(rp, rest, usual), ir.incoming(rp, slow_rest, slow_end);
  ir.incoming(qp, q, usual), ir.incoming(qp, slow_q, slow_end);

  Val r = ir.fnarrow(rp), z = m.mul(r, r);
  Val quadrant = ir.add(qp, m.ci(quarter));
  Val sine = m.fma(m.mul(z, r), m.poly(z, s), r);
  Val cosine = m.fma(m.mul(z, z), m.poly(z, k), m.fma(z, m.c(-0.5), m.c(1)));
  Val v = ir.select(ir.icmp(Pred::ne, ir.and_(quadrant, m.ci(1)), m.ci(0)), cosine, sine);
  v = m.value(ir.xor_(m.bits(v), ir.shl(ir.and_(quadrant, m.ci(2)), 30)));
  if (quarter == 0) v = ir.select(ir.fcmp(Pred::eq, x, m.c(0)), x, v);
  return ir.select(m.less(ir.fabs(x), m.c(HUGE_VAL)), v, m.c(NAN));
}

}  // namespace

Val math_f32(Ir& ir, S op, Val a, Val b) {
  const Maths m(ir, a);
  switch (op) {
    case S::exp: return exp(m, a);
    case S::expn: return expn(m, a);
    case S::expm1: return expm1(m, a);
    case S::log: return log(m, a);
    case S::log1p: return log1p(m, a);
    case S::tanh: return tanh(m, a);
    case S::sigmoid: return sigmoid(m, a);
    case S::erf: return erf(m, a);
    case S::pow: return ir.fnarrow(math_f64(ir, op, ir.fext(a), ir.fext(b)));
    case S::sin: return circle(m, a, 0);
    case S::cos: return circle(m, a, 1);
    default: break;
  }
  GAF_CHECK(false) << kir::row(op).name << " has no spelling for floats";
  return nullptr;
}

}  // namespace gaf::cpu
