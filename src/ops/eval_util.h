// What the `eval` functions of the op table share: elements as doubles or 64-bit integers, broadcasting, strided
// copies. The reference favours plain loops over speed; only contraction and convolution are written to be
// cache-friendly.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ops/op.h"

namespace gaf {

using Ints = std::vector<int64_t>;

// All elements, row-major. T is double, int64_t or uint64_t; integers above 2^53 are exact only as integers.
template <class T>
std::vector<T> elements(const Tensor& t);
// The same, spread to `dims` by numpy broadcasting.
template <class T>
std::vector<T> elements(const Tensor& t, const Ints& dims);
// A tensor from elements: floats round to nearest even, integers wrap, b1 is v != 0.
template <class T>
Tensor tensor_of(DType t, const Ints& dims, std::span<const T> values);
template <class T>
Tensor tensor_of(DType t, const Ints& dims, const std::vector<T>& values) {
  return tensor_of<T>(t, dims, std::span<const T>(values));
}

Ints strides_of(const Ints& dims);  // row-major, in elements
int64_t numel(const Ints& dims);
Ints broadcast_shape(const Node& n, std::span<const Ints> all);
Ints broadcast_strides(const Ints& from, const Ints& to);  // strides of `from` over the dims of `to`, 0 where repeated

// out[i0, i1, ...] = src[offset + sum of i_d * strides_d], any dtype.
Tensor strided_copy(const Tensor& src, const Ints& dims, const Ints& strides, int64_t offset);
// dst[offset + sum of i_d * strides_d] = src[i0, i1, ...] over the dims of src.
void strided_store(Tensor& dst, const Tensor& src, const Ints& strides, int64_t offset);
Tensor transposed(const Tensor& src, const Ints& perm);
Tensor reshaped(const Tensor& src, Ints dims);  // shares the bytes
Ints channels_first_perm(size_t rank);          // [N, spatial..., C] -> [N, C, spatial...]
Ints channels_last_perm(size_t rank);

// Operands and lists that may be attributes, as in infer_util.h, now always known.
const Tensor& arg(const EvalContext& c, size_t i);
bool has(const EvalContext& c, size_t i);
bool given(const EvalContext& c, const std::string& attr, size_t i);
Ints list_of(const EvalContext& c, const std::string& attr, size_t i);
int64_t normal_axis(const EvalContext& c, int64_t axis, size_t rank);
// Operand i has `n` elements (or, as a vector that sizes at run time decide, at least as many as will be read).
const Tensor& arg_of(const EvalContext& c, size_t i, int64_t n);
[[noreturn]] void fail(const EvalContext& c, std::string code, std::string message);

// Visits the indices of `dims` in row-major order with N running offsets, one for each list of strides.
template <size_t N, class F>
void walk(const Ints& dims, const std::array<Ints, N>& strides, F visit) {
  const int64_t total = numel(dims);
  if (total == 0) return;
  std::array<int64_t, N> at{};
  if (dims.empty()) {
    visit(at);
    return;
  }
  const size_t last = dims.size() - 1;
  Ints index(dims.size(), 0);
  for (int64_t done = 0; done < total; done += dims[last]) {
    auto inner = at;
    for (int64_t i = 0; i < dims[last]; i++) {
      visit(inner);
      for (size_t k = 0; k < N; k++) inner[k] += strides[k][last];
    }
    for (size_t d = last; d-- > 0;) {
      for (size_t k = 0; k < N; k++) at[k] += strides[k][d];
      if (++index[d] < dims[d]) break;
      for (size_t k = 0; k < N; k++) at[k] -= strides[k][d] * dims[d];
      index[d] = 0;
    }
  }
}

}  // namespace gaf
