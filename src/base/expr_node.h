// What an expression is made of, and arithmetic on sizes that refuses to overflow. For expr*.cpp only.
#pragma once
#include "base/error.h"
#include "base/expr.h"

namespace gaf {

struct ExprNode {
  ExprOp op;
  int64_t v = 0;  // num: the value; sym: the id
  std::vector<Expr> args;
  size_t hash = 0;
  int max_sym = -1;
};

inline int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw UserError("GAF3106", "a size does not fit 64 bits");
  return r;
}
inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw UserError("GAF3106", "a size does not fit 64 bits");
  return r;
}

}  // namespace gaf
