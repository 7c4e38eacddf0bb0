// Depthwise convolutions (one channel a group), channels last: channels in the vector lanes, a tap is one `fma`.
#include <fmt/format.h>

#include "lower/windows.h"

namespace gaf {

bool is_depthwise(const Graph& fn, const Node& n) {
  if (n.op != "Conv" || !channels_last(n)) return false;
  const Dims& weights = fn.type(n.args[1]).dims;
  int64_t group = attr_int(n, "group", 1);
  return group > 1 && weights[0].is(group) && weights[1].is(1);
}

Attempt lower_depthwise(const Graph& fn, const Target& t) {
  std::vector<uint32_t> nodes = nodes_of(fn, OpKind::conv);
  if (nodes.size() != 1 || !is_depthwise(fn, fn.nodes[nodes[0]])) return std::nullopt;
  Lowering l(split_bias(fn, nodes[0]), t);
  uint32_t anchor = find_anchor(l, "Conv");
  const Node& n = l.fn().nodes[anchor];
  auto refuse = [&](std::string reason, std::string_view why) {
    return Verdict::no(std::move(reason), fmt::format("Conv '{}' {}", n.name, why));
  };
  std::optional<Window3> w = window3_of(l.fn(), n);
  if (!w) return refuse("backend-limit", "has padding only known at run time");
  if (Verdict v = check_operands(l, anchor); !v.ok) return v;
  const Node& weights = l.fn().node(n.args[1]);
  if (weights.op != "input" || !attr_int(weights, "const", 0))
    return refuse("backend-limit", "has weights that are no constant");
  for (Value v : {n.args[0], n.args[1], Value{anchor, 0}})
    if (l.fn().type(v).dtype != DType::f32) return refuse("unsupported-dtype", "is not float32");
  Space space = five_space(n.types[0].dims, *w);
  if (std::optional<Verdict> v = refuse_space(l, anchor, space)) return *v;
  std::optional<Access> x = reshape(*l.access(n.args[0]), five(l.fn().type(n.args[0]).dims, *w));
  if (!x || !unit_inner(*x)) return refuse("layout", "reads a view that is not channels-last data");

  // [kd, kh, kw, channel]
  size_t rank = weights.types[0].dims.size(), lead = 3 - w->dims;
  Pack p;
  p.dst_dims = {w->kernel[0], w->kernel[1], w->kernel[2], attr_int(n, "group", 1)};
  p.coef.assign(rank, std::vector<int64_t>(4, 0));
  p.offset.assign(rank, 0);
  p.coef[0][3] = 1;
  for (size_t d = 0; d < w->dims; d++) p.coef[2 + d][lead + d] = 1;
  int packed = l.pack_input(n.args[1], p);

  WindowOps ops;
  ops.tap = [&](const kir::Ref& acc, const kir::Ref& data, const std::array<Expr, 3>& tap, const kir::Slice& channels) {
    l.b.map(acc, kir::S::fma, {data, kir::Builder::at(packed, {one(tap[0]), one(tap[1]), one(tap[2]), channels}), acc});
  };
  slide(l, anchor, space, *w, *x, ops);
  return l.finish("depthwise");
}

}  // namespace gaf
