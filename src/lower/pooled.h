// A reduction over all pixels of a convolution, in the convolution's own kernel: each register tile of results is
// folded into one row of sums (or maxima) as it is made, so the result itself never reaches memory. Knows graphs and
// TileBody; nothing of how the convolution is computed.
#pragma once
#include "lower/anchor.h"

namespace gaf {

struct Pooling {
  Value value, arg;  // the reduction's result; what it reduces, pointwise on the anchor's result
  kir::S op = kir::S::add;
  bool repeatable = false;  // an element may be folded in twice
  Space space;              // of the pooled values
};

// The pooling behind the anchor (channels-last, `space` its five dims), if the function has a reduction; a Verdict
// where it is none over all pixels, or where something but pointwise nodes stands around it.
std::optional<std::variant<Pooling, Verdict>> pooling_of(Lowering& l, uint32_t anchor, const Space& space);

// The pooled values of one image and one panel of channels.
class PooledRow {
 public:
  // Declares the row, `cols` wide, in the current block; tiles of `rows` pixels will be folded in.
  PooledRow(Lowering& l, uint32_t anchor, const Pooling& p, int64_t rows, int64_t cols);
  // Folds in the pixels at the rectangle `at` of the anchor's space, whose anchor values are `acc`.
  void add(const Space& space, const kir::Ref& acc, const std::vector<kir::Slice>& at);
  // Writes all outputs of the function for `image` and `channels`.
  void finish(const Expr& image, const kir::Slice& channels);

 private:
  Lowering& l_;
  uint32_t anchor_;
  const Pooling& p_;
  int64_t rows_, cols_, step_;
  kir::Ref sums_;  // [step, cols]: as many independent chains, folded at the end
};

}  // namespace gaf
