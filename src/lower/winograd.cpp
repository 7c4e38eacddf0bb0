// A unit of work is a block of squares: its patch, the transformed input (16 matrices of squares x channels), and for
// each panel of output channels 16 products and the transform back, with the pointwise space on its result. See
// winograd.h.
#include "lower/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lower/anchor.h"
#include "lower/nest.h"
#include "lower/patch.h"
#include "lower/tiles.h"

namespace gaf {
namespace {

using kir::Builder;
using kir::Ref;
using kir::Slice;

constexpr int64_t kPlaces = 16;  // of a 4x4 square

// How a convolution is cut into units.
struct Blocks {
  RegTile tile;                   // squares x output channels of one product
  int64_t down = 1, across = 1;   // squares of a unit
  int64_t patch = 1;              // rows of squares whose input is copied at once: one or all
  int64_t panels = 1, chunk = 1;  // panels of output channels: all, and those of a unit
  bool cold = false;              // weights do not stay in L2:
  bool stream = false;            // units of one part of them follow one another
  int64_t squares() const { return down * across; }
  // Rows from one place's matrix to the next: one more, or all 16 rows of a square would share a set of the L1 cache.
  int64_t pitch() const { return squares() + 1; }
};

int64_t halves(const Expr& n) { return (n.num() + 1) / 2; }

// Nothing where not even a small unit fits the local memory.
std::optional<Blocks> choose(const Lowering& l, const WinogradConv& c) {
  const Target& t = l.target();
  const int64_t rows = halves(c.w.out[1]), cols = halves(c.w.out[2]);
  const int64_t budget = std::min(t.l2_bytes / 2, t.memory(Mem::scratch)->bytes);
  auto fits = [&](int64_t down, int64_t across, int64_t patch_rows) {
    const int64_t width = pick_tile(t, down * across, c.out).cols, places = kPlaces * (down * across + 1);
    const int64_t patch = (2 * patch_rows + 2) * (2 * across + 2) * c.in, back = (places + 4 * across) * width;
    return (places * c.in + std::max(patch, back)) * 4 <= budget;
  };
  Blocks b;
  b.across = cols;
  // Parts of a row of squares are whole vectors of pixels, so that only the image's end is ragged.
  const int64_t step = std::max(1, t.lanes / 2);
  while (!fits(1, b.across, 1) && b.across > step) b.across = (b.across - 1) / step * step;
  if (!fits(1, b.across, 1)) return std::nullopt;
  const double images = static_cast<double>(l.expect(c.x.dims[0]) * ((cols + b.across - 1) / b.across));
  const double work = 2.0 * kPlaces * static_cast<double>(rows * b.across * c.in * c.out) * images;
  const double units = work < 1e6 ? 1 : 4.0 * t.cores;
  // Rows of squares: as many as fit, in equal blocks; more blocks where the cores want work, as long as a product has
  // some tiles: one of few squares reads as much as it computes.
  int64_t most = rows;
  while (most > 1 && !fits(most, b.across, 1)) most--;
  int64_t blocks = (rows + most - 1) / most;
  while (blocks < rows && images * static_cast<double>(blocks) < units &&
         rows / (blocks + 1) * b.across >= 4 * t.tile_rows)
    blocks++;
  b.down = (rows + blocks - 1) / blocks;
  b.patch = fits(b.down, b.across, b.down) ? b.down : 1;
  b.tile = pick_tile(t, b.squares(), c.out);
  b.panels = (c.out + b.tile.cols - 1) / b.tile.cols;
  b.chunk = b.panels;
  // Weights that do not stay in L2 are read once, a part at a time. Each part transforms the input anew, so there are
  // no more of them than it takes to keep the cores busy.
  const double pixel_units = images * static_cast<double>(blocks);
  const int64_t panel_bytes = kPlaces * c.in * b.tile.cols * 4;
  b.cold = b.panels * panel_bytes > t.l2_bytes / 2;
  b.stream = b.cold && pixel_units > 1;
  if (b.stream) b.chunk = std::clamp<int64_t>(t.l2_bytes / 4 / panel_bytes, 1, b.panels);
  while (b.chunk > 1 && pixel_units * static_cast<double>((b.panels + b.chunk - 1) / b.chunk) < units / 2)
    b.chunk = (b.chunk + 1) / 2;
  return b;
}

class Winograd {
 public:
  Winograd(Lowering& l, const WinogradConv& c, const Blocks& b) : l_(l), c_(c), b_(b) {}

  void emit() {
    packed_ = pack();
    const Expr rows = ceildiv(halves(c_.w.out[1]), b_.down), cols = ceildiv(halves(c_.w.out[2]), b_.across);
    const Expr chunks = ceildiv(b_.panels, b_.chunk);
    Dims axes{c_.x.dims[0], rows, cols};
    axes.insert(b_.stream ? axes.begin() : axes.end(), chunks);
    par_nest(l_, axes, [&](std::vector<Expr> at) {
      if (b_.stream) std::rotate(at.begin(), at.begin() + 1, at.end());
      n_ = at[0], row_ = at[1] * b_.down, col_ = at[2] * b_.across;
      rows_ = cut(halves(c_.w.out[1]), b_.down, row_);
      Ref v = transform_input();
      loop(l_, "p", cut(b_.panels, b_.chunk, at[3] * b_.chunk), [&](Expr i) {
        const Expr panel = at[3] * b_.chunk + i;
        transform_back(products(v, panel), panel);
      });
    });
  }

 private:
  Lowering& l_;
  const WinogradConv& c_;
  const Blocks b_;
  int packed_ = -1;     // [panels, place, channel, column]
  Expr n_, row_, col_;  // image, first square of the unit
  Expr rows_ = 1;       // rows of squares of the unit that exist

  // `most`, or what is left of `all` behind `from`.
  static Expr cut(int64_t all, int64_t most, const Expr& from) {
    return all % most ? min(Expr(most), Expr(all) - from) : Expr(most);
  }

  int pack() {
    Pack p;
    p.winograd = true;
    p.dst_dims = {b_.panels, 4, 4, c_.in, b_.tile.cols};
    p.coef = {{b_.tile.cols, 0, 0, 0, 1}, {0, 0, 0, 1, 0}, {0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}};
    p.offset.assign(4, 0);
    return l_.pack_input(l_.fn().nodes[c_.anchor].args[1], p);
  }

  Ref fresh(kir::S op, const Ref& a, const Ref& b, int64_t cols) {
    Ref r = l_.b.tile("t", DType::f32, 1, cols);
    l_.b.map(r, op, {a, b});
    return r;
  }

  // Rows place * pitch + square of the result; squares that do not exist read the patch's zeros.
  Ref transform_input() {
    const int64_t width = 2 * b_.across + 2;
    Ref v = l_.b.tile("v", DType::f32, kPlaces * b_.pitch(), c_.in, Mem::scratch);
    // A block of its own even if there is one: the patch's memory is free behind it.
    l_.b.loop("b", 0, b_.down / b_.patch, 1, kir::LoopKind::seq, [&](Expr block) {
      Ref patch = copy_patch(l_, c_.x, c_.w, {n_, 0, (row_ + block) * 2, col_ * 2, 0}, 2 * b_.patch + 2, width, c_.in);
      loop(l_, "y", b_.patch, [&](Expr y) {
        loop(l_, "x", b_.across, [&](Expr x) {
          columns(l_, c_.in, l_.target().lanes, [&](const Slice& c, int64_t step) {
            square(patch, y * 2 * width + x * 2, v, (block + y) * b_.across + x, c, step);
          });
        });
      });
    });
    return v;
  }

  // Rows, then columns: d0 - d2, d1 + d2, d2 - d1, d1 - d3.
  void square(const Ref& patch, const Expr& pixel, const Ref& v, const Expr& row, const Slice& c, int64_t step) {
    auto one_way = [&](const Ref& d0, const Ref& d1, const Ref& d2, const Ref& d3) {
      return std::array<Ref, 4>{fresh(kir::S::sub, d0, d2, step), fresh(kir::S::add, d1, d2, step),
                                fresh(kir::S::sub, d2, d1, step), fresh(kir::S::sub, d1, d3, step)};
    };
    std::array<std::array<Ref, 4>, 4> t;
    for (int64_t j = 0; j < 4; j++) {
      std::array<Ref, 4> d;
      for (int64_t i = 0; i < 4; i++) {
        d[i] = l_.b.tile("d", DType::f32, 1, step);
        l_.b.copy(d[i], Builder::part(patch, pixel + (2 * b_.across + 2) * i + j, 1, c.at, step));
      }
      std::array<Ref, 4> r = one_way(d[0], d[1], d[2], d[3]);
      for (int64_t i = 0; i < 4; i++) t[i][j] = r[i];
    }
    for (int64_t i = 0; i < 4; i++) {
      std::array<Ref, 4> r = one_way(t[i][0], t[i][1], t[i][2], t[i][3]);
      for (int64_t j = 0; j < 4; j++) l_.b.copy(Builder::part(v, row + (i * 4 + j) * b_.pitch(), 1, c.at, step), r[j]);
    }
  }

  // The 16 products of a panel, rows as in `v`.
  Ref products(const Ref& v, const Expr& panel) {
    Ref m = l_.b.tile("m", DType::f32, kPlaces * b_.pitch(), b_.tile.cols, Mem::scratch);
    const RowPlan plan = plan_rows(b_.squares(), b_.tile.rows, b_.squares() + b_.tile.rows, 1);
    l_.b.loop("q", 0, kPlaces, 1, kir::LoopKind::seq, [&](Expr q) {
      for (const RowRun& run : plan.runs(0))
        loop(l_, "t", run.count, [&](Expr u) {
          const Expr row = q * b_.pitch() + run.first + u * run.rows;
          Ref acc = l_.b.tile("acc", DType::f32, run.rows, b_.tile.cols);
          l_.b.map(acc, kir::S::mov, {0.0});
          l_.b.mma(acc, Builder::part(v, row, run.rows, 0, c_.in), weights(panel, q, 0, c_.in),
                   ahead(panel, q, run, u));
          l_.b.copy(Builder::part(m, row, run.rows, 0, b_.tile.cols), acc);
        });
    });
    return m;
  }
  Ref weights(const Expr& panel, const Expr& q, const Expr& first, const Expr& n) {
    return Builder::at(packed_,
                       {one(panel), one(floordiv(q, 4)), one(mod(q, 4)), span_of(first, n), span_of(0, b_.tile.cols)});
  }
  // The share of the next product's weights that this tile fetches: they follow one another.
  std::vector<Ref> ahead(const Expr& panel, const Expr& q, const RowRun& run, const Expr& u) {
    if (!l_.target().prefetch_panel || !b_.cold || run.rows != b_.tile.rows) return {};
    const int64_t tiles = std::max<int64_t>(1, b_.squares() / b_.tile.rows), share = (c_.in + tiles - 1) / tiles;
    return {weights(panel, q, Expr(c_.in) + u * share, share)};
  }

  // Two rows of pixels at a time, and what the kernel does with them.
  void transform_back(const Ref& m, const Expr& panel) {
    const int64_t lanes = l_.target().lanes, cols = b_.tile.cols;
    loop(l_, "y", rows_, [&](Expr y) {
      const std::array<Ref, 2> o{l_.b.tile("o", DType::f32, 2 * b_.across, cols, Mem::scratch),
                                 l_.b.tile("o", DType::f32, 2 * b_.across, cols, Mem::scratch)};
      loop(l_, "x", b_.across, [&](Expr x) {
        columns(l_, cols, lanes, [&](const Slice& c, int64_t step) { square_back(m, y, x, c, step, o); });
      });
      for (int64_t i = 0; i < 2; i++) {
        auto put = [&] { store(o[i], panel, (row_ + y) * 2 + i); };
        if (i == 1 && c_.w.out[1].num() % 2)
          l_.b.when(kir::Cmp::lt, (row_ + y) * 2 + 1, c_.w.out[1], put);
        else
          put();
      }
    });
  }

  // Rows and columns alike: m0 + m1 + m2, m1 - m2 - m3.
  void square_back(const Ref& m, const Expr& y, const Expr& x, const Slice& c, int64_t step,
                   const std::array<Ref, 2>& o) {
    std::array<std::array<Ref, 4>, 2> s;
    for (int64_t j = 0; j < 4; j++) {
      std::array<Ref, 4> d;
      for (int64_t i = 0; i < 4; i++) {
        d[i] = l_.b.tile("d", DType::f32, 1, step);
        l_.b.copy(d[i], Builder::part(m, (i * 4 + j) * b_.pitch() + y * b_.across + x, 1, c.at, step));
      }
      s[0][j] = fresh(kir::S::add, fresh(kir::S::add, d[0], d[1], step), d[2], step);
      s[1][j] = fresh(kir::S::sub, fresh(kir::S::sub, d[1], d[2], step), d[3], step);
    }
    for (int64_t i = 0; i < 2; i++) {
      auto put = [&](int64_t j, const Ref& v) { l_.b.copy(Builder::part(o[i], x * 2 + j, 1, c.at, step), v); };
      put(0, fresh(kir::S::add, fresh(kir::S::add, s[i][0], s[i][1], step), s[i][2], step));
      put(1, fresh(kir::S::sub, fresh(kir::S::sub, s[i][1], s[i][2], step), s[i][3], step));
    }
  }

  // The pixels of one row that exist, in squares of registers.
  void store(const Ref& o, const Expr& panel, const Expr& row) {
    const int64_t lanes = l_.target().lanes, width = c_.w.out[2].num();
    const bool whole = b_.across == halves(c_.w.out[2]);
    const Expr pixels = whole ? Expr(width) : min(Expr(2 * b_.across), Expr(width) - col_ * 2);
    columns(l_, pixels, lanes, [&](const Slice& p, int64_t rows) {
      columns(l_, b_.tile.cols, lanes, [&](const Slice& c, int64_t step) {
        const Expr channel = panel * b_.tile.cols + c.at;
        const Expr channels =
            c_.out % b_.tile.cols ? max(Expr(0), min(Expr(step), Expr(c_.out) - channel)) : Expr(step);
        emit_space(l_, c_.anchor, c_.space, Builder::part(o, p.at, rows, c.at, step),
                   {one(n_), one(0), one(row), {col_ * 2 + p.at, *p.n}, span_of(channel, channels)}, rows, step);
      });
    });
  }
};

bool is_square_of_three(const Window3& w) {
  return w.dims == 2 && w.kernel == std::array<int64_t, 3>{1, 3, 3} && w.stride == std::array<int64_t, 3>{1, 1, 1} &&
         w.dilation == std::array<int64_t, 3>{1, 1, 1} && w.out[1].is_num() && w.out[2].is_num();
}

// Is it faster than summing the nine taps?
bool pays(const Target& t, const WinogradConv& c, const Blocks& b) {
  const auto f = [](int64_t n) { return static_cast<double>(n); };
  const double squares = f(halves(c.w.out[1]) * halves(c.w.out[2])), pixels = f(c.w.out[1].num() * c.w.out[2].num());
  // Cycles: multiply-adds; a product's zeroing and storing; some 45 and 40 vector statements a square and vector of
  // channels. Weights that do not stay in L2 arrive at 4 bytes a cycle.
  const double fma = 1.0 / (t.lanes * t.fma_per_cycle);
  const double products =
      kPlaces * squares * f(b.panels * b.tile.cols) * (f(c.in) * fma + 50.0 / (b.tile.rows * b.tile.cols));
  const double parts = std::ceil(f(b.panels) / f(b.chunk));
  const double sums = squares * (45.0 * f(c.in) * parts + 40.0 * f(c.out)) / t.lanes;
  const double direct = 9 * pixels * f(c.in * c.out) * fma;
  auto streamed = [&](double bytes) { return bytes > f(t.l2_bytes) / 2 ? bytes / 4 : 0; };
  return 1.2 * (products + sums + streamed(4 * kPlaces * f(c.in * c.out))) < direct + streamed(4 * 9 * f(c.in * c.out));
}

}  // namespace

bool emit_winograd(Lowering& l, const WinogradConv& c) {
  if (!is_square_of_three(c.w)) return false;
  const std::optional<Blocks> b = choose(l, c);
  if (!b || !pays(l.target(), c, *b)) return false;
  Winograd(l, c, *b).emit();
  return true;
}

}  // namespace gaf
