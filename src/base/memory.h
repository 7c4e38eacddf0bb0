// Blocks of memory for tensors, arenas and scratch: 64-byte aligned, not cleared, large ones on huge pages where the
// system offers them. Knows nothing of plans.
#pragma once
#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/tensor.h"

namespace gaf {

inline constexpr int64_t kBlockAlign = 64;     // a cache line, and the widest vector
inline constexpr int64_t kHugePage = 2 << 20;  // transparent huge pages of x86-64 and aarch64 (4 KiB granule)

constexpr int64_t align_up(int64_t n, int64_t to = kBlockAlign) { return (n + to - 1) / to * to; }

// At least one byte, so that an empty tensor still has an address. UserError GAF6003 where the system refuses.
std::shared_ptr<void> allocate_block(int64_t bytes);

// Tensor::make without the clearing: every byte is written before it is read.
Tensor allocate_tensor(DType t, std::vector<int64_t> dims);

}  // namespace gaf
