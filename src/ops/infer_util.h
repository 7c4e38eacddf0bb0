// What the `infer` functions of the op table share: broadcasting of symbolic dims, axes, known operands, fresh symbols.
// Knows nothing of any single op.
#pragma once
#include <optional>
#include <vector>

#include "ops/op.h"

namespace gaf {

// numpy broadcasting. Two different dims that are both unknown, or one of them, are taken to be equal at run time; two
// different numbers, neither 1, are an error. min(n, s) meeting s says that s is at most n: the symbol's range narrows,
// which is checked when sizes are bound.
Dims broadcast_dims(const InferContext& c, std::span<const Dims> all);
std::optional<Dim> broadcast_dim(const Dim& a, const Dim& b);  // nothing: they cannot be broadcast
std::vector<Range> ranges_of(std::span<const Sym> syms);
int64_t normal_axis(const InferContext& c, int64_t axis, size_t rank);

// Elements of operand i as numbers, if they are all known to be numbers.
std::optional<std::vector<int64_t>> known_ints(const InferContext& c, size_t i);
// A list that old opsets give as an attribute, new ones as operand i, and canonical graphs as an attribute again.
// Nothing if it is an operand whose elements are not known; empty if it is given nowhere.
std::optional<Dims> list_of(const InferContext& c, const std::string& attr, size_t i);
std::optional<std::vector<int64_t>> ints_of(const InferContext& c, const std::string& attr, size_t i);
bool given(const InferContext& c, const std::string& attr, size_t i);

Dim fresh_dim(InferContext& c, int64_t lo = 0);  // a size only known at run time
Dims fresh_dims(InferContext& c, size_t rank);
std::optional<int64_t> known_rank(const InferContext& c, size_t i);  // number of elements of a 1-D operand, if known
void need_rank(const InferContext& c, size_t i, size_t rank);
// Operand i, if given, is a vector of `length` elements; broadcasts to `dims`.
void need_vector(const InferContext& c, size_t i, const Dim& length);
void need_broadcast(const InferContext& c, size_t i, const Dims& dims);
void need_same_dtype(const InferContext& c, size_t first = 0);

// ONNX tensor type number (or, in canonical graphs, our name) of an attribute.
std::optional<DType> dtype_of_onnx(int64_t code);
int64_t onnx_of_dtype(DType t);
DType dtype_attr(const Node& n, const std::string& key, DType fallback);

// Ready-made `infer` functions.
void infer_same(InferContext& c);       // type of operand 0
void infer_broadcast(InferContext& c);  // broadcast of all operands, which have one dtype
void infer_first(InferContext& c);      // broadcast of all operands, dtype of operand 0
void infer_test(InferContext& c);       // the same, result b1

// Sets the known values of result 0 from those of operands 0 and 1, element by element with broadcasting, where f
// answers.
void known_binary(InferContext& c, std::optional<Expr> (*f)(const Expr& a, const Expr& b));
// 1 or 0 where the answer of a comparison holds for every size the symbols can have.
enum class Compare : uint8_t { equal, less, less_equal };
void known_compare(InferContext& c, Compare op, bool swapped = false);
void known_unary(InferContext& c, std::optional<Expr> (*f)(const Expr& a));
inline constexpr int64_t kMaxKnown = 1024;  // longer integer tensors are data, not shapes

}  // namespace gaf
