// Reference evaluation of elementwise ops from one generic lambda each: `eval_number<[](auto a, auto b, P) {...}>`. The
// lambda is instantiated on double for floats, int64_t for signed integers and bool, uint64_t for unsigned ones;
// results round or wrap to the dtype. It must not use the scalar program of the row: it is what that program is tested
// against.
#pragma once
#include <tuple>
#include <type_traits>

#include "ops/eval_util.h"

namespace gaf {

using P = const double*;  // the attributes of OpRow::defaults, in their order

std::vector<double> parameters(const Node& n);  // of the node, by its row's defaults
Ints result_shape(const EvalContext& c);        // broadcast of all operands

namespace detail {

template <class T, auto F>
Tensor map_elements(const EvalContext& c, DType result) {
  const Ints dims = result_shape(c);
  const auto params = parameters(c.node);
  const P p = params.data();
  std::vector<T> a = elements<T>(arg(c, 0), dims);
  if constexpr (std::is_invocable_v<decltype(F), T, P>) {
    using R = decltype(F(T{}, p));
    if constexpr (std::is_same_v<R, T>) {
      for (T& v : a) v = F(v, p);
      return tensor_of<T>(result, dims, a);
    } else {
      std::vector<int64_t> out(a.size());
      for (size_t i = 0; i < a.size(); i++) out[i] = F(a[i], p);
      return tensor_of<int64_t>(result, dims, out);
    }
  } else {
    std::vector<T> b = elements<T>(arg(c, 1), dims);
    using R = decltype(F(T{}, T{}, p));
    if constexpr (std::is_same_v<R, T>) {
      for (size_t i = 0; i < a.size(); i++) a[i] = F(a[i], b[i], p);
      return tensor_of<T>(result, dims, a);
    } else {
      std::vector<int64_t> out(a.size());
      for (size_t i = 0; i < a.size(); i++) out[i] = F(a[i], b[i], p);
      return tensor_of<int64_t>(result, dims, out);
    }
  }
}

}  // namespace detail

template <auto F>
void eval_float(EvalContext& c) {
  c.results = {detail::map_elements<double, F>(c, c.types[0].dtype)};
}
template <auto F>
void eval_int(EvalContext& c) {
  const DType t = arg(c, 0).dtype;
  const bool is_unsigned = is_int(t) && !row(t).is_signed;
  c.results = {is_unsigned ? detail::map_elements<uint64_t, F>(c, c.types[0].dtype)
                           : detail::map_elements<int64_t, F>(c, c.types[0].dtype)};
}
template <auto F>
void eval_number(EvalContext& c) {
  if (is_float(arg(c, 0).dtype)) {
    eval_float<F>(c);
  } else {
    eval_int<F>(c);
  }
}

}  // namespace gaf
