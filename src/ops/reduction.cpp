// Reductions. ReduceSum, ReduceMax, ReduceMin and ReduceProd are primitives; the others say by `expand` what they are
// over those. Axes come as an attribute (old opsets, canonical graphs) or as operand 1.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/expand.h"
#include "ops/reduce_util.h"
#include "ops/rows.h"

namespace gaf {

Ints sorted_axes(Ints axes, size_t rank) {
  for (int64_t& a : axes)
    if (a < 0) a += static_cast<int64_t>(rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

std::optional<Ints> reduce_axes(const InferContext& c, size_t rank) {
  if (!given(c, "axes", 1)) return attr_int(c.node, "noop_with_empty_axes", 0) ? Ints{} : axes_from(0, rank);
  auto axes = ints_of(c, "axes", 1);
  if (!axes) return std::nullopt;
  // an empty list given as an operand means the same as no list
  if (axes->empty() && !c.node.attrs.contains("axes") && !attr_int(c.node, "noop_with_empty_axes", 0))
    return axes_from(0, rank);
  for (int64_t& a : *axes) a = normal_axis(c, a, rank);
  return sorted_axes(*axes, rank);
}

Ints reduce_axes(const EvalContext& c, size_t rank) {
  const bool noop = attr_int(c.node, "noop_with_empty_axes", 0) != 0;
  if (!given(c, "axes", 1)) return noop ? Ints{} : axes_from(0, rank);
  Ints axes = list_of(c, "axes", 1);
  if (axes.empty() && !c.node.attrs.contains("axes") && !noop) return axes_from(0, rank);
  for (int64_t& a : axes) a = normal_axis(c, a, rank);
  return sorted_axes(axes, rank);
}

Ints reduced_dims(const Ints& dims, const Ints& axes, bool keepdims) {
  Ints out;
  for (size_t i = 0; i < dims.size(); i++) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!gone) out.push_back(dims[i]);
    if (gone && keepdims) out.push_back(1);
  }
  return out;
}

namespace {

bool keepdims(const Node& n) { return attr_int(n, "keepdims", 1) != 0; }

void infer_reduce(InferContext& c) {
  const Type& x = c.arg(0);
  const auto axes = reduce_axes(c, x.dims.size());
  Type out{x.dtype, {}};
  if (!axes) {
    const auto n = c.has_arg(1) ? known_rank(c, 1) : std::nullopt;
    if (!keepdims(c.node) && !n) c.fail("GAF3101", "the number of axes is only known at run time");
    out.dims = fresh_dims(c, keepdims(c.node) ? x.dims.size() : x.dims.size() - static_cast<size_t>(*n));
  } else {
    for (size_t i = 0; i < x.dims.size(); i++) {
      const bool gone = std::binary_search(axes->begin(), axes->end(), static_cast<int64_t>(i));
      if (!gone) out.dims.push_back(x.dims[i]);
      if (gone && keepdims(c.node)) out.dims.emplace_back(1);
    }
  }
  c.types = {out};
}

void infer_reduce_product(InferContext& c) {
  infer_reduce(c);
  if (c.value(0) && c.arg(0).dims.size() == 1 && !is_float(c.arg(0).dtype))
    c.results = {std::vector<Expr>{product(*c.value(0))}};
}

// Before: f(x) of each element; fold: acc, value -> acc; after: of the result and the number of elements.
template <auto Before, auto Fold, auto After>
void eval_reduce(EvalContext& c, double start) {
  const Tensor& x = arg(c, 0);
  const Ints axes = reduce_axes(c, x.dims.size());
  const Ints out = reduced_dims(x.dims, axes, keepdims(c.node));
  double count = 1;
  for (int64_t a : axes) count *= static_cast<double>(x.dims[static_cast<size_t>(a)]);
  std::vector<double> v = elements<double>(x);
  for (double& e : v) e = Before(e);
  std::vector<double> r = reduce<double>(v, x.dims, axes, start, Fold);
  for (double& e : r) e = After(e, count);
  c.results = {tensor_of(x.dtype, out, r)};
}

template <auto Fold>
void eval_reduce_int(EvalContext& c, int64_t start) {
  const Tensor& x = arg(c, 0);
  const Ints axes = reduce_axes(c, x.dims.size());
  std::vector<int64_t> r = reduce<int64_t>(elements<int64_t>(x), x.dims, axes, start, Fold);
  c.results = {tensor_of(x.dtype, reduced_dims(x.dims, axes, keepdims(c.node)), r)};
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr auto same = [](double x) { return x; };
constexpr auto done = [](double x, double) { return x; };
constexpr auto add = [](auto acc, auto x) { return acc + x; };
constexpr auto multiply = [](auto acc, auto x) { return acc * x; };
constexpr auto larger = [](auto acc, auto x) { return acc != acc || acc > x ? acc : x; };
constexpr auto smaller = [](auto acc, auto x) { return acc != acc || acc < x ? acc : x; };
constexpr auto square = [](double x) { return x * x; };
constexpr auto magnitude = [](double x) { return std::fabs(x); };

int64_t lowest(DType t) {
  return t == DType::b1 || !row(t).is_signed ? 0
         : bytes(t) == 8                     ? std::numeric_limits<int64_t>::min()
                                             : -(int64_t{1} << (8 * bytes(t) - 1));
}
int64_t highest(DType t) {
  if (t == DType::b1) return 1;
  if (bytes(t) == 8) return std::numeric_limits<int64_t>::max();
  return (int64_t{1} << (8 * bytes(t) - (row(t).is_signed ? 1 : 0))) - 1;
}

void eval_sum(EvalContext& c) {
  if (is_float(arg(c, 0).dtype)) return eval_reduce<same, add, done>(c, 0);
  eval_reduce_int<add>(c, 0);
}
void eval_prod(EvalContext& c) {
  if (is_float(arg(c, 0).dtype)) return eval_reduce<same, multiply, done>(c, 1);
  eval_reduce_int<multiply>(c, 1);
}
void eval_max(EvalContext& c) {
  if (is_float(arg(c, 0).dtype)) return eval_reduce<same, larger, done>(c, -kInf);
  eval_reduce_int<larger>(c, lowest(arg(c, 0).dtype));
}
void eval_min(EvalContext& c) {
  if (is_float(arg(c, 0).dtype)) return eval_reduce<same, smaller, done>(c, kInf);
  eval_reduce_int<smaller>(c, highest(arg(c, 0).dtype));
}
void eval_mean(EvalContext& c) {
  eval_reduce<same, add, [](double x, double n) { return x / n; }>(c, 0);
}
void eval_l1(EvalContext& c) { eval_reduce<magnitude, add, done>(c, 0); }
void eval_l2(EvalContext& c) {
  eval_reduce<square, add, [](double x, double) { return std::sqrt(x); }>(c, 0);
}
void eval_sum_square(EvalContext& c) { eval_reduce<square, add, done>(c, 0); }
void eval_log_sum(EvalContext& c) {
  eval_reduce<same, add, [](double x, double) { return std::log(x); }>(c, 0);
}

void eval_log_sum_exp(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Ints axes = reduce_axes(c, x.dims.size());
  std::vector<double> v = elements<double>(x);
  std::vector<double> top = reduce<double>(v, x.dims, axes, -kInf, larger);
  for (double& t : top)
    if (std::isinf(t)) t = 0;
  const Ints kept = reduced_dims(x.dims, axes, true);
  size_t i = 0;
  walk<1>(x.dims, {broadcast_strides(kept, x.dims)}, [&](auto& at) {
    v[i] = std::exp(v[i] - top[static_cast<size_t>(at[0])]);
    i++;
  });
  std::vector<double> sum = reduce<double>(v, x.dims, axes, 0.0, add);
  for (size_t k = 0; k < sum.size(); k++) sum[k] = std::log(sum[k]) + top[k];
  c.results = {tensor_of(x.dtype, reduced_dims(x.dims, axes, keepdims(c.node)), sum)};
}

// ---- composites over the primitives; the node is canonical: axes are an attribute ----

Ints axes_of(const Expander& e, const Node& n, Value x) {
  if (n.attrs.contains("axes")) return sorted_axes(attr_ints(n, "axes"), e.rank(x));
  return attr_int(n, "noop_with_empty_axes", 0) ? Ints{} : axes_from(0, e.rank(x));
}

Value expand_mean(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  return e.mean(a[0], axes_of(e, n, a[0]), keepdims(n));
}
template <bool Root>
Value expand_squares(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  Value sum = e.reduce("ReduceSum", e.binary("Mul", a[0], a[0]), axes_of(e, n, a[0]), keepdims(n));
  return Root ? e.unary("Sqrt", sum) : sum;
}
Value expand_l1(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  return e.reduce("ReduceSum", e.unary("Abs", a[0]), axes_of(e, n, a[0]), keepdims(n));
}
Value expand_log_sum(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  return e.unary("Log", e.reduce("ReduceSum", a[0], axes_of(e, n, a[0]), keepdims(n)));
}
Value expand_log_sum_exp(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  const Ints axes = axes_of(e, n, a[0]);
  Value top = e.reduce("ReduceMax", a[0], axes);
  Value sum = e.reduce("ReduceSum", e.unary("Exp", e.binary("Sub", a[0], top)), axes);
  Value out = e.binary("Add", e.unary("Log", sum), top);
  if (keepdims(n)) return out;
  Dims dims;
  for (size_t i = 0; i < e.rank(a[0]); i++)
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) dims.push_back(e.type(a[0]).dims[i]);
  return e.reshape(out, dims);
}

OpRow primitive(std::string_view name, void (*eval)(EvalContext&), void (*infer)(InferContext&) = infer_reduce) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::reduction,
          .min_args = 1,
          .max_args = 2,
          .infer = infer,
          .eval = eval,
          .ulp = 16};
}
OpRow composite(std::string_view name, void (*eval)(EvalContext&),
                Value (*expand)(GraphBuilder&, const Node&, std::span<const Value>)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::composite,
          .min_args = 1,
          .max_args = 2,
          .infer = infer_reduce,
          .eval = eval,
          .expand = expand,
          .ulp = 16};
}

const OpRow kRows[] = {
    primitive("ReduceSum", eval_sum),
    primitive("ReduceMax", eval_max),
    primitive("ReduceMin", eval_min),
    primitive("ReduceProd", eval_prod, infer_reduce_product),
    composite("ReduceMean", eval_mean, expand_mean),
    composite("ReduceL1", eval_l1, expand_l1),
    composite("ReduceL2", eval_l2, expand_squares<true>),
    composite("ReduceSumSquare", eval_sum_square, expand_squares<false>),
    composite("ReduceLogSum", eval_log_sum, expand_log_sum),
    composite("ReduceLogSumExp", eval_log_sum_exp, expand_log_sum_exp),
};

}  // namespace

std::span<const OpRow> reduction_rows() { return kRows; }

}  // namespace gaf
