// The input patch of a block of convolution outputs: its pixels copied to scratch, zeros where the window leaves the
// input, so that the code behind it meets no borders. Knows windows and accesses; nothing of how outputs are computed.
#pragma once
#include "lower/window3.h"

namespace gaf {

struct PatchPlace {
  Expr image, plane, row, col;  // the image and the first output of the block
  Expr channel;                 // first input channel
};

// Copies `height` x `width` input pixels (of each plane of the kernel) with `channels` channels, from where the window
// of the block's first output begins. Row (plane * height + y) * width + x of the new tile is a pixel. `x` is the input
// as [N, D, H, W, C]; where its columns, not its channels, lie side by side, squares are turned through registers.
kir::Ref copy_patch(Lowering& l, const Access& x, const Window3& w, const PatchPlace& from, int64_t height,
                    int64_t width, int64_t channels);

}  // namespace gaf
