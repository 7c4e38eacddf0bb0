// Contractions: MatMul and Gemm with any pointwise space on the result, and convolutions that are one (1x1, stride 1,
// no padding, channels last). Loops over row blocks and column panels around one register tile of `mma`; constant B is
// packed into panels at load time, run-time B is read in place where its rows are contiguous, else copied a panel at a
// time. Knows no device but through Target.
#include <fmt/format.h>

#include <algorithm>

#include "lower/nest.h"
#include "lower/product.h"
#include "lower/tiles.h"

namespace gaf {
namespace {

using kir::Builder;
using kir::LoopKind;
using kir::Ref;
using kir::Slice;

// K steps that one pass over the row block takes (ISA.md "K block"): longer products accumulate through scratch.
constexpr int64_t kMaxK = 1024;
// Up to this K a row block is sized with the rows of the result in it.
constexpr int64_t kShortK = 256;
// Below this many multiply-adds a kernel is not worth splitting for more workers.
constexpr double kWorthSplitting = 1e6;

std::optional<int64_t> number(const Expr& e) { return e.is_num() ? std::optional(e.num()) : std::nullopt; }

class Contraction : public Product {
 public:
  using Product::Product;
  // Why it cannot be written, though it is a product.
  std::optional<Verdict> refuse() {
    choose();
    if (made_a_ && rows_.capacity * kc_ * 4 > t_.memory(Mem::scratch)->bytes / 2)
      return Verdict::no("resource-local-memory", fmt::format("rows of {} elements are too long to be made for {} '{}'",
                                                              kc_, node().op, node().name));
    return std::nullopt;
  }
  Lowered write() {
    if (gemv_)
      emit_gemv();
    else
      emit();
    return l_.finish("contraction");
  }

 private:
  // Where B is read from: the packed constant, its own rows, or panels copied to scratch.
  enum class Source { packed, direct, panel } source_ = Source::direct;
  int packed_ = -1;  // parameter [batch..., panels, K, NR]
  RegTile tile_;
  RowPlan rows_;
  Expr panels_ = 1, k_blocks_ = 1;
  int64_t kc_ = 0;  // K of a block; 0: all of it, symbolic
  bool gemv_ = false;
  int side_by_side_ = 1;  // gemv: panels in one K loop

  // Register tile, blocks and where B comes from.
  void choose() {
    std::optional<int64_t> m = number(m_), n = number(n_), k = number(k_);
    bool few = m && *m <= 3;
    tile_ = few ? RegTile{static_cast<int>(*m), narrow(n)} : pick_tile(t_, m, n, aliasing_rows());
    int64_t scratch = t_.memory(Mem::scratch)->bytes;
    kc_ = k ? k_block(*k, kMaxK) : 0;
    bool ragged = !n || *n % tile_.cols != 0;
    if (constant_b_) {
      source_ = Source::packed;
    } else {
      source_ = turn_b_ || (ragged && k) ? Source::panel : Source::direct;
      // Copies need a static K: of a symbolic one, blocks.
      if (!k && (source_ == Source::panel || copy_a_)) kc_ = kMaxK / 4;
      if (k && *k > 2 * kMaxK && kc_ == *k && source_ == Source::panel) kc_ = kMaxK;
      while (source_ == Source::panel && kc_ * tile_.cols * 4 > scratch / 3) kc_ = kc_ / 2;
    }
    if (copy_a_ && kc_ == 0) kc_ = kMaxK / 4;
    if (made_a_) kc_ = *k;  // made once, for all panels
    panels_ = ceildiv(n_, tile_.cols);
    k_blocks_ = kc_ ? ceildiv(k_, kc_) : Expr(1);
    if (source_ == Source::packed) packed_ = pack();
    if (few && kc_ && k_blocks_.is(1) && source_ != Source::panel && !copy_a_ && panels_.is_num() &&
        (source_ == Source::packed || !ragged)) {
      // 4, 3 or 2 panels for 1, 2 or 3 rows, as long as every worker has some.
      int64_t most = std::min(5 - *m, std::max<int64_t>(1, panels_.num() / t_.cores));
      gemv_ = true, side_by_side_ = static_cast<int>(divisor_at_most(panels_.num(), most));
      return;
    }
    int64_t depth = kc_ ? kc_ : kMaxK;
    // With a short K the result's own rows weigh as much as those of A.
    int64_t width = n && depth <= kShortK ? depth + *n : depth;
    int64_t block = std::max<int64_t>(1, t_.row_block_bytes / (width * 4));
    // Two thirds of the scratch for a copied block of A or partial sums.
    int64_t row_bytes = (copy_a_ ? depth : 0) * 4 + (k_blocks_.is(1) ? 0 : tile_.cols * 4);
    if (row_bytes) block = std::min(block, scratch / 2 / row_bytes - tile_.rows);
    block = std::max<int64_t>(block, tile_.rows);
    double units = static_cast<double>(number(panels_).value_or(1));
    for (const Expr& b : batch_) units *= static_cast<double>(number(b).value_or(1));
    double work = m && n ? static_cast<double>(*m * *n) * static_cast<double>(k.value_or(64)) : 0;
    for (const Expr& b : batch_) work *= static_cast<double>(number(b).value_or(1));
    int64_t blocks = work < kWorthSplitting ? 1 : static_cast<int64_t>(4 * t_.cores / units) + 1;
    rows_ = plan_rows(m_, tile_.rows, block, blocks);
  }

  // Rows of A that lie a multiple of 4 KiB apart share one set of the L1 cache: no more of them than it has ways, less
  // the lines of B that pass through (ISA.md, 1024x1024x1024).
  int aliasing_rows() const {
    if (copy_a_) return 64;
    const Expr& stride = a_.strides[a_.strides.size() - 2];
    return stride.is_num() && stride.num() != 0 && stride.num() * 4 % 4096 == 0 ? 8 : 64;
  }

  // Columns of a panel for a few rows: the target's default, or less for a narrow result.
  int narrow(std::optional<int64_t> n) const {
    int64_t vecs = n ? (*n + t_.lanes - 1) / t_.lanes : t_.tile_vecs;
    return static_cast<int>(std::min<int64_t>(vecs, t_.tile_vecs)) * t_.lanes;
  }

  // [batch..., panel, k, column of the panel], zero behind the last column.
  int pack() {
    const Dims& dims = l_.fn().type(*constant_b_).dims;
    Pack p;
    size_t batch = op_ == "Conv" ? 0 : own_batch(dims.size());
    for (size_t i = 0; i < batch; i++) p.dst_dims.push_back(dims[i].num());
    p.dst_dims.insert(p.dst_dims.end(), {panels_.num(), k_.num(), tile_.cols});
    p.coef.assign(dims.size(), std::vector<int64_t>(batch + 3, 0));
    p.offset.assign(dims.size(), 0);
    for (size_t i = 0; i < batch; i++) p.coef[i][i] = 1;
    p.coef[static_cast<size_t>(roles_.k_dim)][batch + 1] = 1;
    if (roles_.n_dim >= 0) {
      p.coef[static_cast<size_t>(roles_.n_dim)][batch] = tile_.cols;
      p.coef[static_cast<size_t>(roles_.n_dim)][batch + 2] = 1;
    }
    return l_.pack_input(*constant_b_, p);
  }

  // Batch indices of something with these dims; one that it has only once has index 0.
  static std::vector<Slice> batch_slices(std::span<const Expr> at, const Dims* dims = nullptr) {
    std::vector<Slice> s;
    for (size_t i = 0; i < at.size(); i++) s.push_back(one(dims && (*dims)[i].is(1) ? Expr(0) : at[i]));
    return s;
  }
  Ref a_ref(std::span<const Expr> batch, const Expr& row, const Expr& rows, const Expr& k, const Expr& ks) {
    std::vector<Slice> at = batch_slices(batch, &a_.dims);
    at.push_back(span_of(row, rows));
    at.push_back(span_of(k, ks));
    return full_ref(l_, a_, at);
  }
  Ref b_ref(std::span<const Expr> batch, const Expr& panel, const Expr& k, const Expr& ks, const Expr& cols) {
    std::vector<Slice> at;
    if (source_ == Source::packed) {
      const Dims& dims = l_.fn().type(*constant_b_).dims;
      size_t own = op_ == "Conv" ? 0 : own_batch(dims.size());
      // those of the result's batch dims that are rows are 1 here
      for (size_t i = 0; i < own; i++) at.push_back(one(dims[i].is(1) ? Expr(0) : batch[roles_.batch - own + i]));
      at.insert(at.end(), {one(panel), span_of(k, ks), span_of(0, tile_.cols)});
      return Builder::at(packed_, at);
    }
    at = batch_slices(batch, &b_.dims);
    at.push_back(span_of(k, ks));
    at.push_back(span_of(panel * tile_.cols, cols));
    return full_ref(l_, b_, at);
  }
  Expr columns(const Expr& panel) const {
    if (n_.is_num() && n_.num() % tile_.cols == 0) return tile_.cols;
    return min(Expr(tile_.cols), n_ - panel * tile_.cols);
  }

  // Runs `body` for every tile of a row block: the run, the tile's number in the block, and its first row.
  void each_tile(const Expr& block, const std::function<void(const RowRun&, Expr, Expr)>& body) {
    for (const RowRun& run : rows_.runs(block))
      loop(l_, "t", run.count, [&](Expr u) { body(run, u, run.first + u * run.rows); });
  }

  void emit() {
    Dims axes = batch_;
    axes.push_back(rows_.blocks);
    bool panels_outside = !(copy_a_ && k_blocks_.is(1));
    if (panels_outside) axes.push_back(panels_);
    par_nest(l_, axes, [&](std::vector<Expr> at) {
      std::span<const Expr> batch(at.data(), batch_.size());
      const Expr& block = at[batch_.size()];
      if (panels_outside) return panel(batch, block, at.back(), {});
      Ref a = copy_block(batch, block, 0, kc_);
      loop(l_, "p", panels_, [&](Expr p) { panel(batch, block, p, a); });
    });
  }

  // A row block of A with K contiguous.
  Ref copy_block(std::span<const Expr> batch, const Expr& block, const Expr& k, const Expr& ks) {
    Ref tile = l_.b.tile("a", DType::f32, rows_.capacity, kc_, Mem::scratch);
    if (made_a_) {
      make_block(batch, block, tile);
      return tile;
    }
    Access turned = *swap_last(a_);
    each_tile(block, [&](const RowRun& run, Expr u, Expr row) {
      std::vector<Slice> at = batch_slices(batch, &a_.dims);
      at.push_back(span_of(k, ks));
      at.push_back(span_of(row, run.rows));
      Ref src = full_ref(l_, turned, at);
      src.transposed = true;
      l_.b.copy(Builder::part(tile, u * run.rows + run.offset, run.rows, 0, ks), src);
    });
    return tile;
  }

  // The same of an A that pointwise nodes make.
  void make_block(std::span<const Expr> batch, const Expr& block, const Ref& tile) {
    const Dims dims = made_a_->merged();
    int64_t step = column_step(k_, t_.row_lanes, t_.lanes);
    each_tile(block, [&](const RowRun& run, Expr u, Expr row) {
      l_.b.loop("r", 0, run.rows, 1, LoopKind::seq, [&](Expr r) {
        gaf::columns(l_, k_, step, [&](const Slice& c, int64_t width) {
          std::vector<Slice> at = batch_slices(batch, &dims);
          at.push_back(span_of(row + r, 1));
          at.push_back(c);
          TileBody body(l_, at, 1, width, &*made_a_);
          body.store(node().args[0], Builder::part(tile, u * run.rows + run.offset + r, 1, c.at, *c.n));
        });
      });
    });
  }

  void panel(std::span<const Expr> batch, const Expr& block, const Expr& p, std::optional<Ref> copied_a) {
    kir::Builder& b = l_.b;
    Expr cols = columns(p);
    std::optional<Ref> sums;
    if (!k_blocks_.is(1)) sums = b.tile("s", DType::f32, rows_.capacity, tile_.cols, Mem::scratch);
    auto block_of_k = [&](Expr kb) {
      Expr k0 = kb * kc_, ks = kc_ && k_.is_num() && k_.num() % kc_ == 0 ? Expr(kc_)
                               : kc_                                     ? min(Expr(kc_), k_ - k0)
                                                                         : k_;
      std::optional<Ref> a = copied_a, own_b;
      if (copy_a_ && !a) a = copy_block(batch, block, k0, ks);
      if (source_ == Source::panel) own_b = copy_panel(batch, p, k0, ks);
      each_tile(block, [&](const RowRun& run, Expr u, Expr row) {
        Ref acc = b.tile("acc", DType::f32, run.rows, tile_.cols);
        Ref kept = sums ? Builder::part(*sums, u * run.rows + run.offset, run.rows, 0, tile_.cols) : acc;
        auto zero = [&] { b.map(acc, kir::S::mov, {0.0}); };
        if (sums)
          b.when(kir::Cmp::eq, kb, 0, zero, [&] { b.copy(acc, kept); });
        else
          zero();
        bool part = source_ == Source::direct && !cols.is(tile_.cols);
        std::vector<Slice> at = batch_slices(batch);
        at.push_back(span_of(row, run.rows));
        at.push_back(span_of(p * tile_.cols, cols));
        std::vector<Ref> soon = ahead(batch, p, kb, run, u);
        if (std::optional<Ref> result = sums ? std::nullopt : output_ahead(l_, space_, at, l_.expect(k_)))
          soon.push_back(*result);
        b.mma(part ? Builder::part(acc, 0, run.rows, 0, cols) : acc,
              a ? Builder::part(*a, u * run.rows + run.offset, run.rows, 0, ks) : a_ref(batch, row, run.rows, k0, ks),
              own_b ? Builder::part(*own_b, 0, ks, 0, tile_.cols) : b_ref(batch, p, k0, ks, cols), std::move(soon));
        auto finish = [&] { emit_space(l_, anchor_, space_, acc, at, run.rows, tile_.cols); };
        if (sums)
          b.when(kir::Cmp::eq, kb, k_blocks_ - 1, finish, [&] { b.copy(kept, acc); });
        else
          finish();
      });
    };
    if (k_blocks_.is(1))
      block_of_k(0);
    else
      b.loop("kb", 0, k_blocks_, 1, LoopKind::seq, block_of_k);
  }

  // A panel of B in scratch, zero behind the last column.
  Ref copy_panel(std::span<const Expr> batch, const Expr& p, const Expr& k, const Expr& ks) {
    Ref tile = l_.b.tile("b", DType::f32, kc_, tile_.cols, Mem::scratch);
    std::vector<Slice> at = batch_slices(batch, &b_.dims);
    Slice rows = span_of(k, ks), cols = span_of(p * tile_.cols, tile_.cols);
    std::optional<double> pad;
    if (!columns(p).is(tile_.cols)) pad = 0.0;
    Ref dst = Builder::part(tile, 0, ks, 0, tile_.cols);
    if (!turn_b_) {
      at.insert(at.end(), {rows, cols});
      l_.b.copy(dst, full_ref(l_, b_, at), pad);
      return tile;
    }
    at.insert(at.end(), {cols, rows});
    Ref src = full_ref(l_, *swap_last(b_), at);
    src.transposed = true;
    l_.b.copy(dst, src, pad);
    return tile;
  }

  // The share of the next panel that this tile fetches (ISA.md "Panel prefetch").
  std::vector<Ref> ahead(std::span<const Expr> batch, const Expr& p, const Expr& kb, const RowRun& run, const Expr& u) {
    if (!t_.prefetch_panel || source_ != Source::packed || (panels_.is(1) && k_blocks_.is(1))) return {};
    int64_t tiles = rows_.capacity / rows_.tile, share = (kc_ + tiles - 1) / tiles;
    if (run.rows != rows_.tile) return {};
    // Panels follow one another, and so do the K blocks of a panel: the next block starts behind this one.
    bool last = k_blocks_.is(1);
    return {b_ref(batch, last ? p + 1 : p, (last ? Expr(0) : (kb + 1) * kc_) + u * share, share, tile_.cols)};
  }

  // Few rows: several panels in one K loop, so that enough independent sums and streams are in flight.
  void emit_gemv() {
    kir::Builder& b = l_.b;
    Dims axes = batch_;
    axes.push_back(floordiv(panels_, side_by_side_));
    int64_t m = m_.num(), k = k_.num(), step = std::min<int64_t>(k, 4), main = k / step * step;
    par_nest(l_, axes, [&](std::vector<Expr> at) {
      std::span<const Expr> batch(at.data(), batch_.size());
      std::vector<Ref> acc;
      for (int i = 0; i < side_by_side_; i++) {
        acc.push_back(b.tile("acc", DType::f32, m, tile_.cols));
        b.map(acc.back(), kir::S::mov, {0.0});
      }
      auto steps = [&](const Expr& k0, int64_t n) {
        for (int i = 0; i < side_by_side_; i++)
          b.mma(acc[static_cast<size_t>(i)], a_ref(batch, 0, m, k0, n),
                b_ref(batch, at.back() * side_by_side_ + i, k0, n, tile_.cols));
      };
      b.loop("k", 0, main, step, LoopKind::seq, [&](Expr k0) { steps(k0, step); });
      if (k > main) steps(main, k - main);
      for (int i = 0; i < side_by_side_; i++) {
        Expr p = at.back() * side_by_side_ + i;
        std::vector<Slice> space = batch_slices(batch);
        space.push_back(span_of(0, m));
        space.push_back(span_of(p * tile_.cols, columns(p)));
        emit_space(l_, anchor_, space_, acc[static_cast<size_t>(i)], space, m, tile_.cols);
      }
    });
  }
};

}  // namespace

// Also used for convolutions that are contractions; `node` is the function's only heavy node.
Attempt emit_contraction(const Graph& fn, uint32_t node, const Target& t) {
  std::optional<Verdict> no;
  bool again = true;
  for (size_t first = 0; again; first++) {
    Contraction c(fn, node, t, first);
    std::optional<Verdict> why = c.prepare(again);
    if (!why) why = c.refuse();
    if (!why) return c.write();
    no = std::move(why);
    again = again && first < c.batches();
  }
  return *no;
}

Attempt lower_contraction(const Graph& fn, const Target& t) {
  std::vector<uint32_t> nodes = nodes_of(fn, OpKind::contraction);
  if (nodes.empty()) return std::nullopt;
  if (nodes.size() > 1 || !nodes_of(fn, OpKind::conv).empty() || !nodes_of(fn, OpKind::pool).empty())
    return Verdict::no("compute-compute", "several contractions in one kernel");
  return emit_contraction(fn, nodes[0], t);
}

}  // namespace gaf
