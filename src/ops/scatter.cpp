// Ops that write elements at positions held in a tensor: ScatterElements (once called Scatter), ScatterND,
// TensorScatter.
#include <fmt/format.h>

#include <algorithm>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

int64_t checked(const EvalContext& c, int64_t index, int64_t n) {
  if (index < -n || index >= n) fail(c, "GAF6001", fmt::format("index {} out of range [{},{})", index, -n, n));
  return index < 0 ? index + n : index;
}

Tensor copy_of(const Tensor& x) {
  Tensor out = Tensor::make(x.dtype, x.dims);
  std::memcpy(out.mut<char>(), x.as<char>(), static_cast<size_t>(x.size_bytes()));
  return out;
}

// dst[i] = dst[i] (op) src[k]; integers exactly.
void combine(Tensor& dst, int64_t i, const Tensor& src, int64_t k, const std::string& op) {
  auto apply = [&](auto a, auto b) {
    return op == "add" ? a + b : op == "mul" ? a * b : op == "max" ? std::max(a, b) : op == "min" ? std::min(a, b) : b;
  };
  if (is_float(dst.dtype))
    dst.set(i, apply(dst.get(i), src.get(k)));
  else
    dst.set_int(i, apply(dst.get_int(i), src.get_int(k)));
}

void infer_scatter(InferContext& c) {
  if (c.arg(0).dims.empty()) c.fail("GAF3101", "the data is a scalar");
  if (c.arg(0).dtype != c.arg(2).dtype) c.fail("GAF3101", "data and updates have different types");
  c.types = {c.arg(0)};
}

void eval_scatter_elements(EvalContext& c) {
  const Tensor &index = arg(c, 1), &updates = arg(c, 2);
  Tensor out = copy_of(arg(c, 0));
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), out.dims.size()));
  const std::string op = attr_str(c.node, "reduction", "none");
  bool fits = index.dims.size() == out.dims.size() && index.dims == updates.dims;
  for (size_t d = 0; fits && d < out.dims.size(); d++) fits = d == axis || index.dims[d] <= out.dims[d];
  if (!fits) fail(c, "GAF3101", "indices and updates do not fit the data");
  const Ints at = elements<int64_t>(index), strides = strides_of(out.dims);
  Ints others = strides;
  others[axis] = 0;
  int64_t i = 0;
  walk<1>(index.dims, {others}, [&](auto& base) {
    combine(out, base[0] + checked(c, at[static_cast<size_t>(i)], out.dims[axis]) * strides[axis], updates, i, op);
    i++;
  });
  c.results = {out};
}

void eval_scatter_nd(EvalContext& c) {
  const Tensor &index = arg(c, 1), &updates = arg(c, 2);
  Tensor out = copy_of(arg(c, 0));
  const std::string op = attr_str(c.node, "reduction", "none");
  const Ints at = elements<int64_t>(index), strides = strides_of(out.dims);
  if (index.dims.empty()) fail(c, "GAF3101", "the indices are a scalar");
  const int64_t k = index.dims.back(), rows = k ? index.numel() / k : 0;
  if (k > static_cast<int64_t>(out.dims.size())) fail(c, "GAF3101", "indices are longer than the rank of the data");
  const int64_t block = numel(Ints(out.dims.begin() + k, out.dims.end()));
  arg_of(c, 2, rows * block);
  for (int64_t r = 0; r < rows; r++) {
    int64_t to = 0;
    for (int64_t j = 0; j < k; j++) {
      const auto d = static_cast<size_t>(j);
      to += checked(c, at[static_cast<size_t>(r * k + j)], out.dims[d]) * strides[d];
    }
    for (int64_t b = 0; b < block; b++) combine(out, to + b, updates, r * block + b, op);
  }
  c.results = {out};
}

// TensorScatter: update[batch, ..., length, ...] goes into the cache at write_indices[batch] along `axis`.
void infer_tensor_scatter(InferContext& c) {
  if (c.arg(0).dims.size() < 2) c.fail("GAF3101", "a cache needs batch and sequence dimensions");
  c.types = {c.arg(0)};
}
void eval_tensor_scatter(EvalContext& c) {
  Tensor out = copy_of(arg(c, 0));
  const Tensor& update = arg(c, 1);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", -2), out.dims.size()));
  const bool circular = attr_str(c.node, "mode", "linear") == "circular";
  bool fits = update.dims.size() == out.dims.size() && axis > 0;
  for (size_t d = 0; fits && d < out.dims.size(); d++) fits = d == axis || update.dims[d] == out.dims[d];
  if (!fits) fail(c, "GAF3101", "the update does not fit the cache");
  const Ints first =
      has(c, 2) ? elements<int64_t>(arg_of(c, 2, out.dims[0])) : Ints(static_cast<size_t>(out.dims[0]), 0);
  const Ints from = strides_of(update.dims), to = strides_of(out.dims);
  const auto size = static_cast<size_t>(bytes(out.dtype));
  for (int64_t i = 0; i < update.numel(); i++) {
    int64_t at = 0;
    for (size_t d = 0; d < out.dims.size(); d++) {
      int64_t p = i / from[d] % update.dims[d];
      if (d == axis) {
        p += first[static_cast<size_t>(i / from[0])];
        if (circular) p %= out.dims[d];
        if (p < 0 || p >= out.dims[d]) fail(c, "GAF6001", fmt::format("index {} out of range [0,{})", p, out.dims[d]));
      }
      at += p * to[d];
    }
    std::memcpy(out.mut<char>() + static_cast<size_t>(at) * size, update.as<char>() + static_cast<size_t>(i) * size,
                size);
  }
  c.results = {out};
}

OpRow scatter(std::string_view name, int min_args, void (*infer)(InferContext&), void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::move,
          .min_args = min_args,
          .max_args = 3,
          .infer = infer,
          .eval = eval,
          .ulp = 1};
}

const OpRow kRows[] = {
    scatter("ScatterElements", 3, infer_scatter, eval_scatter_elements),
    scatter("Scatter", 3, infer_scatter, eval_scatter_elements),
    scatter("ScatterND", 3, infer_scatter, eval_scatter_nd),
    scatter("TensorScatter", 2, infer_tensor_scatter, eval_tensor_scatter),
};

}  // namespace

std::span<const OpRow> scatter_rows() { return kRows; }

}  // namespace gaf
