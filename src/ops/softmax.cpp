// Softmax and its kin. Before opset 13 they work on the tensor flattened to two dims at `axis` (default 1); since then
// on the one axis (default -1). Canonical graphs carry `axis` and, for the old meaning, `flatten`=1.
#include <cmath>
#include <limits>

#include "ops/expand.h"
#include "ops/reduce_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

void infer_axis(InferContext& c) {
  normal_axis(c, attr_int(c.node, "axis", c.opset < 13 ? 1 : -1), std::max<size_t>(c.arg(0).dims.size(), 1));
  c.types = {c.arg(0)};
}

// [outer, n, inner] of the axis that is normalised
struct Split3 {
  int64_t outer = 1, n = 1, inner = 1;
};
Split3 split_at_axis(const EvalContext& c, const Ints& dims) {
  const bool flatten = c.node.attrs.contains("flatten") ? attr_int(c.node, "flatten", 0) != 0 : c.opset < 13;
  const int64_t axis = normal_axis(c, attr_int(c.node, "axis", flatten ? 1 : -1), std::max<size_t>(dims.size(), 1));
  Split3 s;
  for (size_t i = 0; i < dims.size(); i++) {
    const auto k = static_cast<int64_t>(i);
    (k < axis ? s.outer : k == axis || flatten ? s.n : s.inner) *= dims[i];
  }
  return s;
}

// Calls f(pointer to the first element, stride, count) for each row.
template <class F>
void each_row(EvalContext& c, F f) {
  const Tensor& x = arg(c, 0);
  std::vector<double> v = elements<double>(x);
  const Split3 s = split_at_axis(c, x.dims);
  for (int64_t o = 0; o < s.outer; o++)
    for (int64_t i = 0; i < s.inner; i++) f(v.data() + o * s.n * s.inner + i, s.inner, s.n);
  c.results = {tensor_of(x.dtype, x.dims, v)};
}

double top_of(const double* p, int64_t stride, int64_t n) {
  double top = -std::numeric_limits<double>::infinity();
  for (int64_t k = 0; k < n; k++) top = p[k * stride] > top || std::isnan(p[k * stride]) ? p[k * stride] : top;
  return top;
}

void eval_softmax(EvalContext& c) {
  each_row(c, [](double* p, int64_t stride, int64_t n) {
    const double top = top_of(p, stride, n);
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += p[k * stride] = std::exp(p[k * stride] - top);
    for (int64_t k = 0; k < n; k++) p[k * stride] /= sum;
  });
}
void eval_log_softmax(EvalContext& c) {
  each_row(c, [](double* p, int64_t stride, int64_t n) {
    const double top = top_of(p, stride, n);
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += std::exp(p[k * stride] - top);
    for (int64_t k = 0; k < n; k++) p[k * stride] -= top + std::log(sum);
  });
}
void eval_hardmax(EvalContext& c) {
  each_row(c, [](double* p, int64_t stride, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
      if (p[k * stride] > p[best * stride]) best = k;
    for (int64_t k = 0; k < n; k++) p[k * stride] = k == best;
  });
}

// x - max over the axes, in f32 for halves
struct Centred {
  Value x;
  Ints axes;
};
Centred centred(const Expander& e, const Node& n, Value x) {
  const bool flatten = attr_int(n, "flatten", 0) != 0;
  int64_t axis = attr_int(n, "axis", flatten ? 1 : -1);
  if (axis < 0) axis += static_cast<int64_t>(e.rank(x));
  const Ints axes = flatten ? axes_from(axis, e.rank(x)) : Ints{axis};
  if (is_half(e.type(x).dtype)) x = e.cast(x, DType::f32);
  return {e.binary("Sub", x, e.reduce("ReduceMax", x, axes)), axes};
}

Value expand_softmax(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  const DType t = e.type(a[0]).dtype;
  auto [x, axes] = centred(e, n, a[0]);
  Value p = e.unary("Exp", x);
  return e.cast(e.binary("Div", p, e.reduce("ReduceSum", p, axes)), t);
}
Value expand_log_softmax(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  const DType t = e.type(a[0]).dtype;
  auto [x, axes] = centred(e, n, a[0]);
  Value sum = e.reduce("ReduceSum", e.unary("Exp", x), axes);
  return e.cast(e.binary("Sub", x, e.unary("Log", sum)), t);
}

const OpRow kRows[] = {
    {.name = "Softmax",
     .friendly = "Softmax",
     .kind = OpKind::composite,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_axis,
     .eval = eval_softmax,
     .expand = expand_softmax,
     .ulp = 16,
     .cheap = false},
    {.name = "LogSoftmax",
     .friendly = "LogSoftmax",
     .kind = OpKind::composite,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_axis,
     .eval = eval_log_softmax,
     .expand = expand_log_softmax,
     .ulp = 16,
     .cheap = false},
    {.name = "Hardmax",
     .friendly = "Hardmax",
     .kind = OpKind::other,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_axis,
     .eval = eval_hardmax},
};

}  // namespace

std::span<const OpRow> softmax_rows() { return kRows; }

}  // namespace gaf
