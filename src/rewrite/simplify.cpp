// Rules that make the graph smaller. Each is a named function of one node whose operands are already rewritten; the first that
// answers wins, and the pass repeats until none does. No rule changes results beyond what docs/design.md states (none reorders
// float arithmetic except the two-pass variance, which is more exact).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "rewrite/rebuild.h"

namespace gaf {
namespace {

using Result = std::optional<Value>;

bool pointwise(const Node& n) { return is_kind(n, OpKind::pointwise); }
const Type& type(const Rebuild& b, Value v) { return b.g().type(v); }
const Node& producer(const Rebuild& b, Value v) { return b.g().nodes[v.node]; }

Dims without_units(const Dims& d) {
  Dims r;
  for (const Expr& e : d)
    if (!e.is(1)) r.push_back(e);
  return r;
}

Value reshape(Rebuild& b, Value v, const Dims& dims, std::span<const Value> because) {
  if (type(b, v).dims == dims) return v;
  return b.emit("Reshape", {v}, {{"shape", dims}}, because);
}

// ---- views ----
Result no_op_view(Rebuild& b, const Node& n) {
  if (n.op != "Reshape" && n.op != "Expand" && n.op != "Identity" && n.op != "Slice" && n.op != "Cast") return {};
  if (n.args.empty() || type(b, n.args[0]) != n.types[0]) return {};
  if (n.op == "Slice")
    for (const Expr& s : attr_exprs(n, "steps"))
      if (!s.is(1)) return {};
  return n.args[0];
}

Result reshape_of_reshape(Rebuild& b, const Node& n) {
  if (n.op != "Reshape" || n.args.size() != 1 || !is_op(b.g(), n.args[0], "Reshape")) return {};
  const Node& inner = producer(b, n.args[0]);
  if (inner.args.size() != 1) return {};
  return reshape(b, inner.args[0], n.types[0].dims, std::array{n.args[0]});
}

std::vector<int64_t> perm_of(const Node& n) { return attr_ints(n, "perm"); }

Result transpose_rules(Rebuild& b, const Node& n) {
  if (n.op != "Transpose") return {};
  std::vector<int64_t> perm = perm_of(n);
  const Dims& in = type(b, n.args[0]).dims;
  // only unit dims move: the elements keep their order
  std::vector<int64_t> order;
  for (int64_t p : perm)
    if (!in[static_cast<size_t>(p)].is(1)) order.push_back(p);
  if (std::is_sorted(order.begin(), order.end())) return reshape(b, n.args[0], n.types[0].dims, n.args);
  if (!is_op(b.g(), n.args[0], "Transpose")) return {};
  const Node& inner = producer(b, n.args[0]);
  std::vector<int64_t> first = perm_of(inner);
  for (int64_t& p : perm) p = first[static_cast<size_t>(p)];
  return b.emit("Transpose", {inner.args[0]}, {{"perm", perm}}, std::array{n.args[0]});
}

Result concat_of_one(Rebuild&, const Node& n) {
  if (n.op != "Concat" || n.args.size() != 1) return {};
  return n.args[0];
}

// An Expand that a broadcasting reader makes superfluous.
Result expand_before_pointwise(Rebuild& b, const Node& n) {
  if (!pointwise(n) || n.args.size() < 2) return {};
  for (size_t i = 0; i < n.args.size(); i++) {
    if (!is_op(b.g(), n.args[i], "Expand")) continue;
    const Node& e = producer(b, n.args[i]);
    if (e.args.size() != 1) continue;
    std::vector<Value> args = n.args;
    args[i] = e.args[0];
    // the result keeps its dims if, for each, some operand still has it
    const Dims& out = n.types[0].dims;
    bool kept = true;
    for (size_t d = 0; d < out.size() && kept; d++) {
      bool found = out[d].is(1);
      for (Value v : args) {
        if (v == kNoValue) continue;
        const Dims& a = type(b, v).dims;
        size_t skip = out.size() - a.size();
        found = found || (d >= skip && a[d - skip] == out[d]);
      }
      kept = found;
    }
    if (kept) return b.emit(n.op, args, n.attrs, std::array{n.args[i]});
  }
  return {};
}

// ---- arithmetic that does nothing ----
Result neutral_operand(Rebuild& b, const Node& n) {
  if (n.args.size() == 1 && (n.op == "Max" || n.op == "Min" || n.op == "Sum" || n.op == "Mean")) return n.args[0];
  if (n.args.size() != 2) return {};
  auto same = [&](size_t i) { return type(b, n.args[i]) == n.types[0]; };
  std::optional<double> l = splat(b.g(), n.args[0]), r = splat(b.g(), n.args[1]);
  double inf = std::numeric_limits<double>::infinity();
  double unit = n.op == "Mul" ? 1 : n.op == "Max" ? -inf : n.op == "Min" ? inf : NAN;
  if (l && *l == unit && same(1)) return n.args[1];
  if (r && *r == unit && same(0)) return n.args[0];
  if (r && same(0) && ((n.op == "Div" && *r == 1) || (n.op == "Sub" && *r == 0 && !std::signbit(*r)) || (n.op == "Pow" && *r == 1))) return n.args[0];
  return {};
}

Result small_powers(Rebuild& b, const Node& n) {
  if (n.op != "Pow" || !is_float(n.types[0].dtype) || type(b, n.args[0]) != n.types[0]) return {};
  std::optional<double> p = splat(b.g(), n.args[1]);
  if (!p || (*p != 2 && *p != 3)) return {};
  Value x = n.args[0];
  Value square = b.emit("Mul", {x, x}, {}, {});
  return *p == 2 ? square : b.emit("Mul", {square, x}, {}, {});
}

// ---- reductions ----
bool reduction(const Node& n) { return n.op == "ReduceSum" || n.op == "ReduceMean" || n.op == "ReduceMax" || n.op == "ReduceMin"; }
Dims kept_dims(const Rebuild& b, const Node& reduce) {
  Dims d = type(b, reduce.args[0]).dims;
  for (int64_t a : attr_ints(reduce, "axes")) d[static_cast<size_t>(a)] = 1;
  return d;
}

// Does the value come from reductions through pointwise nodes of its own shape?
bool from_reduction(const Rebuild& b, Value v, const Dims& target) {
  const Node& n = producer(b, v);
  if (reduction(n) && attr_ints(n, "axes").size() && attr_int(n, "keepdims", 1) == 0) return kept_dims(b, n) == target;
  if (!pointwise(n) || n.types.size() != 1) return false;
  bool any = false;
  for (Value a : n.args) {
    if (a == kNoValue || scalar(b.g(), a)) continue;
    if (type(b, a).dims != n.types[0].dims || !from_reduction(b, a, target)) return false;
    any = true;
  }
  return any;
}
Value with_units(Rebuild& b, Value v, const Dims& target) {
  Node n = producer(b, v);
  if (reduction(n)) {
    n.attrs["keepdims"] = int64_t{1};
    return b.emit(n.op, n.args, n.attrs, std::array{v});
  }
  for (Value& a : n.args)
    if (a != kNoValue && !scalar(b.g(), a)) a = with_units(b, a, target);
  return b.emit(n.op, n.args, n.attrs, std::array{v});
}
// Reshape(f(Reduce(x, keepdims=0))) with the dropped dims back as ones: reduce with keepdims instead.
Result keep_reduced_dims(Rebuild& b, const Node& n) {
  if (n.op != "Reshape" || n.args.size() != 1) return {};
  const Dims& out = n.types[0].dims;
  if (without_units(type(b, n.args[0]).dims) != without_units(out) || !from_reduction(b, n.args[0], out)) return {};
  return with_units(b, n.args[0], out);
}

std::optional<int64_t> reduced_count(const Rebuild& b, const Node& reduce) {
  Expr n = 1;
  for (int64_t a : attr_ints(reduce, "axes")) n *= type(b, reduce.args[0]).dims[static_cast<size_t>(a)];
  return n.is_num() ? std::optional(n.num()) : std::nullopt;
}

Result sum_over_count(Rebuild& b, const Node& n) {
  if (n.op != "Mul" && n.op != "Div") return {};
  for (size_t i = 0; i < (n.op == "Mul" ? 2u : 1u); i++) {
    if (!is_op(b.g(), n.args[i], "ReduceSum")) continue;
    std::optional<double> c = scalar(b.g(), n.args[1 - i]);
    const Node& sum = producer(b, n.args[i]);
    std::optional<int64_t> count = reduced_count(b, sum);
    if (!c || !count || *count == 0 || n.types[0] != sum.types[0] || !is_float(sum.types[0].dtype)) continue;
    double times = n.op == "Mul" ? *c : 1 / *c;
    if (std::fabs(times * static_cast<double>(*count) - 1) > 1e-6) continue;
    return b.emit("ReduceMean", sum.args, sum.attrs, std::array{n.args[i]});
  }
  return {};
}

// E[x^2] - E[x]^2 cancels where the mean is large: E[(x - E[x])^2] instead.
Result two_pass_variance(Rebuild& b, const Node& n) {
  if (n.op != "Sub" || !is_op(b.g(), n.args[0], "ReduceMean") || !is_op(b.g(), n.args[1], "Mul")) return {};
  const Node squares = producer(b, n.args[0]), square_of_mean = producer(b, n.args[1]);
  if (square_of_mean.args[0] != square_of_mean.args[1] || !is_op(b.g(), square_of_mean.args[0], "ReduceMean")) return {};
  const Node mean = producer(b, square_of_mean.args[0]);
  if (!is_op(b.g(), squares.args[0], "Mul") || squares.attrs.size() != mean.attrs.size()) return {};
  const Node& xx = producer(b, squares.args[0]);
  Value x = mean.args[0];
  if (xx.args[0] != x || xx.args[1] != x || attr_ints(squares, "axes") != attr_ints(mean, "axes") ||
      attr_int(squares, "keepdims", 1) != attr_int(mean, "keepdims", 1))
    return {};
  Attrs keep = mean.attrs;
  keep["keepdims"] = int64_t{1};
  Value because[] = {n.args[0], n.args[1]};
  Value m = b.emit("ReduceMean", {x}, keep, std::array{square_of_mean.args[0]});
  Value d = b.emit("Sub", {x, m}, {}, because);
  Value dd = b.emit("Mul", {d, d}, {}, because);
  b.note("two-pass-variance", because, "E[x^2] - E[x]^2 computed as E[(x - E[x])^2]");
  return b.emit("ReduceMean", {dd}, squares.attrs, because);
}

struct NamedRule {
  std::string_view name;
  bool view;  // on reshapes and transposes alone
  Result (*apply)(Rebuild&, const Node&);
};
constexpr NamedRule kRules[] = {
    {"no-op-view", true, no_op_view},
    {"reshape-reshape", true, reshape_of_reshape},
    {"transpose-transpose", true, transpose_rules},
    {"concat-one", false, concat_of_one},
    {"keep-reduced-dims", false, keep_reduced_dims},
    {"expand-pointwise", false, expand_before_pointwise},
    {"neutral-operand", false, neutral_operand},
    {"small-powers", false, small_powers},
    {"sum-over-count", false, sum_over_count},
    {"two-pass-variance", false, two_pass_variance},
};

}  // namespace

Graph simplify(const Graph& from, RewriteLog& log, Simplify what) {
  Graph g = from;
  for (int round = 0; round < 8; round++) {
    bool changed = false;
    g = rewrite(g, log, [&](Rebuild& b, const Node& n) -> Result {
      for (const NamedRule& r : kRules)
        if (what == Simplify::views && !r.view) continue;
        else if (Result v = r.apply(b, n)) {
          changed = true;
          return v;
        }
      return {};
    });
    g = what == Simplify::all ? merge_equal(g, log) : drop_dead(g, log);
    if (!changed) break;
  }
  return g;
}

}  // namespace gaf
