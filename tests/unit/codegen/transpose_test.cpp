// Transposing copies whose source begins before its buffer: the padded patch of a convolution that reads a transposed
// input.
#include "run_kernel.h"

namespace gaf {
namespace {

TEST(Transpose, PaddedPatch) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 1}, {3, 8}, {7, 9}, {2, 30}}) {
    KernelRun r;
    r.text =
        R"(kernel @k target t (size H in 1..30, size W in 1..30, in %0: f32[10, H, W], out %1: f32[H + 2, W + 3, 10]) {
  view v = %0: f32[H, W, 10] strides(W, 1, H*W) at 0
  for y in 0..H + 2 par {
    tile x: f32[33, 10] @scratch
    copy x[0:W + 3, 0:10] = v[y - 1, -1:W + 3, 0:10] else 0.5
    copy %1[y, 0:W + 3, 0:10] = x[0:W + 3, 0:10]
  }
}
)";
    r.sizes = sizes;
    expect_compiled_like_interpreted(r);
  }
}

// Nothing of the source is there: before its begin by more than the extent, in either direction.
TEST(Transpose, PatchBesideTheSource) {
  for (int64_t shift : {3, 8, 40}) {
    KernelRun r;
    r.text = R"(kernel @k target t (size P in 1..40, in %0: f32[12, 20], out %1: f32[8, 8]) {
  view v = %0: f32[20, 12] strides(1, 20) at 0
  for q in 0..1 par {
    tile x: f32[8, 8] @scratch
    copy x[0:8, 0:8] = v[0 - P:8, 2 - P:8] else 0
    copy %1[0:8, 0:8] = x[0:8, 0:8]
  }
}
)";
    r.sizes = {shift};
    expect_compiled_like_interpreted(r);
  }
}

}  // namespace
}  // namespace gaf
