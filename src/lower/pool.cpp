// Pooling over windows (MaxPool, AveragePool), channels last: channels in the vector lanes. Padding is never read: taps
// outside the input are not taken, and AveragePool divides by the number of taps that count.
#include <fmt/format.h>

#include <limits>

#include "lower/windows.h"

namespace gaf {
namespace {

// The divisor of AveragePool at one output position: taps inside the input, or inside the padded input if padding
// counts.
Expr divisor(const Window3& w, bool count_padding, const std::array<Expr, 3>& at, const Taps& taps) {
  Expr n = 1;
  for (size_t d = 0; d < 3; d++) {
    if (!count_padding) {
      n *= taps.end[d] - taps.first[d];
      continue;
    }
    Expr all = w.kernel[d], end = w.in[d] + w.after[d];
    Expr spare = w.out[d].is_num() ? end + w.before[d] - Expr(w.reach(d, w.out[d].num())) : Expr(-1);
    bool beyond = !spare.is_num() || spare.num() < 0;
    n *= beyond ? min(all, ceildiv(end - w.first(d, at[d]), w.dilation[d])) : all;
  }
  return n;
}

}  // namespace

Attempt lower_pool(const Graph& fn, const Target& t) {
  std::vector<uint32_t> nodes = nodes_of(fn, OpKind::pool);
  if (nodes.empty()) return std::nullopt;
  const Node& node = fn.nodes[nodes[0]];
  auto refuse = [&](std::string reason, std::string_view why) {
    return Verdict::no(std::move(reason), fmt::format("{} '{}' {}", node.op, node.name, why));
  };
  if (nodes.size() > 1) return refuse("iteration-mismatch", "and another pooling are in one kernel");
  if (node.op != "MaxPool" && node.op != "AveragePool") return refuse("not-fusable-op", "has no kernel");
  if (!channels_last(node)) return refuse("layout", "is not channels-last");
  std::string op = node.op;
  Lowering l(fn, t);
  uint32_t anchor = find_anchor(l, op);
  const Node& n = l.fn().nodes[anchor];
  if (l.readers({anchor, 1}) > 0) return refuse("not-fusable-op", "also gives indices");
  std::optional<Window3> w = window3_of(l.fn(), n);
  if (!w) return refuse("backend-limit", "has padding only known at run time");
  if (Verdict v = check_operands(l, anchor); !v.ok) return v;
  if (n.types[0].dtype != DType::f32) return refuse("unsupported-dtype", "is not float32");
  Space space = five_space(n.types[0].dims, *w);
  if (std::optional<Verdict> v = refuse_space(l, anchor, space)) return *v;
  std::optional<Access> x = reshape(*l.access(n.args[0]), five(l.fn().type(n.args[0]).dims, *w));
  if (!x || !unit_inner(*x)) return refuse("layout", "reads a view that is not channels-last data");

  bool is_max = op == "MaxPool", padding = attr_int(n, "count_include_pad", 0) != 0;
  WindowOps ops;
  ops.start = is_max ? -std::numeric_limits<double>::infinity() : 0;
  ops.tap = [&](const kir::Ref& acc, const kir::Ref& data, const std::array<Expr, 3>&, const kir::Slice&) {
    l.b.map(acc, is_max ? kir::S::maxp : kir::S::add, {acc, data});
  };
  if (!is_max)
    ops.end = [&](const kir::Ref& acc, const std::array<Expr, 3>& at, const Taps& taps) {
      Expr count = divisor(*w, padding, at, taps);
      if (count.is_num()) {
        l.b.map(acc, kir::S::mul, {acc, 1.0 / static_cast<double>(std::max<int64_t>(1, count.num()))});
        return;
      }
      kir::Ref number = l.b.tile("n", DType::i32, 1, 1), divide = l.b.tile("d", DType::f32, 1, 1);
      l.b.put({kir::Iota{number, max(Expr(1), count), 0}});
      l.b.map(divide, kir::S::cast, {number});
      l.b.map(acc, kir::S::div, {acc, divide});
    };
  slide(l, anchor, space, *w, *x, ops);
  return l.finish("pool");
}

}  // namespace gaf
