// Blocks of memory, see memory.h. Must not know what is stored in them.
#include "base/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace gaf {

std::shared_ptr<void> allocate_block(int64_t bytes) {
  GAF_CHECK(bytes >= 0) << "block of " << bytes << " bytes";
  const int64_t align = bytes >= kHugePage ? kHugePage : kBlockAlign;
  int64_t size = align_up(std::max<int64_t>(bytes, 1), kBlockAlign);
  // The rest behind the last whole huge page gets one too where that costs little.
  if (const int64_t whole = align_up(size, kHugePage); bytes >= kHugePage && whole - size <= size / 8) size = whole;
  void* p = nullptr;
  if (posix_memalign(&p, static_cast<size_t>(align), static_cast<size_t>(size)) != 0)
    throw UserError("GAF6003", fmt::format("the system refuses a block of {} bytes", bytes),
                    "use smaller shapes, or free memory");
  // Weights and activations walk megabytes; with 4 KiB pages the address translation shows in every GEMM.
  if (bytes >= kHugePage) madvise(p, static_cast<size_t>(size / kHugePage * kHugePage), MADV_HUGEPAGE);
  return {p, std::free};
}

Tensor allocate_tensor(DType t, std::vector<int64_t> dims) {
  Tensor r;
  r.dtype = t;
  r.dims = std::move(dims);
  r.data = allocate_block(r.size_bytes());
  return r;
}

}  // namespace gaf
