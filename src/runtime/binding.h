// From shapes to numbers: symbols from the shapes of the inputs, and for one segment of a plan the bytes of its
// buffers, its arena layout, and the size arguments and trip counts of its kernels. Must not know addresses.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "runtime/arena.h"
#include "runtime/schedule.h"

namespace gaf {

inline constexpr int64_t kUnbound = std::numeric_limits<int64_t>::min();  // a symbol without a value

// Sets `values` (one a symbol) from the inputs. A dim that is a symbol gives it its value; a linear expression of one
// unknown symbol is solved; all others are checked. UserError GAF3102 names the input, GAF3105 a symbol that nothing
// gives.
void bind_inputs(const RunPlan& plan, std::span<const Tensor> inputs, std::vector<int64_t>& values);

// Binds what is still unknown in the dims of a host step's result, or checks it: false if the dims do not agree.
bool bind_result(const Dims& dims, const Tensor& result, std::vector<int64_t>& values);

struct BoundStep {
  std::vector<int64_t> sizes;  // of a kernel
  std::vector<int64_t> trips;  // per phase
  int64_t bytes = 0;           // of all its buffers: a floor of its work
  // How long it takes on one thread, if known: short kernels stay on the calling thread.
  double alone_us = 0;
  int measured = 0;
};

struct BoundSegment {
  std::vector<int64_t> key;                // values of all symbols when the segment begins
  std::vector<std::vector<int64_t>> dims;  // per entry of Segment::buffers
  std::vector<int64_t> bytes;              // likewise
  std::vector<int64_t> offset;             // likewise; in the arena, for roots that are there
  int64_t arena_bytes = 0;
  int regions = 0;
  std::vector<BoundStep> steps;  // of the segment
};

BoundSegment bind_segment(const RunPlan& plan, const Schedule& schedule, size_t segment,
                          std::span<const int64_t> values);

// Bytes of a tensor. UserError GAF3102 for a negative dim, GAF3106 for more bytes than 2^62; `name` is for the message.
int64_t checked_bytes(std::span<const int64_t> dims, DType t, const std::string& name);

}  // namespace gaf
