// BatchNormalization (inference) becomes a multiply and an add by constants of the channel axis; a multiply or an add of that
// kind behind a convolution goes into its weights and bias. The arithmetic on the constants is done here, in double.
#include <cmath>

#include "rewrite/rebuild.h"

namespace gaf {
namespace {

// The constant as one number per channel of a value with these dims (channel axis 1), or nothing if it varies elsewhere.
std::optional<std::vector<double>> per_channel(const Graph& g, Value c, const Dims& dims) {
  const Tensor* t = c == kNoValue ? nullptr : constant(g, c);
  if (!t || dims.size() < 2 || !dims[1].is_num() || t->dims.size() > dims.size()) return std::nullopt;
  int64_t channels = dims[1].num();
  if (t->numel() == 1) return std::vector<double>(static_cast<size_t>(channels), t->get(0));
  size_t skip = dims.size() - t->dims.size();
  for (size_t i = 0; i < t->dims.size(); i++)
    if (t->dims[i] != 1 && i + skip != 1) return std::nullopt;
  if (t->numel() != channels) return std::nullopt;
  std::vector<double> v;
  for (int64_t i = 0; i < channels; i++) v.push_back(t->get(i));
  return v;
}

Value channel_constant(Rebuild& b, DType dtype, const std::vector<double>& v, size_t rank) {
  std::vector<int64_t> dims(rank - 1, 1);
  dims[0] = static_cast<int64_t>(v.size());
  Tensor t = Tensor::make(dtype, dims);
  for (size_t i = 0; i < v.size(); i++) t.set(static_cast<int64_t>(i), v[i]);
  return b.constant(std::move(t));
}

std::optional<Value> batch_norm(Rebuild& b, const Node& n) {
  if (n.op != "BatchNormalization" || n.args.size() < 5 || n.types.size() > 1) return std::nullopt;
  if (attr_int(n, "training_mode", 0) != 0 || !attr_str(n, "layout", "").empty()) return std::nullopt;
  const Tensor* p[4];
  for (size_t i = 0; i < 4; i++)
    if (!(p[i] = constant(b.g(), n.args[i + 1]))) return std::nullopt;
  double eps = attr_float(n, "epsilon", 1e-5);
  const Type t = n.types[0];
  if (t.dims.size() < 2) return std::nullopt;
  std::vector<double> scale, shift;
  for (int64_t c = 0; c < p[0]->numel(); c++) {
    scale.push_back(p[0]->get(c) / std::sqrt(p[3]->get(c) + eps));
    shift.push_back(p[1]->get(c) - p[2]->get(c) * scale.back());
  }
  Value s = channel_constant(b, t.dtype, scale, t.dims.size()), c = channel_constant(b, t.dtype, shift, t.dims.size());
  Value m = b.emit("Mul", {n.args[0], s}, {}, {});
  return b.emit("Add", {m, c}, {}, {});
}

// Mul(Conv(x, w, b), k) and Add(Conv(x, w, b), k) with k constant per output channel.
std::optional<Value> into_conv(Rebuild& b, const Node& n) {
  if ((n.op != "Mul" && n.op != "Add") || !is_float(n.types[0].dtype)) return std::nullopt;
  for (size_t side : {0u, 1u}) {
    Value v = n.args[side];
    if (!is_op(b.g(), v, "Conv") || b.uses(v) != 1 || b.g().type(v) != n.types[0]) continue;
    const Node conv = b.g().nodes[v.node];
    if (!attr_str(conv, "layout", "").empty()) continue;
    const Tensor* w = constant(b.g(), conv.args[1]);
    bool has_bias = conv.args.size() > 2 && conv.args[2] != kNoValue;
    const Tensor* bias = has_bias ? constant(b.g(), conv.args[2]) : nullptr;
    std::optional<std::vector<double>> k = per_channel(b.g(), n.args[1 - side], n.types[0].dims);
    if (!w || (has_bias && !bias) || !k) continue;
    Value new_w = conv.args[1];
    Tensor new_bias = Tensor::make(w->dtype, {w->dims[0]});
    int64_t per = w->numel() / w->dims[0];
    for (int64_t o = 0; o < w->dims[0]; o++) {
      double old = bias ? bias->get(o) : 0, f = (*k)[static_cast<size_t>(o)];
      new_bias.set(o, n.op == "Mul" ? old * f : old + f);
    }
    if (n.op == "Mul") {
      Tensor scaled = Tensor::make(w->dtype, w->dims);
      for (int64_t i = 0; i < w->numel(); i++) scaled.set(i, w->get(i) * (*k)[static_cast<size_t>(i / per)]);
      new_w = b.constant(std::move(scaled));
    }
    Value r = b.emit("Conv", {conv.args[0], new_w, b.constant(std::move(new_bias))}, conv.attrs, std::array{v});
    b.note("fold-affine", std::array{r}, n.op == "Mul" ? "scale folded into the weights" : "shift folded into the bias");
    return r;
  }
  return std::nullopt;
}

}  // namespace

Graph fold_affine(const Graph& from, RewriteLog& log) {
  Graph g = rewrite(from, log, batch_norm);
  for (int round = 0; round < 4; round++) {
    bool changed = false;
    g = rewrite(g, log, [&](Rebuild& b, const Node& n) {
      std::optional<Value> v = into_conv(b, n);
      changed = changed || v;
      return v;
    });
    g = drop_dead(g, log);
    if (!changed) break;
  }
  return g;
}

}  // namespace gaf
