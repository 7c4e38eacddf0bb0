// Normalisations: composites. Means are taken first and squares of what is centred (two passes), in f32 for halves.
// Channel ops honour layout="NHWC" (channel last).
#include <fmt/format.h>

#include <cmath>

#include "ops/expand.h"
#include "ops/reduce_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

bool channels_last(const Node& n) { return attr_str(n, "layout", "") == "NHWC"; }
double epsilon(const Node& n) { return attr_float(n, "epsilon", 1e-5); }

// ---- LayerNormalization, RMSNormalization: over the trailing axes from `axis` on ----

void infer_layer_norm(InferContext& c) {
  const Type& x = c.arg(0);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", -1), x.dims.size()));
  Type stat{attr_int(c.node, "stash_type", 1) == 1 ? DType::f32 : x.dtype, x.dims};
  for (size_t i = axis; i < stat.dims.size(); i++) stat.dims[i] = 1;
  need_broadcast(c, 1, x.dims);
  need_broadcast(c, 2, x.dims);
  c.types = {x, stat, stat};
}
void infer_rms_norm(InferContext& c) {
  normal_axis(c, attr_int(c.node, "axis", -1), c.arg(0).dims.size());
  need_broadcast(c, 1, c.arg(0).dims);
  c.types = {c.arg(0)};
}

template <bool Centre>
void eval_layer_norm(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const int64_t axis = normal_axis(c, attr_int(c.node, "axis", -1), x.dims.size());
  const Ints outer_dims(x.dims.begin(), x.dims.begin() + axis);
  const Ints inner_dims(x.dims.begin() + axis, x.dims.end());
  const int64_t rows = numel(outer_dims), n = numel(inner_dims);
  const double eps = epsilon(c.node);
  std::vector<double> v = elements<double>(x), means, inverses;
  const std::vector<double> scale = elements<double>(arg(c, 1), x.dims);
  const std::vector<double> bias = has(c, 2) ? elements<double>(arg(c, 2), x.dims) : std::vector<double>(v.size(), 0.0);
  for (int64_t r = 0; r < rows; r++) {
    double* p = v.data() + r * n;
    double mean = 0, var = 0;
    if (Centre) {
      for (int64_t k = 0; k < n; k++) mean += p[k];
      mean /= static_cast<double>(n);
    }
    for (int64_t k = 0; k < n; k++) var += (p[k] - mean) * (p[k] - mean);
    const double inverse = 1 / std::sqrt(var / static_cast<double>(n) + eps);
    for (int64_t k = 0; k < n; k++) {
      const auto at = static_cast<size_t>(r * n + k);
      p[k] = (p[k] - mean) * inverse * scale[at] + bias[at];
    }
    means.push_back(mean);
    inverses.push_back(inverse);
  }
  c.results = {tensor_of(x.dtype, x.dims, v)};
  if (!Centre || c.types.size() < 2) return;
  Ints stat = x.dims;
  for (size_t i = static_cast<size_t>(axis); i < stat.size(); i++) stat[i] = 1;
  c.results.push_back(tensor_of(c.types[1].dtype, stat, means));
  if (c.types.size() > 2) c.results.push_back(tensor_of(c.types[2].dtype, stat, inverses));
}

template <bool Centre>
Value expand_layer_norm(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  const DType t = e.type(a[0]).dtype, wide = is_half(t) ? DType::f32 : t;
  int64_t axis = attr_int(n, "axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(e.rank(a[0]));
  const Ints axes = axes_from(axis, e.rank(a[0]));
  Value x = e.cast(a[0], wide);
  Value var;
  if (Centre) {
    // The mean is rounded, so what is left of x has a mean of its own: of a row of equal numbers it is all there is.
    x = e.binary("Sub", x, e.mean(x, axes));
    Value rest = e.mean(x, axes);
    var = e.binary("Sub", e.mean(e.binary("Mul", x, x), axes), e.binary("Mul", rest, rest));
    var = e.with_number("Max", var, 0);
    x = e.binary("Sub", x, rest);
  } else {
    var = e.mean(e.binary("Mul", x, x), axes);
  }
  Value root = e.unary("Sqrt", e.with_number("Add", var, epsilon(n)));
  Value y = e.binary("Mul", e.binary("Div", x, root), e.cast(a[1], wide));
  if (a.size() > 2 && a[2] != kNoValue) y = e.binary("Add", y, e.cast(a[2], wide));
  return e.cast(y, t);
}

// ---- over channels: BatchNormalization (inference), InstanceNormalization, GroupNormalization ----

size_t channel_axis(const Node& n, size_t rank) { return channels_last(n) ? rank - 1 : std::min<size_t>(1, rank - 1); }

void infer_channel_norm(InferContext& c) {
  const Type& x = c.arg(0);
  const bool batch_norm = c.node.op == "BatchNormalization";
  if (x.dims.size() < (batch_norm ? 1 : 2)) c.fail("GAF3101", "the input has no channel dimension");
  if (batch_norm)
    for (size_t i = 1; i < 5; i++) need_vector(c, i, x.dims[channel_axis(c.node, x.dims.size())]);
  c.types = {x};
  if (batch_norm)
    for (size_t i = 1; i < std::max<size_t>(c.node.types.size(), 1); i++)
      c.types.push_back(c.arg(i < 3 ? i + 2 : 3));  // running mean, variance
}

// A [C] vector lined up with the channel dim of x.
Value along_channel(const Expander& e, const Node& n, Value v, Value x) {
  const size_t axis = channel_axis(n, e.rank(x));
  if (axis + 1 == e.rank(x)) return v;
  Dims dims = e.type(v).dims;
  for (size_t i = axis + 1; i < e.rank(x); i++) dims.emplace_back(1);
  return e.reshape(v, dims);
}

struct ChannelView {  // [outer, channels, inner] of a tensor
  int64_t outer = 1, channels = 1, inner = 1;
};
ChannelView channel_view(const Node& n, const Ints& dims) {
  ChannelView v;
  const size_t axis = channel_axis(n, dims.size());
  for (size_t i = 0; i < dims.size(); i++) (i < axis ? v.outer : i == axis ? v.channels : v.inner) *= dims[i];
  return v;
}

void eval_batch_norm(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  std::vector<double> v = elements<double>(x);
  const ChannelView s = channel_view(c.node, x.dims);
  auto of_channel = [&](size_t i) { return elements<double>(arg_of(c, i, s.channels)); };
  const auto scale = of_channel(1), bias = of_channel(2);
  auto mean = of_channel(3), var = of_channel(4);
  const bool training = attr_int(c.node, "training_mode", 0) != 0;
  std::vector<double> running_mean = mean, running_var = var;
  if (training) {
    const double keep = attr_float(c.node, "momentum", 0.9), count = static_cast<double>(s.outer * s.inner);
    for (int64_t k = 0; k < s.channels; k++) {
      const auto at = static_cast<size_t>(k);
      auto sum = [&](double centre, bool squared) {
        double total = 0;
        for (int64_t o = 0; o < s.outer; o++)
          for (int64_t i = 0; i < s.inner; i++) {
            const double d = v[static_cast<size_t>((o * s.channels + k) * s.inner + i)] - centre;
            total += squared ? d * d : d;
          }
        return total / count;
      };
      mean[at] = sum(0, false);
      var[at] = sum(mean[at], true);
      running_mean[at] = keep * running_mean[at] + (1 - keep) * mean[at];
      running_var[at] = keep * running_var[at] + (1 - keep) * var[at];
    }
  }
  for (int64_t o = 0; o < s.outer; o++)
    for (int64_t k = 0; k < s.channels; k++) {
      const auto ch = static_cast<size_t>(k);
      const double f = scale[ch] / std::sqrt(var[ch] + epsilon(c.node));
      double* p = v.data() + (o * s.channels + k) * s.inner;
      for (int64_t i = 0; i < s.inner; i++) p[i] = (p[i] - mean[ch]) * f + bias[ch];
    }
  c.results = {tensor_of(x.dtype, x.dims, v)};
  if (c.types.size() > 1) c.results.push_back(tensor_of(c.types[1].dtype, arg(c, 3).dims, running_mean));
  if (c.types.size() > 2) c.results.push_back(tensor_of(c.types[2].dtype, arg(c, 4).dims, running_var));
}

Value expand_batch_norm(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  Value root = e.unary("Sqrt", e.with_number("Add", a[4], epsilon(n)));
  Value factor = e.binary("Div", a[1], root);
  Value shift = e.binary("Sub", a[2], e.binary("Mul", a[3], factor));
  Value y = e.binary("Mul", a[0], along_channel(e, n, factor, a[0]));
  return e.binary("Add", y, along_channel(e, n, shift, a[0]));
}

// Statistics over groups of channels and all spatial dims; instance norm has one channel a group.
void eval_group_norm(EvalContext& c) {
  Tensor x = arg(c, 0);
  if (channels_last(c.node)) x = transposed(x, channels_first_perm(x.dims.size()));
  const int64_t batch = x.dims[0], channels = x.dims.size() > 1 ? x.dims[1] : 1;
  const int64_t inner = numel(Ints(x.dims.begin() + 2, x.dims.end()));
  const int64_t groups = c.node.op == "InstanceNormalization" ? channels : attr_int(c.node, "num_groups", 1);
  if (arg(c, 2).numel() != arg(c, 1).numel() || (arg(c, 1).numel() != channels && arg(c, 1).numel() != groups))
    fail(c, "GAF3101", fmt::format("{} scales for {} channels", arg(c, 1).numel(), channels));
  if (groups <= 0 || channels % groups) fail(c, "GAF3101", fmt::format("{} channels in {} groups", channels, groups));
  std::vector<double> v = elements<double>(x);
  const auto scale = elements<double>(arg(c, 1)), bias = elements<double>(arg(c, 2));
  const int64_t n = channels / groups * inner;
  for (int64_t g = 0; g < batch * groups; g++) {
    double* p = v.data() + g * n;
    double mean = 0, var = 0;
    for (int64_t k = 0; k < n; k++) mean += p[k];
    mean /= static_cast<double>(n);
    for (int64_t k = 0; k < n; k++) var += (p[k] - mean) * (p[k] - mean);
    const double inverse = 1 / std::sqrt(var / static_cast<double>(n) + epsilon(c.node));
    for (int64_t k = 0; k < n; k++) {
      const int64_t channel = (g % groups) * (channels / groups) + k / inner;
      // opset 18 gives scale and bias a group each, opset 21 a channel each
      const auto at = static_cast<size_t>(static_cast<int64_t>(scale.size()) == channels ? channel : g % groups);
      p[k] = (p[k] - mean) * inverse * scale[at] + bias[at];
    }
  }
  Tensor y = tensor_of(x.dtype, x.dims, v);
  c.results = {channels_last(c.node) ? transposed(y, channels_last_perm(x.dims.size())) : y};
}

Value expand_group_norm(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  const Type t = e.type(a[0]);
  const DType wide = is_half(t.dtype) ? DType::f32 : t.dtype;
  const size_t axis = channel_axis(n, t.dims.size());
  const Expr channels = t.dims[axis];
  const bool instance = n.op == "InstanceNormalization";
  const Expr groups = instance ? channels : Expr(attr_int(n, "num_groups", 1));
  const Expr per_group = instance ? Expr(1) : floordiv(channels, groups);
  Value x = e.cast(a[0], wide);
  Dims split = t.dims;  // the channel dim in two: [groups, channels / groups]
  split[axis] = groups;
  split.insert(split.begin() + static_cast<ptrdiff_t>(axis) + 1, per_group);
  if (!instance) x = e.reshape(x, split);
  Ints axes;
  for (size_t i = 1; i < e.rank(x); i++)
    if (i != axis) axes.push_back(static_cast<int64_t>(i));
  x = e.binary("Sub", x, e.mean(x, axes));
  Value var = e.mean(e.binary("Mul", x, x), axes);
  Value y = e.binary("Div", x, e.unary("Sqrt", e.with_number("Add", var, epsilon(n))));
  auto factor = [&](Value v) {
    v = e.cast(v, wide);
    const bool per_channel = e.type(v).dims == Dims{channels};
    if (instance) return along_channel(e, n, v, y);
    Dims dims{groups, per_channel ? per_group : Expr(1)};
    for (size_t i = axis + 1; i < t.dims.size(); i++) dims.emplace_back(1);
    return e.reshape(v, dims);
  };
  y = e.binary("Add", e.binary("Mul", y, factor(a[1])), factor(a[2]));
  if (!instance) y = e.reshape(y, t.dims);
  return e.cast(y, t.dtype);
}

// ---- LpNormalization, MeanVarianceNormalization ----

void eval_lp_norm(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Ints axes{normal_axis(c, attr_int(c.node, "axis", -1), x.dims.size())};
  const bool one = attr_int(c.node, "p", 2) == 1;
  std::vector<double> v = elements<double>(x);
  std::vector<double> sum =
      reduce<double>(v, x.dims, axes, 0.0, [&](double acc, double e) { return acc + (one ? std::fabs(e) : e * e); });
  size_t i = 0;
  walk<1>(x.dims, {broadcast_strides(reduced_dims(x.dims, axes, true), x.dims)}, [&](auto& at) {
    const double s = sum[static_cast<size_t>(at[0])], norm = one ? s : std::sqrt(s);
    v[i] = norm == 0 ? 0 : v[i] / norm;
    i++;
  });
  c.results = {tensor_of(x.dtype, x.dims, v)};
}

void eval_mvn(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Ints axes = sorted_axes(attr_ints(c.node, "axes", {0, 2, 3}), x.dims.size());
  std::vector<double> v = elements<double>(x);
  const Ints strides = broadcast_strides(reduced_dims(x.dims, axes, true), x.dims);
  double n = 1;
  for (int64_t a : axes) n *= static_cast<double>(x.dims[static_cast<size_t>(a)]);
  auto each = [&](auto f) {
    size_t i = 0;
    walk<1>(x.dims, {strides}, [&](auto& at) { f(v[i++], static_cast<size_t>(at[0])); });
  };
  std::vector<double> sum = reduce<double>(v, x.dims, axes, 0.0, [](double acc, double e) { return acc + e; });
  each([&](double& e, size_t k) { e -= sum[k] / n; });
  std::vector<double> var = reduce<double>(v, x.dims, axes, 0.0, [](double acc, double e) { return acc + e * e; });
  each([&](double& e, size_t k) {
    e /= std::sqrt(var[k] / n) + 1e-9;
  });  // the standard's function body has this constant
  c.results = {tensor_of(x.dtype, x.dims, v)};
}

Value expand_mvn(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  const Ints axes = sorted_axes(attr_ints(n, "axes", {0, 2, 3}), e.rank(a[0]));
  Value x = e.binary("Sub", a[0], e.mean(a[0], axes));
  Value var = e.mean(e.binary("Mul", x, x), axes);
  return e.binary("Div", x, e.with_number("Add", e.unary("Sqrt", var), 1e-9));
}

OpRow norm(std::string_view name, std::string_view friendly, int min_args, int max_args, void (*infer)(InferContext&),
           void (*eval)(EvalContext&), Value (*expand)(GraphBuilder&, const Node&, std::span<const Value>)) {
  return {.name = name,
          .friendly = friendly,
          .kind = expand ? OpKind::composite : OpKind::other,
          .min_args = min_args,
          .max_args = max_args,
          .infer = infer,
          .eval = eval,
          .expand = expand,
          .ulp = 32,
          .cheap = false};
}

const OpRow kRows[] = {
    norm("LayerNormalization", "LayerNorm", 2, 3, infer_layer_norm, eval_layer_norm<true>, expand_layer_norm<true>),
    norm("RMSNormalization", "RMSNorm", 2, 2, infer_rms_norm, eval_layer_norm<false>, expand_layer_norm<false>),
    norm("BatchNormalization", "BatchNorm", 5, 5, infer_channel_norm, eval_batch_norm, expand_batch_norm),
    norm("InstanceNormalization", "InstanceNorm", 3, 3, infer_channel_norm, eval_group_norm, expand_group_norm),
    norm("GroupNormalization", "GroupNorm", 3, 3, infer_channel_norm, eval_group_norm, expand_group_norm),
    norm("MeanVarianceNormalization", "MeanVarianceNorm", 1, 1, infer_same, eval_mvn, expand_mvn),
    norm("LpNormalization", "LpNorm", 1, 1, infer_same, eval_lp_norm, nullptr),
};

}  // namespace

std::span<const OpRow> norm_rows() { return kRows; }

}  // namespace gaf
