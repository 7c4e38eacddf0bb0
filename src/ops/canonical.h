// One form of every node, whatever opset or spelling it came in, so that later passes ask one question:
//   lists that are known are attributes, not operands:  Reshape {shape}  Expand {shape}  Slice {starts, ends, axes,
//   steps}
//     Reduce* {axes, keepdims}  Split {axis, split}  Pad {pads, mode, value}  Tile {repeats}  Clip {min, max}  TopK {k}
//     Resize {scales or sizes}
//   Squeeze, Unsqueeze, Flatten are Reshape; ConstantOfShape is Expand of a constant; CastLike is Cast; Cast {to} is
//   our name axes are not negative; slice bounds are inside the dim (a negative step that runs to the front ends at
//   -2^40) windows have kernel_shape, strides, dilations, pads; auto_pad is gone Identity, Dropout, Casts to the same
//   type, one-operand Concat / Max / Min / Sum are gone; Ifs with a known condition too integer results that are known
//   become constants or, over symbols, HostShape {value}: sizes the host computes
// A list that is only known at run time stays an operand. The meaning is that of opset 13 and later.
#pragma once
#include "ops/op.h"

namespace gaf {

Graph canonicalise(Inferred in);

// The same for one node: rewrites operands and attributes of `n` (a copy of c.node). True: the node is its operand 0.
bool canonical_node(InferContext& c, Node& n);

}  // namespace gaf
