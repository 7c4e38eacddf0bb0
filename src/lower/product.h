// A contraction as its template sees it: rows, columns and depth over batch dims, whatever node it is (MatMul, Gemm, a
// 1x1 convolution), with its operands as accesses. Knows graphs and accesses; chooses and emits nothing.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lower/anchor.h"

namespace gaf {

// The dims of a product and how its operands stand to them. Batch dims first, then M, then N; a vector operand leaves
// its dim out of the graph's result, and an empty group of dims puts it back as 1.
struct Roles {
  size_t batch = 0;  // batch dims of the graph's result
  bool a_vector = false, b_vector = false;
  int k_dim = -1, n_dim = -1;  // dims of B (-1: it has none)
  int a_m = -1, a_k = -1;      // dims of A
};

struct Product {
  // Batch dims of the result from `first` on are rows.
  Product(const Graph& fn, uint32_t node, const Target& t, size_t first);
  // Nothing if it is ready to be written. `again`: the operands or the space cannot be viewed with these dims merged,
  // fewer may do.
  std::optional<Verdict> prepare(bool& again);
  size_t batches() const { return roles_.batch; }

 protected:
  const Target& t_;
  Lowering l_;
  bool ok_ = true;
  std::optional<Verdict> why_;
  std::string op_;
  uint32_t anchor_ = 0;
  Roles roles_;
  Dims a_batch_, b_batch_, a_dims_;                // as the graph has them; a_dims_ grouped, with M and K
  std::vector<std::pair<size_t, size_t>> groups_;  // dims of the result that batch dims, rows and columns stand for
  Space space_;
  Dims batch_;  // of the result, grouped, in kernel sizes
  Expr m_ = 1, n_ = 1, k_ = 1;
  Access a_, b_;                     // [batch..., M, K], [batch..., K, N]
  bool copy_a_ = false;              // A's K is not contiguous: row blocks are copied transposed; or A is made
  std::optional<Space> made_a_;      // A lies nowhere: pointwise nodes over its dims make it, a row block at a time
  bool turn_b_ = false;              // B's N is not contiguous
  std::optional<Value> constant_b_;  // a constant input: it has no access, it is packed

  const Node& node() const { return l_.fn().nodes[anchor_]; }
  static std::optional<Access> swap_last(const Access& a);  // the two last dims
  static size_t own_batch(size_t rank) { return rank > 2 ? rank - 2 : 0; }

 private:
  bool group(const Dims& full, size_t first);
  Dims operand_dims(const Dims& batch, const Expr& rows, const Expr& cols) const;
  bool find_a();
  std::optional<Verdict> find_made_a();
  bool find_b();
};

}  // namespace gaf
