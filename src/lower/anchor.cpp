// The pointwise space around one heavy node. See anchor.h.
#include "lower/anchor.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace gaf {

std::vector<uint32_t> nodes_of(const Graph& fn, OpKind kind) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < fn.nodes.size(); i++)
    if (is_kind(fn.nodes[i], kind)) out.push_back(i);
  return out;
}

Graph split_bias(const Graph& fn, uint32_t node) {
  const Node& n = fn.nodes[node];
  double alpha = n.op == "Gemm" ? attr_float(n, "alpha", 1) : 1, beta = n.op == "Gemm" ? attr_float(n, "beta", 1) : 1;
  bool bias = n.args.size() > 2 && n.args[2] != kNoValue && beta != 0;
  GraphBuilder b;
  b.g = fn;
  b.g.nodes.clear();
  std::vector<uint32_t> moved(fn.nodes.size());
  uint32_t result = 0;
  auto arg = [&](Value v) { return v == kNoValue ? v : Value{moved[v.node], v.result}; };
  for (uint32_t i = 0; i < fn.nodes.size(); i++) {
    Node copy = fn.nodes[i];
    for (Value& v : copy.args) v = v.node == node ? Value{result, 0} : arg(v);
    if (i == node && copy.args.size() > 2) copy.args.resize(2);
    if (i == node) copy.attrs.erase("alpha"), copy.attrs.erase("beta");
    Value v = b.add(std::move(copy));
    moved[i] = v.node;
    if (i != node) continue;
    const Type type = n.types[0];
    auto scaled = [&](Value x, double f, const Type& t) {
      return f == 1 ? x : b.op("Mul", {x, b.constant(scalar_tensor(t.dtype, f))}, {}, t, n.name);
    };
    v = scaled(v, alpha, type);
    if (bias) v = b.op("Add", {v, scaled(arg(n.args[2]), beta, fn.type(n.args[2]))}, {}, type, n.name);
    result = v.node;
  }
  for (Output& o : b.g.outputs) o.value = o.value.node == node ? Value{result, 0} : arg(o.value);
  return std::move(b.g);
}

namespace {

// Nodes of the pointwise space: what the outputs are computed from, up to the anchor and below the views at the end.
std::vector<uint32_t> space_of(const Lowering& l, uint32_t node) {
  const Graph& fn = l.fn();
  std::set<uint32_t> seen;
  std::vector<uint32_t> work;
  for (size_t o = 0; o < fn.outputs.size(); o++) work.push_back(l.output_sink(o).value.node);
  while (!work.empty()) {
    uint32_t i = work.back();
    work.pop_back();
    if (!seen.insert(i).second || i == node) continue;
    for (Value v : fn.nodes[i].args)
      if (v != kNoValue) work.push_back(v.node);
  }
  return {seen.begin(), seen.end()};
}

}  // namespace

uint32_t find_anchor(const Lowering& l, const std::string& op) {
  for (uint32_t i = 0; i < l.fn().nodes.size(); i++)
    if (l.fn().nodes[i].op == op) return i;
  GAF_CHECK(false) << "no " << op << " in the function";
  return 0;
}

Verdict check_operands(const Lowering& l, uint32_t anchor) {
  const Graph& fn = l.fn();
  for (Value v : fn.nodes[anchor].args)
    if (v != kNoValue && !l.access(v))
      return Verdict::no("not-fusable-op",
                         fmt::format("{} '{}' stands before {}", fn.node(v).op, fn.node(v).name, fn.nodes[anchor].op));
  return Verdict::yes();
}

std::vector<char> behind(const Graph& fn, uint32_t node) {
  std::vector<char> is(fn.nodes.size());
  is[node] = 1;
  for (uint32_t i = node + 1; i < fn.nodes.size(); i++)
    for (Value v : fn.nodes[i].args)
      if (v != kNoValue && is[v.node]) is[i] = 1;
  return is;
}

std::optional<Verdict> refuse_space(Lowering& l, uint32_t anchor, const Space& space) {
  const Graph& fn = l.fn();
  const std::vector<char> after = behind(fn, anchor);
  for (uint32_t i : space_of(l, anchor)) {
    if (after[i] && i != anchor && !is_kind(fn.nodes[i], OpKind::pointwise))
      return Verdict::no("not-fusable-op", fmt::format("{} '{}' is not elementwise on the result of {}", fn.nodes[i].op,
                                                       fn.nodes[i].name, fn.nodes[anchor].op));
  }
  std::vector<Value> wanted;
  for (size_t o = 0; o < fn.outputs.size(); o++) {
    Value v = l.output_sink(o).value;
    if (!after[v.node])
      return Verdict::no("iteration-mismatch",
                         fmt::format("output '{}' does not depend on {}", fn.outputs[o].name, fn.nodes[anchor].op));
    if (fn.type(v).dims != fn.nodes[anchor].types[0].dims)
      return Verdict::no("iteration-mismatch",
                         fmt::format("output '{}' has another shape than {}", fn.outputs[o].name, fn.nodes[anchor].op));
    if (!l.through(l.output_sink(o).access, nullptr, &space))
      return Verdict::no("layout", fmt::format("output '{}' is no strided view over the dims of {}", fn.outputs[o].name,
                                               fn.nodes[anchor].op));
    wanted.push_back(v);
  }
  return refuse_values(l, anchor, space, wanted);
}

std::optional<Verdict> refuse_values(Lowering& l, uint32_t anchor, const Space& space, std::span<const Value> values) {
  std::vector<kir::Slice> at(space.merged().size(), one(0));
  at[at.size() - 2] = at.back() = span_of(0, 1);
  l.b.k.tiles.push_back({"probe"});  // stands for the anchor's values while nothing is written yet
  TileBody body(l, at, 1, 1, &space);
  body.bind({anchor, 0}, {true, static_cast<int>(l.b.k.tiles.size()) - 1, {}, false});
  std::optional<Verdict> no;
  for (Value v : values)
    if (!no) no = body.refuse(v);
  l.b.k.tiles.pop_back();
  return no;
}

void par_nest(Lowering& l, const Dims& extents, const std::function<void(std::vector<Expr>)>& body) {
  std::vector<std::pair<Expr, Expr>> ranges;
  for (const Expr& n : extents)
    if (!n.is(1)) ranges.push_back({0, n});
  if (ranges.empty()) ranges.push_back({0, 1});
  l.b.par(ranges, [&](std::vector<Expr> at) {
    std::vector<Expr> all;
    size_t next = 0;
    for (const Expr& n : extents) all.push_back(n.is(1) ? Expr(0) : at[next++]);
    body(std::move(all));
  });
}

void loop(Lowering& l, const std::string& stem, const Expr& n, const std::function<void(Expr)>& body) {
  if (n.is(1)) return body(0);
  l.b.loop(stem, 0, n, 1, kir::LoopKind::seq, body);
}

kir::Ref full_ref(Lowering& l, const Access& a, std::vector<kir::Slice> at) {
  const kir::Buf& buf = l.b.k.bufs[static_cast<size_t>(a.buf)];
  const std::vector<Expr> own = dense_strides(a.dims), theirs = dense_strides(buf.shape);
  std::vector<Expr> strides = a.strides;
  for (size_t d = 0; d < a.dims.size(); d++)
    if (a.dims[d].is(1)) strides[d] = own[d];
  // The buffer itself, where the access has its dims and besides only dims of 1 at index 0; matched from the last one.
  std::vector<kir::Slice> direct;
  size_t left = buf.shape.size();
  bool fits = a.offset.is(0);
  for (size_t d = a.dims.size(); d-- > 0 && fits;) {
    bool same = left > 0 && a.dims[d] == buf.shape[left - 1] && (strides[d] == theirs[left - 1] || a.dims[d].is(1));
    if (same)
      direct.insert(direct.begin(), at[d]), left--;
    else
      fits = a.dims[d].is(1) && !at[d].n && at[d].at.is(0);
  }
  if (fits && left == 0) return kir::Builder::at(a.buf, std::move(direct));
  return kir::Builder::at(l.view(a.buf, a.dims, strides, a.offset), std::move(at));
}

bool unit_inner(const Access& a) { return a.dims.empty() || a.dims.back().is(1) || a.strides.back().is(1); }

namespace {

bool long_expression(const Lowering& l, uint32_t anchor) {
  for (uint32_t i : space_of(l, anchor)) {
    const Node& n = l.fn().nodes[i];
    if (i != anchor && n.op != "input" && n.op != "constant" && !op_row(n).cheap) return true;
  }
  return false;
}

// Does some value or operand have to outlive the statement that uses it first? Then whole tiles of temporaries would
// stand beside the accumulators.
bool needs_temporaries(const Lowering& l, uint32_t anchor) {
  if (l.fn().outputs.size() > 1) return true;
  for (uint32_t i : space_of(l, anchor)) {
    const Node& n = l.fn().nodes[i];
    if (i != anchor && n.op != "input" && n.op != "constant" && l.readers({i, 0}) > 1) return true;
    if (i == anchor || !is_kind(n, OpKind::pointwise)) continue;
    std::vector<int> used(n.args.size(), 0);
    for (const kir::ScalarStep& s : scalar_program(l.fn(), n).steps)
      for (const kir::ScalarArg& a : s.args)
        if (a.kind == kir::ScalarArg::operand && ++used[static_cast<size_t>(a.index)] > 1) return true;
  }
  return l.readers({anchor, 0}) > 1;
}

// Rows of a tile, or of a part of one.
kir::Ref some_rows(const kir::Ref& of, const Expr& first, int64_t rows, int64_t cols) {
  if (of.at.empty()) return kir::Builder::part(of, first, rows, 0, cols);
  return kir::Builder::part(of, of.at[0].at + first, rows, of.at[1].at, cols);
}

void store_all(Lowering& l, uint32_t anchor, const Space& space, const kir::Ref& acc, std::vector<kir::Slice> at,
               int64_t rows, int64_t cols) {
  TileBody body(l, std::move(at), rows, cols, &space);
  body.bind({anchor, 0}, acc, kir::mem_of(l.b.k, acc) == Mem::reg);
  for (size_t o = 0; o < l.fn().outputs.size(); o++) body.store_output(o);
}

}  // namespace

std::optional<kir::Ref> output_ahead(Lowering& l, const Space& space, const std::vector<kir::Slice>& at,
                                     int64_t steps) {
  constexpr int64_t kLongSum = 256;  // 3136x64x64 loses 5 %, K = 768 and 1280 win 3 %
  if (!l.target().prefetch_panel || l.fn().outputs.size() != 1 || steps < kLongSum) return std::nullopt;
  std::optional<Access> a = l.through(l.output_sink(0).access, nullptr, &space);
  if (!a || !unit_inner(*a)) return std::nullopt;
  return l.ref(*a, at);
}

void emit_space(Lowering& l, uint32_t anchor, const Space& space, const kir::Ref& acc,
                const std::vector<kir::Slice>& at, int64_t rows, int64_t cols) {
  const kir::Slice& row = at[at.size() - 2];
  // A ragged extent (an expression) leaves the tile full and cuts the stores; a smaller number narrows the tile.
  int64_t r = row.n->is_num() ? row.n->num() : rows, c = at.back().n->is_num() ? at.back().n->num() : cols;
  kir::Ref values = r == rows && c == cols ? acc : some_rows(acc, 0, r, c);
  rows = r, cols = c;
  if (!long_expression(l, anchor) || rows == 1) {
    // A few rows at a time: temporaries then take a quarter of the registers at most.
    int64_t vectors = std::max<int64_t>(1, (cols + l.target().lanes - 1) / l.target().lanes);
    int64_t step = std::max<int64_t>(1, l.target().max_regs / 4 / vectors);
    if (rows <= step || !needs_temporaries(l, anchor)) return store_all(l, anchor, space, values, at, rows, cols);
    for (int64_t i = 0; i < rows; i += step) {
      int64_t n = std::min(step, rows - i);
      std::vector<kir::Slice> here = at;
      Expr valid = row.n->is_num() ? Expr(n) : max(0, min(Expr(n), *row.n - Expr(i)));
      here[here.size() - 2] = {row.at + Expr(i * row.step), valid, row.step};
      store_all(l, anchor, space, some_rows(acc, i, n, cols), here, n, cols);
    }
    return;
  }
  kir::Ref kept = values;
  if (kir::mem_of(l.b.k, acc) == Mem::reg) {
    kept = l.b.tile("y", kir::type_of(l.b.k, acc), rows, cols, Mem::scratch);
    l.b.copy(kept, values);
  }
  // Several rows a step keep as many independent chains in flight as a row kernel has (`row_lanes`).
  int64_t step = std::max<int64_t>(1, l.target().row_lanes / cols);
  step = row.n->is_num() ? std::gcd(step, row.n->num()) : 1;
  l.b.loop("r", 0, *row.n, step, kir::LoopKind::seq, [&](Expr i) {
    std::vector<kir::Slice> here = at;
    here[here.size() - 2] = {row.at + i * row.step, Expr(step), row.step};
    store_all(l, anchor, space, some_rows(kept, i, step, cols), here, step, cols);
  });
}

}  // namespace gaf
