// Ops that read elements at positions held in a tensor, and ops that make tensors from sizes: the Gather family, Range,
// ConstantOfShape, OneHot ... Indices out of range are GAF6001.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

int64_t checked(const EvalContext& c, int64_t index, int64_t n) {
  if (index < -n || index >= n) fail(c, "GAF6001", fmt::format("index {} out of range [{},{})", index, -n, n));
  return index < 0 ? index + n : index;
}

// ---- Gather ----

void infer_gather(InferContext& c) {
  const Type &x = c.arg(0), &index = c.arg(1);
  if (!is_int(index.dtype)) c.fail("GAF3101", "indices are not integers");
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), x.dims.size()));
  Dims out(x.dims.begin(), x.dims.begin() + static_cast<ptrdiff_t>(axis));
  out.insert(out.end(), index.dims.begin(), index.dims.end());
  out.insert(out.end(), x.dims.begin() + static_cast<ptrdiff_t>(axis) + 1, x.dims.end());
  if (const auto at = known_ints(c, 1); at && x.dims[axis].is_num())
    for (int64_t i : *at)
      if (i < -x.dims[axis].num() || i >= x.dims[axis].num())
        c.fail("GAF6001", fmt::format("index {} out of range [0,{})", i, x.dims[axis].num()));
  c.types = {{x.dtype, out}};
}

void eval_gather(EvalContext& c) {
  const Tensor &x = arg(c, 0), &index = arg(c, 1);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), x.dims.size()));
  const Ints before(x.dims.begin(), x.dims.begin() + static_cast<ptrdiff_t>(axis));
  const Ints after(x.dims.begin() + static_cast<ptrdiff_t>(axis) + 1, x.dims.end());
  Ints dims = before;
  dims.insert(dims.end(), index.dims.begin(), index.dims.end());
  dims.insert(dims.end(), after.begin(), after.end());
  Tensor out = Tensor::make(x.dtype, dims);
  const int64_t outer = numel(before), block = numel(after) * bytes(x.dtype), n = x.dims[axis];
  const Ints at = elements<int64_t>(index);
  char* to = out.mut<char>();
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i : at) {
      std::memcpy(to, x.as<char>() + (o * n + checked(c, i, n)) * block, static_cast<size_t>(block));
      to += block;
    }
  c.results = {out};
}

// ---- GatherElements, GatherND ----

void infer_gather_elements(InferContext& c) {
  normal_axis(c, attr_int(c.node, "axis", 0), c.arg(0).dims.size());
  need_rank(c, 1, c.arg(0).dims.size());
  c.types = {{c.arg(0).dtype, c.arg(1).dims}};
}

void eval_gather_elements(EvalContext& c) {
  const Tensor &x = arg(c, 0), &index = arg(c, 1);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), x.dims.size()));
  bool fits = index.dims.size() == x.dims.size();
  for (size_t d = 0; fits && d < x.dims.size(); d++) fits = d == axis || index.dims[d] <= x.dims[d];
  if (!fits) fail(c, "GAF3101", "the indices do not fit the data");
  const Ints at = elements<int64_t>(index), strides = strides_of(x.dims);
  Ints others = strides;
  others[axis] = 0;
  Tensor out = Tensor::make(x.dtype, index.dims);
  const int size = bytes(x.dtype);
  size_t i = 0;
  walk<1>(index.dims, {others}, [&](auto& from) {
    const int64_t src = from[0] + checked(c, at[i], x.dims[axis]) * strides[axis];
    std::memcpy(out.mut<char>() + static_cast<int64_t>(i) * size, x.as<char>() + src * size, static_cast<size_t>(size));
    i++;
  });
  c.results = {out};
}

void infer_gather_nd(InferContext& c) {
  const Type &x = c.arg(0), &index = c.arg(1);
  const int64_t batch = attr_int(c.node, "batch_dims", 0);
  if (index.dims.empty() || !index.dims.back().is_num())
    c.fail("GAF3101", "the last dimension of the indices is not known");
  const auto depth = batch + index.dims.back().num();
  if (batch < 0 || depth > static_cast<int64_t>(x.dims.size()) || batch >= static_cast<int64_t>(index.dims.size()))
    c.fail("GAF3101", fmt::format("indices of length {} into a tensor of rank {}", depth, x.dims.size()));
  Dims out(index.dims.begin(), index.dims.end() - 1);
  out.insert(out.end(), x.dims.begin() + depth, x.dims.end());
  c.types = {{x.dtype, out}};
}

void eval_gather_nd(EvalContext& c) {
  const Tensor &x = arg(c, 0), &index = arg(c, 1);
  const int64_t batch = attr_int(c.node, "batch_dims", 0), k = index.dims.back();
  const int64_t batches = numel(Ints(index.dims.begin(), index.dims.begin() + batch));
  const Ints strides = strides_of(x.dims), at = elements<int64_t>(index);
  if (!std::equal(x.dims.begin(), x.dims.begin() + batch, index.dims.begin()) ||
      batch + k > static_cast<int64_t>(x.dims.size()))
    fail(c, "GAF3101", "the indices do not fit the data");
  const Ints block_dims(x.dims.begin() + batch + k, x.dims.end());
  const int64_t block = numel(block_dims) * bytes(x.dtype),
                rows = k ? index.numel() / k : numel(Ints(index.dims.begin(), index.dims.end() - 1));
  const int64_t batch_size = numel(Ints(x.dims.begin() + batch, x.dims.end()));
  Ints dims(index.dims.begin(), index.dims.end() - 1);
  dims.insert(dims.end(), block_dims.begin(), block_dims.end());
  Tensor out = Tensor::make(x.dtype, dims);
  for (int64_t r = 0; r < rows; r++) {
    int64_t from = r / (rows / batches) * batch_size;
    for (int64_t j = 0; j < k; j++) {
      const auto d = static_cast<size_t>(batch + j);
      from += checked(c, at[static_cast<size_t>(r * k + j)], x.dims[d]) * strides[d];
    }
    std::memcpy(out.mut<char>() + r * block, x.as<char>() + from * bytes(x.dtype), static_cast<size_t>(block));
  }
  c.results = {out};
}

// ---- ConstantOfShape, Range, EyeLike, OneHot ----

void infer_constant_of_shape(InferContext& c) {
  const Tensor* value = attr_tensor(c.node, "value");
  const DType t = value ? value->dtype : DType::f32;
  auto shape = list_of(c, "shape", 0);
  if (shape) {
    c.types = {{t, *shape}};
    const Expr n = product(*shape);
    if (n.is_num() && n.num() >= 0 && n.num() <= kMaxKnown && !is_float(t))
      c.results = {std::vector<Expr>(static_cast<size_t>(n.num()), Expr(value ? value->get_int(0) : 0))};
    return;
  }
  const auto rank = known_rank(c, 0);
  if (!rank) c.fail("GAF3101", "the rank of the result is only known at run time");
  c.types = {{t, fresh_dims(c, static_cast<size_t>(*rank))}};
}

void eval_constant_of_shape(EvalContext& c) {
  const Tensor* value = attr_tensor(c.node, "value");
  const Tensor one = value ? reshaped(*value, {}) : Tensor::make(DType::f32, {});
  const Ints dims = list_of(c, "shape", 0);
  c.results = {strided_copy(one, dims, Ints(dims.size(), 0), 0)};
}

void infer_range(InferContext& c) {
  need_same_dtype(c);
  const DType t = c.arg(0).dtype;
  Type out{t, {}};
  const auto &start = c.value(0), &limit = c.value(1), &delta = c.value(2);
  if (start && limit && delta && (*delta)[0].is_num() && !(*delta)[0].is(0)) {
    const int64_t d = (*delta)[0].num();
    const Expr span = d > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
    Expr n = ceildiv(span, Expr(d > 0 ? d : -d));
    if (n.is_num()) n = std::max<int64_t>(0, n.num());
    out.dims = {n};
    if (n.is_num() && n.num() <= kMaxKnown) {
      std::vector<Expr> all;
      for (int64_t i = 0; i < n.num(); i++) all.push_back((*start)[0] + Expr(i * d));
      c.results = {all};
    }
  } else if (c.constants.size() == 3 && c.constants[0] && c.constants[1] && c.constants[2]) {
    const double n = std::ceil((c.constants[1]->get(0) - c.constants[0]->get(0)) / c.constants[2]->get(0));
    out.dims = {Expr(static_cast<int64_t>(std::max(0.0, n)))};
  } else {
    out.dims = {fresh_dim(c)};
  }
  c.types = {out};
}

void eval_range(EvalContext& c) {
  const DType t = arg(c, 0).dtype;
  for (size_t i = 0; i < 3; i++) arg_of(c, i, 1);
  if (arg(c, 2).get(0) == 0) fail(c, "GAF6002", "Range with a step of 0");
  if (is_float(t)) {
    const double start = arg(c, 0).get(0), delta = arg(c, 2).get(0);
    const double count = std::ceil((arg(c, 1).get(0) - start) / delta);
    if (!(count < 1e10)) fail(c, "GAF3106", "Range has too many elements");
    std::vector<double> v(static_cast<size_t>(std::max(0.0, count)));
    for (size_t i = 0; i < v.size(); i++) v[i] = start + static_cast<double>(i) * delta;
    c.results = {tensor_of(t, {static_cast<int64_t>(v.size())}, v)};
    return;
  }
  const int64_t start = arg(c, 0).get_int(0), limit = arg(c, 1).get_int(0), delta = arg(c, 2).get_int(0);
  if ((delta > 0 ? limit - start : start - limit) / std::abs(delta) > (int64_t{1} << 36))
    fail(c, "GAF3106", "Range has too many elements");
  Ints v;
  for (int64_t i = start; delta > 0 ? i < limit : i > limit; i += delta) v.push_back(i);
  c.results = {tensor_of(t, {static_cast<int64_t>(v.size())}, v)};
}

void infer_eye_like(InferContext& c) {
  need_rank(c, 0, 2);
  c.types = {{dtype_attr(c.node, "dtype", c.arg(0).dtype), c.arg(0).dims}};
}
void eval_eye_like(EvalContext& c) {
  const Ints& dims = arg(c, 0).dims;
  const int64_t k = attr_int(c.node, "k", 0);
  Ints v(static_cast<size_t>(numel(dims)), 0);
  for (int64_t i = 0; i < dims[0]; i++)
    if (i + k >= 0 && i + k < dims[1]) v[static_cast<size_t>(i * dims[1] + i + k)] = 1;
  c.results = {tensor_of(c.types[0].dtype, dims, v)};
}

void infer_one_hot(InferContext& c) {
  const Type& index = c.arg(0);
  const auto rank = index.dims.size() + 1;
  const auto axis = normal_axis(c, attr_int(c.node, "axis", -1), rank);
  Type out{c.arg(2).dtype, index.dims};
  const auto& depth = c.value(1);
  out.dims.insert(out.dims.begin() + axis, depth ? (*depth)[0] : fresh_dim(c));
  c.types = {out};
}
void eval_one_hot(EvalContext& c) {
  const Tensor &index = arg(c, 0), &values = arg(c, 2);
  arg_of(c, 2, 2);
  const auto depth = static_cast<int64_t>(arg_of(c, 1, 1).get(0));
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", -1), index.dims.size() + 1));
  Ints dims = index.dims;
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), depth);
  const std::vector<double> at = elements<double>(index);
  const int64_t inner = numel(Ints(index.dims.begin() + static_cast<ptrdiff_t>(axis), index.dims.end()));
  Tensor out = strided_copy(values, dims, Ints(dims.size(), 0), 0);
  const auto size = static_cast<size_t>(bytes(values.dtype));
  for (size_t i = 0; i < at.size(); i++) {
    auto k = static_cast<int64_t>(at[i]);
    if (k < 0) k += depth;
    if (k < 0 || k >= depth) continue;
    const int64_t to = (static_cast<int64_t>(i) / inner * depth + k) * inner + static_cast<int64_t>(i) % inner;
    std::memcpy(out.mut<char>() + static_cast<size_t>(to) * size, values.as<char>() + size, size);
  }
  c.results = {out};
}

OpRow move(std::string_view name, int args, void (*infer)(InferContext&), void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::move,
          .min_args = args,
          .max_args = args,
          .infer = infer,
          .eval = eval,
          .ulp = 0};
}
OpRow make(std::string_view name, int min_args, int max_args, void (*infer)(InferContext&),
           void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = min_args,
          .max_args = max_args,
          .infer = infer,
          .eval = eval,
          .ulp = 0};
}

const OpRow kRows[] = {
    move("Gather", 2, infer_gather, eval_gather),
    move("GatherElements", 2, infer_gather_elements, eval_gather_elements),
    move("GatherND", 2, infer_gather_nd, eval_gather_nd),
    make("ConstantOfShape", 0, 1, infer_constant_of_shape, eval_constant_of_shape),
    make("Range", 3, 3, infer_range, eval_range),
    make("EyeLike", 1, 1, infer_eye_like, eval_eye_like),
    make("OneHot", 3, 3, infer_one_hot, eval_one_hot),
};

}  // namespace

std::span<const OpRow> index_rows() { return kRows; }

}  // namespace gaf
