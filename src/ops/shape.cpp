// Views: ops that only say anew how the same elements are indexed, and ops that turn sizes into values. Each accepts
// the operand form of ONNX and the canonical attribute form (ops/canonical.h).
#include <fmt/format.h>

#include <algorithm>

#include "ops/eval_util.h"
#include "ops/expand.h"
#include "ops/infer_util.h"
#include "ops/rows.h"
#include "ops/slice.h"

namespace gaf {

namespace {

// ---- Reshape, Squeeze, Unsqueeze, Flatten ----

void infer_reshape(InferContext& c) {
  const Type& x = c.arg(0);
  auto wanted = list_of(c, "shape", 1);
  if (!wanted) {
    const auto rank = known_rank(c, 1);
    if (!rank) c.fail("GAF3101", "the rank of the result is only known at run time");
    c.types = {{x.dtype, fresh_dims(c, static_cast<size_t>(*rank))}};
    return;
  }
  const bool zero_is_zero = attr_int(c.node, "allowzero", 0) != 0;
  Dims dims = *wanted;
  std::optional<size_t> open;
  Expr rest(1);
  for (size_t i = 0; i < dims.size(); i++) {
    if (dims[i].is(0) && !zero_is_zero) {  // copies the dim at the same place
      if (i >= x.dims.size())
        c.fail("GAF3101", fmt::format("dimension {} is to be copied from an input of rank {}", i, x.dims.size()));
      dims[i] = x.dims[i];
    }
    if (dims[i].is(-1)) {
      if (open) c.fail("GAF3101", "more than one dimension of the result is -1");
      open = i;
    } else {
      rest *= dims[i];
    }
  }
  const Expr total = product(x.dims);
  if (open) {
    // cancel dims that both sides have, so that [batch, 12] -> [batch, -1] stays exact
    Dims left = x.dims, right;
    for (size_t i = 0; i < dims.size(); i++) {
      if (i == *open) continue;
      auto it = std::find(left.begin(), left.end(), dims[i]);
      if (it != left.end() && !dims[i].is(0))
        left.erase(it);
      else
        right.push_back(dims[i]);
    }
    const Expr num = product(left), den = product(right);
    if (den.is(1))
      dims[*open] = num;
    else if (num.is_num() && den.is_num()) {
      if (den.num() == 0 || num.num() % den.num())
        c.fail("GAF3101", fmt::format("{} elements do not divide by {}", num.num(), den.num()));
      dims[*open] = num.num() / den.num();
    } else {
      dims[*open] = floordiv(num, den);
    }
  } else if (total.is_num() && rest.is_num() && total != rest) {
    c.fail("GAF3101", fmt::format("{} elements cannot be reshaped to {}", total.num(), rest.num()));
  }
  c.types = {{x.dtype, dims}};
}

void eval_reshape(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  Ints dims = list_of(c, "shape", 1);
  const bool zero_is_zero = attr_int(c.node, "allowzero", 0) != 0 || (x.numel() == 0 && c.node.args.size() == 1);
  int64_t rest = 1, open = -1;
  for (size_t i = 0; i < dims.size(); i++) {
    if (dims[i] == 0 && !zero_is_zero) {
      if (i >= x.dims.size()) fail(c, "GAF3101", "a dimension to be copied is not there");
      dims[i] = x.dims[i];
    }
    if (dims[i] == -1)
      open = static_cast<int64_t>(i);
    else
      rest *= dims[i];
  }
  if (open >= 0) dims[static_cast<size_t>(open)] = rest == 0 ? 0 : x.numel() / rest;
  if (numel(dims) != x.numel())
    fail(c, "GAF3101", fmt::format("{} elements cannot be reshaped to {}", x.numel(), numel(dims)));
  c.results = {reshaped(x, dims)};
}

void infer_squeeze(InferContext& c) {
  const Type& x = c.arg(0);
  Type out{x.dtype, {}};
  Ints axes;
  if (given(c, "axes", 1)) {
    auto list = ints_of(c, "axes", 1);
    if (!list) {
      const auto n = known_rank(c, 1);
      if (!n) c.fail("GAF3101", "the number of axes is only known at run time");
      c.types = {{x.dtype, fresh_dims(c, x.dims.size() - static_cast<size_t>(*n))}};
      return;
    }
    for (int64_t a : *list) axes.push_back(normal_axis(c, a, x.dims.size()));
  } else {
    for (size_t i = 0; i < x.dims.size(); i++)
      if (x.dims[i].is(1)) axes.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < x.dims.size(); i++) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end())
      out.dims.push_back(x.dims[i]);
    else if (x.dims[i].is_num() && !x.dims[i].is(1))
      c.fail("GAF3101", fmt::format("dimension {} has {} elements, not 1", i, x.dims[i].num()));
  }
  c.types = {out};
}

void eval_squeeze(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  Ints axes = list_of(c, "axes", 1), dims;
  for (int64_t& a : axes) a = normal_axis(c, a, x.dims.size());
  for (size_t i = 0; i < x.dims.size(); i++) {
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (given(c, "axes", 1) ? !named : x.dims[i] != 1) dims.push_back(x.dims[i]);
  }
  if (numel(dims) != x.numel()) fail(c, "GAF3101", "a squeezed dimension has more than one element");
  c.results = {reshaped(x, dims)};
}

template <class D>
std::vector<D> unsqueezed(const std::vector<D>& from, Ints axes) {
  std::sort(axes.begin(), axes.end());
  std::vector<D> dims = from;
  for (int64_t a : axes) dims.insert(dims.begin() + a, D(1));
  return dims;
}

void infer_unsqueeze(InferContext& c) {
  const Type& x = c.arg(0);
  auto axes = ints_of(c, "axes", 1);
  if (!axes) {
    const auto n = known_rank(c, 1);
    if (!n) c.fail("GAF3101", "the number of axes is only known at run time");
    c.types = {{x.dtype, fresh_dims(c, x.dims.size() + static_cast<size_t>(*n))}};
    return;
  }
  for (int64_t& a : *axes) a = normal_axis(c, a, x.dims.size() + axes->size());
  std::sort(axes->begin(), axes->end());
  if (std::adjacent_find(axes->begin(), axes->end()) != axes->end()) c.fail("GAF3101", "an axis is named twice");
  c.types = {{x.dtype, unsqueezed(x.dims, *axes)}};
}

void eval_unsqueeze(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  Ints axes = list_of(c, "axes", 1);
  const size_t rank = x.dims.size() + axes.size();
  for (int64_t& a : axes) a = normal_axis(c, a, rank);
  c.results = {reshaped(x, unsqueezed(x.dims, axes))};
}

void infer_flatten(InferContext& c) {
  const Type& x = c.arg(0);
  int64_t axis = attr_int(c.node, "axis", 1);
  if (axis != static_cast<int64_t>(x.dims.size())) axis = normal_axis(c, axis, std::max<size_t>(x.dims.size(), 1));
  const std::span<const Expr> all(x.dims);
  const auto at = std::min(static_cast<size_t>(axis), all.size());
  c.types = {{x.dtype, {product(all.first(at)), product(all.subspan(at))}}};
}

void eval_flatten(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  int64_t axis = attr_int(c.node, "axis", 1);
  if (axis < 0) axis += static_cast<int64_t>(x.dims.size());
  int64_t outer = 1;
  for (int64_t i = 0; i < axis && i < static_cast<int64_t>(x.dims.size()); i++) outer *= x.dims[static_cast<size_t>(i)];
  c.results = {reshaped(x, {outer, outer ? x.numel() / outer : numel(Ints(x.dims.begin() + axis, x.dims.end()))})};
}

// ---- Transpose, Expand, Identity ----

std::vector<int64_t> perm_of(const Node& n, size_t rank) {
  std::vector<int64_t> perm = attr_ints(n, "perm");
  if (perm.empty())
    for (size_t i = rank; i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  std::vector<bool> seen(rank, false);
  bool ok = perm.size() == rank;
  for (int64_t& p : perm) {
    if (p < 0) p += static_cast<int64_t>(rank);
    ok = ok && p >= 0 && p < static_cast<int64_t>(rank) && !seen[static_cast<size_t>(p)];
    if (ok) seen[static_cast<size_t>(p)] = true;
  }
  if (!ok) throw UserError("GAF3101", fmt::format("perm is no permutation of {} dimensions", rank)).at(n.name, n.op);
  return perm;
}

void infer_transpose(InferContext& c) {
  const Type& x = c.arg(0);
  Type out{x.dtype, {}};
  for (int64_t p : perm_of(c.node, x.dims.size())) out.dims.push_back(x.dims[static_cast<size_t>(p)]);
  c.types = {out};
}
void eval_transpose(EvalContext& c) { c.results = {transposed(arg(c, 0), perm_of(c.node, arg(c, 0).dims.size()))}; }

void infer_expand(InferContext& c) {
  const Type& x = c.arg(0);
  auto shape = list_of(c, "shape", 1);
  if (!shape) {
    const auto rank = known_rank(c, 1);
    if (!rank) c.fail("GAF3101", "the rank of the result is only known at run time");
    Dims dims = fresh_dims(c, std::max(static_cast<size_t>(*rank), x.dims.size()));
    for (size_t i = 0; i < x.dims.size(); i++) {  // a dim that is not 1 stays
      const Dim& d = x.dims[x.dims.size() - 1 - i];
      if (d.is_num() && !d.is(1)) dims[dims.size() - 1 - i] = d;
    }
    c.types = {{x.dtype, dims}};
    return;
  }
  const Dims both[] = {x.dims, *shape};
  c.types = {{x.dtype, broadcast_dims(c, both)}};
}
void eval_expand(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Ints both[] = {x.dims, list_of(c, "shape", 1)};
  const Ints dims = broadcast_shape(c.node, both);
  c.results = {strided_copy(x, dims, broadcast_strides(x.dims, dims), 0)};
}

void eval_identity(EvalContext& c) { c.results = {arg(c, 0)}; }

// ---- Slice ----

void infer_slice(InferContext& c) {
  const Type& x = c.arg(0);
  Type out = x;
  const auto s = slices_of(c);
  if (!s) {  // run-time bounds: the sliced axes, if known, get fresh sizes
    auto axes = ints_of(c, "axes", 3);
    if (axes && axes->empty()) {
      const auto n = known_rank(c, 1);
      axes = n ? std::optional(axes_from(0, static_cast<size_t>(*n))) : std::nullopt;
    }
    if (!axes) axes = axes_from(0, x.dims.size());
    for (int64_t a : *axes) out.dims[static_cast<size_t>(normal_axis(c, a, x.dims.size()))] = fresh_dim(c);
    c.types = {out};
    return;
  }
  for (const SliceRange& r : *s) out.dims[r.axis] = r.extent;
  c.types = {out};
}

void eval_slice(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  Ints dims = x.dims, strides = strides_of(x.dims);
  int64_t offset = 0;
  for (const SliceRange& r : slices_of(c)) {
    offset += r.start.num() * strides[r.axis];
    strides[r.axis] *= r.step;
    dims[r.axis] = r.extent.num();
  }
  c.results = {strided_copy(x, dims, strides, offset)};
}

// ---- sizes as values ----

std::pair<int64_t, int64_t> shape_range(const Node& n, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  auto clamp = [&](int64_t v) { return std::clamp(v < 0 ? v + r : v, int64_t{0}, r); };
  const int64_t start = clamp(attr_int(n, "start", 0));
  return {start, std::max(start, clamp(attr_int(n, "end", r)))};
}

void infer_shape(InferContext& c) {
  const Dims& dims = c.arg(0).dims;
  const auto [start, end] = shape_range(c.node, dims.size());
  c.types = {{DType::i64, {Expr(end - start)}}};
  c.results = {std::vector<Expr>(dims.begin() + start, dims.begin() + end)};
}
void eval_shape(EvalContext& c) {
  const Ints& dims = arg(c, 0).dims;
  const auto [start, end] = shape_range(c.node, dims.size());
  c.results = {tensor_i64(Ints(dims.begin() + start, dims.begin() + end))};
}

void infer_size(InferContext& c) {
  c.types = {{DType::i64, {}}};
  c.results = {std::vector<Expr>{product(c.arg(0).dims)}};
}
void eval_size(EvalContext& c) { c.results = {tensor_of(DType::i64, {}, Ints{arg(c, 0).numel()})}; }

// HostShape: sizes as a tensor, made by the host before kernels run. Canonical form of symbolic Shape, Size and Range.
void infer_host_shape(InferContext& c) {
  const Dims value = attr_exprs(c.node, "value");
  const bool scalar = attr_int(c.node, "scalar", 0) != 0;
  c.types = {
      {dtype_attr(c.node, "dtype", DType::i64), scalar ? Dims{} : Dims{Expr(static_cast<int64_t>(value.size()))}}};
  c.results = {value};
}
void eval_host_shape(EvalContext& c) {
  const Ints v = list_of(c, "value", 99);
  c.results = {
      tensor_of(c.types[0].dtype, attr_int(c.node, "scalar", 0) ? Ints{} : Ints{static_cast<int64_t>(v.size())}, v)};
}

OpRow view(std::string_view name, int max_args, void (*infer)(InferContext&), void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::view,
          .min_args = 1,
          .max_args = max_args,
          .infer = infer,
          .eval = eval,
          .ulp = 0};
}
OpRow sizes(std::string_view name, int args, void (*infer)(InferContext&), void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = args,
          .max_args = args,
          .infer = infer,
          .eval = eval,
          .ulp = 0};
}

const OpRow kRows[] = {
    view("Reshape", 2, infer_reshape, eval_reshape),
    view("Squeeze", 2, infer_squeeze, eval_squeeze),
    view("Unsqueeze", 2, infer_unsqueeze, eval_unsqueeze),
    view("Flatten", 1, infer_flatten, eval_flatten),
    view("Transpose", 1, infer_transpose, eval_transpose),
    view("Expand", 2, infer_expand, eval_expand),
    view("Identity", 1, infer_same, eval_identity),
    view("Slice", 5, infer_slice, eval_slice),
    sizes("Shape", 1, infer_shape, eval_shape),
    sizes("Size", 1, infer_size, eval_size),
    sizes("HostShape", 0, infer_host_shape, eval_host_shape),
};

}  // namespace

std::span<const OpRow> shape_rows() { return kRows; }

}  // namespace gaf
