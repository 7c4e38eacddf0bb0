// Reductions over the pixels of a convolution, folded tile by tile. See pooled.h.
#include "lower/pooled.h"

#include <fmt/format.h>

#include <numeric>

#include "lower/row_plan.h"

namespace gaf {
namespace {

std::optional<kir::S> fold_of(const std::string& op) {
  if (op == "ReduceSum") return kir::S::add;
  if (op == "ReduceMax") return kir::S::maxp;
  if (op == "ReduceMin") return kir::S::minp;
  return std::nullopt;
}

}  // namespace

std::optional<std::variant<Pooling, Verdict>> pooling_of(Lowering& l, uint32_t anchor, const Space& space) {
  const Graph& fn = l.fn();
  std::vector<uint32_t> found = nodes_of(fn, OpKind::reduction);
  if (found.empty()) return std::nullopt;
  const Node& n = fn.nodes[found[0]];
  auto no = [&](std::string_view why) {
    return Verdict::no("iteration-mismatch", fmt::format("{} '{}' {}", n.op, n.name, why));
  };
  const Dims& dims = fn.nodes[anchor].types[0].dims;
  std::optional<kir::S> op = fold_of(n.op);
  if (found.size() > 1 || !op || run_time_axes(fn, n)) return no("is no reduction that a Conv folds in");
  std::vector<int64_t> pixels(dims.size() - 2);
  std::iota(pixels.begin(), pixels.end(), 1);
  if (fn.type(n.args[0]).dims != dims || axes_of(fn, n) != pixels)
    return no(fmt::format("does not reduce all pixels of {}", fn.nodes[anchor].op));

  const std::vector<char> after = behind(fn, anchor), pooled = behind(fn, found[0]);
  for (uint32_t i = 0; i < fn.nodes.size(); i++) {
    const Node& m = fn.nodes[i];
    if (!after[i] || i == anchor || i == found[0] || is_kind(m, OpKind::view)) continue;
    if (!is_kind(m, OpKind::pointwise) || (pooled[i] && m.types[0].dims != n.types[0].dims))
      return Verdict::no("not-fusable-op", fmt::format("{} '{}' is not elementwise on the result of {}", m.op, m.name,
                                                       pooled[i] ? n.op : fn.nodes[anchor].op));
  }
  Pooling p{{found[0], 0}, n.args[0], *op, *op != kir::S::add, {}};
  p.space.dims = n.types[0].dims;
  std::vector<kir::Slice> at(p.space.dims.size(), one(0));
  at.back() = span_of(0, 1);
  TileBody probe(l, at, 1, 1, &p.space);
  probe.assume(p.value);
  for (size_t o = 0; o < fn.outputs.size(); o++) {
    const Lowering::Sink& sink = l.output_sink(o);
    if (!pooled[sink.value.node]) return no("leaves an output behind that is not pooled");
    if (!l.through(sink.access, nullptr, &p.space)) return no("ends in an output of another shape");
    if (std::optional<Verdict> why = probe.refuse(sink.value)) return *why;
  }
  if (std::optional<Verdict> why = refuse_values(l, anchor, space, std::array{p.arg})) return *why;
  return p;
}

PooledRow::PooledRow(Lowering& l, uint32_t anchor, const Pooling& p, int64_t rows, int64_t cols)
    : l_(l), anchor_(anchor), p_(p), rows_(rows), cols_(cols) {
  step_ = std::gcd(std::max<int64_t>(1, l.target().row_lanes / cols), rows);
  sums_ = l_.b.tile("m", DType::f32, step_, cols, Mem::scratch);
  kir::Ref start = l_.b.tile("n", DType::f32, step_, cols);
  l_.b.map(start, kir::S::mov, {kir::neutral(p.op)});
  l_.b.copy(sums_, start);
}

void PooledRow::add(const Space& space, const kir::Ref& acc, const std::vector<kir::Slice>& at) {
  // The tile goes through scratch: beside its accumulators there are no registers for the expression and the sums.
  kir::Ref kept = l_.b.tile("y", DType::f32, rows_, cols_, Mem::scratch);
  l_.b.copy(kept, acc);
  kir::Ref sums = l_.b.tile("s", DType::f32, step_, cols_);
  l_.b.copy(sums, sums_);
  l_.b.loop("r", 0, rows_, step_, kir::LoopKind::seq, [&](Expr i) {
    std::vector<kir::Slice> here = at;
    here[here.size() - 2] = {at[at.size() - 2].at + i, Expr(step_), 1};
    TileBody body(l_, here, step_, cols_, &space);
    body.bind({anchor_, 0}, kir::Builder::part(kept, i, step_, 0, cols_));
    body.accumulate(p_.op, sums, p_.arg);
  });
  l_.b.copy(sums_, sums);
}

void PooledRow::finish(const Expr& image, const kir::Slice& channels) {
  kir::Ref sums = l_.b.tile("s", DType::f32, step_, cols_), row = sums;
  l_.b.copy(sums, sums_);
  if (step_ > 1) {
    row = l_.b.tile("t", DType::f32, 1, cols_);
    l_.b.reduce(row, p_.op, 0, sums);
  }
  std::vector<kir::Slice> at(p_.space.dims.size(), one(0));
  at.front() = one(image), at.back() = channels;
  TileBody body(l_, at, 1, cols_, &p_.space);
  body.bind(p_.value, row);
  for (size_t o = 0; o < l_.fn().outputs.size(); o++) body.store_output(o);
}

}  // namespace gaf
