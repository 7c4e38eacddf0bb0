// Records of ops: sizes are of the shapes as inferred; free dims count as their hints where a number is needed.
#include "describe.h"

#include "ops/op.h"

namespace gaf {
namespace {

double size_of(const Expr& e, const Graph& g) {
  std::vector<int64_t> v;
  for (const Sym& s : g.syms) v.push_back(s.hint > 0 ? s.hint : 128);
  return static_cast<double>(e.eval(v));
}
double elements(const Graph& g, Value v) { return size_of(product(g.type(v).dims), g); }

Json shape_json(const Dims& dims, const Graph& g) {
  Json a = Json::array();
  for (const Expr& e : dims) {
    if (e.is_num()) a.push(Json(e.num()));
    else a.push(Json(e.str([&](int s) { return g.syms[static_cast<size_t>(s)].name; })));
  }
  return a;
}

Json attr_json(const Attr& a, const Graph& g) {
  if (auto* i = std::get_if<int64_t>(&a)) return Json(*i);
  if (auto* d = std::get_if<double>(&a)) return Json(*d);
  if (auto* s = std::get_if<std::string>(&a)) return Json(*s);
  if (auto* v = std::get_if<std::vector<int64_t>>(&a)) return Json::array_of(*v);
  if (auto* v = std::get_if<std::vector<double>>(&a)) return Json::array_of(*v);
  if (auto* v = std::get_if<std::vector<std::string>>(&a)) return Json::array_of(*v);
  if (auto* d = std::get_if<Dims>(&a)) return shape_json(*d, g);
  return Json("tensor");
}

std::string value_name(const Graph& g, Value v) {
  for (const Output& o : g.outputs)
    if (o.value == v) return o.name;
  const Node& n = g.nodes[v.node];
  std::string s = n.name.empty() ? n.op + "_" + std::to_string(v.node) : n.name;
  return v.result ? s + ":" + std::to_string(v.result) : s;
}

// MatMul-like: batch, M, N, K; convolution: N, C, H, W, O, KH, KW.
std::optional<std::vector<double>> problem(const Graph& g, const Node& n) {
  auto dim = [&](Value v, int64_t i) {
    const Dims& d = g.type(v).dims;
    int64_t at = i < 0 ? i + static_cast<int64_t>(d.size()) : i;
    return at < 0 || at >= static_cast<int64_t>(d.size()) ? 1.0 : size_of(d[static_cast<size_t>(at)], g);
  };
  if (n.op == "MatMul" || n.op == "Gemm") {
    bool ta = attr_int(n, "transA", 0), tb = attr_int(n, "transB", 0);
    double m = dim(n.args[0], ta ? -1 : -2), k = dim(n.args[0], ta ? -2 : -1), cols = dim(n.args[1], tb ? -2 : -1);
    double all = size_of(product(n.types[0].dims), g);
    return std::vector<double>{m * cols > 0 ? all / (m * cols) : 0, m, cols, k};
  }
  if (n.op == "Conv") {
    Value x = n.args[0], w = n.args[1];
    return std::vector<double>{dim(x, 0), dim(x, 1), dim(x, 2), dim(x, 3), dim(w, 0), dim(w, 2), dim(w, 3)};
  }
  return std::nullopt;
}

double node_flops(const Graph& g, const Node& n) {
  if (n.op == "call") {
    double f = 0;
    const Graph& fn = g.kernels[static_cast<size_t>(n.callee)];
    for (const Node& m : fn.nodes)
      if (m.op != "input" && m.op != "constant") f += node_flops(fn, m);
    return f;
  }
  double out = n.types.empty() ? 0 : size_of(product(n.types[0].dims), g);
  if (is_kind(n, OpKind::view)) return 0;
  if (auto p = problem(g, n)) {
    if (n.op != "Conv") return 2 * out * (*p)[3];
    double per = size_of(product(g.type(n.args[1]).dims), g) / std::max(1.0, (*p)[4]);  // channels of a group x taps
    return 2 * out * per;
  }
  if (is_kind(n, OpKind::reduction) || is_kind(n, OpKind::composite)) return n.args.empty() ? out : elements(g, n.args[0]);
  return out;
}

bool compute_bound(const Graph& g, const Node& n) {
  if (n.op == "call") {
    const Graph& fn = g.kernels[static_cast<size_t>(n.callee)];
    for (const Node& m : fn.nodes)
      if (compute_bound(fn, m)) return true;
    return false;
  }
  return is_kind(n, OpKind::contraction) || is_kind(n, OpKind::conv);
}

}  // namespace

Json describe_ops(const Graph& g) {
  Json all = Json::array();
  for (uint32_t i = 0; i < g.nodes.size(); i++) {
    const Node& n = g.nodes[i];
    if (n.op == "input" || n.op == "constant") continue;
    const OpRow* row = n.op == "call" ? nullptr : find_op(n.op);
    Json attrs = Json::object(), ins = Json::array(), outs = Json::array(), in_shapes = Json::array(), out_shapes = Json::array();
    for (const auto& [k, v] : n.attrs) attrs.set(k, attr_json(v, g));
    double read = 0, written = 0;
    for (Value v : n.args) {
      ins.push(Json(v == kNoValue ? "" : value_name(g, v)));
      if (v == kNoValue) continue;
      in_shapes.push(shape_json(g.type(v).dims, g));
      read += elements(g, v) * bytes(g.type(v).dtype);
    }
    for (uint32_t r = 0; r < n.types.size(); r++) {
      outs.push(Json(value_name(g, {i, r})));
      out_shapes.push(shape_json(n.types[r].dims, g));
      written += size_of(product(n.types[r].dims), g) * bytes(n.types[r].dtype);
    }
    bool view = is_kind(n, OpKind::view);
    auto colons = n.op.find("::");
    std::optional<std::vector<double>> p = n.op == "call" ? std::nullopt : problem(g, n);
    std::vector<std::string> names = n.origins.empty() ? std::vector<std::string>{n.name} : n.origins;
    all.push(Json::object({{"name", n.name}, {"type", n.op == "call" ? n.name : n.op}, {"domain", n.op == "call" ? "gaf.fused" : colons == std::string::npos ? "" : n.op.substr(0, colons)},
                           {"dtype", n.types.empty() ? "" : std::string(long_name(n.types[0].dtype))}, {"attrs", attrs}, {"inputs", ins}, {"outputs", outs}, {"original_names", Json::array_of(names)},
                           {"shape", n.types.empty() ? Json::array() : shape_json(n.types[0].dims, g)}, {"input_shapes", in_shapes}, {"output_shapes", out_shapes}, {"problem", p ? Json::array_of(*p) : Json()},
                           {"compute_kind", view ? "view" : compute_bound(g, n) ? "compute_bound" : n.op != "call" && (!row || row->kind == OpKind::other) ? "extern" : "memory_bound"},
                           {"flops", node_flops(g, n)}, {"bytes_read", read}, {"bytes_written", written}, {"view", view}}));
  }
  return all;
}

Json describe_values(const Graph& g, bool outputs) {
  Json a = Json::array();
  auto add = [&](const std::string& name, const Type& t) { a.push(Json::object({{"name", name}, {"dtype", std::string(long_name(t.dtype))}, {"shape", shape_json(t.dims, g)}})); };
  if (outputs)
    for (const Output& o : g.outputs) add(o.name, g.type(o.value));
  else
    for (size_t i = 0; i < g.num_inputs(); i++) add(g.nodes[i].name, g.nodes[i].types[0]);
  return a;
}

}  // namespace gaf
