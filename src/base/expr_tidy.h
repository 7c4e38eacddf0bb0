// Expressions made smaller with what is known of their symbols: min(2147483647, batch) is batch.
#pragma once
#include "base/expr.h"

namespace gaf {

// Equal to `e` for all symbols within their ranges.
Expr tidy(const Expr& e, std::span<const Range> ranges);
inline void tidy(Dims& dims, std::span<const Range> ranges) {
  for (Expr& e : dims) e = tidy(e, ranges);
}

}  // namespace gaf
