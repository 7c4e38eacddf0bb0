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

std::optional<Value> wrap(Rebuild& b, const Node& n) {
  if (!spatial(n) || n.types.size() != 1 || !attr_str(n, "layout", "").empty()) return std::nullopt;
  size_t rank = n.types[0].dims.size();
  if (rank < 3 || rank > 5 || !is_float(n.types[0].dtype)) return std::nullopt;
  if (n.op == "Conv" && !constant(b.g(), n.args[1])) return std::nullopt;
  std::vector<Value> args = n.args;
  args[0] = b.emit("Transpose", {args[0]}, {{"perm", to_last(rank)}}, {});
  Attrs attrs = n.attrs;
  attrs["layout"] = std::string("NHWC");
  Value y = b.emit(n.op, args, attrs, {});
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

std::optional<Value> sink(Rebuild& b, const Node& n) {
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
  if (!any) return g;
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
