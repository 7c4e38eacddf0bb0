// Deterministic numbers for inputs that nobody gave: Philox4x32-10, a counter generator (Salmon, Moraes, Dror, Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and distributions made of it with exactly rounded operations
// only, so that the same seed gives the same bits on every platform. Knows nothing of models.
#pragma once
#include <array>
#include <cstdint>

#include "base/tensor.h"

namespace gaf {

// Block `counter` of the stream that `key` names.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Inverse of the normal distribution function for 0 < p < 1 (Wichura, algorithm AS 241, 1988), to about 1e-16 relative;
// p or 1 - p at least 1e-11.
double normal_quantile(double p);

// Floats N(0,1), b1 fair, integers uniform in [lo, hi). `stream` tells the inputs of one model apart. UserError GAF1102
// if the range is empty or does not fit the dtype.
Tensor random_tensor(DType t, std::vector<int64_t> dims, uint64_t seed, uint32_t stream, int64_t lo = 0,
                     int64_t hi = 8);

}  // namespace gaf
