// Convolutions, channels last, with any pointwise space on the result. A unit of work is a block of output rows: its
// input patch, zeros at the border included, is copied to scratch once, so that one register tile serves borders,
// strides, dilations and ragged widths; without padding the input is read in place. The taps are loops around one `mma`
// over the channels. 1x1 with stride 1 is a contraction over pixels. Knows no device but through Target.
#include <fmt/format.h>

#include <algorithm>

#include "lower/anchor.h"
#include "lower/patch.h"
#include "lower/pooled.h"
#include "lower/tiles.h"
#include "lower/winograd.h"

namespace gaf {
namespace {

using kir::Builder;
using kir::Ref;
using kir::Slice;

// Columns of output assumed where the width is symbolic: a patch of a few tiles amortises its border.
constexpr int64_t kTilesOfUnknownWidth = 4;

class Convolution {
 public:
  Convolution(const Graph& fn, uint32_t node, const Target& t)
      : t_(t), l_(split_bias(fn, node), t), anchor_(find_anchor(l_, "Conv")) {}

  Attempt run() {
    const Node& n = node();
    std::optional<Window3> w = window3_of(l_.fn(), n);
    if (!w) return refuse("backend-limit", "has padding or a kernel only known at run time");
    w_ = *w;
    if (Verdict v = check_operands(l_, anchor_); !v.ok) return v;
    const Node& weights = l_.fn().node(n.args[1]);
    if (weights.op != "input" || !attr_int(weights, "const", 0))
      return refuse("backend-limit", "has weights that are no constant");
    for (Value v : {n.args[0], n.args[1], Value{anchor_, 0}})
      if (l_.fn().type(v).dtype != DType::f32) return refuse("unsupported-dtype", "is not float32");
    space_ = five_space(n.types[0].dims, w_);
    if (std::optional<std::variant<Pooling, Verdict>> p = pooling_of(l_, anchor_, space_)) {
      if (auto* no = std::get_if<Verdict>(&*p)) return std::move(*no);
      pooling_ = std::get<Pooling>(std::move(*p));
      if (!w_.out[0].is(1) || !w_.out[1].is_num() || !w_.out[2].is_num())
        return refuse("dynamic-shape", "has too many pixels, or a symbolic number of them, for one pooled row");
    } else if (std::optional<Verdict> v = refuse_space(l_, anchor_, space_)) {
      return *v;
    }
    std::optional<Access> x = reshape(*l_.access(n.args[0]), five(l_.fn().type(n.args[0]).dims, w_));
    if (!x) return refuse("layout", "reads a view that is not channels-last data");
    x_ = *x;
    const Dims& shape = weights.types[0].dims;
    if (!x_.dims.back().is_num() || !shape[0].is_num())
      return refuse("dynamic-shape", "has a symbolic number of channels");
    groups_ = attr_int(n, "group", 1);
    in_ = x_.dims.back().num() / groups_, out_ = shape[0].num() / groups_;
    const WinogradConv squares{anchor_, w_, x_, space_, in_, out_};
    if (!pooling_ && groups_ == 1 && emit_winograd(l_, squares)) return l_.finish("winograd");
    choose();
    if (pooling_ && (rows_ < l_.expect(w_.out[1]) || cols_ < l_.expect(w_.out[2])))
      return refuse("resource-local-memory", "has an image too large for one unit of work");
    emit();
    return l_.finish("conv");
  }

 private:
  const Target& t_;
  Lowering l_;
  uint32_t anchor_;
  Window3 w_;
  Space space_;
  std::optional<Pooling> pooling_;         // all that is written is a reduction over the pixels
  Access x_;                               // [N, D, H, W, C]
  int64_t groups_ = 1, in_ = 1, out_ = 1;  // channels of a group
  RegTile tile_;
  int64_t panels_ = 1;  // of a group
  int64_t chunk_ = 1;   // panels of one unit of work
  bool patch_ = true, overlap_ = false;
  int64_t rows_ = 1, cols_ = 1;  // output rows and columns of a unit
  bool stream_weights_ = false;  // they do not stay in L2
  int packed_ = -1;              // [groups * panels, taps, channels, NR]

  const Node& node() const { return l_.fn().nodes[anchor_]; }
  Verdict refuse(std::string reason, std::string_view why) const {
    return Verdict::no(std::move(reason), fmt::format("Conv '{}' {}", node().name, why));
  }

  void choose() {
    int64_t width = l_.expect(w_.out[2]), height = l_.expect(w_.out[1]);
    tile_ = pick_pixels(t_, width, out_);
    // No pixel may be summed twice: tiles that divide a row.
    if (pooling_ && !pooling_->repeatable) tile_.rows = static_cast<int>(divisor_at_most(width, tile_.rows));
    panels_ = (out_ + tile_.cols - 1) / tile_.cols;
    packed_ = pack();
    // A width that the tile does not divide: the last tile of a row starts early and computes some pixels a second
    // time, so that every tile is whole. Widths below one tile, or free, are cut by masks instead.
    bool divides = w_.out[2].is_num() && w_.out[2].num() % tile_.rows == 0;
    overlap_ = w_.out[2].is_num() && !divides && w_.out[2].num() > tile_.rows;
    patch_ = (!divides && !overlap_) || w_.padded(0) || w_.padded(1) || w_.padded(2) || !unit_inner(x_);
    cols_ = w_.out[2].is_num() ? (width + tile_.rows - 1) / tile_.rows * tile_.rows : kTilesOfUnknownWidth * tile_.rows;
    // The patch takes at most a quarter of L2 and half of the scratch, next to the weights of a panel.
    int64_t budget = std::min(t_.l2_bytes / 4, t_.memory(Mem::scratch)->bytes / 2);
    auto bytes = [&](int64_t rows, int64_t cols) {
      return w_.kernel[0] * w_.reach(1, rows) * w_.reach(2, cols) * in_ * 4;
    };
    while (patch_ && bytes(1, cols_) > budget && cols_ > tile_.rows) cols_ -= tile_.rows;
    overlap_ = overlap_ && cols_ >= width;  // within one unit of work
    if (!divides && !overlap_) patch_ = true;
    int64_t most = height;
    while (most > 1 && (patch_ ? bytes(most, cols_) : w_.reach(1, most) * w_.reach(2, cols_) * in_ * 4) > budget)
      most--;
    double images = 1;
    images *=
        static_cast<double>(l_.expect(x_.dims[0]) * l_.expect(w_.out[0]) * groups_ * ((width + cols_ - 1) / cols_));
    double work = 2.0 * static_cast<double>(height * width * w_.taps() * in_ * out_) * images;
    double units = work < 1e6 ? 1 : 4.0 * t_.cores;
    stream_weights_ = panels_ * tile_.cols * w_.taps() * in_ * 4 > t_.l2_bytes / 2;
    // Enough units: first by panels where the weights are streamed anyway, else by rows, then by panels.
    chunk_ = panels_;
    auto split_panels = [&](double want) {
      while (chunk_ > 1 && images * static_cast<double>((panels_ + chunk_ - 1) / chunk_) < want)
        chunk_ = (chunk_ + 1) / 2;
    };
    int64_t fit = t_.l2_bytes / 2 / (tile_.cols * w_.taps() * in_ * 4);
    int64_t blocks = (height + most - 1) / most;
    if (stream_weights_)
      chunk_ = std::clamp<int64_t>(fit, 1, panels_), split_panels(units / static_cast<double>(blocks));
    if (!stream_weights_ && !pooling_)
      while (blocks < height && images * static_cast<double>(blocks) < units) blocks++;
    rows_ = (height + blocks - 1) / blocks;
    if (!w_.out[1].is_num()) rows_ = std::min<int64_t>(most, 8);
    if (!stream_weights_) split_panels(units / static_cast<double>(blocks));
  }

  // [group and panel, tap, channel, column]; columns behind the last channel of a group are never stored.
  int pack() {
    const Dims& shape = l_.fn().type(node().args[1]).dims;
    size_t rank = shape.size(), lead = 3 - w_.dims;
    Pack p;
    p.dst_dims = {groups_, panels_, w_.kernel[0], w_.kernel[1], w_.kernel[2], in_, tile_.cols};
    p.coef.assign(rank, std::vector<int64_t>(7, 0));
    p.offset.assign(rank, 0);
    p.coef[0] = {out_, tile_.cols, 0, 0, 0, 0, 1};
    p.coef[1][5] = 1;
    for (size_t d = 0; d < w_.dims; d++) p.coef[2 + d][2 + lead + d] = 1;
    return l_.pack_input(node().args[1], p);
  }

  struct Unit {
    Expr n, d, h, w;  // image, output plane, first output row and column
    Expr group, chunk;
    Expr rows, cols;  // valid output rows and columns
    Ref patch;
  };

  void emit() {
    Expr row_blocks = ceildiv(w_.out[1], rows_), col_blocks = ceildiv(w_.out[2], cols_);
    Expr chunks = ceildiv(panels_, chunk_);
    Dims pixels{x_.dims[0], w_.out[0], row_blocks, col_blocks}, weights{groups_, chunks};
    // What is streamed goes round outside.
    Dims axes = stream_weights_ ? weights : pixels;
    axes.insert(axes.end(), stream_weights_ ? pixels.begin() : weights.begin(),
                stream_weights_ ? pixels.end() : weights.end());
    par_nest(l_, axes, [&](std::vector<Expr> v) {
      if (stream_weights_) std::rotate(v.begin(), v.begin() + 2, v.end());
      Unit u{v[0], v[1], v[2] * rows_, v[3] * cols_, v[4], v[5], rows_, cols_, {}};
      if (!w_.out[1].is_num() || w_.out[1].num() % rows_) u.rows = min(Expr(rows_), w_.out[1] - u.h);
      u.cols = col_blocks.is(1) ? w_.out[2] : min(Expr(cols_), w_.out[2] - u.w);
      unit(u);
    });
  }

  void unit(Unit& u) {
    if (patch_)
      u.patch =
          copy_patch(l_, x_, w_, {u.n, u.d, u.h, u.w, u.group * in_}, w_.reach(1, rows_), w_.reach(2, cols_), in_);
    Expr panels = panels_ % chunk_ ? min(Expr(chunk_), Expr(panels_) - u.chunk * chunk_) : Expr(chunk_);
    loop(l_, "p", panels, [&](Expr i) {
      Expr p = u.chunk * chunk_ + i;
      std::optional<PooledRow> pooled;
      if (pooling_) pooled.emplace(l_, anchor_, *pooling_, tile_.rows, tile_.cols);
      loop(l_, "h", u.rows,
           [&](Expr h) { loop(l_, "w", ceildiv(u.cols, tile_.rows), [&](Expr w) { pixels(u, p, h, w, pooled); }); });
      if (pooled) pooled->finish(u.n, channels(u, p));
    });
  }

  // One register tile: pixels of output row u.h + h, from column u.w + w * rows of the tile on.
  void pixels(const Unit& u, const Expr& p, const Expr& h, const Expr& w, std::optional<PooledRow>& pooled) {
    kir::Builder& b = l_.b;
    Expr col = overlap_ ? min(w * tile_.rows, w_.out[2] - tile_.rows) : w * tile_.rows, panel = u.group * panels_ + p;
    int64_t height = w_.reach(1, rows_), width = w_.reach(2, cols_);
    Expr rows = tile_.rows;
    if (!overlap_ && (!w_.out[2].is_num() || w_.out[2].num() % tile_.rows)) rows = min(Expr(tile_.rows), u.cols - col);
    std::vector<Slice> at{one(u.n), one(u.d), one(u.h + h), span_of(u.w + col, rows), channels(u, p)};
    Ref acc = b.tile("acc", DType::f32, tile_.rows, tile_.cols);
    b.map(acc, kir::S::mov, {0.0});
    loop(l_, "kd", w_.kernel[0], [&](Expr kd) {
      loop(l_, "kh", w_.kernel[1], [&](Expr kh) {
        loop(l_, "kw", w_.kernel[2], [&](Expr kw) {
          Ref a;
          if (patch_) {
            Expr row = (kd * height + h * w_.stride[1] + kh * w_.dilation[1]) * width + col * w_.stride[2] +
                       kw * w_.dilation[2];
            a = Ref{true, u.patch.id, {span_of(row, tile_.rows, w_.stride[2]), span_of(0, in_)}, false};
          } else {
            std::vector<Slice> at{one(w_.first(0, u.d) + kd * w_.dilation[0]),
                                  one(w_.first(1, u.h + h) + kh * w_.dilation[1]),
                                  span_of(w_.first(2, u.w + col) + kw * w_.dilation[2], tile_.rows, w_.stride[2]),
                                  span_of(u.group * in_, in_)};
            at.insert(at.begin(), one(u.n));
            a = full_ref(l_, x_, at);
          }
          std::vector<Ref> soon = ahead(panel, h, w, kd, kh, kw);
          std::vector<Slice> next = at;  // each tap fetches some of the rows that the tile will be stored to
          Expr tap = (kd * w_.kernel[1] + kh) * w_.kernel[2] + kw;
          int64_t share = (tile_.rows + w_.taps() - 1) / w_.taps();
          next[3] = span_of(u.w + col + tap * share, share);
          if (std::optional<Ref> result = pooled ? std::nullopt : output_ahead(l_, space_, next, w_.taps() * in_))
            soon.push_back(*result);
          b.mma(acc, a, weights(panel, kd, kh, kw, span_of(0, in_)), std::move(soon));
        });
      });
    });
    if (pooled) return pooled->add(space_, acc, at);
    emit_space(l_, anchor_, space_, acc, at, tile_.rows, tile_.cols);
  }

  Slice channels(const Unit& u, const Expr& p) const {
    Expr cols = tile_.cols;
    if (out_ % tile_.cols) cols = min(Expr(tile_.cols), Expr(out_) - p * tile_.cols);
    return span_of(u.group * out_ + p * tile_.cols, cols);
  }

  Ref weights(const Expr& panel, const Expr& kd, const Expr& kh, const Expr& kw, Slice channels) {
    Expr g = groups_ == 1 ? Expr(0) : floordiv(panel, panels_), p = groups_ == 1 ? panel : mod(panel, panels_);
    return Builder::at(packed_,
                       {one(g), one(p), one(kd), one(kh), one(kw), std::move(channels), span_of(0, tile_.cols)});
  }

  // Streamed weights: the share of the next panel that this tap of this tile fetches to L2.
  std::vector<Ref> ahead(const Expr& panel, const Expr& h, const Expr& w, const Expr& kd, const Expr& kh,
                         const Expr& kw) {
    if (!t_.prefetch_panel || !stream_weights_ || groups_ > 1) return {};
    int64_t tiles = cols_ / tile_.rows, steps = rows_ * tiles * w_.taps(), lines = w_.taps() * in_;
    int64_t share = (lines + steps - 1) / steps;
    Expr tap = (kd * w_.kernel[1] + kh) * w_.kernel[2] + kw, step = (h * tiles + w) * w_.taps() + tap;
    return {weights(panel + 1, 0, 0, 0, span_of(step * share, share))};
  }
};

}  // namespace

Attempt lower_conv(const Graph& fn, const Target& t) {
  std::vector<uint32_t> nodes = nodes_of(fn, OpKind::conv);
  if (nodes.empty()) return std::nullopt;
  const Node& n = fn.nodes[nodes[0]];
  auto refuse = [&](std::string reason, std::string_view why) {
    return Verdict::no(std::move(reason), fmt::format("{} '{}' {}", n.op, n.name, why));
  };
  if (nodes.size() > 1 || !nodes_of(fn, OpKind::contraction).empty() || !nodes_of(fn, OpKind::pool).empty())
    return refuse("compute-compute", "and another contraction are in one kernel");
  if (n.op != "Conv") return refuse("not-fusable-op", "has no kernel");
  if (is_depthwise(fn, n)) return std::nullopt;
  if (!channels_last(n)) return refuse("layout", "is not channels-last");
  std::optional<Window3> w = window3_of(fn, n);
  const Node& weights = fn.node(n.args[1]);
  bool constant = weights.op == "input" && attr_int(weights, "const", 0);
  if (w && w->pointwise() && attr_int(n, "group", 1) == 1 && constant) return emit_contraction(fn, nodes[0], t);
  return Convolution(fn, nodes[0], t).run();
}

}  // namespace gaf
