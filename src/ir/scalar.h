// The scalar-op table: what one element of a `map` or `reduce` statement means, and the small programs over it by which
// a pointwise graph op says what it computes. The set is closed; every back end answers each row.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace gaf::kir {

enum class S : uint8_t {
  mov, cast, bitcast, neg, abs, sign, add, sub, mul, div, rem, fma, min, max, minp, maxp,
  sqrt, rsqrt, recip, exp, expn, expm1, log, log1p, pow, tanh, sigmoid, erf, sin, cos,
  floor, ceil, round, trunc, eq, ne, lt, le, isnan, select, and_, or_, xor_, not_, shl, shr, rand, count
};

enum class Nan : uint8_t {
  pass,    // NaN in any operand gives NaN
  second,  // unordered gives the second operand (x86 min, max); so relu is max(0, x)
  never,   // result is b1; a comparison with NaN is false, ne is true
  pick,    // select: NaN of the element taken
  bits,    // NaN has no meaning
};

// Cycles: sse per 4 f32, avx2 per 8 f32, avx512 per 16 f32 (one register), npu per 256 B repeat of the 910B vector unit.
// 0 = not an instruction there; `legalise` expands it first.
struct ScalarRow {
  std::string_view name;
  int arity;
  Nan nan;
  float sse, avx2, avx512, npu;
  std::string_view grad;                     // text over a b c y: d out / d (a; b; c)
  double (*eval)(double, double, double);    // the meaning for floats, in double; integers go through eval_int
};
const ScalarRow& row(S op);
std::optional<S> scalar_named(std::string_view name);
bool can_reduce(S op);      // add mul min max minp maxp and or
double neutral(S op);       // of a reduction
// Result dtype of op on operands of dtype t: b1 for comparisons, else t (cast: told by the destination).
DType result_dtype(S op, DType t);
// The meaning on one element of the given dtype, rounded / wrapped to it. Operands and result as double for floats and as
// int64 for integers and b1: the interpreter and constant folding call this.
double eval_float(S op, DType t, double a, double b, double c);
int64_t eval_int(S op, DType t, int64_t a, int64_t b, int64_t c);

// May op compute in dtype t? (select: of the two values; cast, bitcast: always)
bool computes(S op, DType t);
// One element of any dtype: floats in f, integers and b1 in i (u64 as its bits).
struct Element {
  double f = 0;
  int64_t i = 0;
};
Element neutral(S op, DType t);            // of a reduction in dtype t; integer `and`: all ones
double round_float(DType t, double x);     // to the nearest value of a float dtype, half to even, overflow to inf
int64_t wrap_int(DType t, int64_t x);      // to the dtype's width; b1: x != 0
// cast: float to integer saturates, half to even, NaN gives 0; integer to integer wraps; to b1 is x != 0
Element convert(Element x, DType from, DType to);
Element bitcast(Element x, DType from, DType to);  // same width
Element number(DType t, double v);         // a literal operand of the text, as an element of t

// What a pointwise op computes for one element.
struct ScalarArg {
  enum Kind : uint8_t { operand, step, number } kind = number;
  int index = 0;       // operand number, or number of an earlier step
  double value = 0;
};
struct ScalarStep {
  S op;
  DType in, out;       // dtype computed in; dtype of the result (differs for comparisons and cast)
  std::vector<ScalarArg> args;
};
struct ScalarProgram {
  std::vector<ScalarStep> steps;  // at least one; the result is the last
};
// Reads "mul(a, sigmoid($alpha * a))"-like text: operands a b c d e f, y (the last operand, in derivatives), numbers, inf,
// nan, $parameters, the table's op names, infix + - * / with the usual precedence, unary -, and dtype names as casts:
// f32(a), i64(a). Step dtypes follow from the operands'; numbers take the dtype of the other operand, and what holds numbers
// only is folded. Equal steps are written once. Ends with a cast if the result is not `result`. Errors are InternalErrors:
// the text is ours.
ScalarProgram parse_scalar(std::string_view text, std::span<const DType> operands, DType result,
                           const std::map<std::string, double>& parameters = {});

}  // namespace gaf::kir
