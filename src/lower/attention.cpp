// Attention: MatMul, anything pointwise on the scores (scale, mask), Softmax over the keys, MatMul. The scores of a
// block of queries live in scratch: of all keys where they fit, else of one block of keys after the other with running
// maximum and sum (online softmax). Queries, keys, values and the result are strided views; only K^T is re-laid, into
// panels in scratch. Fully masked rows give NaN, as the separate operators do. Knows no device but through Target.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lower/anchor.h"
#include "lower/attention_match.h"
#include "lower/nest.h"
#include "lower/tiles.h"

namespace gaf {
namespace {

using kir::Builder;
using kir::LoopKind;
using kir::Ref;
using kir::S;
using kir::Slice;

constexpr double kNothing = -std::numeric_limits<double>::infinity();
// Queries of a block (ISA.md "attention BQ"), and where keys come in blocks, of queries and of keys: large enough that
// re-laying the keys for each block of queries costs a few percent of the products.
constexpr int64_t kQueries = 64, kOnlineQueries = 128, kOnlineKeys = 128;

class Attention {
 public:
  Attention(const Graph& fn, const Target& t) : t_(t), l_(fn, t) {
    std::vector<uint32_t> products = nodes_of(l_.fn(), OpKind::contraction);
    first_ = products[0], second_ = products[1];
    scores_ = l_.fn().node(l_.fn().nodes[second_].args[0]).args[0];
  }

  Attempt run() {
    const Graph& fn = l_.fn();
    const Node &a = fn.nodes[first_], &b = fn.nodes[second_];
    auto refuse = [&](std::string reason, std::string_view why) {
      return Verdict::no(std::move(reason), fmt::format("MatMul '{}' {}", a.name, why));
    };
    for (Value v : {a.args[0], a.args[1], b.args[1]})
      if (!l_.access(v)) return refuse("not-fusable-op", "has an operand that is no view of an input");
    for (Value v : {a.args[0], a.args[1], b.args[1], Value{second_, 0}})
      if (fn.type(v).dtype != DType::f32) return refuse("unsupported-dtype", "is not float32");
    score_space_.dims = a.types[0].dims, out_space_.dims = b.types[0].dims;
    size_t rank = score_space_.dims.size();
    if (rank < 2 || fn.type(a.args[0]).dims.size() < 2 || out_space_.dims.size() != rank)
      return refuse("iteration-mismatch", "multiplies vectors");
    batch_.assign(out_space_.dims.begin(), out_space_.dims.end() - 2);
    queries_ = score_space_.dims[rank - 2], keys_ = score_space_.dims.back();
    Expr depth = fn.type(a.args[0]).dims.back(), width = out_space_.dims.back();
    if (!depth.is_num() || !width.is_num()) return refuse("dynamic-shape", "has heads of symbolic size");
    depth_ = depth.num(), width_ = width.num();
    auto whole = [&](Value v, const Expr& rows, const Expr& cols) {
      Dims d = batch_;
      d.insert(d.end(), {rows, cols});
      return broadcast(*l_.access(v), d);
    };
    std::optional<Access> q = whole(a.args[0], queries_, depth), k = whole(a.args[1], depth, keys_),
                          v = whole(b.args[1], keys_, width);
    if (!q || !k || !v || !unit_inner(*q) || !unit_inner(*v))
      return refuse("layout", "has operands whose heads are not contiguous");
    q_ = *q, k_ = *k, v_ = *v;
    if (std::optional<Verdict> no = refuse_values(l_, first_, score_space_, std::span(&scores_, 1))) return *no;
    if (std::optional<Verdict> no = refuse_space(l_, second_, out_space_)) return *no;
    if (std::optional<Verdict> no = choose()) return *no;
    emit();
    return l_.finish("attention");
  }

 private:
  const Target& t_;
  Lowering l_;
  uint32_t first_, second_;  // the products
  Value scores_;             // what the softmax reads
  Space score_space_, out_space_;
  Dims batch_;
  Expr queries_ = 1, keys_ = 1;
  int64_t depth_ = 1, width_ = 1;      // of a head of q and k, of v
  Access q_, k_, v_;                   // [batch..., queries, depth], [batch..., depth, keys], [batch..., keys, width]
  RegTile tile_;                       // of the scores
  int out_cols_ = 16;                  // columns of a tile of the result, as many rows
  int64_t block_ = 1, key_block_ = 1;  // queries and keys (padded to panels) of a block
  bool online_ = false;
  Expr query_blocks_ = 1, chunks_ = 1;  // blocks; units of work they are handed out in
  bool copy_q_ = false;                 // ragged queries: a block is copied, rows behind the last are 0
  struct Unit {
    std::vector<Expr> batch;
    Expr q0, rows;   // first query of the block, queries in it
    Expr k0, valid;  // first key of the block, keys in it
    Ref keys, scores, queries, scale;
    std::optional<Ref> top, sum, rescale,
        out;  // online: running maximum and sum, factor of what was summed before, result
  };

  std::optional<Verdict> choose() {
    int64_t scratch = t_.memory(Mem::scratch)->bytes * 9 / 10, vecs = t_.tile_vecs;
    bool fixed = queries_.is_num(), fixed_keys = keys_.is_num();
    tile_ = fixed ? pick_pixels(t_, queries_.num(), fixed_keys ? keys_.num() : kOnlineKeys)
                  : RegTile{std::max(1, std::min(8, max_tile_rows(t_, static_cast<int>(vecs)))),
                            static_cast<int>(vecs) * t_.lanes};
    out_cols_ = t_.lanes;
    for (int v : {2, 3, 4})  // the fewest panels of the result that the same rows allow
      if (max_tile_rows(t_, v) >= tile_.rows &&
          (width_ + v * t_.lanes - 1) / (v * t_.lanes) < (width_ + out_cols_ - 1) / out_cols_)
        out_cols_ = v * t_.lanes;
    auto padded = [&](int64_t n) { return (n + tile_.cols - 1) / tile_.cols * tile_.cols; };
    auto bytes = [&](int64_t queries, int64_t keys, bool online) {
      return 4 * (queries * keys + keys * depth_ + queries * (depth_ + 4 + (online ? width_ : 0)) + keys);
    };
    int64_t limit = kQueries;
    if (fixed_keys)
      while (limit > 2 * tile_.rows && bytes(limit, padded(keys_.num()), false) > scratch) limit /= 2;
    online_ = !fixed_keys || bytes(std::max<int64_t>(limit, tile_.rows), padded(keys_.num()), false) > scratch;
    if (online_) {
      limit = kOnlineQueries;
      key_block_ = padded(kOnlineKeys);
      if (fixed_keys) key_block_ = std::min(key_block_, padded(keys_.num()));
      while (limit > tile_.rows && bytes(limit, key_block_, true) > scratch) limit /= 2;
      limit = std::max<int64_t>(limit, tile_.rows);
      while (key_block_ > tile_.cols && bytes(limit, key_block_, true) > scratch) key_block_ = padded(key_block_ / 2);
      if (const int64_t needs = bytes(limit, key_block_, true); needs > scratch)
        return Verdict::no(
            "resource-local-memory",
            fmt::format("the smallest block of attention needs {:.1f} KiB of scratch, there are {:.1f} KiB",
                        static_cast<double>(needs) / 1024, static_cast<double>(scratch) / 1024),
            {{"needs_bytes", static_cast<double>(needs)}, {"scratch_bytes", static_cast<double>(scratch)}});
    } else {
      key_block_ = padded(keys_.num());
    }
    int64_t tiles = std::max<int64_t>(1, limit / tile_.rows);
    if (fixed) {  // equal blocks
      int64_t n = (queries_.num() + tile_.rows - 1) / tile_.rows, blocks = (n + tiles - 1) / tiles;
      tiles = (n + blocks - 1) / blocks;
    }
    block_ = tiles * tile_.rows;
    query_blocks_ = ceildiv(queries_, block_);
    copy_q_ = !fixed || queries_.num() % tile_.rows != 0;
    int64_t heads = 1;
    for (const Expr& b : batch_) heads *= l_.expect(b);
    // Keys are laid out once a unit: a unit is a head where there are heads enough, else a part of its queries.
    chunks_ = 1;
    if (online_)
      chunks_ = query_blocks_;
    else if (heads < 2 * t_.cores)
      chunks_ = min(query_blocks_, Expr((2 * t_.cores + heads - 1) / heads));
    return std::nullopt;
  }

  void emit() {
    Dims axes = batch_;
    axes.push_back(chunks_);
    par_nest(l_, axes, [&](std::vector<Expr> at) {
      Unit u;
      u.batch.assign(at.begin(), at.begin() + static_cast<long>(batch_.size()));
      u.keys = l_.b.tile("k", DType::f32, key_block_ / tile_.cols * depth_, tile_.cols, Mem::scratch);
      u.scores = l_.b.tile("s", DType::f32, block_, key_block_, Mem::scratch);
      u.scale = l_.b.tile("w", DType::f32, block_, 1, Mem::scratch);
      if (copy_q_) u.queries = l_.b.tile("q", DType::f32, block_, depth_, Mem::scratch);
      const Expr chunk = at.back();
      if (online_) {
        u.top = l_.b.tile("m", DType::f32, block_, 1, Mem::scratch);
        u.sum = l_.b.tile("l", DType::f32, block_, 1, Mem::scratch);
        u.rescale = l_.b.tile("f", DType::f32, block_, 1, Mem::scratch);
        u.out = l_.b.tile("o", DType::f32, block_, width_, Mem::scratch);
        return queries(u, chunk);
      }
      u.k0 = 0, u.valid = keys_;
      lay_keys(u);
      Expr per = ceildiv(query_blocks_, chunks_);
      Expr n = chunks_.is(1) ? query_blocks_ : min(per, query_blocks_ - chunk * per);
      loop(l_, "q", n, [&](Expr i) { queries(u, chunk * per + i); });
    });
  }

  // One block of queries against all keys.
  void queries(Unit& u, const Expr& block) {
    u.q0 = block * block_;
    u.rows = queries_.is_num() && queries_.num() % block_ == 0 ? Expr(block_) : min(Expr(block_), queries_ - u.q0);
    if (copy_q_) l_.b.copy(u.queries, full_ref(l_, q_, at(u, q_, span_of(u.q0, block_), span_of(0, depth_))), 0.0);
    if (!online_) {
      score_block(u);
      l_.b.loop("i", 0, row_tiles(u) * tile_.rows, 1, LoopKind::seq, [&](Expr i) { softmax_row(u, i); });
      products(u, 0, 1);
      return;
    }
    Expr n = ceildiv(keys_, key_block_);
    l_.b.loop("kb", 0, n, 1, LoopKind::seq, [&](Expr kb) {
      u.k0 = kb * key_block_;
      u.valid =
          keys_.is_num() && keys_.num() % key_block_ == 0 ? Expr(key_block_) : min(Expr(key_block_), keys_ - u.k0);
      lay_keys(u);
      score_block(u);
      l_.b.loop("i", 0, row_tiles(u) * tile_.rows, 1, LoopKind::seq, [&](Expr i) { online_row(u, i, kb); });
      products(u, kb, n);
    });
  }

  std::vector<Slice> at(const Unit& u, const Access& a, Slice rows, Slice cols) const {
    std::vector<Slice> s;
    for (size_t i = 0; i < u.batch.size(); i++) s.push_back(one(a.dims[i].is(1) ? Expr(0) : u.batch[i]));
    s.push_back(std::move(rows));
    s.push_back(std::move(cols));
    return s;
  }
  Expr row_tiles(const Unit& u) const { return copy_q_ ? ceildiv(u.rows, tile_.rows) : floordiv(u.rows, tile_.rows); }
  Expr key_panels(const Unit& u) const {
    bool whole = keys_.is_num() && keys_.num() % tile_.cols == 0;
    return whole ? floordiv(u.valid, tile_.cols) : ceildiv(u.valid, tile_.cols);
  }
  static Ref cell(const Ref& tile, const Expr& row) { return Builder::part(tile, row, 1, 0, 1); }

  // Panels [key panel][depth][key of the panel]; keys behind the last are 0.
  void lay_keys(const Unit& u) {
    loop(l_, "p", key_panels(u), [&](Expr p) {
      Ref dst = Builder::part(u.keys, p * depth_, depth_, 0, tile_.cols);
      Slice keys = span_of(u.k0 + p * tile_.cols, tile_.cols), all = span_of(0, depth_);
      std::optional<double> pad;
      if (!keys_.is_num() || keys_.num() % tile_.cols) pad = 0.0;
      if (unit_inner(k_)) return l_.b.copy(dst, full_ref(l_, k_, at(u, k_, all, keys)), pad);
      std::vector<int64_t> perm;
      for (size_t i = 0; i < k_.dims.size(); i++) perm.push_back(static_cast<int64_t>(i));
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      Access turned = *transpose(k_, perm);
      Ref src = full_ref(l_, turned, at(u, turned, keys, all));
      src.transposed = true;
      l_.b.copy(dst, src, pad);
    });
  }

  // Scores of the block, after scale and mask.
  void score_block(const Unit& u) {
    kir::Builder& b = l_.b;
    loop(l_, "p", key_panels(u), [&](Expr p) {
      Expr col = p * tile_.cols;
      Expr cols =
          keys_.is_num() && keys_.num() % tile_.cols == 0 ? Expr(tile_.cols) : min(Expr(tile_.cols), u.valid - col);
      loop(l_, "t", row_tiles(u), [&](Expr t) {
        Expr row = t * tile_.rows;
        Ref acc = b.tile("acc", DType::f32, tile_.rows, tile_.cols);
        b.map(acc, S::mov, {0.0});
        Ref a = copy_q_ ? Builder::part(u.queries, row, tile_.rows, 0, depth_)
                        : full_ref(l_, q_, at(u, q_, span_of(u.q0 + row, tile_.rows), span_of(0, depth_)));
        b.mma(acc, a, Builder::part(u.keys, p * depth_, depth_, 0, tile_.cols));
        Expr rows = copy_q_ ? min(Expr(tile_.rows), u.rows - row) : Expr(tile_.rows);
        std::vector<Slice> here;
        for (const Expr& e : u.batch) here.push_back(one(e));
        here.push_back(span_of(u.q0 + row, rows));
        here.push_back(span_of(u.k0 + col, cols));
        TileBody body(l_, here, tile_.rows, tile_.cols, &score_space_);
        body.bind({first_, 0}, acc, true);
        Ref done = body.tile(scores_);
        b.copy(Builder::part(u.scores, row, tile_.rows, col, cols),
               cols.is(tile_.cols) ? done : Builder::part(done, 0, tile_.rows, 0, cols));
      });
    });
  }

  // Columns of a softmax step over a row of scores.
  int64_t step() const { return column_step(key_block_, t_.row_lanes, t_.lanes); }

  // The steps that hold keys.
  Expr row_end(const Unit& u, int64_t w) const { return u.valid.is_num() ? Expr(key_block_) : ceildiv(u.valid, w) * w; }

  // Keys behind the last count as masked.
  void pad_row(const Unit& u, const Expr& i) {
    if (u.valid.is(key_block_)) return;
    auto fill = [&] {
      Expr n = Expr(key_block_) - u.valid;
      int64_t most = n.is_num() ? n.num() : key_block_;
      Ref nothing = l_.b.tile("z", DType::f32, 1, most);
      l_.b.map(nothing, S::mov, {kNothing});
      l_.b.copy(Builder::part(u.scores, i, 1, u.valid, n), n.is_num() ? nothing : Builder::part(nothing, 0, 1, 0, n));
    };
    if (u.valid.is_num())
      fill();
    else
      l_.b.when(kir::Cmp::lt, u.valid, key_block_, fill);
  }

  // exp(score - top) over a row, in place; the sum of it.
  Ref top_of_row(const Unit& u, const Expr& i) {
    kir::Builder& b = l_.b;
    int64_t w = step();
    pad_row(u, i);
    Ref most = b.tile("v", DType::f32, 1, w), top = b.tile("t", DType::f32, 1, 1);
    b.map(most, S::mov, {kNothing});
    b.loop("c", 0, row_end(u, w), w, LoopKind::seq, [&](Expr c) {
      b.map(most, S::max, {Builder::part(u.scores, i, 1, c, w), most});
    });
    b.reduce(top, S::max, 1, most);
    return top;
  }
  Ref exp_of_row(const Unit& u, const Expr& i, const Ref& top) {
    kir::Builder& b = l_.b;
    int64_t w = step();
    Ref sums = b.tile("v", DType::f32, 1, w), sum = b.tile("t", DType::f32, 1, 1);
    b.map(sums, S::mov, {0.0});
    b.loop("c", 0, row_end(u, w), w, LoopKind::seq, [&](Expr c) {
      Ref x = b.tile("x", DType::f32, 1, w), cell = Builder::part(u.scores, i, 1, c, w);
      b.map(x, S::sub, {cell, top});
      b.map(x, S::expn, {x});
      b.copy(cell, x);
      b.map(sums, S::add, {sums, x});
    });
    b.reduce(sum, S::add, 1, sums);
    return sum;
  }

  void softmax_row(const Unit& u, const Expr& i) {
    Ref sum = exp_of_row(u, i, top_of_row(u, i));
    l_.b.map(sum, S::recip, {sum});
    l_.b.copy(cell(u.scale, i), sum);
  }

  // The same with what came before: new maximum, factor for the old sums, new sum. While all keys so far are masked the
  // maximum is -inf and 0 is subtracted instead; a sum that stays 0 makes the row NaN at the end.
  void online_row(const Unit& u, const Expr& i, const Expr& kb) {
    kir::Builder& b = l_.b;
    Ref before = b.tile("t", DType::f32, 1, 1), old = b.tile("t", DType::f32, 1, 1);
    b.when(
        kir::Cmp::eq, kb, 0,
        [&] {
          b.map(before, S::mov, {kNothing});
          b.map(old, S::mov, {0.0});
        },
        [&] {
          b.copy(before, cell(*u.top, i));
          b.copy(old, cell(*u.sum, i));
        });
    Ref top = top_of_row(u, i);
    b.map(top, S::max, {top, before});
    b.copy(cell(*u.top, i), top);
    Ref none = b.tile("n", DType::b1, 1, 1);
    b.map(none, S::eq, {top, kNothing});
    b.map(top, S::select, {none, 0.0, top});
    b.map(before, S::sub, {before, top});
    b.map(before, S::expn, {before});
    b.copy(cell(*u.rescale, i), before);
    Ref sum = exp_of_row(u, i, top);
    b.map(sum, S::fma, {old, before, sum});
    b.copy(cell(*u.sum, i), sum);
    b.map(sum, S::recip, {sum});
    b.copy(cell(u.scale, i), sum);
  }

  // Result tiles of the block of queries: exp(scores) * v, divided by the sums after the last block of keys.
  void products(const Unit& u, const Expr& kb, const Expr& key_blocks) {
    kir::Builder& b = l_.b;
    loop(l_, "d", (width_ + out_cols_ - 1) / out_cols_, [&](Expr d) {
      Expr col = d * out_cols_;
      Expr cols = width_ % out_cols_ ? min(Expr(out_cols_), Expr(width_) - col) : Expr(out_cols_);
      loop(l_, "t", row_tiles(u), [&](Expr t) {
        Expr row = t * tile_.rows;
        Ref acc = b.tile("acc", DType::f32, tile_.rows, out_cols_);
        Ref part = cols.is(out_cols_) ? acc : Builder::part(acc, 0, tile_.rows, 0, cols);
        auto rows_of = [&](const Ref& tile) { return Builder::part(tile, row, tile_.rows, 0, 1); };
        Ref kept = online_ ? Builder::part(*u.out, row, tile_.rows, col, cols) : acc;
        b.map(acc, S::mov, {0.0});
        if (online_) b.when(kir::Cmp::lt, 0, kb, [&] { b.map(part, S::mul, {kept, rows_of(*u.rescale)}); });
        b.mma(part, Builder::part(u.scores, row, tile_.rows, 0, u.valid),
              full_ref(l_, v_, at(u, v_, span_of(u.k0, u.valid), span_of(col, cols))));
        auto finish = [&] {
          b.map(part, S::mul, {part, rows_of(u.scale)});
          Expr rows = copy_q_ ? min(Expr(tile_.rows), u.rows - row) : Expr(tile_.rows);
          std::vector<Slice> here;
          for (const Expr& e : u.batch) here.push_back(one(e));
          here.push_back(span_of(u.q0 + row, rows));
          here.push_back(span_of(col, cols));
          emit_space(l_, second_, out_space_, acc, here, tile_.rows, out_cols_);
        };
        if (online_)
          b.when(kir::Cmp::eq, kb, key_blocks - 1, finish, [&] { b.copy(kept, part); });
        else
          finish();
      });
    });
  }
};

}  // namespace

Attempt lower_attention(const Graph& fn, const Target& t) {
  std::optional<Graph> g = match_attention(fn);
  if (!g) return std::nullopt;
  return Attention(*g, t).run();
}

}  // namespace gaf
