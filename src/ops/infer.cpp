// Types, shapes and known integer values of a whole graph, in one pass from the inputs on. Declared types of inner
// values are not trusted. Knows the order of nodes and how known values fold; what an op does is its row's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/expr_tidy.h"
#include "ops/eval_util.h"
#include "ops/facts.h"
#include "ops/infer_util.h"
#include "ops/regions.h"

namespace gaf {

using Known = std::optional<std::vector<Expr>>;

const Type& InferContext::arg(size_t i) const {
  if (!has_arg(i)) fail("GAF3101", fmt::format("operand {} is missing", i));
  return args[i];
}

const Known& InferContext::value(size_t i) const {
  static const Known none;
  return has_arg(i) && i < known.size() ? known[i] : none;
}

void InferContext::fail(std::string code, std::string message, std::string remedy) const {
  throw UserError(std::move(code), std::move(message), std::move(remedy)).at(node.name, node.op);
}

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 47;  // beyond any machine's memory: such a shape is a fault of the model

bool is_static(const Dims& dims) {
  for (const Expr& d : dims)
    if (!d.is_num()) return false;
  return true;
}

Ints numbers(const Dims& dims) {
  Ints out;
  for (const Expr& d : dims) out.push_back(d.num());
  return out;
}

// Values of a constant that may be sizes: integers, and floats that hold integers.
Known known_of(const Tensor& t) {
  if (t.numel() > kMaxKnown) return std::nullopt;
  std::vector<Expr> out;
  for (int64_t i = 0; i < t.numel(); i++) {
    if (!is_float(t.dtype)) {
      out.emplace_back(t.get_int(i));
      continue;
    }
    const double v = t.get(i);
    if (!(v == std::floor(v) && std::fabs(v) < 1e9)) return std::nullopt;
    out.emplace_back(static_cast<int64_t>(v));
  }
  return out;
}

bool all_numbers(const Known& k) {
  if (!k) return false;
  for (const Expr& e : *k)
    if (!e.is_num()) return false;
  return true;
}

// Which operands an op only moves around: their known values may be expressions.
bool moves_operand(const OpRow& r, size_t i) {
  if (r.name == "Concat") return true;
  if (r.name.starts_with("Scatter")) return i == 0 || i == 2;
  return i == 0;
}

bool worth_folding(const Type& t) {
  if (is_float(t.dtype) || !is_static(t.dims)) return false;
  return numel(numbers(t.dims)) <= kMaxKnown;
}

// Runs the op's own `eval` on small integer operands. Where the op only moves elements, the operand's elements are
// replaced by numbers that stand for the expressions.
void fold_by_eval(InferContext& c, const OpRow& r) {
  if (!r.eval || !c.node.regions.empty() || c.args.empty()) return;
  for (const Type& t : c.types)
    if (!worth_folding(t)) return;
  const bool moves = r.kind == OpKind::view || r.kind == OpKind::move;
  std::vector<Expr> table;
  std::vector<Tensor> tensors(c.args.size());
  std::vector<const Tensor*> args(c.args.size(), nullptr);
  for (size_t i = 0; i < c.args.size(); i++) {
    if (!c.has_arg(i)) continue;
    if (!c.value(i) || !is_static(c.args[i].dims) || is_float(c.args[i].dtype)) return;
    if (c.value(i)->size() != static_cast<size_t>(numel(numbers(c.args[i].dims)))) return;
    const bool by_number = moves && moves_operand(r, i);
    if (!by_number && !all_numbers(c.value(i))) return;
    std::vector<int64_t> elems;
    for (const Expr& e : *c.value(i)) {
      if (by_number) {
        elems.push_back(static_cast<int64_t>(table.size()));
        table.push_back(e);
      } else {
        elems.push_back(e.num());
      }
    }
    tensors[i] = tensor_of(by_number ? DType::i64 : c.args[i].dtype, numbers(c.args[i].dims), elems);
    args[i] = &tensors[i];
  }
  EvalContext e{c.node, args, c.types, {}, c.opset};
  r.eval(e);
  c.results.clear();
  for (const Tensor& t : e.results) {
    std::vector<Expr> out;
    for (int64_t i = 0; i < t.numel(); i++) {
      const int64_t v = t.get_int(i);
      out.push_back(moves ? table[static_cast<size_t>(v)] : Expr(v));
    }
    c.results.emplace_back(std::move(out));
  }
}

bool foldable(const OpRow& r) {
  switch (r.kind) {
    case OpKind::pointwise:
    case OpKind::reduction:
    case OpKind::view: return true;
    case OpKind::move: return r.name != "Pad";  // Pad makes elements of its own
    default: return r.name == "ReduceProd" || r.name == "NonZero" || r.name == "Range";
  }
}

// Sizes and known values in the smallest form that the symbols' ranges allow.
void tidy_results(InferContext& c) {
  std::vector<Range> ranges;
  for (const Sym& s : c.syms) ranges.push_back({s.lo, s.hi});
  for (Type& t : c.types) tidy(t.dims, ranges);
  for (Known& k : c.results)
    if (k) tidy(*k, ranges);
}

void check_types(const InferContext& c) {
  for (const Type& t : c.types) {
    int64_t n = 1;
    for (const Expr& d : t.dims) {
      if (!d.is_num()) continue;
      if (d.num() < 0) c.fail("GAF3101", fmt::format("the result would have a dimension of {}", d.num()));
      if (d.num() != 0 && n > kMaxElements / d.num())
        c.fail("GAF3106", "the result would have more than 2^47 elements");
      n *= std::max<int64_t>(d.num(), 1);
    }
  }
}

void check_arity(const Node& n, const OpRow& r) {
  auto count = static_cast<int>(n.args.size());
  if (count < r.min_args || (r.max_args >= 0 && count > r.max_args && n.regions.empty()))
    throw UserError("GAF3101", fmt::format("{} operands given, {} takes {}{}", count, r.name, r.min_args,
                                           r.max_args < 0            ? " or more"
                                           : r.max_args > r.min_args ? fmt::format(" to {}", r.max_args)
                                                                     : ""))
        .at(n.name, n.op);
}

}  // namespace

void infer_nodes(Graph& g, std::vector<Sym>& syms, std::vector<std::vector<Known>>& known) {
  known.resize(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); i++) {
    Node& n = g.nodes[i];
    if (n.op == "input" || n.op == "call") {
      if (known[i].empty()) known[i].resize(n.types.size());
      continue;
    }
    if (n.op == "constant") {
      const Tensor* t = attr_tensor(n, "value");
      GAF_CHECK(t) << "constant '" << n.name << "' has no value";
      n.types = {{t->dtype, Dims(t->dims.begin(), t->dims.end())}};
      known[i] = {known_of(*t)};
      continue;
    }
    const OpRow& r = op_row(n);
    check_arity(n, r);
    const OperandFacts facts(g, n, known);
    if (!n.regions.empty()) infer_regions(n, facts.types, facts.known, syms);
    InferContext c = facts.context(n, syms, g.opset);
    r.infer(c);
    tidy_results(c);
    check_types(c);
    if (c.results.empty() && foldable(r)) fold_by_eval(c, r);
    const size_t wanted = std::max<size_t>(n.types.size(), 1);
    if (c.types.size() < wanted)
      throw UserError("GAF3101", fmt::format("{} results are named, {} gives {}", wanted, r.name, c.types.size()))
          .at(n.name, n.op);
    c.types.resize(wanted);
    c.results.resize(wanted);
    n.types = std::move(c.types);
    known[i] = std::move(c.results);
  }
}

// A broadcast may narrow the range of a symbol (infer_util.h); then sizes simplify, and the pass runs once more.
Inferred infer(Graph g) {
  Inferred out;
  std::vector<Sym> syms = g.syms;
  const Graph original = g;
  infer_nodes(g, syms, out.known);
  const size_t own = original.syms.size();
  if (!std::equal(original.syms.begin(), original.syms.end(), syms.begin(),
                  syms.begin() + static_cast<ptrdiff_t>(own))) {
    g = original;
    out.known.clear();
    syms.resize(own);
    infer_nodes(g, syms, out.known);
  }
  g.syms = std::move(syms);
  out.graph = std::move(g);
  return out;
}

}  // namespace gaf
