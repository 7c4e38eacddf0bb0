// The iteration space of a pointwise or row kernel: which outputs share one, into which boxes Concat and Pad cut it,
// and which of its dims merge. Knows accesses; knows nothing of loops or tiles.
#pragma once
#include "lower/lowering.h"

namespace gaf {

struct Box {
  Space space;  // pieces chosen; dims merged by merge_space
  struct Side {
    Expr lo, hi;
  };
  std::vector<Side> sides;  // per dim of space.dims (of space.merged() once merged)
};

// Outputs whose values have the same dims, in order of the first of each.
struct OutputGroup {
  Dims dims;  // at least one dim
  std::vector<size_t> outputs;
};
std::vector<OutputGroup> output_groups(const Lowering& l);

// Cuts the space of `values` at the pieces of the Concat and Pad nodes they read. One box if there is none.
std::variant<std::vector<Box>, Verdict> cut_boxes(Lowering& l, const Dims& dims, std::span<const Value> values);

// Dims that both a and b are made of by merging neighbours; nothing if sizes only known at run time stand in the way.
std::optional<Dims> refined(const Dims& a, const Dims& b);
// Finer dims of a space, where a Tile, Resize or Reshape that `values` read has no strides over its own.
std::optional<Dims> finer_dims(const Lowering& l, const Dims& dims, std::span<const Value> values);

// Merges adjacent dims of the box along which every access runs on and that are of one class (empty: all are). Accesses
// are over box.space.merged(), with nothing merged yet.
void merge_space(Box& box, std::span<const Access> accesses, const std::vector<int>& classes = {});

// Only nodes that a body can emit (pointwise, views, data movement), besides `extra` kinds of op.
bool only_elementwise(const Graph& g, std::initializer_list<OpKind> extra = {});
bool has_move(const Graph& g);

}  // namespace gaf
