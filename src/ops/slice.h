// Slice bounds, normalised: start inside the dim, extent >= 0, for symbolic sizes and for numbers.
#pragma once
#include <optional>
#include <vector>

#include "ops/eval_util.h"
#include "ops/infer_util.h"

namespace gaf {

struct SliceRange {
  size_t axis;
  Expr start, extent;
  int64_t step;
};

// ONNX Slice: bounds in attributes (opset < 10, canonical) or operands; negative bounds count from the end, bounds
// clamp.
std::optional<std::vector<SliceRange>> slices_of(const InferContext& c);  // nothing: bounds only known at run time
std::vector<SliceRange> slices_of(const EvalContext& c);
// One axis.
SliceRange slice_range(size_t axis, const Dim& dim, Expr start, Expr end, int64_t step, std::span<const Sym> syms);

}  // namespace gaf
