// Decomposed spellings of composite ops, found as patterns and replaced by the op: the planner, the report and the kernel
// names then see one thing, whichever way the exporter wrote it. Runs after simplify, so means and variances are canonical.
#include <algorithm>
#include <cmath>

#include "rewrite/pattern.h"

namespace gaf {
namespace {

using Match = Pattern::Match;

struct Composite {
  std::string name;
  Pattern pattern;
  std::function<std::optional<Value>(Rebuild&, const Node& root, const Match&)> replace;
};

// Every combination of the alternatives put in place of their marks: {"A"} marks, list of texts.
std::vector<std::string> spell(const std::string& text, const std::vector<std::pair<std::string, std::vector<std::string>>>& marks) {
  std::vector<std::string> all{text};
  for (const auto& [mark, texts] : marks) {
    std::vector<std::string> next;
    for (const std::string& t : all) {
      if (t.find(mark) == std::string::npos) {
        next.push_back(t);
        continue;
      }
      for (const std::string& with : texts) {
        std::string s = t;
        for (size_t p; (p = s.find(mark)) != std::string::npos;) s.replace(p, mark.size(), with);
        next.push_back(s);
      }
    }
    all = std::move(next);
  }
  return all;
}

const Node* inner(const Rebuild& b, const Match& m, std::string_view op) {
  for (Value v : m.inner)
    if (b.g().nodes[v.node].op == op) return &b.g().nodes[v.node];
  return nullptr;
}
// The one axis that every reduction of the match goes over, if it is the same for all and dims are kept.
std::optional<int64_t> common_axis(const Rebuild& b, const Match& m) {
  std::optional<int64_t> axis;
  for (Value v : m.inner) {
    const Node& n = b.g().nodes[v.node];
    if (!n.op.starts_with("Reduce")) continue;
    std::vector<int64_t> axes = attr_ints(n, "axes");
    if (axes.size() != 1 || attr_int(n, "keepdims", 1) != 1 || (axis && *axis != axes[0])) return std::nullopt;
    axis = axes[0];
  }
  return axis;
}
bool last_axis(const Rebuild& b, Value x, int64_t axis) { return axis + 1 == static_cast<int64_t>(b.g().type(x).dims.size()); }

// A scale or shift of the last axis, as a constant of one dim.
std::optional<Value> last_axis_vector(Rebuild& b, Value x, Value w, std::span<const Value> because) {
  const Dims &xd = b.g().type(x).dims, wd = b.g().type(w).dims;
  if (wd.empty() || xd.empty() || wd.back() != xd.back()) return std::nullopt;
  for (size_t i = 0; i + 1 < wd.size(); i++)
    if (!wd[i].is(1)) return std::nullopt;
  if (wd.size() == 1) return w;
  return b.emit("Reshape", {w}, {{"shape", Dims{wd.back()}}}, because);
}

std::optional<Value> layer_norm(Rebuild& b, const Node&, const Match& m, bool rms, bool scale, bool shift) {
  Value x = m.at.at("x");
  std::optional<int64_t> axis = common_axis(b, m);
  std::optional<double> eps = scalar(b.g(), m.at.at("e"));
  if (!axis || !last_axis(b, x, *axis) || !eps || *eps < 0 || *eps > 0.1) return std::nullopt;
  std::vector<Value> args{x};
  const Type& t = b.g().type(x);
  if (scale) {
    std::optional<Value> w = last_axis_vector(b, x, m.at.at("w"), {});
    if (!w) return std::nullopt;
    args.push_back(*w);
  } else {
    if (!t.dims.back().is_num()) return std::nullopt;
    Tensor ones = Tensor::make(t.dtype, {t.dims.back().num()});
    for (int64_t i = 0; i < ones.numel(); i++) ones.set(i, 1);
    args.push_back(b.constant(std::move(ones)));
  }
  if (shift) {
    std::optional<Value> c = last_axis_vector(b, x, m.at.at("b"), {});
    if (!c) return std::nullopt;
    args.push_back(*c);
  }
  return b.emit(rms ? "RMSNormalization" : "LayerNormalization", args, {{"axis", int64_t{-1}}, {"epsilon", *eps}}, m.inner);
}

// The constant indices 0, 1, 2, ... along the last axis, everything else of extent 1.
bool counts_up(const Tensor& t) {
  if (t.dims.empty() || t.numel() != t.dims.back() || is_float(t.dtype)) return false;
  for (int64_t i = 0; i < t.numel(); i++)
    if (t.get_int(i) != i) return false;
  return true;
}

// MatMul(Cast(Equal(ids, 0..n-1)), W): row ids of W, and a row of zeros where ids is outside.
std::optional<Value> one_hot_matmul(Rebuild& b, const Node&, const Match& m) {
  Value ids = m.at.at("i"), w = m.at.at("w");
  const Tensor* classes = constant(b.g(), m.at.at("r"));
  const Tensor* table = constant(b.g(), w);
  const Type id_type = b.g().type(ids);
  if (!counts_up(*classes) || table->dims.size() != 2 || table->dims[0] != classes->numel() || !is_int(id_type.dtype)) return std::nullopt;
  if (id_type.dims.empty() || !id_type.dims.back().is(1) || id_type.dims.size() < classes->dims.size()) return std::nullopt;
  int64_t n = table->dims[0], row = table->dims[1] * bytes(table->dtype);
  Tensor longer = Tensor::make(table->dtype, {n + 1, table->dims[1]});
  std::memcpy(longer.mut<char>(), table->as<char>(), static_cast<size_t>(n * row));
  auto number = [&](double v) { return b.constant(scalar_tensor(id_type.dtype, v)); };
  Dims flat(id_type.dims.begin(), id_type.dims.end() - 1);
  Value index = b.emit("Reshape", {ids}, {{"shape", flat}}, m.inner);
  Value low = b.emit("Less", {index, number(0)}, {}, m.inner);
  Value high = b.emit("Less", {number(static_cast<double>(n - 1)), index}, {}, m.inner);
  Value outside = b.emit("Or", {low, high}, {}, m.inner);
  Value safe = b.emit("Where", {outside, number(static_cast<double>(n)), index}, {}, m.inner);
  return b.emit("Gather", {b.constant(std::move(longer)), safe}, {{"axis", int64_t{0}}}, m.inner);
}

std::vector<Composite> make_table() {
  std::vector<Composite> t;
  auto add = [&](const std::string& name, const std::vector<std::string>& texts, auto replace) {
    for (const std::string& s : texts) t.push_back({name, Pattern(s), replace});
  };
  auto as_op = [](std::string op, Attrs attrs) {
    return [op, attrs](Rebuild& b, const Node&, const Match& m) -> std::optional<Value> {
      return b.emit(op, {m.at.at("x")}, attrs, m.inner);
    };
  };
  const std::vector<std::string> outer = {"Mul(Mul(x, 0.5), Add(F, 1))", "Mul(x, Mul(Add(F, 1), 0.5))", "Mul(Mul(x, Add(F, 1)), 0.5)"};
  for (const std::string& o : outer) {
    add("gelu", spell(o, {{"F", {"Erf(Div(x, 1.4142135))", "Erf(Mul(x, 0.70710678))"}}}), as_op("Gelu", {{"approximate", std::string("none")}}));
    add("gelu-tanh",
        spell(o, {{"F", {"Tanh(Mul(Add(x, C), 0.79788456))"}},
                  {"C", {"Mul(Mul(Mul(x, x), x), 0.044715)", "Mul(Mul(Mul(x, 0.044715), x), x)", "Mul(x, Mul(x, Mul(x, 0.044715)))", "Mul(Mul(x, Mul(x, x)), 0.044715)"}}}),
        as_op("Gelu", {{"approximate", std::string("tanh")}}));
  }
  add("softmax", {"Div(Exp(Sub(x, ReduceMax(x))), ReduceSum(Exp(Sub(x, ReduceMax(x)))))"},
      [](Rebuild& b, const Node&, const Match& m) -> std::optional<Value> {
        std::optional<int64_t> axis = common_axis(b, m);
        if (!axis || (b.g().opset < 13 && !last_axis(b, m.at.at("x"), *axis))) return std::nullopt;
        return b.emit("Softmax", {m.at.at("x")}, {{"axis", *axis}}, m.inner);
      });
  auto relu6 = [](const Rebuild& b, const Match& m) {
    const Node* c = inner(b, m, "Clip");
    return c && attr_float(*c, "min", -1) == 0 && attr_float(*c, "max", -1) == 6;
  };
  add("hard-swish", {"Div(Mul(x, Clip(Add(x, 3))), 6)", "Mul(x, Div(Clip(Add(x, 3)), 6))", "Mul(Mul(x, Clip(Add(x, 3))), 0.16666667)", "Mul(x, Mul(Clip(Add(x, 3)), 0.16666667))"},
      [relu6](Rebuild& b, const Node&, const Match& m) -> std::optional<Value> {
        if (!relu6(b, m)) return std::nullopt;
        return b.emit("HardSwish", {m.at.at("x")}, {}, m.inner);
      });
  add("hard-swish", {"Mul(x, HardSigmoid(x))"}, [](Rebuild& b, const Node&, const Match& m) -> std::optional<Value> {
    const Node* h = inner(b, m, "HardSigmoid");
    if (!h || std::fabs(attr_float(*h, "alpha", 0.2) - 1.0 / 6) > 1e-6 || attr_float(*h, "beta", 0.5) != 0.5) return std::nullopt;
    return b.emit("HardSwish", {m.at.at("x")}, {}, m.inner);
  });
  add("silu", {"Mul(x, Sigmoid(x))"}, as_op("Swish", {{"alpha", 1.0}}));
  const std::string d = "Sub(x, ReduceMean(x))", var = "Add(ReduceMean(Mul(" + d + ", " + d + ")), $e)", power = "Add(ReduceMean(Mul(x, x)), $e)";
  for (bool rms : {false, true}) {
    const std::string &top = rms ? std::string("x") : d, &v = rms ? power : var;
    std::vector<std::string> core = {"Div(" + top + ", Sqrt(" + v + "))", "Mul(" + top + ", Reciprocal(Sqrt(" + v + ")))", "Mul(" + top + ", Div(1, Sqrt(" + v + ")))"};
    for (int extra = 2; extra >= 0; extra--) {
      if (rms && extra == 2) continue;
      std::vector<std::string> forms;
      for (const std::string& c : core) forms.push_back(extra == 2 ? "Add(Mul(" + c + ", $w), $b)" : extra == 1 ? "Mul(" + c + ", $w)" : c);
      if (extra >= 1 && core.size() > 1)  // scale multiplied into the reciprocal first
        forms.push_back((extra == 2 ? "Add(" : "") + std::string("Mul(") + top + ", Mul(Reciprocal(Sqrt(" + v + ")), $w))" + (extra == 2 ? ", $b)" : ""));
      add(rms ? "rms-norm" : "layer-norm", forms, [rms, extra](Rebuild& b, const Node& n, const Match& m) { return layer_norm(b, n, m, rms, extra >= 1, extra >= 2); });
    }
  }
  add("one-hot-matmul", {"MatMul(Cast(Equal(i, $r)), $w)"}, one_hot_matmul);
  return t;
}

}  // namespace

Graph recognise_composites(const Graph& from, RewriteLog& log) {
  static const std::vector<Composite> table = make_table();
  Graph g = rewrite(from, log, [&](Rebuild& b, const Node& n) -> std::optional<Value> {
    for (const Composite& c : table) {
      std::optional<Match> m = c.pattern.match(b, n);
      if (!m) continue;
      if (std::optional<Value> r = c.replace(b, n, *m)) {
        b.note(c.name, std::array{*r}, "recognised as " + b.g().nodes[r->node].op);
        return r;
      }
    }
    return std::nullopt;
  });
  return drop_dead(g, log);
}

}  // namespace gaf
