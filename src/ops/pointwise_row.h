// Short forms for the rows of elementwise ops.
#pragma once
#include "ops/elementwise.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

using Defaults = std::vector<std::pair<std::string_view, double>>;

inline OpRow unary(std::string_view name, std::string_view friendly, void (*eval)(EvalContext&),
                   std::string_view scalar, bool cheap = true, Defaults defaults = {}) {
  return {.name = name,
          .friendly = friendly,
          .kind = OpKind::pointwise,
          .min_args = 1,
          .max_args = 1,
          .infer = infer_same,
          .eval = eval,
          .scalar = scalar,
          .defaults = std::move(defaults),
          .cheap = cheap};
}
inline OpRow binary(std::string_view name, std::string_view friendly, void (*eval)(EvalContext&),
                    std::string_view scalar, void (*infer)(InferContext&) = infer_broadcast, bool cheap = true,
                    Defaults defaults = {}) {
  return {.name = name,
          .friendly = friendly,
          .kind = OpKind::pointwise,
          .min_args = 2,
          .max_args = 2,
          .infer = infer,
          .eval = eval,
          .scalar = scalar,
          .defaults = std::move(defaults),
          .cheap = cheap};
}
// Elementwise by definition, but no scalar op computes it: runs through `eval`.
inline OpRow reference(std::string_view name, std::string_view friendly, void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = friendly,
          .kind = OpKind::other,
          .min_args = 1,
          .max_args = 1,
          .infer = infer_same,
          .eval = eval,
          .cheap = false};
}

}  // namespace gaf
