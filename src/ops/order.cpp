// Ops along an axis that look at order or position: ArgMax, TopK, CumSum, Trilu, ReverseSequence; and those whose
// result size depends on the data: NonZero, Compress, Unique.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

struct Line {  // rows along an axis: start of each, stride, length
  int64_t outer = 1, n = 1, inner = 1;
  int64_t start(int64_t row) const { return row / inner * n * inner + row % inner; }
  int64_t rows() const { return outer * inner; }
};
Line line_of(const Ints& dims, size_t axis) {
  Line l;
  for (size_t i = 0; i < dims.size(); i++) (i < axis ? l.outer : i == axis ? l.n : l.inner) *= dims[i];
  return l;
}

// Total order with NaN above all numbers.
bool less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// ---- ArgMax, ArgMin ----

void infer_arg(InferContext& c) {
  Type out{DType::i64, c.arg(0).dims};
  const auto axis = normal_axis(c, attr_int(c.node, "axis", 0), out.dims.size());
  if (attr_int(c.node, "keepdims", 1))
    out.dims[static_cast<size_t>(axis)] = 1;
  else
    out.dims.erase(out.dims.begin() + axis);
  c.types = {out};
}

template <bool Max>
void eval_arg(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), x.dims.size()));
  const bool last = attr_int(c.node, "select_last_index", 0) != 0;
  const std::vector<double> v = elements<double>(x);
  const Line l = line_of(x.dims, axis);
  Ints out;
  for (int64_t row = 0; row < l.rows(); row++) {
    const double* p = v.data() + l.start(row);
    int64_t best = 0;
    for (int64_t k = 1; k < l.n; k++) {
      const double a = p[k * l.inner], b = p[best * l.inner];
      if (Max ? less(b, a) : less(a, b))
        best = k;
      else if (last && a == b)
        best = k;
    }
    out.push_back(best);
  }
  Ints dims = x.dims;
  if (attr_int(c.node, "keepdims", 1))
    dims[axis] = 1;
  else
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  c.results = {tensor_of(DType::i64, dims, out)};
}

// ---- TopK ----

void infer_top_k(InferContext& c) {
  Type out = c.arg(0);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", -1), out.dims.size()));
  const auto k = list_of(c, "k", 1);
  out.dims[axis] = k && k->size() == 1 ? (*k)[0] : fresh_dim(c);
  c.types = {out, {DType::i64, out.dims}};
}

void eval_top_k(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", -1), x.dims.size()));
  const Ints count = list_of(c, "k", 1);
  if (count.size() != 1) fail(c, "GAF3101", "k is not one number");
  const int64_t k = count[0];
  if (k < 0 || k > x.dims[axis]) fail(c, "GAF6001", fmt::format("k={} of {} elements", k, x.dims[axis]));
  const bool largest = attr_int(c.node, "largest", 1) != 0;
  const std::vector<double> v = elements<double>(x);
  const Line l = line_of(x.dims, axis);
  Ints dims = x.dims;
  dims[axis] = k;
  std::vector<double> values(static_cast<size_t>(numel(dims)));
  Ints where(values.size()), order(static_cast<size_t>(l.n));
  for (int64_t row = 0; row < l.rows(); row++) {
    const double* p = v.data() + l.start(row);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return largest ? less(p[b * l.inner], p[a * l.inner]) : less(p[a * l.inner], p[b * l.inner]);
    });
    for (int64_t i = 0; i < k; i++) {
      const auto to = static_cast<size_t>((row / l.inner * k + i) * l.inner + row % l.inner);
      where[to] = order[static_cast<size_t>(i)];
      values[to] = p[where[to] * l.inner];
    }
  }
  c.results = {tensor_of(x.dtype, dims, values), tensor_of(DType::i64, dims, where)};
}

// ---- CumSum, CumProd ----

template <bool Product>
void eval_cumulative(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Ints axes = list_of(c, "axis", 1);
  const auto axis = static_cast<size_t>(normal_axis(c, axes.empty() ? 0 : axes[0], x.dims.size()));
  const bool exclusive = attr_int(c.node, "exclusive", 0) != 0, reverse = attr_int(c.node, "reverse", 0) != 0;
  std::vector<double> v = elements<double>(x);
  const Line l = line_of(x.dims, axis);
  for (int64_t row = 0; row < l.rows(); row++) {
    double acc = Product ? 1 : 0;
    for (int64_t i = 0; i < l.n; i++) {
      double& e = v[static_cast<size_t>(l.start(row) + (reverse ? l.n - 1 - i : i) * l.inner)];
      const double before = acc;
      acc = Product ? acc * e : acc + e;
      e = exclusive ? before : acc;
    }
  }
  c.results = {tensor_of(x.dtype, x.dims, v)};
}

// ---- Trilu, ReverseSequence ----

void eval_trilu(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  if (x.dims.size() < 2) fail(c, "GAF3101", "a matrix is needed");
  const int64_t k = has(c, 1) ? arg(c, 1).get_int(0) : 0, rows = x.dims[x.dims.size() - 2], cols = x.dims.back();
  const bool upper = attr_int(c.node, "upper", 1) != 0;
  Tensor out = Tensor::make(x.dtype, x.dims);
  const auto size = static_cast<size_t>(bytes(x.dtype));
  for (int64_t i = 0; i < x.numel(); i++) {
    const int64_t diagonal = i % cols - i / cols % rows;
    if (upper ? diagonal >= k : diagonal <= k)
      std::memcpy(out.mut<char>() + static_cast<size_t>(i) * size, x.as<char>() + static_cast<size_t>(i) * size, size);
  }
  c.results = {out};
}

void eval_reverse_sequence(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const auto batch = static_cast<size_t>(attr_int(c.node, "batch_axis", 1)),
             time = static_cast<size_t>(attr_int(c.node, "time_axis", 0));
  if (batch >= x.dims.size() || time >= x.dims.size()) fail(c, "GAF3101", "an axis is outside the input");
  const Ints lengths = elements<int64_t>(arg_of(c, 1, x.dims[batch])), strides = strides_of(x.dims);
  for (int64_t n : lengths)
    if (n < 0 || n > x.dims[time]) fail(c, "GAF6001", fmt::format("length {} out of range [0,{}]", n, x.dims[time]));
  Tensor out = Tensor::make(x.dtype, x.dims);
  const auto size = static_cast<size_t>(bytes(x.dtype));
  for (int64_t i = 0; i < x.numel(); i++) {
    const int64_t b = i / strides[batch] % x.dims[batch], t = i / strides[time] % x.dims[time],
                  n = lengths[static_cast<size_t>(b)];
    const int64_t from = t < n ? i + (n - 1 - 2 * t) * strides[time] : i;
    std::memcpy(out.mut<char>() + static_cast<size_t>(i) * size, x.as<char>() + static_cast<size_t>(from) * size, size);
  }
  c.results = {out};
}

// ---- results whose size depends on the data ----

void infer_non_zero(InferContext& c) {
  c.types = {{DType::i64, {Expr(static_cast<int64_t>(c.arg(0).dims.size())), fresh_dim(c)}}};
}
void eval_non_zero(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const std::vector<double> v = elements<double>(x);
  const Ints strides = strides_of(x.dims);
  Ints found;
  for (size_t i = 0; i < v.size(); i++)
    if (v[i] != 0) found.push_back(static_cast<int64_t>(i));
  Ints out;
  for (size_t d = 0; d < x.dims.size(); d++)
    for (int64_t i : found) out.push_back(i / strides[d] % x.dims[d]);
  c.results = {tensor_of(DType::i64, {static_cast<int64_t>(x.dims.size()), static_cast<int64_t>(found.size())}, out)};
}

void infer_compress(InferContext& c) {
  Type out = c.arg(0);
  if (!c.node.attrs.contains("axis"))
    out.dims = {fresh_dim(c)};
  else
    out.dims[static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), out.dims.size()))] = fresh_dim(c);
  c.types = {out};
}
void eval_compress(EvalContext& c) {
  Tensor x = arg(c, 0);
  if (!c.node.attrs.contains("axis")) x = reshaped(x, {x.numel()});
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), x.dims.size()));
  const Ints keep = elements<int64_t>(arg(c, 1)), strides = strides_of(x.dims);
  Ints dims = x.dims, kept;
  for (size_t i = 0; i < keep.size() && static_cast<int64_t>(i) < x.dims[axis]; i++)
    if (keep[i]) kept.push_back(static_cast<int64_t>(i));
  dims[axis] = static_cast<int64_t>(kept.size());
  Tensor out = Tensor::make(x.dtype, dims);
  Ints one = x.dims;
  one[axis] = 1;
  const Ints out_strides = strides_of(dims);
  for (size_t i = 0; i < kept.size(); i++)
    strided_store(out, strided_copy(x, one, strides, kept[i] * strides[axis]), out_strides,
                  static_cast<int64_t>(i) * out_strides[axis]);
  c.results = {out};
}

void infer_unique(InferContext& c) {
  const Dim n = fresh_dim(c);
  Type y = c.arg(0);
  if (!c.node.attrs.contains("axis"))
    y.dims = {n};
  else
    y.dims[static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), y.dims.size()))] = n;
  const Dim all = c.node.attrs.contains("axis")
                      ? c.arg(0).dims[static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), y.dims.size()))]
                      : product(c.arg(0).dims);
  c.types = {y, {DType::i64, {n}}, {DType::i64, {all}}, {DType::i64, {n}}};
}
void eval_unique(EvalContext& c) {
  Tensor x = arg(c, 0);
  if (!c.node.attrs.contains("axis")) x = reshaped(x, {x.numel()});
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), x.dims.size()));
  const Ints strides = strides_of(x.dims);
  Ints one = x.dims;
  one[axis] = 1;
  std::vector<Tensor> slices;
  std::map<std::vector<double>, Ints> groups;  // slice -> where it occurs
  for (int64_t i = 0; i < x.dims[axis]; i++) {
    slices.push_back(strided_copy(x, one, strides, i * strides[axis]));
    groups[elements<double>(slices.back())].push_back(i);
  }
  std::vector<Ints> order;
  for (auto& [key, at] : groups) order.push_back(at);
  if (attr_int(c.node, "sorted", 1) == 0)
    std::sort(order.begin(), order.end(), [](const Ints& a, const Ints& b) { return a[0] < b[0]; });
  Ints dims = x.dims, first, counts, inverse(slices.size());
  dims[axis] = static_cast<int64_t>(order.size());
  Tensor out = Tensor::make(x.dtype, dims);
  const Ints out_strides = strides_of(dims);
  for (size_t k = 0; k < order.size(); k++) {
    strided_store(out, slices[static_cast<size_t>(order[k][0])], out_strides,
                  static_cast<int64_t>(k) * out_strides[axis]);
    first.push_back(order[k][0]);
    counts.push_back(static_cast<int64_t>(order[k].size()));
    for (int64_t i : order[k]) inverse[static_cast<size_t>(i)] = static_cast<int64_t>(k);
  }
  const Ints n{static_cast<int64_t>(order.size())};
  c.results = {out, tensor_of(DType::i64, n, first),
               tensor_of(DType::i64, {static_cast<int64_t>(inverse.size())}, inverse),
               tensor_of(DType::i64, n, counts)};
}

OpRow other(std::string_view name, int min_args, int max_args, void (*infer)(InferContext&), void (*eval)(EvalContext&),
            int results = 1) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = min_args,
          .max_args = max_args,
          .results = results,
          .infer = infer,
          .eval = eval};
}

const OpRow kRows[] = {
    other("ArgMax", 1, 1, infer_arg, eval_arg<true>),
    other("ArgMin", 1, 1, infer_arg, eval_arg<false>),
    other("TopK", 1, 2, infer_top_k, eval_top_k, 2),
    other("CumSum", 2, 2, infer_same, eval_cumulative<false>),
    other("CumProd", 2, 2, infer_same, eval_cumulative<true>),
    other("Trilu", 1, 2, infer_same, eval_trilu),
    other("ReverseSequence", 2, 2, infer_same, eval_reverse_sequence),
    other("NonZero", 1, 1, infer_non_zero, eval_non_zero),
    other("Compress", 2, 2, infer_compress, eval_compress),
    other("Unique", 1, 1, infer_unique, eval_unique, -1),
};

}  // namespace

std::span<const OpRow> order_rows() { return kRows; }

}  // namespace gaf
