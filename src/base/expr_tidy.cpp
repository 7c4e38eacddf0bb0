// Folds min, max, div and mod by the intervals of their operands, from the leaves up.
#include "base/expr_tidy.h"

namespace gaf {

Expr tidy(const Expr& e, std::span<const Range> ranges) {
  if (e.max_sym() < 0 || e.op() == ExprOp::sym) return e;
  auto x = e.args();
  if (e.op() == ExprOp::add || e.op() == ExprOp::mul) {
    Expr r = e.op() == ExprOp::add ? 0 : 1;
    for (const Expr& a : x) r = e.op() == ExprOp::add ? r + tidy(a, ranges) : r * tidy(a, ranges);
    return r;
  }
  Expr a = tidy(x[0], ranges), b = tidy(x[1], ranges);
  Range ra = a.range(ranges), rb = b.range(ranges), difference = (a - b).range(ranges);
  switch (e.op()) {
    case ExprOp::min: return ra.hi <= rb.lo || difference.hi <= 0 ? a : rb.hi <= ra.lo || difference.lo >= 0 ? b : min(a, b);
    case ExprOp::max: return ra.lo >= rb.hi || difference.lo >= 0 ? a : rb.lo >= ra.hi || difference.hi <= 0 ? b : max(a, b);
    case ExprOp::div: return ra.lo >= 0 && ra.hi < rb.lo ? Expr(0) : floordiv(a, b);
    default: return ra.lo >= 0 && ra.hi < rb.lo ? a : mod(a, b);
  }
}

}  // namespace gaf
