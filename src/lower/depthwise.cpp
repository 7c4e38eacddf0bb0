// Depthwise convolutions (one channel a group). Channels last: channels in the vector lanes, a tap is one `fma`. Where
// input and outputs lie in plain order, pixels of a row side by side, a plane at a time with pixels in the lanes: two
// transposes would move more bytes than the convolution itself.
#include <fmt/format.h>

#include <algorithm>

#include "lower/nest.h"
#include "lower/tiles.h"
#include "lower/windows.h"

namespace gaf {

namespace {

using kir::Builder;
using kir::Ref;
using kir::S;
using kir::Slice;

// Planes in plain order. A unit of work copies the input rows of a block of output rows to scratch, zeros around them,
// so that one register tile serves the whole plane.
class Planes {
 public:
  static constexpr int64_t kMostTaps = 64;  // they are written out

  // x and weights as the node has them; space: five dims in the order [N, D, C, H, W].
  Planes(Lowering& l, uint32_t anchor, const Window3& w, const Access& x, const Access& weights, const Space& space)
      : l_(l), t_(l.target()), anchor_(anchor), w_(w), x_(x), weights_(weights), space_(space) {
    pitch_ = (w_.reach(2, w_.out[2].num()) + t_.lanes - 1) / t_.lanes * t_.lanes;
    choose();
  }

  // Whether the rows of a unit fit the scratch.
  bool fits() const { return patch_rows() * pitch_ * 4 <= t_.memory(Mem::scratch)->bytes / 2; }

  void emit() {
    const Expr blocks = ceildiv(w_.out[1], rows_);
    const int64_t work = rows_ * w_.out[2].num() * w_.taps();
    nest(l_, {x_.dims[0], x_.dims[4], w_.out[0], blocks}, work, [&](const std::vector<Expr>& at) {
      Unit u{at[0], at[2], at[1], blocks.is(1) ? Expr(0) : at[3] * rows_, rows_, {}};
      if (!w_.out[1].is_num() || w_.out[1].num() % rows_) u.rows = min(Expr(rows_), w_.out[1] - u.h);
      copy_patch(u);
      loop(l_, "h", ceildiv(u.rows, tile_), [&](const Expr& h) {
        columns(l_, w_.out[2], t_.lanes, [&](const Slice& c, int64_t n) { pixels(u, h * tile_, c, n); });
      });
    });
  }

 private:
  struct Unit {
    Expr n, d, c, h;  // image, output plane, channel, first output row
    Expr rows;        // valid ones
    Ref patch;        // [planes * height, pitch]
  };

  Lowering& l_;
  const Target& t_;
  uint32_t anchor_;
  const Window3& w_;
  const Access &x_, &weights_;
  const Space& space_;
  int64_t tile_ = 1;   // output rows of a register tile
  bool held_ = false;  // the input rows of a tile are loaded once for a column of taps
  int64_t rows_ = 1;   // output rows of a unit
  int64_t pitch_ = 1;  // elements from a row of the patch to the next

  int64_t height() const { return w_.reach(1, (rows_ + tile_ - 1) / tile_ * tile_); }
  int64_t patch_rows() const { return w_.kernel[0] * height(); }

  void choose() {
    // Three quarters of the registers: sums, input rows, a weight.
    const int64_t registers = t_.max_regs * 3 / 4 - 1, apart = w_.reach(1, 1) - 1;
    int64_t most = std::min<int64_t>(8, (registers - apart) / 2);
    held_ = w_.stride[1] == 1 && most >= 2;
    if (!held_) most = std::min<int64_t>(8, registers - 1);
    // As many rows as half of the first cache holds.
    const int64_t image = std::max<int64_t>(1, l_.expect(w_.out[1]));
    rows_ = image;
    while (rows_ > 1 && patch_rows() * pitch_ * 4 > t_.l1_bytes / 2) rows_ = (rows_ + 1) / 2;
    const int64_t blocks = (image + rows_ - 1) / rows_;
    rows_ = (image + blocks - 1) / blocks;
    const int64_t whole = divisor_at_most(rows_, most);
    tile_ = std::min(whole * 2 > most ? whole : most, rows_);
  }

  void copy_patch(Unit& u) {
    u.patch = l_.b.tile("x", DType::f32, patch_rows(), pitch_, Mem::scratch);
    const Expr first = w_.first(1, u.h), end = height();
    const Expr lo = w_.padded(1) ? min(end, max(Expr(0), -first)) : Expr(0), hi = max(lo, min(end, w_.in[1] - first));
    loop(l_, "kd", w_.kernel[0], [&](const Expr& kd) {
      const Expr plane = kd * height();
      auto zeros = [&](const Expr& from, const Expr& to) {
        if (from == to) return;
        l_.b.loop("y", from, to, 1, kir::LoopKind::seq,
                  [&](const Expr& y) { l_.b.map(Builder::part(u.patch, plane + y, 1, 0, pitch_), S::mov, {0.0}); });
      };
      zeros(0, lo);
      l_.b.loop("y", lo, hi, 1, kir::LoopKind::seq, [&](const Expr& y) {
        columns(l_, pitch_, t_.row_lanes, [&](const Slice& c, int64_t n) {
          Ref t = l_.b.tile("t", DType::f32, 1, n);
          l_.b.copy(t,
                    full_ref(l_, x_,
                             {one(u.n), one(w_.first(0, u.d) + kd * w_.dilation[0]), one(first + y),
                              span_of(w_.first(2, 0) + c.at, n), one(u.c)}),
                    0.0);
          l_.b.copy(Builder::part(u.patch, plane + y, 1, c.at, n), t);
        });
      });
      zeros(hi, end);
    });
  }

  Ref weight(const Unit& u, const std::array<int64_t, 3>& tap, int64_t n) {
    std::vector<Slice> at{one(u.c), one(0)};
    for (size_t d = 3 - w_.dims; d < 3; d++) at.push_back(one(tap[d]));
    Ref t = l_.b.tile("w", DType::f32, 1, n);
    l_.b.map(t, S::mov, {full_ref(l_, weights_, at)});
    return t;
  }

  // One register tile: output rows from u.h + h on, columns c.
  void pixels(const Unit& u, const Expr& h, const Slice& c, int64_t n) {
    Ref acc = l_.b.tile("acc", DType::f32, tile_, n);
    l_.b.map(acc, S::mov, {0.0});
    auto input = [&](int64_t kd, int64_t y, int64_t kw, int64_t rows) {
      return Ref{
          true,
          u.patch.id,
          {span_of(kd * height() + h * w_.stride[1] + y, rows, w_.stride[1]), span_of(c.at + kw * w_.dilation[2], n)},
          false};
    };
    for (int64_t kd = 0; kd < w_.kernel[0]; kd++)
      for (int64_t kw = 0; kw < w_.kernel[2]; kw++) {
        Ref held;
        if (held_) {
          held = l_.b.tile("t", DType::f32, w_.reach(1, tile_), n);
          l_.b.copy(held, input(kd, 0, kw, w_.reach(1, tile_)));
        }
        for (int64_t kh = 0; kh < w_.kernel[1]; kh++) {
          const int64_t y = kh * w_.dilation[1];
          const Ref x = held_ ? Builder::part(held, y, tile_, 0, n) : input(kd, y, kw, tile_);
          l_.b.map(acc, S::fma, {x, weight(u, {kd, kh, kw}, n), acc});
        }
      }
    Expr rows = tile_;
    if (!u.rows.is_num() || u.rows.num() % tile_) rows = min(Expr(tile_), u.rows - h);
    emit_space(l_, anchor_, space_, acc, {one(u.n), one(u.d), one(u.c), span_of(u.h + h, rows), c}, tile_, n);
  }
};

}  // namespace

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
  std::optional<Access> x = reshape(*l.access(n.args[0]), five(l.fn().type(n.args[0]).dims, *w));
  if (!x) return refuse("layout", "reads a view that is neither channels-last nor plain data");
  if (!unit_inner(*x)) {
    if (!x->strides[3].is(1) && !x->dims[3].is(1))
      return refuse("layout", "reads a view that is neither channels-last nor plain data");
    space.order = {0, 1, 4, 2, 3};
    if (std::optional<Verdict> v = refuse_space(l, anchor, space)) return *v;
    for (size_t o = 0; o < fn.outputs.size(); o++)
      if (const Access y = *l.through(l.output_sink(o).access, nullptr, &space);
          !y.strides[4].is(1) && !y.dims[4].is(1))
        return refuse("layout", "reads plain data and is written in another order");
    if (w->stride[2] != 1) return refuse("layout", "reads plain data with a stride");
    if (!w->out[2].is_num()) return refuse("dynamic-shape", "has rows of plain data of a symbolic width");
    if (w->taps() > Planes::kMostTaps) return refuse("backend-limit", "has too many taps for plain data");
    Planes planes(l, anchor, *w, *x, *l.access(n.args[1]), space);
    if (!planes.fits()) return refuse("resource-local-memory", "has rows too wide for the scratch memory");
    planes.emit();
    return l.finish("depthwise");
  }
  if (std::optional<Verdict> v = refuse_space(l, anchor, space)) return *v;

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
