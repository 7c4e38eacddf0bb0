// One scalar op on vector values, for every dtype, and conversions between dtypes. f16 and bf16 are their bits in
// registers and are computed in f32, rounded once behind each op; integers wrap; division by zero is 0, as ir/scalar.h
// says.
#include "base/error.h"
#include "codegen/cpu/emitter.h"
#include "codegen/cpu/maths.h"

namespace gaf::cpu {

using namespace kir;

namespace {
bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
}  // namespace

Elem Emitter::elem(DType t) const {
  switch (t) {
    case DType::f32: return Elem::f32;
    case DType::f64: return Elem::f64;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return Elem::i16;
    case DType::i8:
    case DType::u8: return Elem::i8;
    case DType::i32:
    case DType::u32: return Elem::i32;
    case DType::i64:
    case DType::u64: return Elem::i64;
    case DType::b1: break;
  }
  return Elem::i1;
}

Val Emitter::constant(DType t, double v, int64_t n) {
  const Element e = number(t, v);
  if (t == DType::f32 || t == DType::f64) return ir_.num(vec(t, n), e.f);
  if (is_half(t)) return ir_.inum(vec(t, n), kir::bitcast(e, t, DType::u16).i);
  return ir_.inum(vec(t, n), e.i);
}

Val Emitter::scalar(S op, DType t, Vals a) {
  if (op == S::select) return ir_.select(a[0], a[1], a[2]);
  if (op == S::mov) return a[0];
  a.resize(3, nullptr);
  if (!is_float(t)) return int_op(op, t, a[0], a[1], a[2]);
  if (!is_half(t)) return float_op(op, a[0], a[1], a[2]);
  for (Val& v : a)
    if (v) v = to_f32(v, t);
  Val r = float_op(op, a[0], a[1], a[2]);
  return result_dtype(op, t) == DType::b1 ? r : from_f32(r, t);
}

Val Emitter::float_op(S op, Val a, Val b, Val c) {
  const Type t = ir_.type(a);
  auto num = [&](double v) { return ir_.num(t, v); };
  auto least = [&] { return ir_.select(ir_.fcmp(Pred::lt, a, b), a, b); };
  auto most = [&] { return ir_.select(ir_.fcmp(Pred::gt, a, b), a, b); };
  auto nan_of_either = [&](Val v) { return ir_.select(ir_.fcmp(Pred::uno, a, b), ir_.fadd(a, b), v); };
  switch (op) {
    case S::neg: return ir_.fneg(a);
    case S::abs: return ir_.fabs(a);
    case S::sign:
      return ir_.select(ir_.fcmp(Pred::gt, a, num(0)), num(1), ir_.select(ir_.fcmp(Pred::lt, a, num(0)), num(-1), a));
    case S::add: return ir_.fadd(a, b);
    case S::sub: return ir_.fsub(a, b);
    case S::mul: return ir_.fmul(a, b);
    case S::div: return ir_.fdiv(a, b);
    case S::rem: return ir_.frem(a, b);
    case S::fma: return ir_.fma(a, b, c);
    case S::min: return least();
    case S::max: return most();
    case S::minp: return nan_of_either(least());
    case S::maxp: return nan_of_either(most());
    case S::sqrt: return ir_.sqrt(a);
    case S::rsqrt: return ir_.fdiv(num(1), ir_.sqrt(a));
    case S::recip: return ir_.fdiv(num(1), a);
    case S::floor: return ir_.floor(a);
    case S::ceil: return ir_.ceil(a);
    case S::round: return ir_.rint(a);
    case S::trunc: return ir_.trunc(a);
    case S::eq: return ir_.fcmp(Pred::eq, a, b);
    case S::ne: return ir_.fcmp(Pred::ne, a, b);
    case S::lt: return ir_.fcmp(Pred::lt, a, b);
    case S::le: return ir_.fcmp(Pred::le, a, b);
    case S::isnan: return ir_.fcmp(Pred::uno, a, a);
    default: return t.e == Elem::f32 ? math_f32(ir_, op, a, b) : math_f64(ir_, op, a, b);
  }
}

Val Emitter::divide_ints(DType t, Val a, Val b) {
  const Type v = ir_.type(a);
  Val zero = ir_.inum(v, 0), one = ir_.inum(v, 1), by_zero = ir_.icmp(Pred::eq, b, zero);
  Val d = ir_.select(by_zero, one, b), q;
  if (row(t).is_signed) {  // -1 apart: the smallest integer over it would trap
    Val minus = ir_.icmp(Pred::eq, b, ir_.inum(v, -1));
    q = ir_.select(minus, ir_.sub(zero, a), ir_.sdiv(a, ir_.select(minus, one, d)));
  } else {
    q = ir_.udiv(a, d);
  }
  return ir_.select(by_zero, zero, q);
}

Val Emitter::int_op(S op, DType t, Val a, Val b, Val c) {
  const Type v = ir_.type(a);
  const bool sign = row(t).is_signed;
  auto num = [&](int64_t x) { return ir_.inum(v, x); };
  auto less = [&](Val x, Val y) { return ir_.icmp(sign ? Pred::lt : Pred::ult, x, y); };
  switch (op) {
    case S::neg: return ir_.sub(num(0), a);
    case S::abs: return sign ? ir_.select(less(a, num(0)), ir_.sub(num(0), a), a) : a;
    case S::sign: {
      Val r = ir_.select(ir_.icmp(Pred::eq, a, num(0)), num(0), num(1));
      return sign ? ir_.select(less(a, num(0)), num(-1), r) : r;
    }
    case S::add: return ir_.add(a, b);
    case S::sub: return ir_.sub(a, b);
    case S::mul: return ir_.mul(a, b);
    case S::fma: return ir_.add(ir_.mul(a, b), c);
    case S::div: return divide_ints(t, a, b);
    case S::rem: return ir_.select(ir_.icmp(Pred::eq, b, num(0)), num(0), ir_.sub(a, ir_.mul(divide_ints(t, a, b), b)));
    case S::min:
    case S::minp: return ir_.select(less(a, b), a, b);
    case S::max:
    case S::maxp: return ir_.select(less(b, a), a, b);
    case S::eq: return ir_.icmp(Pred::eq, a, b);
    case S::ne: return ir_.icmp(Pred::ne, a, b);
    case S::lt: return less(a, b);
    case S::le: return ir_.not_(less(b, a));
    case S::and_: return ir_.and_(a, b);
    case S::or_: return ir_.or_(a, b);
    case S::xor_: return ir_.xor_(a, b);
    case S::not_: return ir_.not_(a);
    case S::shl: return ir_.shl(a, ir_.and_(b, num(8 * gaf::bytes(t) - 1)));
    case S::shr: {
      Val n = ir_.and_(b, num(8 * gaf::bytes(t) - 1));
      return sign ? ir_.ashr(a, n) : ir_.lshr(a, n);
    }
    case S::rand: {  // SplitMix64, as ir/scalar.cpp defines it
      const Type w{Elem::i64, v.lanes};
      auto mul = [&](Val x, uint64_t k) { return ir_.mul(x, ir_.inum(w, static_cast<int64_t>(k))); };
      Val z = ir_.add(mul(convert(a, t, DType::i64), 0x9e3779b97f4a7c15u), convert(b, t, DType::i64));
      z = mul(ir_.xor_(z, ir_.lshr(z, 30)), 0xbf58476d1ce4e5b9u);
      z = mul(ir_.xor_(z, ir_.lshr(z, 27)), 0x94d049bb133111ebu);
      z = ir_.ashr(ir_.xor_(z, ir_.lshr(z, 31)), 32);
      return convert(z, DType::i64, t);
    }
    default: break;
  }
  GAF_CHECK(false) << row(op).name << " has no meaning on " << name(t);
  return nullptr;
}

// ---- conversions ----
Val Emitter::convert(Val v, DType from, DType to) {
  if (from == to) return v;
  const int n = ir_.type(v).lanes;
  if (is_float(from)) {
    if (is_half(from)) return convert(to_f32(v, from), DType::f32, to);
    if (to == DType::f32) return ir_.fnarrow(v);
    if (to == DType::f64) return ir_.fext(v);
    const Type t = ir_.type(v);
    if (is_half(to)) {
      if (from == DType::f32) return from_f32(v, to);
      // f64: towards zero, and odd where that lost something, so that the second rounding is the only one
      Val f = ir_.fnarrow(v), back = ir_.fext(f), bits = ir_.bitcast(f, Elem::i32);
      Val away = ir_.fcmp(Pred::gt, ir_.fabs(back), ir_.fabs(v)), inexact = ir_.fcmp(Pred::ne, back, v);
      bits = ir_.select(away, ir_.sub(bits, ir_.inum({Elem::i32, n}, 1)), bits);
      bits = ir_.select(ir_.and_(inexact, ir_.fcmp(Pred::eq, v, v)), ir_.or_(bits, ir_.inum({Elem::i32, n}, 1)), bits);
      return from_f32(ir_.bitcast(bits, Elem::f32), to);
    }
    if (to == DType::b1) return ir_.and_(ir_.fcmp(Pred::ne, v, ir_.num(t, 0)), ir_.fcmp(Pred::eq, v, v));
    return ir_.to_int(ir_.rint(v), elem(to), row(to).is_signed);
  }
  if (is_float(to)) {
    if (is_half(to)) return from_f32(convert(v, from, DType::f32), to);
    return ir_.from_int(v, elem(to), row(from).is_signed);
  }
  if (to == DType::b1) return ir_.icmp(Pred::ne, v, ir_.inum(ir_.type(v), 0));
  const Elem a = elem(from), b = elem(to);
  if (a == b) return v;
  if (from != DType::b1 && cpu::bytes(b) < cpu::bytes(a)) return ir_.narrow(v, b);
  return row(from).is_signed ? ir_.sext(v, b) : ir_.zext(v, b);
}

Val Emitter::reinterpret(Val v, DType from, DType to) {
  if (from == DType::b1 || to == DType::b1) return convert(v, from, to);
  return elem(from) == elem(to) ? v : ir_.bitcast(v, elem(to));
}

Val Emitter::to_f32(Val bits, DType from) {
  const Type t{Elem::i32, ir_.type(bits).lanes};
  auto num = [&](int64_t x) { return ir_.inum(t, x); };
  if (from == DType::bf16) return ir_.bitcast(ir_.shl(ir_.zext(bits, Elem::i32), 16), Elem::f32);
  if (ir_.machine().half_convert) return ir_.half_to_f32(bits);
  Val x = ir_.zext(bits, Elem::i32), sign = ir_.shl(ir_.and_(x, num(0x8000)), 16), magnitude = ir_.and_(x, num(0x7fff));
  Val normal = ir_.add(ir_.shl(magnitude, 13), num(112 << 23));  // the exponents' biases are 15 and 127
  normal = ir_.select(ir_.icmp(Pred::ge, magnitude, num(0x7c00)), ir_.add(normal, num(112 << 23)), normal);  // inf, NaN
  Val small = ir_.fmul(ir_.from_int(magnitude, Elem::f32, true), ir_.num({Elem::f32, t.lanes}, 0x1p-24));    // denormal
  Val r = ir_.select(ir_.icmp(Pred::lt, magnitude, num(0x400)), ir_.bitcast(small, Elem::i32), normal);
  return ir_.bitcast(ir_.or_(r, sign), Elem::f32);
}

Val Emitter::from_f32(Val v, DType to) {
  const Type t{Elem::i32, ir_.type(v).lanes};
  auto num = [&](int64_t x) { return ir_.inum(t, x); };
  if (to == DType::f16 && ir_.machine().half_convert) return ir_.f32_to_half(v);
  Val x = ir_.bitcast(v, Elem::i32);
  if (to == DType::bf16) {
    Val even = ir_.and_(ir_.lshr(x, 16), num(1)), r = ir_.lshr(ir_.add(x, ir_.add(num(0x7fff), even)), 16);
    Val nan = ir_.or_(ir_.lshr(x, 16), num(0x40));
    return ir_.narrow(ir_.select(ir_.fcmp(Pred::uno, v, v), nan, r), Elem::i16);
  }
  Val sign = ir_.and_(ir_.lshr(x, 16), num(0x8000)), magnitude = ir_.and_(x, num(0x7fffffff));
  Val even = ir_.and_(ir_.lshr(magnitude, 13), num(1));
  Val r = ir_.lshr(ir_.add(magnitude, ir_.add(even, num(0xfff - (112 << 23)))), 13);
  // Below the smallest normal number the addition to 0.5 rounds at the right bit.
  Val small = ir_.bitcast(ir_.fadd(ir_.bitcast(magnitude, Elem::f32), ir_.num({Elem::f32, t.lanes}, 0.5)), Elem::i32);
  r = ir_.select(ir_.icmp(Pred::lt, magnitude, num(0x38800000)), ir_.sub(small, num(0x3f000000)), r);
  r = ir_.select(ir_.icmp(Pred::ge, magnitude, num(0x477ff000)), num(0x7c00), r);
  r = ir_.select(ir_.icmp(Pred::gt, magnitude, num(0x7f800000)), num(0x7e00), r);
  return ir_.narrow(ir_.or_(r, sign), Elem::i16);
}

}  // namespace gaf::cpu
