// The scalar-op table and its meaning on one element of every dtype: the single definition that the interpreter,
// constant folding and the tests of each back end hold on to. Knows nothing of tiles, statements or instruction sets'
// spellings.
#include "ir/scalar.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/tensor.h"

namespace gaf::kir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double quiet(bool nan, double v) { return nan ? std::numeric_limits<double>::quiet_NaN() : v; }

#define GAF_EVAL(expression)                   \
  [](double a, double b, double c) -> double { \
    (void)a, (void)b, (void)c;                 \
    return expression;                         \
  }

// Cycles of avx2 exp, expn, tanh, sigmoid and erf were measured on emitted code; the NPU column follows its
// documentation (one cycle a repeat for plain ops). The rest are estimates until a calibration replaces them. The sse
// column is avx2 per instruction where no FMA is involved, a quarter to a third more where a polynomial has to do
// without one.
constexpr std::array<ScalarRow, static_cast<size_t>(S::count)> kRows = {{
    {"mov", 1, Nan::pass, 0.3f, 0.3f, 0.5f, 1, "1", GAF_EVAL(a)},
    {"cast", 1, Nan::pass, 1, 1, 1, 1, "1", GAF_EVAL(a)},
    {"bitcast", 1, Nan::bits, 0.3f, 0.3f, 0.5f, 1, "0", GAF_EVAL(a)},
    {"neg", 1, Nan::pass, 0.3f, 0.3f, 0.5f, 1, "-1", GAF_EVAL(-a)},
    {"abs", 1, Nan::pass, 0.3f, 0.3f, 0.5f, 1, "sign(a)", GAF_EVAL(std::fabs(a))},
    {"sign", 1, Nan::pass, 1, 1, 1, 0, "0",
     GAF_EVAL(a > 0   ? 1
              : a < 0 ? -1
                      : a)},
    {"add", 2, Nan::pass, 0.5f, 0.5f, 0.5f, 1, "1; 1", GAF_EVAL(a + b)},
    {"sub", 2, Nan::pass, 0.5f, 0.5f, 0.5f, 1, "1; -1", GAF_EVAL(a - b)},
    {"mul", 2, Nan::pass, 0.5f, 0.5f, 0.5f, 1, "b; a", GAF_EVAL(a* b)},
    {"div", 2, Nan::pass, 4, 5, 10, 4, "1 / b; -(y / b)", GAF_EVAL(a / b)},
    {"rem", 2, Nan::pass, 12, 12, 20, 0, "1; -trunc(a / b)", GAF_EVAL(std::fmod(a, b))},
    {"fma", 3, Nan::pass, 1, 0.5f, 0.5f, 2, "b; a; 1", GAF_EVAL(std::fma(a, b, c))},
    {"min", 2, Nan::second, 0.5f, 0.5f, 0.5f, 1, "select(lt(a, b), 1, 0); select(lt(a, b), 0, 1)",
     GAF_EVAL(a < b ? a : b)},
    {"max", 2, Nan::second, 0.5f, 0.5f, 0.5f, 1, "select(lt(b, a), 1, 0); select(lt(b, a), 0, 1)",
     GAF_EVAL(a > b ? a : b)},
    {"minp", 2, Nan::pass, 1.5f, 1.5f, 1.5f, 0, "select(lt(a, b), 1, 0); select(lt(a, b), 0, 1)",
     GAF_EVAL(quiet(a != a || b != b, a < b ? a : b))},
    {"maxp", 2, Nan::pass, 1.5f, 1.5f, 1.5f, 0, "select(lt(b, a), 1, 0); select(lt(b, a), 0, 1)",
     GAF_EVAL(quiet(a != a || b != b, a > b ? a : b))},
    {"sqrt", 1, Nan::pass, 5, 6, 12, 4, "0.5 / y", GAF_EVAL(std::sqrt(a))},
    {"rsqrt", 1, Nan::pass, 9, 11, 20, 4, "-0.5 * y * y * y", GAF_EVAL(1 / std::sqrt(a))},
    {"recip", 1, Nan::pass, 4, 5, 10, 4, "-(y * y)", GAF_EVAL(1 / a)},
    {"exp", 1, Nan::pass, 11, 8.3f, 8.5f, 4, "y", GAF_EVAL(std::exp(a))},
    {"expn", 1, Nan::pass, 9, 6.5f, 6.5f, 4, "y", GAF_EVAL(std::exp(a))},
    {"expm1", 1, Nan::pass, 12, 9, 9, 0, "y + 1", GAF_EVAL(std::expm1(a))},
    {"log", 1, Nan::pass, 12, 9, 9, 4, "1 / a", GAF_EVAL(std::log(a))},
    {"log1p", 1, Nan::pass, 14, 11, 11, 0, "1 / (1 + a)", GAF_EVAL(std::log1p(a))},
    {"pow", 2, Nan::pass, 29, 22, 24, 0, "b * pow(a, b - 1); y * log(a)", GAF_EVAL(std::pow(a, b))},
    {"tanh", 1, Nan::pass, 9, 7.0f, 7.5f, 0, "1 - y * y", GAF_EVAL(std::tanh(a))},
    {"sigmoid", 1, Nan::pass, 11, 8.6f, 9, 0, "y * (1 - y)", GAF_EVAL(1 / (1 + std::exp(-a)))},
    {"erf", 1, Nan::pass, 10, 7.6f, 8, 0, "1.1283791670955126 * exp(-(a * a))", GAF_EVAL(std::erf(a))},
    {"sin", 1, Nan::pass, 18, 14, 15, 0, "cos(a)", GAF_EVAL(std::sin(a))},
    {"cos", 1, Nan::pass, 18, 14, 15, 0, "-sin(a)", GAF_EVAL(std::cos(a))},
    {"floor", 1, Nan::pass, 1, 1, 1, 1, "0", GAF_EVAL(std::floor(a))},
    {"ceil", 1, Nan::pass, 1, 1, 1, 1, "0", GAF_EVAL(std::ceil(a))},
    {"round", 1, Nan::pass, 1, 1, 1, 1, "0", GAF_EVAL(std::nearbyint(a))},  // half to even
    {"trunc", 1, Nan::pass, 1, 1, 1, 1, "0", GAF_EVAL(std::trunc(a))},
    {"eq", 2, Nan::never, 0.5f, 0.5f, 1, 1, "0; 0", GAF_EVAL(a == b)},
    {"ne", 2, Nan::never, 0.5f, 0.5f, 1, 1, "0; 0", GAF_EVAL(a != b)},
    {"lt", 2, Nan::never, 0.5f, 0.5f, 1, 1, "0; 0", GAF_EVAL(a < b)},
    {"le", 2, Nan::never, 0.5f, 0.5f, 1, 1, "0; 0", GAF_EVAL(a <= b)},
    {"isnan", 1, Nan::never, 0.5f, 0.5f, 1, 1, "0", GAF_EVAL(a != a)},
    {"select", 3, Nan::pick, 1, 1, 0.5f, 1, "0; select(a, 1, 0); select(a, 0, 1)", GAF_EVAL(a != 0 ? b : c)},
    {"and", 2, Nan::bits, 0.3f, 0.3f, 0.5f, 1, "0; 0", GAF_EVAL(a != 0 && b != 0)},
    {"or", 2, Nan::bits, 0.3f, 0.3f, 0.5f, 1, "0; 0", GAF_EVAL(a != 0 || b != 0)},
    {"xor", 2, Nan::bits, 0.3f, 0.3f, 0.5f, 0, "0; 0", GAF_EVAL((a != 0) != (b != 0))},
    {"not", 1, Nan::bits, 0.3f, 0.3f, 0.5f, 1, "0", GAF_EVAL(a == 0)},
    {"shl", 2, Nan::bits, 1, 0.5f, 0.5f, 1, "0; 0", GAF_EVAL(std::ldexp(a, static_cast<int>(b)))},
    {"shr", 2, Nan::bits, 1, 0.5f, 0.5f, 1, "0; 0", GAF_EVAL(std::floor(std::ldexp(a, -static_cast<int>(b))))},
    {"rand", 2, Nan::bits, 14, 12, 12, 0, "0; 0", GAF_EVAL(a)},  // integers only: eval_int
}};
#undef GAF_EVAL

constexpr bool complete() {
  for (const ScalarRow& r : kRows)
    if (r.name.empty() || r.arity < 1 || r.arity > 3 || !r.eval) return false;
  return true;
}
static_assert(complete(), "a scalar op has no row");

// SplitMix64's finaliser over a Weyl sequence keyed by `key`: counter-based, so any element can be drawn alone.
int32_t random_bits(int64_t key, int64_t counter) {
  uint64_t z = static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(counter);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<int32_t>((z ^ (z >> 31)) >> 32);
}

bool is_unsigned(DType t) { return !row(t).is_signed; }

bool less(DType t, int64_t a, int64_t b) {
  return is_unsigned(t) ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

// Quotient towards zero; by zero it is 0, and the one overflow (smallest / -1) wraps: defined, so that code can be
// checked.
int64_t divide(DType t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (is_unsigned(t)) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  return b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
}

int64_t saturate(DType t, double x) {
  if (x != x) return 0;
  if (t == DType::b1) return x != 0;
  x = std::nearbyint(x);
  int bits = 8 * bytes(t) - (is_unsigned(t) ? 0 : 1);
  double top = std::ldexp(1.0, bits), bottom = is_unsigned(t) ? 0 : -top;
  if (x <= bottom) return is_unsigned(t) ? 0 : static_cast<int64_t>(bottom);
  if (x >= top) return bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
  return bits == 64 ? static_cast<int64_t>(static_cast<uint64_t>(x)) : static_cast<int64_t>(x);
}

}  // namespace

const ScalarRow& row(S op) { return kRows[static_cast<size_t>(op)]; }

std::optional<S> scalar_named(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); i++)
    if (kRows[i].name == name) return static_cast<S>(i);
  return std::nullopt;
}

bool can_reduce(S op) {
  return op == S::add || op == S::mul || op == S::min || op == S::max || op == S::minp || op == S::maxp ||
         op == S::and_ || op == S::or_;
}

double neutral(S op) {
  switch (op) {
    case S::add:
    case S::or_: return 0;
    case S::mul:
    case S::and_: return 1;
    case S::min:
    case S::minp: return kInf;
    default: return -kInf;
  }
}

DType result_dtype(S op, DType t) { return row(op).nan == Nan::never ? DType::b1 : t; }

bool computes(S op, DType t) {
  switch (op) {
    case S::mov:
    case S::cast:
    case S::bitcast:
    case S::select:
    case S::eq:
    case S::ne: return true;
    case S::neg:
    case S::abs:
    case S::sign:
    case S::add:
    case S::sub:
    case S::mul:
    case S::div:
    case S::rem:
    case S::fma:
    case S::min:
    case S::max:
    case S::minp:
    case S::maxp:
    case S::lt:
    case S::le: return t != DType::b1;
    case S::and_:
    case S::or_:
    case S::xor_:
    case S::not_: return !is_float(t);
    case S::shl:
    case S::shr:
    case S::rand: return is_int(t);
    default: return is_float(t);
  }
}

double round_float(DType t, double x) {
  switch (t) {
    case DType::f32: return static_cast<float>(x);
    case DType::f16:
    case DType::bf16: {
      // To 16 bits directly: over f32 a value near a tie would be rounded twice. Scaling by the unit of the last place
      // is exact, so nearbyint rounds once; what comes out is a value of the dtype or too large for it.
      if (!std::isfinite(x) || x == 0) return x;
      int digits = t == DType::f16 ? 11 : 8, smallest = t == DType::f16 ? -14 : -126, exponent = std::ilogb(x);
      int unit = std::max(exponent, smallest) - (digits - 1);
      double r = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
      double top = t == DType::f16 ? 65504.0 : 0x1.fep127;
      return std::fabs(r) > top ? std::copysign(kInf, x) : std::copysign(r, x);
    }
    default: return x;
  }
}

int64_t wrap_int(DType t, int64_t x) {
  switch (t) {
    case DType::i8: return static_cast<int8_t>(x);
    case DType::u8: return static_cast<uint8_t>(x);
    case DType::i16: return static_cast<int16_t>(x);
    case DType::u16: return static_cast<uint16_t>(x);
    case DType::i32: return static_cast<int32_t>(x);
    case DType::u32: return static_cast<uint32_t>(x);
    case DType::b1: return x != 0;
    default: return x;
  }
}

double eval_float(S op, DType t, double a, double b, double c) {
  // f32 operands are exact in double and double carries more than twice the digits, so rounding the double result once
  // is the correctly rounded f32 result of + - * / and sqrt; fma alone has to be done in its own precision.
  if (op == S::fma && t == DType::f32)
    return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
  double r = row(op).eval(a, b, c);
  return row(op).nan == Nan::never ? r : round_float(t, r);
}

int64_t eval_int(S op, DType t, int64_t a, int64_t b, int64_t c) {
  auto u = [](int64_t x) { return static_cast<uint64_t>(x); };
  auto wrap = [&](uint64_t x) { return wrap_int(t, static_cast<int64_t>(x)); };
  int width = 8 * bytes(t),
      count = static_cast<int>(u(b) & static_cast<uint64_t>(width - 1));  // shift counts: modulo the width
  switch (op) {
    case S::mov:
    case S::cast:
    case S::bitcast: return wrap_int(t, a);
    case S::neg: return wrap(0 - u(a));
    case S::abs: return !is_unsigned(t) && a < 0 ? wrap(0 - u(a)) : a;
    case S::sign: return a == 0 ? 0 : !is_unsigned(t) && a < 0 ? -1 : 1;
    case S::add: return wrap(u(a) + u(b));
    case S::sub: return wrap(u(a) - u(b));
    case S::mul: return wrap(u(a) * u(b));
    case S::fma: return wrap(u(a) * u(b) + u(c));
    case S::div: return wrap_int(t, divide(t, a, b));
    case S::rem: return b == 0 ? 0 : wrap(u(a) - u(divide(t, a, b)) * u(b));
    case S::min:
    case S::minp: return less(t, a, b) ? a : b;
    case S::max:
    case S::maxp: return less(t, b, a) ? a : b;
    case S::eq: return a == b;
    case S::ne: return a != b;
    case S::lt: return less(t, a, b);
    case S::le: return !less(t, b, a);
    case S::select: return a != 0 ? b : c;
    case S::and_: return wrap(u(a) & u(b));
    case S::or_: return wrap(u(a) | u(b));
    case S::xor_: return wrap(u(a) ^ u(b));
    case S::not_: return t == DType::b1 ? a == 0 : wrap(~u(a));
    case S::shl: return wrap(u(a) << count);
    case S::shr: return is_unsigned(t) ? wrap(u(a) >> count) : wrap_int(t, a >> count);
    case S::rand: return wrap_int(t, random_bits(a, b));
    default: GAF_CHECK(false) << row(op).name << " has no meaning on " << name(t); return 0;
  }
}

Element number(DType t, double v) {
  Element e;
  if (is_float(t))
    e.f = round_float(t, v);
  else
    e.i = saturate(t, v);
  return e;
}

Element neutral(S op, DType t) {
  if (op == S::and_ && is_int(t)) return {0, wrap_int(t, -1)};
  return number(t, neutral(op));
}

Element convert(Element x, DType from, DType to) {
  if (is_float(from)) return number(to, x.f);
  Element e;
  bool big = from == DType::u64;
  if (to == DType::f32)
    e.f = big ? static_cast<float>(static_cast<uint64_t>(x.i)) : static_cast<float>(x.i);
  else if (is_float(to))
    e.f = round_float(to, big ? static_cast<double>(static_cast<uint64_t>(x.i)) : static_cast<double>(x.i));
  else
    e.i = wrap_int(to, x.i);
  return e;
}

Element bitcast(Element x, DType from, DType to) {
  GAF_CHECK(bytes(from) == bytes(to)) << "bitcast " << name(from) << " to " << name(to);
  uint64_t bits = static_cast<uint64_t>(x.i);
  switch (from) {
    case DType::f32: bits = std::bit_cast<uint32_t>(static_cast<float>(x.f)); break;
    case DType::f64: bits = std::bit_cast<uint64_t>(x.f); break;
    case DType::f16: bits = f32_to_f16(static_cast<float>(x.f)); break;
    case DType::bf16: bits = f32_to_bf16(static_cast<float>(x.f)); break;
    default: break;
  }
  Element e;
  switch (to) {
    case DType::f32: e.f = std::bit_cast<float>(static_cast<uint32_t>(bits)); break;
    case DType::f64: e.f = std::bit_cast<double>(bits); break;
    case DType::f16: e.f = f16_to_f32(static_cast<uint16_t>(bits)); break;
    case DType::bf16: e.f = bf16_to_f32(static_cast<uint16_t>(bits)); break;
    default: e.i = wrap_int(to, static_cast<int64_t>(bits)); break;
  }
  return e;
}

}  // namespace gaf::kir
