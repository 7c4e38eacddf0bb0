// Loops of window kernels. See windows.h.
#include "lower/windows.h"

#include <algorithm>

#include "lower/nest.h"
#include "lower/tiles.h"

namespace gaf {
namespace {

using kir::Builder;
using kir::LoopKind;
using kir::Ref;
using kir::Slice;

class Slider {
 public:
  Slider(Lowering& l, uint32_t anchor, const Space& space, const Window3& w, const Access& x, const WindowOps& ops)
      : l_(l), t_(l.target()), anchor_(anchor), space_(space), w_(w), x_(x), ops_(ops) {}

  void emit() {
    const Expr& channels = x_.dims.back();
    step_ = column_step(channels, 2 * t_.lanes, t_.lanes);
    wide_ = column_step(channels, t_.row_lanes, t_.lanes);
    choose_run();
    int64_t row = l_.expect(w_.out[2]) * l_.expect(channels) * w_.taps();
    nest(l_, {x_.dims[0], w_.out[0], w_.out[1]}, row, [&](std::vector<Expr> at) {
      if (!runs_.is(0))
        columns(l_, channels, step_, [&](const Slice& c, int64_t capacity) {
          loop(l_, "t", runs_, [&](Expr i) { pixels(at, inner_ + i * run_, run_, c, capacity, true); });
        });
      border(at);
    });
  }

 private:
  Lowering& l_;
  const Target& t_;
  uint32_t anchor_;
  const Space& space_;
  const Window3& w_;
  const Access& x_;
  const WindowOps& ops_;
  int64_t step_ = 1, wide_ = 1;  // channels of a run of pixels, of a single pixel
  int64_t run_ = 1;              // pixels of a tile; first column whose taps are all inside
  Expr inner_ = 0, runs_ = 0,
       done_ = 0;  // tiles of inner pixels in an output row (may be negative: none), pixels in them

  // Runs of as many pixels as registers hold next to the weights of a tap and a loaded value.
  void choose_run() {
    int64_t vecs = std::max<int64_t>(1, step_ / t_.lanes), most = std::max<int64_t>(1, (t_.max_regs - vecs - 3) / vecs);
    inner_ = ceildiv(w_.before[2], w_.stride[2]);
    Expr end = w_.out[2];
    if (w_.padded(2))
      end = min(end, floordiv(w_.in[2] - 1 + w_.before[2] - (w_.kernel[2] - 1) * w_.dilation[2], w_.stride[2]) + 1);
    Expr inside = end - inner_;
    if (inside.is_num()) {
      int64_t n = std::max<int64_t>(0, inside.num());
      run_ = divisor_at_most(n, most);
      if (run_ * 2 < std::min(n, most)) run_ = std::min(n, most);
      if (n < 2) run_ = 1;
      runs_ = n < 2 ? 0 : n / run_;
    } else {
      run_ = std::min<int64_t>(most, 8);
      runs_ = floordiv(inside, run_);
    }
    done_ = max(Expr(0), runs_) * run_;
  }

  // Pixels outside the runs: one at a time, with the taps that are inside.
  void border(const std::vector<Expr>& at) {
    Expr done = done_, left = runs_.is(0) ? Expr(0) : Expr(inner_), rest = w_.out[2] - done;
    if (rest.is(0)) return;
    columns(l_, x_.dims.back(), wide_, [&](const Slice& c, int64_t capacity) {
      auto one_pixel = [&](Expr col) { pixels(at, col, 1, c, capacity, false); };
      if (rest.is_num()) {  // left and right in one loop: behind the left ones the runs are skipped
        loop(l_, "e", rest, [&](Expr e) {
          if (left.is(0))
            one_pixel(e + done);
          else if (rest == left)
            one_pixel(e);
          else
            one_pixel(e + max(Expr(0), min(Expr(1), e - left + 1)) * done);
        });
        return;
      }
      if (!left.is(0)) l_.b.loop("e", 0, min(left, w_.out[2]), 1, LoopKind::seq, one_pixel);
      l_.b.loop("e", left + done, w_.out[2], 1, LoopKind::seq, one_pixel);
    });
  }

  Taps taps_at(const std::array<Expr, 3>& at, bool inside) const {
    Taps t;
    for (size_t d = 0; d < 3; d++) {
      bool all = !w_.padded(d) || (d == 2 && inside);
      Expr first = w_.first(d, at[d]);
      t.first[d] = all ? Expr(0) : max(Expr(0), ceildiv(-first, w_.dilation[d]));
      t.end[d] = all ? Expr(w_.kernel[d]) : min(Expr(w_.kernel[d]), ceildiv(w_.in[d] - first, w_.dilation[d]));
    }
    return t;
  }

  void pixels(const std::vector<Expr>& at, const Expr& col, int64_t n, const Slice& channels, int64_t capacity,
              bool inside) {
    kir::Builder& b = l_.b;
    std::array<Expr, 3> o{at[1], at[2], col};
    Taps taps = taps_at(o, inside);
    Ref acc = b.tile("acc", DType::f32, n, capacity);
    b.map(acc, kir::S::mov, {ops_.start});
    bool whole = channels.n->is(capacity);
    Ref part = whole ? acc : Builder::part(acc, 0, n, 0, *channels.n);
    auto over = [&](const char* stem, size_t d, const std::function<void(Expr)>& body) {
      if (taps.first[d].is(0) && taps.end[d].is(1)) return body(0);
      b.loop(stem, taps.first[d], taps.end[d], 1, LoopKind::seq, body);
    };
    over("kd", 0, [&](Expr kd) {
      over("kh", 1, [&](Expr kh) {
        over("kw", 2, [&](Expr kw) {
          std::array<Expr, 3> tap{kd, kh, kw};
          std::vector<Slice> from{one(at[0])};
          for (size_t d = 0; d < 3; d++) {
            Expr first = w_.first(d, o[d]) + tap[d] * w_.dilation[d];
            from.push_back(d == 2 ? span_of(first, n, w_.stride[2]) : one(first));
          }
          from.push_back(channels);
          ops_.tap(part, full_ref(l_, x_, from), tap, channels);
        });
      });
    });
    if (ops_.end) ops_.end(acc, o, taps);
    emit_space(l_, anchor_, space_, acc, {one(at[0]), one(o[0]), one(o[1]), span_of(col, n), channels}, n, capacity);
  }
};

}  // namespace

void slide(Lowering& l, uint32_t anchor, const Space& space, const Window3& w, const Access& x, const WindowOps& ops) {
  Slider(l, anchor, space, w, x, ops).emit();
}

}  // namespace gaf
