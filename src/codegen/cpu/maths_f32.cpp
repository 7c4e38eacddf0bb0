// Elementary functions in f32. Errors against correctly rounded results are in tests/unit/codegen/maths_test.cpp; NaN,
// infinities, both zeros and denormals are handled in the straight line. Coefficients are minimax fits (Remez exchange in 50
// digits, relative error) unless a series is named; pow goes through f64, whose extra digits it needs.
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
  static constexpr double k[] = {0x1.fffffap-2, 0x1.55549p-3, 0x1.555a22p-5, 0x1.123b04p-7, 0x1.695414p-10};
  return m.add(m.fma(m.mul(r, r), m.poly(r, k), r), m.c(1));
}
// exp(r) - 1, accurate near 0
Val expm1_reduced(const Maths& m, Val r) {
  static constexpr double k[] = {0x1.fffffep-2, 0x1.5554aep-3, 0x1.555712p-5, 0x1.12292ep-7, 0x1.6b79b2p-10};
  return m.fma(m.mul(r, r), m.poly(r, k), r);
}

// Two half scales: denormal results come out rounded once, and 2^128 is reached.
Val exp(const Maths& m, Val x) {
  const Reduced q = reduce(m, m.clamp(x, -105, 89));
  Val n = m.ir.sub(m.bits(q.t), m.ci(0x4b400000)), half = m.ir.ashr(n, 1);
  return m.mul(m.mul(exp_reduced(m, q.r), m.power_of_two(half)), m.power_of_two(m.ir.sub(n, half)));
}
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
  static constexpr double k[] = {0x1.555548p-2, -0x1.000006p-2, 0x1.99a4b6p-3, -0x1.555c4ep-3, 0x1.23374p-3,
                                 -0x1.fc220ap-4, 0x1.e6f06ap-4, -0x1.de3c04p-4, 0x1.145796p-4};
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

Val sigmoid(const Maths& m, Val x) {  // accurate in both tails
  Val e = expn(m, m.ir.fneg(m.ir.fabs(x)));
  return m.div(m.ir.select(m.less(x, m.c(0)), e, m.c(1)), m.add(m.c(1), e));
}

// x P(x^2) / Q(x^2): no exp, one division
template <size_t N, size_t D>
Val rational(const Maths& m, Val x, const double (&p)[N], const double (&q)[D]) {
  Val s = m.mul(x, x);
  return m.div(m.mul(x, m.poly(s, p)), m.poly(s, q));
}
Val erf(const Maths& m, Val x) {
  static constexpr double p[] = {0x1.20dd74p+0, 0x1.85f2e2p-3, 0x1.b01d9cp-5, 0x1.ed8e96p-9, 0x1.2ab838p-12, 0x1.13290ap-19};
  static constexpr double q[] = {1, 0x1.010fe8p-1, 0x1.d3634ep-4, 0x1.ea81ap-7, 0x1.30bf38p-10, 0x1.3f898ap-15};
  return rational(m, m.clamp(x, -3.92, 3.92), p, q);
}
Val tanh(const Maths& m, Val x) {
  static constexpr double p[] = {1, 0x1.182ca8p-3, 0x1.fb1b9ap-9, 0x1.d616fap-16, 0x1.06f91ep-25, -0x1.ae2198p-37};
  static constexpr double q[] = {1, 0x1.e16ba8p-2, 0x1.be6e82p-6, 0x1.9d1b22p-12, 0x1.59cd2cp-20};
  return rational(m, m.clamp(x, -9.01, 9.01), p, q);
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
    case S::sin: case S::cos: return ir.fnarrow(math_f64(ir, op, ir.fext(a), nullptr));
    default: break;
  }
  GAF_CHECK(false) << kir::row(op).name << " has no spelling for floats";
  return nullptr;
}

}  // namespace gaf::cpu
