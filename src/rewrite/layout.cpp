// Channels-last: convolutions and pools compute on [N, spatial, C]. Each gets a transpose in front and one behind; the one
// behind sinks through pointwise ops, reductions, concatenations and the like until it meets the one in front of the next
// convolution and both vanish (simplify's transpose rules), or until something needs the plain order.
#include <algorithm>
#include <numeric>

#include "rewrite/rebuild.h"

namespace gaf {
namespace {

std::vector<int64_t> to_last(size_t rank) {  // N C spatial -> N spatial C
  std::vector<int64_t> p{0};
  for (size_t i = 2; i < rank; i++) p.push_back(static_cast<int64_t>(i));
  p.push_back(1);
  return p;
}
std::vector<int64_t> inverse(const std::vector<int64_t>& p) {
  std::vector<int64_t> q(p.size());
  for (size_t i = 0; i < p.size(); i++) q[static_cast<size_t>(p[i])] = static_cast<int64_t>(i);
  return q;
}
template <class T>
std::vector<T> permuted(const std::vector<T>& d, const std::vector<int64_t>& p) {
  std::vector<T> r;
  for (int64_t i : p) r.push_back(d[static_cast<size_t>(i)]);
  return r;
}
bool only_units_move(const Dims& d, const std::vector<int64_t>& p) {
  std::vector<int64_t> order;
  for (int64_t i : p)
    if (!d[static_cast<size_t>(i)].is(1)) order.push_back(i);
  return std::is_sorted(order.begin(), order.end());
}

bool spatial(const Node& n) {
  return n.op == "Conv" || n.op == "MaxPool" || n.op == "AveragePool" || n.op == "GlobalAveragePool" || n.op == "GlobalMaxPool";
}

// A convolution over [N, 512, 1, C] with a kernel of 5 x 1 is one over [N, 512, C]: spatial dims of one that the kernel leaves
// alone are dropped, so that the last spatial dim is a long one. Nothing if there is none to drop, or only one is left.
std::optional<Value> without_unit_dims(Rebuild& b, const Node& conv, const std::vector<Value>& args) {
  const Dims x = b.g().type(args[0]).dims, w = b.g().type(args[1]).dims, y = conv.types[0].dims;  // x is channels-last, y not
  size_t spatial = x.size() - 2;
  std::vector<int64_t> strides = attr_ints(conv, "strides"), dilations = attr_ints(conv, "dilations"), kernel = attr_ints(conv, "kernel_shape"), keep;
  Dims pads = attr_exprs(conv, "pads");
  if (spatial < 2 || strides.size() != spatial || dilations.size() != spatial || pads.size() != 2 * spatial) return std::nullopt;
  for (size_t i = 0; i < spatial; i++)
    if (!(x[i + 1].is(1) && w[i + 2].is(1) && pads[i].is(0) && pads[i + spatial].is(0))) keep.push_back(static_cast<int64_t>(i));
  if (keep.empty() || keep.size() == spatial) return std::nullopt;
  Attrs attrs = conv.attrs;
  Dims small_x{x[0]}, small_w{w[0], w[1]}, small_pads(2 * keep.size(), Expr(0));
  std::vector<int64_t> s, d, k;
  for (size_t j = 0; j < keep.size(); j++) {
    auto i = static_cast<size_t>(keep[j]);
    small_x.push_back(x[i + 1]), small_w.push_back(w[i + 2]);
    s.push_back(strides[i]), d.push_back(dilations[i]), k.push_back(w[i + 2].num());
    small_pads[j] = pads[i], small_pads[j + keep.size()] = pads[i + spatial];
  }
  small_x.push_back(x.back());
  attrs["strides"] = s, attrs["dilations"] = d, attrs["kernel_shape"] = k, attrs["pads"] = small_pads, attrs["layout"] = std::string("NHWC");
  std::vector<Value> small = args;
  small[0] = b.emit("Reshape", {args[0]}, {{"shape", small_x}}, {});
  small[1] = b.emit("Reshape", {args[1]}, {{"shape", small_w}}, {});
  Value r = b.emit("Conv", small, attrs, {});
  Dims full{y[0]};
  full.insert(full.end(), y.begin() + 2, y.end());
  full.push_back(y[1]);
  return b.emit("Reshape", {r}, {{"shape", full}}, {});
}

std::optional<Value> wrap(Rebuild& b, const Node& n) {
  if (!spatial(n) || n.types.size() != 1 || !attr_str(n, "layout", "").empty()) return std::nullopt;
  size_t rank = n.types[0].dims.size();
  if (rank < 3 || rank > 5 || !is_float(n.types[0].dtype)) return std::nullopt;
  if (n.op == "Conv" && !constant(b.g(), n.args[1])) return std::nullopt;
  std::vector<Value> args = n.args;
  args[0] = b.emit("Transpose", {args[0]}, {{"perm", to_last(rank)}}, {});
  Attrs attrs = n.attrs;
  attrs["layout"] = std::string("NHWC");
  std::optional<Value> small = n.op == "Conv" ? without_unit_dims(b, n, args) : std::nullopt;
  Value y = small ? *small : b.emit(n.op, args, attrs, {});
  return b.emit("Transpose", {y}, {{"perm", inverse(to_last(rank))}}, {});
}

// v as seen before Transpose(perm): the w with Transpose(w, perm) = v, at no cost; nothing if that would move data.
std::optional<Value> undone(Rebuild& b, Value v, const std::vector<int64_t>& perm) {
  if (is_op(b.g(), v, "Transpose") && attr_ints(b.g().nodes[v.node], "perm") == perm) return b.g().nodes[v.node].args[0];
  const Type& t = b.g().type(v);
  if (t.dims.size() > perm.size()) return std::nullopt;
  if (t.dims.empty()) return v;
  Dims full(perm.size() - t.dims.size(), Expr(1));
  full.insert(full.end(), t.dims.begin(), t.dims.end());
  std::vector<int64_t> back = inverse(perm);
  const Tensor* c = constant(b.g(), v);
  if (!c && !only_units_move(full, back)) return std::nullopt;
  Value wide = full == t.dims ? v : b.emit("Reshape", {v}, {{"shape", full}}, std::array{v});
  if (only_units_move(full, back)) return b.emit("Reshape", {wide}, {{"shape", permuted(full, back)}}, std::array{v});
  return b.emit("Transpose", {wide}, {{"perm", back}}, std::array{v});  // of a constant: folds
}

std::optional<std::vector<int64_t>> first_perm(const Rebuild& b, const Node& n) {
  for (Value v : n.args)
    if (is_op(b.g(), v, "Transpose") && b.g().type(v).dims.size() == n.types[0].dims.size()) return attr_ints(b.g().nodes[v.node], "perm");
  return std::nullopt;
}

// Reshape(Transpose(x)) where the reshape only adds or drops dims of one: the reshape first, so that the transpose sinks on.
std::optional<Value> below_unit_reshape(Rebuild& b, const Node& n) {
  if (n.op != "Reshape" || n.args.size() != 1 || !is_op(b.g(), n.args[0], "Transpose")) return std::nullopt;
  const Node t = b.g().nodes[n.args[0].node];
  const std::vector<int64_t> perm = attr_ints(t, "perm");
  const Dims x = b.g().type(t.args[0]).dims, &out = n.types[0].dims;
  std::vector<size_t> wide;  // dims of x that are not one, in the order of the transposed value
  for (int64_t p : perm)
    if (!x[static_cast<size_t>(p)].is(1)) wide.push_back(static_cast<size_t>(p));
  std::vector<size_t> order = wide;
  std::sort(order.begin(), order.end());
  Dims inner;
  std::vector<int64_t> to(out.size());
  size_t next = 0, unit = order.size();
  for (size_t i : order) inner.push_back(x[i]);
  for (size_t i = 0; i < out.size(); i++) {
    if (out[i].is(1)) {
      to[i] = static_cast<int64_t>(unit++);
      inner.emplace_back(1);
      continue;
    }
    if (next >= wide.size() || x[wide[next]] != out[i]) return std::nullopt;
    to[i] = std::find(order.begin(), order.end(), wide[next++]) - order.begin();
  }
  if (next != wide.size() || inner == x) return std::nullopt;
  Value r = b.emit("Reshape", {t.args[0]}, {{"shape", inner}}, {});
  return b.emit("Transpose", {r}, {{"perm", to}}, {});
}

std::optional<Value> sink(Rebuild& b, const Node& n) {
  if (std::optional<Value> v = below_unit_reshape(b, n)) return v;
  if (n.types.size() != 1 || n.args.empty()) return std::nullopt;
  bool along_axis = n.op == "Concat" || n.op == "Softmax" || n.op == "LogSoftmax";
  bool reduces = n.op.starts_with("Reduce");
  if (!is_kind(n, OpKind::pointwise) && !along_axis && !reduces && n.op != "Slice") return std::nullopt;
  std::optional<std::vector<int64_t>> perm;
  if (reduces || n.op == "Slice" || n.op == "Softmax" || n.op == "LogSoftmax") {
    if (!is_op(b.g(), n.args[0], "Transpose") || n.args.size() != 1) return std::nullopt;
    perm = attr_ints(b.g().nodes[n.args[0].node], "perm");
  } else {
    perm = first_perm(b, n);
  }
  if (!perm) return std::nullopt;
  if ((n.op == "Softmax" || n.op == "LogSoftmax") && b.g().opset < 13) return std::nullopt;
  std::vector<Value> args;
  for (Value v : n.args) {
    std::optional<Value> w = v == kNoValue ? std::optional(v) : undone(b, v, *perm);
    if (!w) return std::nullopt;
    args.push_back(*w);
  }
  Attrs attrs = n.attrs;
  auto inside = [&](int64_t axis) {
    int64_t rank = static_cast<int64_t>(perm->size());
    return (*perm)[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  };
  if (along_axis) {
    attrs["axis"] = inside(attr_int(n, "axis", n.op == "Concat" ? 0 : -1));
  } else if (reduces || n.op == "Slice") {
    std::vector<int64_t> axes = attr_ints(n, "axes");
    if (axes.empty()) return std::nullopt;
    if (reduces && attr_int(n, "keepdims", 1) == 0) {
      std::vector<int64_t> rest;  // what is left of the permutation, ranked
      for (size_t i = 0; i < perm->size(); i++)
        if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) rest.push_back((*perm)[i]);
      std::vector<int64_t> ranked;
      for (int64_t p : rest) ranked.push_back(std::count_if(rest.begin(), rest.end(), [&](int64_t q) { return q < p; }));
      for (int64_t& a : axes) a = inside(a);
      std::sort(axes.begin(), axes.end());
      attrs["axes"] = axes;
      Value y = b.emit(n.op, args, attrs, {});
      if (std::is_sorted(ranked.begin(), ranked.end())) return y;
      return b.emit("Transpose", {y}, {{"perm", ranked}}, {});
    }
    for (int64_t& a : axes) a = inside(a);
    if (reduces) std::sort(axes.begin(), axes.end());
    attrs["axes"] = axes;
  }
  Value y = b.emit(n.op, args, attrs, {});
  return b.emit("Transpose", {y}, {{"perm", *perm}}, {});
}

}  // namespace

Graph channels_last(const Graph& from, RewriteLog& log, Simplify what) {
  bool any = false;
  Graph g = rewrite(from, log, [&](Rebuild& b, const Node& n) {
    std::optional<Value> v = wrap(b, n);
    any = any || v;
    return v;
  });
  if (!any && what == Simplify::views) return g;  // nothing to sink at level 0
  for (int round = 0; round < 16; round++) {
    bool changed = false;
    g = rewrite(g, log, [&](Rebuild& b, const Node& n) {
      std::optional<Value> v = sink(b, n);
      changed = changed || v;
      return v;
    });
    RewriteLog quiet;
    g = simplify(fold_constants(drop_dead(g, quiet), quiet), log, what);
    if (!changed) break;
  }
  return g;
}

}  // namespace gaf
