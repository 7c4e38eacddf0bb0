// Runs kernels of one program under all checks. A program is made by the test: it includes generated texts, one
// namespace each, and hands their functions to run_cases; what to run with which buffers comes in a file, what was
// found goes out as JSON.
#pragma once
#include <cstdint>
#include <vector>

namespace npu {

using KernelFunction = void (*)(uint8_t* const* buffers);

// argv[1]: the case file. One case:
//   case NAME KERNEL             KERNEL: index into `kernels`
//   in FILE                      a buffer with these bytes, in the order of the kernel's parameters
//   out BYTES FILE               an f16 result; FILE holds the float64 values it should have
//   blocks N ...                 block counts to split over, each block index of each
//   mutate 0|1|2                 1: drop each sync statement, 2: also each single sync operation
//   dump FILE                    the trace of block 0 of 1, a line an operation
//   end
// Prints one JSON array with an object per case; exit code 0 whatever was found.
int run_cases(int argc, char** argv, const std::vector<KernelFunction>& kernels);

}  // namespace npu
