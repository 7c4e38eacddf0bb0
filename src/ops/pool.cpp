// Pools: windows (MaxPool, AveragePool, LpPool) and global ones, which are reductions over the spatial dims. Both
// honour layout="NHWC". Evaluation runs channels-first.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/expand.h"
#include "ops/rows.h"
#include "ops/window.h"

namespace gaf {

namespace {

bool ceil_mode(const Node& n) { return attr_int(n, "ceil_mode", 0) != 0; }

void infer_pool(InferContext& c) {
  const Type& x = c.arg(0);
  if (x.dims.size() < 3) c.fail("GAF3101", "batch, channels and spatial dimensions are needed");
  const auto kernel = attr_ints(c.node, "kernel_shape");
  if (kernel.empty()) c.fail("GAF3101", "attribute 'kernel_shape' is missing");
  const Window w = window_of(c.node, spatial_dims(c.node, x.dims), kernel, ceil_mode(c.node));
  const Dims out = with_spatial(c.node, x.dims[0], channel_dim(c.node, x.dims), w.out);
  c.types = {{x.dtype, out}};
  if (c.node.op == "MaxPool") c.types.push_back({DType::i64, out});
}

// Calls f(plane, output index, taps) for each window; taps = positions in the plane that lie inside it, in row-major
// order.
template <class F>
void each_window(const Ints& spatial, const FixedWindow& w, int64_t planes, F f) {
  const Ints strides = strides_of(spatial), out_strides = strides_of(w.out), kernel_strides = strides_of(w.kernel);
  Ints taps;
  for (int64_t o = 0; o < numel(w.out); o++) {
    taps.clear();
    for (int64_t k = 0; k < numel(w.kernel); k++) {
      int64_t at = 0;
      bool hit = true;
      for (size_t d = 0; d < spatial.size() && hit; d++) {
        const int64_t pos = o / out_strides[d] % w.out[d] * w.strides[d] - w.begin[d] +
                            k / kernel_strides[d] % w.kernel[d] * w.dilations[d];
        hit = pos >= 0 && pos < spatial[d];
        at += pos * strides[d];
      }
      if (hit) taps.push_back(at);
    }
    for (int64_t p = 0; p < planes; p++) f(p, o, taps);
  }
}

struct Planes {
  Tensor x;
  Ints spatial;
  FixedWindow window;
  int64_t planes, in_size, out_size;
  std::vector<double> in, out;
};

Planes planes_of(EvalContext& c) {
  Tensor x = arg(c, 0);
  if (channels_last(c.node)) x = transposed(x, channels_first_perm(x.dims.size()));
  const Ints spatial(x.dims.begin() + 2, x.dims.end());
  FixedWindow w = fixed_window(c.node, spatial, attr_ints(c.node, "kernel_shape"), ceil_mode(c.node));
  const int64_t planes = x.dims[0] * x.dims[1], outs = numel(w.out);
  std::vector<double> in = elements<double>(x);
  return {x,
          spatial,
          w,
          planes,
          numel(spatial),
          outs,
          std::move(in),
          std::vector<double>(static_cast<size_t>(planes * outs))};
}

Ints result_dims(const Planes& p) {
  Ints dims{p.x.dims[0], p.x.dims[1]};
  dims.insert(dims.end(), p.window.out.begin(), p.window.out.end());
  return dims;
}

Tensor in_layout(const EvalContext& c, const Tensor& y) {
  return channels_last(c.node) ? transposed(y, channels_last_perm(y.dims.size())) : y;
}

void eval_max_pool(EvalContext& c) {
  Planes p = planes_of(c);
  std::vector<int64_t> where(p.out.size());
  const bool column_major = attr_int(c.node, "storage_order", 0) != 0;
  each_window(p.spatial, p.window, p.planes, [&](int64_t plane, int64_t o, const Ints& taps) {
    const double* in = p.in.data() + plane * p.in_size;
    double best = is_float(p.x.dtype) ? -std::numeric_limits<double>::infinity() : -9.3e18;
    int64_t at = taps.empty() ? 0 : taps[0];
    for (int64_t t : taps)
      if (in[t] > best || std::isnan(in[t])) best = in[t], at = t;
    const auto i = static_cast<size_t>(plane * p.out_size + o);
    p.out[i] = best;
    if (column_major && p.spatial.size() == 2) at = at % p.spatial[1] * p.spatial[0] + at / p.spatial[1];
    where[i] = plane * p.in_size + at;
  });
  c.results = {in_layout(c, tensor_of(p.x.dtype, result_dims(p), p.out))};
  if (c.types.size() > 1) c.results.push_back(in_layout(c, tensor_of(DType::i64, result_dims(p), where)));
}

void eval_average_pool(EvalContext& c) {
  Planes p = planes_of(c);
  const bool count_pads = attr_int(c.node, "count_include_pad", 0) != 0;
  const Ints pads = attr_ints(c.node, "pads", Ints(2 * p.spatial.size(), 0));
  const FixedWindow& w = p.window;
  const Ints out_strides = strides_of(w.out);
  each_window(p.spatial, w, p.planes, [&](int64_t plane, int64_t o, const Ints& taps) {
    double sum = 0, count = static_cast<double>(taps.size());
    for (int64_t t : taps) sum += p.in[static_cast<size_t>(plane * p.in_size + t)];
    if (count_pads) {  // padding counts, what ceil_mode adds behind it does not
      count = 1;
      for (size_t d = 0; d < p.spatial.size(); d++) {
        const int64_t first = o / out_strides[d] % w.out[d] * w.strides[d] - w.begin[d];
        const int64_t end = p.spatial[d] + std::max(pads[p.spatial.size() + d], int64_t{0});
        int64_t inside = 0;
        for (int64_t k = 0; k < w.kernel[d]; k++) inside += first + k * w.dilations[d] < end;
        count *= static_cast<double>(inside);
      }
    }
    p.out[static_cast<size_t>(plane * p.out_size + o)] = count == 0 ? 0 : sum / count;
  });
  c.results = {in_layout(c, tensor_of(p.x.dtype, result_dims(p), p.out))};
}

void eval_lp_pool(EvalContext& c) {
  Planes p = planes_of(c);
  const auto power = static_cast<double>(attr_int(c.node, "p", 2));
  each_window(p.spatial, p.window, p.planes, [&](int64_t plane, int64_t o, const Ints& taps) {
    double sum = 0;
    for (int64_t t : taps) sum += std::pow(std::fabs(p.in[static_cast<size_t>(plane * p.in_size + t)]), power);
    p.out[static_cast<size_t>(plane * p.out_size + o)] = std::pow(sum, 1 / power);
  });
  c.results = {in_layout(c, tensor_of(p.x.dtype, result_dims(p), p.out))};
}

// ---- global pools ----

std::vector<int64_t> spatial_axes(const Node& n, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t i = channels_last(n) ? 1 : 2; i < (channels_last(n) ? rank - 1 : rank); i++)
    axes.push_back(static_cast<int64_t>(i));
  return axes;
}

void infer_global_pool(InferContext& c) {
  Type t = c.arg(0);
  if (t.dims.size() < 2) c.fail("GAF3101", "batch and channels are needed");
  for (int64_t a : spatial_axes(c.node, t.dims.size())) t.dims[static_cast<size_t>(a)] = 1;
  c.types = {t};
}

enum class Pool { average, max, lp };

template <Pool kind>
void eval_global_pool(EvalContext& c) {
  Tensor x = arg(c, 0);
  if (channels_last(c.node)) x = transposed(x, channels_first_perm(x.dims.size()));
  const int64_t planes = x.dims[0] * x.dims[1], n = numel(Ints(x.dims.begin() + 2, x.dims.end()));
  const std::vector<double> in = elements<double>(x);
  std::vector<double> out(static_cast<size_t>(planes));
  const auto power = static_cast<double>(attr_int(c.node, "p", 2));
  for (int64_t p = 0; p < planes; p++) {
    double acc = kind == Pool::max ? -std::numeric_limits<double>::infinity() : 0;
    for (int64_t k = 0; k < n; k++) {
      const double v = in[static_cast<size_t>(p * n + k)];
      if (kind == Pool::max) acc = acc != acc || acc > v ? acc : v;
      if (kind == Pool::average) acc += v;
      if (kind == Pool::lp) acc += std::pow(std::fabs(v), power);
    }
    if (kind == Pool::average) acc /= static_cast<double>(n);
    if (kind == Pool::lp) acc = std::pow(acc, 1 / power);
    out[static_cast<size_t>(p)] = acc;
  }
  Ints dims = x.dims;
  std::fill(dims.begin() + 2, dims.end(), 1);
  c.results = {in_layout(c, tensor_of(x.dtype, dims, out))};
}

Value expand_global_average(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  return e.mean(a[0], spatial_axes(n, e.rank(a[0])));
}
Value expand_global_max(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  return e.reduce("ReduceMax", a[0], spatial_axes(n, e.rank(a[0])));
}

OpRow pool(std::string_view name, void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::pool,
          .min_args = 1,
          .max_args = 1,
          .infer = infer_pool,
          .eval = eval,
          .ulp = 16};
}
OpRow global(std::string_view name, void (*eval)(EvalContext&),
             Value (*expand)(GraphBuilder&, const Node&, std::span<const Value>)) {
  return {.name = name,
          .friendly = name,
          .kind = expand ? OpKind::composite : OpKind::other,
          .min_args = 1,
          .max_args = 1,
          .infer = infer_global_pool,
          .eval = eval,
          .expand = expand,
          .ulp = 16};
}

const OpRow kRows[] = {
    pool("MaxPool", eval_max_pool),
    pool("AveragePool", eval_average_pool),
    pool("LpPool", eval_lp_pool),
    global("GlobalAveragePool", eval_global_pool<Pool::average>, expand_global_average),
    global("GlobalMaxPool", eval_global_pool<Pool::max>, expand_global_max),
    global("GlobalLpPool", eval_global_pool<Pool::lp>, nullptr),
};

}  // namespace

std::span<const OpRow> pool_rows() { return kRows; }

}  // namespace gaf
