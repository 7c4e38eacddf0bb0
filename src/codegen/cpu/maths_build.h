// What maths_f32.cpp and maths_f64.cpp share: arithmetic on one value type, polynomials, the exponent field.
#pragma once
#include "base/error.h"
#include "codegen/cpu/maths.h"

namespace gaf::cpu {

struct Maths {
  Ir& ir;
  Type t;  // f32 or f64, any width
  Maths(Ir& ir, Val like) : ir(ir), t(ir.type(like)) {}

  bool single() const { return t.e == Elem::f32; }
  Type ints() const { return {single() ? Elem::i32 : Elem::i64, t.lanes}; }
  Val c(double v) const { return ir.num(t, v); }
  Val ci(int64_t v) const { return ir.inum(ints(), v); }
  Val add(Val a, Val b) const { return ir.fadd(a, b); }
  Val sub(Val a, Val b) const { return ir.fsub(a, b); }
  Val mul(Val a, Val b) const { return ir.fmul(a, b); }
  Val div(Val a, Val b) const { return ir.fdiv(a, b); }
  Val fma(Val a, Val b, Val d) const { return ir.fma(a, b, d); }
  // x86 min and max with the constant first: a NaN in x goes through.
  Val min(Val limit, Val x) const { return ir.select(ir.fcmp(Pred::lt, limit, x), limit, x); }
  Val max(Val limit, Val x) const { return ir.select(ir.fcmp(Pred::gt, limit, x), limit, x); }
  Val clamp(Val x, double lo, double hi) const { return min(c(hi), max(c(lo), x)); }
  Val less(Val a, Val b) const { return ir.fcmp(Pred::lt, a, b); }
  Val bits(Val a) const { return ir.bitcast(a, ints().e); }
  Val value(Val bits) const { return ir.bitcast(bits, t.e); }
  int mantissa() const { return single() ? 23 : 52; }
  int64_t bias() const { return single() ? 127 : 1023; }
  // 2^n for an integer n with -bias <= n <= bias + 1; at -bias the result is 0
  Val power_of_two(Val n) const { return value(ir.shl(ir.add(n, ci(bias())), mantissa())); }

  // a / b within one unit of the last place, for 1 <= b < 2^126 and a normal result: where the machine has estimates
  // of reciprocals, one step of Newton's method from there takes half of a division's time.
  Val quotient(Val a, Val b) const {
    if (!single() || !ir.machine().avx512) return div(a, b);
    Val r = ir.reciprocal(b), q = mul(a, r);
    return fma(fma(ir.fneg(q), b, a), r, q);
  }

  // k[0] + k[1] x + k[2] x^2 + ...
  template <size_t N>
  Val poly(Val x, const double (&k)[N]) const {
    Val p = c(k[N - 1]);
    for (size_t i = N - 1; i-- > 0;) p = fma(p, x, c(k[i]));
    return p;
  }
};

}  // namespace gaf::cpu
