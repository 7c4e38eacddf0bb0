// Writing the primitive form of a composite op: small functions that add one typed node to a builder.
#pragma once
#include <vector>

#include "ops/op.h"

namespace gaf {

struct Expander {
  GraphBuilder& b;

  const Type& type(Value v) const { return b.g.type(v); }
  size_t rank(Value v) const { return type(v).dims.size(); }
  Value unary(const char* op, Value a, Attrs attrs = {}) const;
  Value binary(const char* op, Value a, Value c) const;  // broadcast; dtype of a (b1 for comparisons)
  Value number(double v, DType t) const;                 // 0-D constant
  Value with_number(const char* op, Value a, double v) const { return binary(op, a, number(v, type(a).dtype)); }
  Value where(Value test, Value yes, Value no) const;
  Value reduce(const char* op, Value a, std::vector<int64_t> axes, bool keepdims = true) const;
  Value mean(Value a, std::vector<int64_t> axes, bool keepdims = true) const;  // ReduceSum over the number of elements
  Value reshape(Value a, Dims dims) const;
  Value transpose(Value a, std::vector<int64_t> perm) const;
  Value cast(Value a, DType t) const;  // a itself if it is of that type
};

std::vector<int64_t> axes_from(int64_t first, size_t rank);  // first .. rank-1
inline bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }

}  // namespace gaf
