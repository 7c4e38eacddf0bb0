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
// Reads "mul(a, sigmoid($alpha * a))"-like text: operands a b c d, numbers, inf, $parameters, the table's op names, infix
// + - * / (no precedence surprises: use parentheses), and dtype names as casts: f32(a), i64(a). Step dtypes follow from
// the operands'. Ends with a cast if the result is not `result`. Errors are InternalErrors: the text is ours.
ScalarProgram parse_scalar(std::string_view text, std::span<const DType> operands, DType result,
                           const std::map<std::string, double>& parameters = {});

}  // namespace gaf::kir
