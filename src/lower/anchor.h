// What the templates around one heavy node (contraction, convolution, window) share: finding that node, turning its
// bias and scale into pointwise nodes, and emitting the pointwise space of its result on a tile. Knows graphs and
// TileBody; nothing of how the heavy node itself is computed.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "lower/lowering.h"

namespace gaf {

// Nodes of one kind in a function.
std::vector<uint32_t> nodes_of(const Graph& fn, OpKind kind);

// Gemm's alpha, beta and C, and the bias of a channels-last Conv, as Mul and Add nodes behind the node, which keeps its
// first two operands only. A beta or C of no effect disappears.
Graph split_bias(const Graph& fn, uint32_t node);

// The node's index in the expanded function: the only one of its op type.
uint32_t find_anchor(const Lowering& l, const std::string& op);
// No if an operand of the anchor lies in no memory.
Verdict check_operands(const Lowering& l, uint32_t anchor);
// Of each node, whether it is `node` or depends on it.
std::vector<char> behind(const Graph& fn, uint32_t node);
// Why the outputs cannot be written over `space` (the dims of the anchor's result, perhaps merged) from the anchor's
// values.
std::optional<Verdict> refuse_space(Lowering& l, uint32_t anchor, const Space& space);
// The same for any values computed from the anchor's on a space of its dims.
std::optional<Verdict> refuse_values(Lowering& l, uint32_t anchor, const Space& space, std::span<const Value> values);

// Where the rectangle `at` of the only output lies, to be fetched while its sums of `steps` products are made; nothing
// where that does not pay.
std::optional<kir::Ref> output_ahead(Lowering& l, const Space& space, const std::vector<kir::Slice>& at, int64_t steps);

// Writes all outputs of the function for the rectangle `at` (a slice per merged dim of the space; the second last is
// the rows, the last the columns) whose anchor values are the register tile `acc` of `rows` x `cols`. Expressions with
// transcendental functions run in a loop over the stored tile: less code, fewer registers, same speed.
void emit_space(Lowering& l, uint32_t anchor, const Space& space, const kir::Ref& acc,
                const std::vector<kir::Slice>& at, int64_t rows, int64_t cols);

inline kir::Slice one(Expr at) { return {std::move(at), {}, 1}; }
inline kir::Slice span_of(Expr at, Expr n, int64_t step = 1) { return {std::move(at), std::move(n), step}; }
// A function whose node `node` is MatMul, Gemm, or a channels-last Conv of 1x1 with stride 1 and no padding
// (contraction.cpp).
Attempt emit_contraction(const Graph& fn, uint32_t node, const Target& t);
// A channels-last Conv with one channel a group (depthwise.cpp).
bool is_depthwise(const Graph& fn, const Node& n);
// A parallel nest over 0..extent of each axis; axes of one iteration have index 0.
void par_nest(Lowering& l, const Dims& extents, const std::function<void(std::vector<Expr>)>& body);
// for i in 0..n, or just the body if it runs once.
void loop(Lowering& l, const std::string& stem, const Expr& n, const std::function<void(Expr)>& body);
// Rectangle of an access with all its dims, `at` one slice for each. Unlike Lowering::ref, dims of 1 keep their ranges,
// so that a rectangle may leave them (`copy ... else`).
kir::Ref full_ref(Lowering& l, const Access& a, std::vector<kir::Slice> at);
// Unit stride in the last dim (or a last dim of one element).
bool unit_inner(const Access& a);

}  // namespace gaf
