// Recognises attention in a kernel function. See attention_match.h.
#include "lower/attention_match.h"

#include "lower/anchor.h"

namespace gaf {
namespace {

bool softmax_of_rows(const Graph& fn, const Node& n) {
  if (n.op != "Softmax") return false;
  auto rank = static_cast<int64_t>(n.types[0].dims.size());
  bool flat = n.attrs.contains("flatten") ? attr_int(n, "flatten", 0) != 0 : fn.opset < 13;
  int64_t axis = attr_int(n, "axis", flat ? 1 : -1);
  return axis == -1 || axis == rank - 1;
}

// The number by which a Mul or Div node scales its tensor operand, if it does no more than that.
std::optional<std::pair<Value, double>> scaled(const Graph& fn, const Node& n) {
  if (n.op != "Mul" && n.op != "Div") return std::nullopt;
  for (size_t i = 0; i < 2; i++) {
    const Tensor* c = constant(fn, n.args[1 - i]);
    if (!c || c->numel() != 1 || (n.op == "Div" && i == 1)) continue;
    double f = c->get(0);
    return std::pair{n.args[i], n.op == "Mul" ? f : 1 / f};
  }
  return std::nullopt;
}

// A factor on the way to an operand of the product of queries and keys moves behind it.
double take_scale(Graph& g, Value v, const std::vector<std::vector<uint32_t>>& read) {
  double f = 1;
  while (v != kNoValue && read[v.node].size() == 1) {
    Node& n = g.nodes[v.node];
    if (auto s = scaled(g, n)) {
      f *= s->second;
      n.op = "Identity", n.args = {s->first}, n.attrs.clear();
    } else if (!is_kind(n, OpKind::view)) {
      break;
    }
    v = n.args[0];
  }
  return f;
}

}  // namespace

std::optional<Graph> match_attention(const Graph& fn) {
  std::vector<uint32_t> products = nodes_of(fn, OpKind::contraction), soft;
  for (uint32_t i = 0; i < fn.nodes.size(); i++)
    if (softmax_of_rows(fn, fn.nodes[i])) soft.push_back(i);
  if (products.size() != 2 || soft.size() != 1) return std::nullopt;
  const uint32_t scores = products[0], values = products[1];
  if (fn.nodes[scores].op != "MatMul" || fn.nodes[values].op != "MatMul" || scores > soft[0]) return std::nullopt;
  if (fn.nodes[values].args[0] != Value{soft[0], 0}) return std::nullopt;
  auto read = readers(fn);
  if (read[soft[0]].size() != 1) return std::nullopt;
  // The softmax becomes Identity, and a Mul by what q and k were scaled with is put behind the first product.
  Graph g = fn;
  g.nodes[soft[0]].op = "Identity", g.nodes[soft[0]].attrs.clear();
  double f = take_scale(g, g.nodes[scores].args[0], read) * take_scale(g, g.nodes[scores].args[1], read);
  GraphBuilder b;
  b.g = g;
  b.g.nodes.clear();
  std::vector<uint32_t> moved(g.nodes.size());
  for (uint32_t i = 0; i < g.nodes.size(); i++) {
    Node n = g.nodes[i];
    for (Value& v : n.args)
      if (v != kNoValue) v.node = moved[v.node];
    Type type = n.types[0];
    std::string name = n.name;
    Value v = b.add(std::move(n));
    if (i == scores && f != 1) v = b.op("Mul", {v, b.constant(scalar_tensor(type.dtype, f))}, {}, type, name);
    moved[i] = v.node;
  }
  for (Output& o : b.g.outputs) o.value.node = moved[o.value.node];
  return std::move(b.g);
}

}  // namespace gaf
