// Elementary functions in f64, to about 1e-15: rarely hot, so plain. Coefficients are minimax fits (Remez exchange in
// 50 digits, relative error). sin and cos lose accuracy for arguments far above 1e8.
#include <cmath>

#include "codegen/cpu/maths_build.h"

namespace gaf::cpu {

using kir::S;

namespace {

constexpr double kLog2e = 0x1.71547652b82fep0;
constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;  // n * high is exact
constexpr double kRound = 0x1.8p52;

struct Reduced {
  Val n, r;  // x = n ln 2 + r; n an integer value
};
Reduced reduce(const Maths& m, Val x) {
  Val t = m.fma(x, m.c(kLog2e), m.c(kRound)), n = m.sub(t, m.c(kRound));
  Val r = m.fma(n, m.c(-kLn2High), x);
  return {m.ir.sub(m.bits(t), m.ci(0x4338000000000000)), m.fma(n, m.c(-kLn2Low), r)};
}
Val expm1_reduced(const Maths& m, Val r) {
  static constexpr double k[] = {0x1.0000000000001p-1,  0x1.5555555555557p-3,  0x1.5555555554d3dp-5,
                                 0x1.11111111100e6p-7,  0x1.6c16c16f0a0a4p-10, 0x1.a01a01abe2ff5p-13,
                                 0x1.a019f3977a873p-16, 0x1.71de023f7341ap-19, 0x1.28022432b7996p-22,
                                 0x1.af4dcfd5c2153p-26, 0x1.e6322c1c53296p-30};
  return m.fma(m.mul(r, r), m.poly(r, k), r);
}
// 2^n in two factors: denormal results, and 2^1024
Val times_power(const Maths& m, Val x, Val n) {
  Val half = m.ir.ashr(m.ir.narrow(n, Elem::i32), 1);
  half = m.ir.sext(half, Elem::i64);
  return m.mul(m.mul(x, m.power_of_two(half)), m.power_of_two(m.ir.sub(n, half)));
}
Val exp(const Maths& m, Val x) {
  const Reduced q = reduce(m, m.clamp(x, -750, 710));
  return times_power(m, m.add(m.c(1), expm1_reduced(m, q.r)), q.n);
}
Val expm1(const Maths& m, Val x) {
  const Reduced q = reduce(m, m.clamp(x, -40, 710));
  Val s = m.power_of_two(m.ir.sub(q.n, m.ci(1))), r = m.fma(s, expm1_reduced(m, q.r), m.sub(s, m.c(0.5)));
  return m.ir.select(m.ir.fcmp(Pred::eq, x, m.c(0)), x, m.add(r, r));
}

struct Split {
  Val k, f;  // x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2))
};
Split split(const Maths& m, Val x) {
  Val small = m.less(x, m.c(0x1p-1022));
  x = m.ir.select(small, m.mul(x, m.c(0x1p54)), x);
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  Val bits = m.ir.sub(m.bits(x), m.ci(kRootHalf)), k = m.ir.ashr(bits, 52);
  k = m.ir.from_int(m.ir.narrow(k, Elem::i32), Elem::f64, true);
  k = m.sub(k, m.ir.select(small, m.c(54), m.c(0)));
  Val mantissa = m.value(m.ir.add(m.ir.and_(bits, m.ci(0xfffffffffffff)), m.ci(kRootHalf)));
  return {k, m.sub(mantissa, m.c(1))};
}
// (log((1+s)/(1-s)) - 2s) / s^3 in z = s^2
Val log_series(const Maths& m, Val z) {
  static constexpr double k[] = {0x1.5555555555555p-1, 0x1.9999999999dfbp-2, 0x1.249249242b911p-2,
                                 0x1.c71c7258a56efp-3, 0x1.745cde4fb1aa7p-3, 0x1.3b20a75413184p-3,
                                 0x1.0f5d2424873fbp-3, 0x1.0f5ff78030133p-3};
  return m.poly(z, k);
}
// log at its edges, given its value inside
Val log_edges(const Maths& m, Val x, Val r) {
  r = m.ir.select(m.ir.fcmp(Pred::eq, x, m.c(0)), m.c(-HUGE_VAL), r);
  r = m.ir.select(m.less(x, m.c(0)), m.c(NAN), r);
  return m.ir.select(m.less(x, m.c(HUGE_VAL)), r, m.add(x, x));
}
// With h = f^2 / 2: log(1+f) = f - (h - s (h + R)), so the leading term is exact.
Val log(const Maths& m, Val x) {
  const Split q = split(m, x);
  Val s = m.div(q.f, m.add(m.c(2), q.f)), z = m.mul(s, s), r = m.mul(z, log_series(m, z)),
      h = m.mul(m.mul(q.f, q.f), m.c(0.5));
  Val low = m.fma(q.k, m.c(kLn2Low), m.mul(s, m.add(h, r)));
  Val sum = m.sub(q.f, m.sub(h, low));
  return log_edges(m, x, m.fma(q.k, m.c(kLn2High), sum));
}
Val log1p(const Maths& m, Val x) {
  Val u = m.add(m.c(1), x), lost = m.div(m.sub(x, m.sub(u, m.c(1))), u), l = log(m, u);
  Val usual = m.ir.and_(m.ir.fcmp(Pred::gt, u, m.c(0)), m.less(u, m.c(HUGE_VAL)));
  Val r = m.ir.select(usual, m.add(l, lost), l);
  return m.ir.select(m.ir.fcmp(Pred::eq, u, m.c(1)), x, r);
}

Val sigmoid(const Maths& m, Val x) {
  Val e = exp(m, m.ir.fneg(m.ir.fabs(x)));
  return m.div(m.ir.select(m.less(x, m.c(0)), e, m.c(1)), m.add(m.c(1), e));
}
Val tanh(const Maths& m, Val x) {
  Val a = m.min(m.c(20), m.ir.fabs(x)), e = expm1(m, m.add(a, a));
  return m.ir.copysign(m.div(e, m.add(e, m.c(2))), x);
}

// |x| < 1: x P(x^2); above: 1 - exp(-x^2) R(1 / (|x| + 2))
Val erf(const Maths& m, Val x) {
  static constexpr double p[] = {0x1.20dd750429b6dp+0,   -0x1.812746b0379bdp-2,  0x1.ce2f21a040d16p-4,
                                 -0x1.b82ce311fa942p-6,  0x1.565bccf92b395p-8,   -0x1.c02db03dd89a1p-11,
                                 0x1.f9a2baa922f65p-14,  -0x1.f4ca4d716f7efp-17, 0x1.b97fd3ef6cad5p-20,
                                 -0x1.5c0727773fc6ep-23, 0x1.d71b12c716a2ap-27,  -0x1.abae5422c7d7bp-31};
  static constexpr double r[] = {
      -0x1.a42c6157c0f60p-19, 0x1.20f6136f6b574p-1,  0x1.1f8e4f58d1816p+0, 0x1.077cc2103f8c6p+1,  0x1.e5c0e98993dd5p+0,
      0x1.3c696c3c68d06p+3,   -0x1.48f13e6288a43p+5, 0x1.42739a9c92264p+7, -0x1.fed2de9945234p+8, 0x1.f164d78d99ce4p+9,
      -0x1.2041d9a5ab140p+10, 0x1.7601f47beb6b3p+9,  -0x1.a8440756db93fp+7};
  Val a = m.min(m.c(6), m.ir.fabs(x)), z = m.mul(a, a);
  Val far = m.sub(m.c(1), m.mul(exp(m, m.ir.fneg(z)), m.poly(m.div(m.c(1), m.add(a, m.c(2))), r)));
  return m.ir.select(m.less(m.c(1), a), m.ir.copysign(far, x), m.mul(x, m.poly(z, p)));
}

// ---- pow ----
// a * b = high + low, exactly
struct Pair {
  Val high, low;
};
Pair product(const Maths& m, Val a, Val b) {
  Val p = m.mul(a, b);
  if (m.ir.machine().fma) return {p, m.fma(a, b, m.ir.fneg(p))};
  auto halves = [&](Val x) {  // by a mask: no product that could overflow
    Val h = m.value(m.ir.and_(m.bits(x), m.ci(~int64_t{0x7ffffff})));
    return Pair{h, m.sub(x, h)};
  };
  const Pair x = halves(a), y = halves(b);
  Val low = m.sub(m.mul(x.high, y.high), p);
  low = m.add(m.add(low, m.mul(x.high, y.low)), m.mul(x.low, y.high));
  return {p, m.add(low, m.mul(x.low, y.low))};
}
// y log|x| in two parts, so that what is lost is small even where the product is hundreds
Pair y_log_x(const Maths& m, Val x, Val y) {
  const Split q = split(m, x);
  Val d = m.add(m.c(2), q.f), d_low = m.sub(q.f, m.sub(d, m.c(2)));
  Val s = m.div(q.f, d), z = m.mul(s, s);
  const Pair back = product(m, s, d);  // s_low = (f - s d - s d_low) / d
  Val s_low = m.div(m.sub(m.sub(m.sub(q.f, back.high), back.low), m.mul(s, d_low)), d);
  Val tail = m.fma(m.mul(z, s), log_series(m, z), m.add(s_low, s_low));
  Val k_high = m.mul(q.k, m.c(kLn2High)), two_s = m.add(s, s);
  Val high = m.add(k_high, two_s), big = m.ir.fcmp(Pred::ne, q.k, m.c(0));
  Val lost = m.ir.select(big, m.sub(two_s, m.sub(high, k_high)), m.c(0));
  Val low = m.add(m.fma(q.k, m.c(kLn2Low), tail), lost);
  Val l = m.add(high, low), l_low = m.sub(low, m.sub(l, high));
  const Pair p = product(m, y, l);
  return {p.high, m.fma(y, l_low, p.low)};
}
Val pow(const Maths& m, Val x, Val y) {
  Ir& ir = m.ir;
  Val a = ir.fabs(x), one = m.c(1), zero = m.c(0), inf = m.c(HUGE_VAL);
  const Pair p = y_log_x(m, a, y);
  auto inside = [&](Val v) { return ir.and_(m.less(zero, v), m.less(v, inf)); };
  Val plain = m.mul(y, log_edges(m, a, zero));  // only its infinities and NaN are used
  Val finite = ir.and_(inside(a), m.less(ir.fabs(y), inf));
  Val e = exp(m, ir.select(finite, p.high, m.ir.select(inside(a), m.mul(y, m.sub(a, one)), plain)));
  Val fine = ir.and_(finite, m.less(ir.fabs(p.low), m.c(1)));
  e = ir.select(ir.and_(fine, inside(e)), m.fma(e, ir.select(fine, p.low, zero), e), e);
  e = ir.select(ir.fcmp(Pred::eq, a, one), ir.select(ir.fcmp(Pred::uno, y, y), one, one), e);
  // the sign of a negative base
  Val whole = ir.fcmp(Pred::eq, ir.rint(y), y), half = m.mul(y, m.c(0.5));
  Val odd = ir.and_(whole, ir.fcmp(Pred::ne, ir.rint(half), half));
  Val negative = ir.icmp(Pred::lt, m.bits(x), m.ci(0));
  Val signed_e = ir.select(ir.and_(negative, odd), ir.fneg(e), e);
  Val no_root = ir.and_(ir.and_(m.less(x, zero), m.less(a, inf)), ir.and_(ir.not_(whole), ir.fcmp(Pred::eq, y, y)));
  Val r = ir.select(no_root, m.c(NAN), signed_e);
  r = ir.select(ir.fcmp(Pred::uno, x, y), m.add(x, y), r);
  r = ir.select(ir.fcmp(Pred::eq, y, zero), one, r);
  return ir.select(ir.fcmp(Pred::eq, x, one), one, r);
}

// ---- sin, cos ----
Val circle(const Maths& m, Val x, int quarter) {  // sin(x + quarter * pi / 2)
  static constexpr double s[] = {-0x1.5555555555555p-3, 0x1.111111111110bp-7,   -0x1.a01a01a018a67p-13,
                                 0x1.71de3a5330166p-19, -0x1.ae64528ce3548p-26, 0x1.61208be37bdb6p-33,
                                 -0x1.aaa21498069f2p-41};
  static constexpr double k[] = {0x1.5555555555555p-5,   -0x1.6c16c16c16c0fp-10, 0x1.a01a01a018cc5p-16,
                                 -0x1.27e4fb75eb36dp-22, 0x1.1eed8c906aa4ap-29,  -0x1.939323b1008e5p-37,
                                 0x1.aabce6e478878p-45};
  // pi / 2 in parts of 27 bits: n times each of them is exact up to n = 2^26
  static constexpr double parts[] = {0x1.921fb54p0, 0x1.10b461p-30, 0x1.a62633p-58, 0x1.45c06e0e68948p-86};
  Val t = m.fma(x, m.c(0x1.45f306dc9c883p-1), m.c(kRound)), n = m.sub(t, m.c(kRound));
  Val r = x;
  for (double p : parts) r = m.fma(n, m.c(-p), r);
  Val q = m.ir.add(m.bits(t), m.ci(quarter)), z = m.mul(r, r);
  Val sine = m.fma(m.mul(z, r), m.poly(z, s), r);
  Val cosine = m.fma(m.mul(z, z), m.poly(z, k), m.fma(z, m.c(-0.5), m.c(1)));
  Val v = m.ir.select(m.ir.icmp(Pred::ne, m.ir.and_(q, m.ci(1)), m.ci(0)), cosine, sine);
  v = m.value(m.ir.xor_(m.bits(v), m.ir.shl(m.ir.and_(q, m.ci(2)), 62)));
  if (quarter == 0) v = m.ir.select(m.ir.fcmp(Pred::eq, x, m.c(0)), x, v);
  return m.ir.select(m.less(m.ir.fabs(x), m.c(HUGE_VAL)), v, m.c(NAN));
}

}  // namespace

Val math_f64(Ir& ir, S op, Val a, Val b) {
  const Maths m(ir, a);
  switch (op) {
    case S::exp:
    case S::expn: return exp(m, a);
    case S::expm1: return expm1(m, a);
    case S::log: return log(m, a);
    case S::log1p: return log1p(m, a);
    case S::tanh: return tanh(m, a);
    case S::sigmoid: return sigmoid(m, a);
    case S::erf: return erf(m, a);
    case S::pow: return pow(m, a, b);
    case S::sin: return circle(m, a, 0);
    case S::cos: return circle(m, a, 1);
    default: break;
  }
  GAF_CHECK(false) << kir::row(op).name << " has no spelling for f64";
  return nullptr;
}

}  // namespace gaf::cpu
