// The interpreter's inner function, shared with the evaluation of control flow.
#pragma once
#include <vector>

#include "ops/op.h"

namespace gaf {

// Runs a region or kernel function; `syms`: values of symbols known so far (INT64_MIN where not), copied. `kernels`:
// what `call` nodes name, null: the graph's own.
std::vector<Tensor> interpret_region(const Graph& g, std::span<const Tensor> inputs, std::vector<int64_t> syms,
                                     const std::vector<Graph>* kernels);

}  // namespace gaf
