// Reductions of the reference evaluation: axes of a node, and folding a tensor over them in double or int64.
#pragma once
#include <vector>

#include "ops/eval_util.h"
#include "ops/infer_util.h"

namespace gaf {

// Sorted non-negative axes of a Reduce* node; all axes if none are given (none if noop_with_empty_axes).
std::optional<Ints> reduce_axes(const InferContext& c, size_t rank);  // nothing: the operand is not known
Ints reduce_axes(const EvalContext& c, size_t rank);
Ints reduced_dims(const Ints& dims, const Ints& axes, bool keepdims);
Ints sorted_axes(Ints axes, size_t rank);

// acc = f(acc, x) from `start` for each element of the result.
template <class T, class F>
std::vector<T> reduce(const std::vector<T>& x, const Ints& dims, const Ints& axes, T start, F f) {
  Ints kept = dims;
  for (int64_t a : axes) kept[static_cast<size_t>(a)] = 1;
  std::vector<T> out(static_cast<size_t>(numel(kept)), start);
  size_t i = 0;
  walk<1>(dims, {broadcast_strides(kept, dims)}, [&](auto& at) {
    T& acc = out[static_cast<size_t>(at[0])];
    acc = f(acc, x[i++]);
  });
  return out;
}

}  // namespace gaf
