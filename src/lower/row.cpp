// Rows: any DAG of pointwise nodes and reductions over the same axes (softmax, normalisations, pooling over all pixels,
// sums of columns, losses). The work on one row is a sequence of sweeps over its reduced dims; sweep k computes what
// needs the results of k earlier reductions. A value that a later sweep needs again is recomputed if that is cheap,
// else kept in the output's own row, in scratch, or in a temporary.
//
// Lanes run along the last merged dim. If that is reduced, accumulators are lanes of partial results, folded after the
// sweep; if it is kept, every lane is a row of its own. Short rows are one tile and never leave the registers.
#include <algorithm>
#include <cmath>

#include "lower/nest.h"
#include "lower/row_plan.h"

namespace gaf {

namespace {

using kir::Ref;
using kir::S;

class RowKernel {
 public:
  RowKernel(Lowering& l, SweepPlan plan) : l_(l), p_(std::move(plan)), rank_(p_.box.sides.size()) {
    for (const Box::Side& s : p_.box.sides) extents_.push_back(s.hi);
    horizontal_ = p_.reduced[rank_ - 1];
    for (size_t d = 0; d + 1 < rank_; d++) (p_.reduced[d] ? loops_ : kept_).push_back(d);
    step_ = column_step(cols(), row_width(l.target(), p_.widest), l.target().lanes);
    if (p_.short_rows) step_ = std::max(8, l.target().lanes) * (extents_[rank_ - 2].num() <= 4 ? 2 : 1);
  }

  void write() {
    if (worth_splitting()) return write_split();
    if (horizontal_) {
      nest(l_, kept_extents(), reduced_work(), [&](const std::vector<Expr>& at) { row_at(at, {0}, 1); });
    } else {
      kept_tiles([&](const std::vector<Expr>& at, const kir::Slice& c, int64_t capacity) { row_at(at, c, capacity); },
                 reduced_work());
    }
  }

 private:
  using At = std::vector<kir::Slice>;
  const Expr& cols() const { return extents_[rank_ - 1]; }
  Dims kept_extents() const {
    Dims d;
    for (size_t k : kept_) d.push_back(extents_[k]);
    return d;
  }
  int64_t expect(const Expr& e) const { return std::max<int64_t>(1, l_.expect(e)); }
  int64_t reduced_work() const {  // elements of one sweep of one row (of one tile of rows, if the columns are kept)
    int64_t w = horizontal_ ? expect(cols()) : step_;
    for (size_t d : loops_) w *= expect(extents_[d]);
    return w;
  }
  // A short row in one tile: all sweeps share one body.
  bool one_tile() const { return horizontal_ && loops_.empty() && cols().is_num() && cols().num() <= step_; }

  using TileOfRows = std::function<void(const std::vector<Expr>&, const kir::Slice&, int64_t)>;
  // Units of work over kept dims and tiles of kept columns.
  void kept_tiles(const TileOfRows& body, int64_t work, const Dims& more = {}) {
    auto tiles = [&](const Expr& count, const std::function<std::pair<kir::Slice, int64_t>(const Expr&)>& tile) {
      Dims extents = kept_extents();
      extents.push_back(count);
      extents.insert(extents.end(), more.begin(), more.end());
      nest(l_, extents, work, [&](std::vector<Expr> at) {
        const auto [slice, capacity] = tile(at[kept_.size()]);
        at.erase(at.begin() + static_cast<ptrdiff_t>(kept_.size()));
        body(at, slice, capacity);
      });
    };
    if (!cols().is_num())
      return tiles(ceildiv(cols(), step_), [&](const Expr& u) {
        return std::pair{kir::Slice{u * step_, min(Expr(step_), cols() - u * step_)}, step_};
      });
    const int64_t whole = cols().num() / step_, rest = cols().num() % step_;
    if (whole) tiles(whole, [&](const Expr& u) { return std::pair{kir::Slice{u * step_, Expr(step_)}, step_}; });
    if (rest) tiles(1, [&](const Expr&) { return std::pair{kir::Slice{whole * step_, Expr(rest)}, rest}; });
  }

  At start(const std::vector<Expr>& kept, const kir::Slice& c) const {
    At at(rank_, kir::Slice{0});
    for (size_t i = 0; i < kept_.size(); i++) at[kept_[i]].at = kept[i];
    at[rank_ - 1] = c;
    return at;
  }

  // One row, or one tile of kept columns.
  void row_at(const std::vector<Expr>& kept, const kir::Slice& c, int64_t capacity) {
    At at = start(kept, c);
    if (one_tile() || p_.short_rows) {
      const int64_t n = extents_[p_.short_rows ? rank_ - 2 : rank_ - 1].num();
      at[p_.short_rows ? rank_ - 2 : rank_ - 1] = {0, Expr(n)};
      TileBody body(l_, at, p_.short_rows ? n : 1, p_.short_rows ? capacity : n, &p_.box.space);
      for (const SweepPlan::Sweep& s : p_.sweeps) {
        for (const SweepPlan::Reduction& r : s.reductions) {
          Ref total = l_.b.tile("s", r.type, 1, p_.short_rows ? capacity : 1);
          l_.b.reduce(total, r.op, p_.short_rows ? 0 : 1, body.tile(r.arg));
          body.bind(r.value, total);
        }
        for (size_t o : s.outputs) body.store_output(o);
        for (size_t o : s.row_outputs) body.store_output(o);
      }
      return;
    }
    TileBody row(l_, at, 1, capacity, &p_.box.space);
    declare_scratch(capacity);
    for (size_t k = 0; k < p_.sweeps.size(); k++) {
      const SweepPlan::Sweep& s = p_.sweeps[k];
      for (SweepPlan::Kept& v : p_.kept) set_place(v, k);
      if (!s.reductions.empty() || !s.outputs.empty()) {
        std::vector<Ref> totals = sweep(row, at, k, capacity, {});
        for (size_t i = 0; i < totals.size(); i++) row.bind(s.reductions[i].value, totals[i]);
      }
      for (size_t o : s.row_outputs) row.store_output(o);
    }
    for (SweepPlan::Kept& v : p_.kept)
      if (v.access) l_.forget_access(v.value);
  }

  void declare_scratch(int64_t capacity) {
    for (SweepPlan::Kept& v : p_.kept)
      if (v.where == SweepPlan::Kept::scratch)
        v.tile = horizontal_ ? l_.b.tile("kept", v.type, 1, cols().num(), Mem::scratch)
                             : l_.b.tile("kept", v.type, extents_[loops_[0]].num(), capacity, Mem::scratch);
  }

  // Where sweep k finds a kept value: in memory, once an earlier sweep has written it.
  void set_place(SweepPlan::Kept& v, size_t k) {
    if (!v.access) return;
    if (k > v.first)
      l_.set_access(v.value, *v.access);
    else
      l_.forget_access(v.value);
  }
  Ref scratch_part(const SweepPlan::Kept& v, const At& at) const {
    const kir::Slice& c = at[rank_ - 1];
    if (horizontal_) return kir::Builder::part(v.tile, 0, 1, c.at, *c.n);
    return kir::Builder::part(v.tile, at[loops_[0]].at, 1, 0, *c.n);
  }

  // A part of the reduced dims that one unit of a split reduction sums up.
  struct Part {
    int dim = -1;  // of the merged dims
    int64_t block = 0;
    Expr number;
  };

  // Loops over the reduced dims; returns one total for each reduction of sweep k: [1,1], or [1,W] if columns are kept.
  std::vector<Ref> sweep(TileBody& row, const At& row_at, size_t k, int64_t capacity, const std::optional<Part>& part) {
    const SweepPlan::Sweep& s = p_.sweeps[k];
    At at = row_at;
    for (size_t d : loops_)
      at[d].at = 1;  // differs from the row's: that these dims vary inside is all that matters here
    if (horizontal_) at[rank_ - 1] = {0, Expr(step_)};
    TileBody probe = row.moved(at, 1, horizontal_ ? step_ : capacity);
    for (const SweepPlan::Reduction& r : s.reductions) probe.hoist(row, r.arg);
    for (size_t o : s.outputs) probe.hoist(row, l_.output_sink(o).value);
    for (const SweepPlan::Kept& v : p_.kept)
      if (v.first == k && v.where != SweepPlan::Kept::own_output) probe.hoist(row, v.value);

    const int64_t width = horizontal_ ? step_ : capacity;
    const bool has_tail = horizontal_ && !(cols().is_num() && cols().num() % step_ == 0);
    std::vector<Ref> lanes, tails;
    for (const SweepPlan::Reduction& r : s.reductions) {
      lanes.push_back(l_.b.tile("a", r.type, 1, width));
      l_.b.map(lanes.back(), S::mov, {r.neutral});
      if (!has_tail) continue;
      tails.push_back(l_.b.tile("s", r.type, 1, 1));
      l_.b.map(tails.back(), S::mov, {r.neutral});
    }
    auto tile = [&](int64_t columns) {
      TileBody body = probe.moved(at, 1, columns);
      write_tile(body, at, k);
      for (size_t i = 0; i < s.reductions.size(); i++) {
        const SweepPlan::Reduction& r = s.reductions[i];
        if (columns == width && !(horizontal_ && body.ragged())) {
          body.accumulate(r.op, lanes[i], r.arg);
          continue;
        }
        Ref rest = l_.b.tile("s", r.type, 1, 1);
        l_.b.reduce(rest, r.op, 1, body.cut(body.tile(r.arg)));
        l_.b.map(tails[i], r.op, {tails[i], rest});
      }
      for (size_t o : s.outputs) body.store_output(o);
    };
    std::function<void(size_t)> open = [&](size_t i) {
      if (i == loops_.size()) {
        if (!horizontal_) return tile(capacity);
        const ColumnBody column = [&](const kir::Slice& c, int64_t columns) {
          at[rank_ - 1] = c;
          tile(columns);
        };
        if (part && part->dim == static_cast<int>(rank_ - 1))
          column_block(l_, cols(), step_, part->block, part->number, column);
        else
          columns(l_, cols(), step_, column);
        return;
      }
      const size_t d = loops_[i];
      const auto inner = [&, d, i](const Expr& x) {
        at[d].at = x;
        open(i + 1);
      };
      if (part && part->dim == static_cast<int>(d)) {
        const Expr from = part->number * part->block;
        l_.b.loop("k", from, min(extents_[d], from + part->block), 1, kir::LoopKind::seq, inner);
      } else {
        l_.b.loop("k", 0, extents_[d], 1, kir::LoopKind::seq, inner);
      }
    };
    open(0);
    if (!horizontal_) return lanes;
    std::vector<Ref> totals;
    for (size_t i = 0; i < s.reductions.size(); i++) {
      const SweepPlan::Reduction& r = s.reductions[i];
      totals.push_back(l_.b.tile("s", r.type, 1, 1));
      l_.b.reduce(totals.back(), r.op, 1, lanes[i]);
      if (has_tail) l_.b.map(totals.back(), r.op, {totals.back(), tails[i]});
    }
    return totals;
  }

  // Kept values of one tile: those of earlier sweeps are taken from where they lie, this sweep's are put there.
  void write_tile(TileBody& body, const At& at, size_t k) {
    for (const SweepPlan::Kept& v : p_.kept) {
      if (v.first < k && v.last >= k) {
        if (v.where == SweepPlan::Kept::scratch)
          body.bind(v.value, scratch_part(v, at));
        else if (v.last == k)
          body.tile(v.value);  // read before the output that shares its place is written
      }
      if (v.first == k && v.where != SweepPlan::Kept::own_output) {
        body.keep(v.value);
        if (v.where == SweepPlan::Kept::scratch)
          body.store(v.value, scratch_part(v, at));
        else
          body.store(v.value, l_.ref(*l_.through(*v.access, nullptr, &p_.box.space), at));
      } else if (v.first == k) {
        body.keep(v.value);
      }
    }
  }

  // ---- few rows of much data: parts of the reduction are units of their own, combined in order in a second phase ----

  static constexpr int64_t kPartElements = 4 * kUnitElements;

  bool worth_splitting() const {
    if (p_.sweeps.size() != 1 || !p_.sweeps[0].outputs.empty()) return false;
    int64_t units = horizontal_ ? 1 : (expect(cols()) + step_ - 1) / step_;
    for (size_t d : kept_) units *= expect(extents_[d]);
    return !p_.short_rows && units < 8 && reduced_work() >= 4 * kPartElements && (horizontal_ || !loops_.empty());
  }

  void write_split() {
    // the longest reduced dim is cut
    size_t dim = horizontal_ ? rank_ - 1 : loops_[0];
    for (size_t d : loops_)
      if (expect(extents_[d]) > expect(extents_[dim]) || (dim == rank_ - 1 && expect(cols()) < kPartElements)) dim = d;
    const int64_t others = std::max<int64_t>(1, reduced_work() / expect(extents_[dim]));
    int64_t block = std::max<int64_t>({1, kPartElements / others, expect(extents_[dim]) / 64});
    if (dim == rank_ - 1) block = std::max(step_, block / step_ * step_);
    const Expr parts = ceildiv(extents_[dim], block);

    const SweepPlan::Sweep& s = p_.sweeps[0];
    std::vector<Access> partial;  // over the kept dims, parts, and kept columns
    Dims dims = kept_extents();
    dims.push_back(parts);
    if (!horizontal_) dims.push_back(cols());
    for (const SweepPlan::Reduction& r : s.reductions) partial.push_back(dense(l_.temp(r.type, dims), dims));
    auto place = [&](const std::vector<Expr>& kept, const kir::Slice& p, const kir::Slice& c) {
      At at;
      for (const Expr& e : kept) at.push_back({e});
      at.push_back(p);
      if (!horizontal_) at.push_back(c);
      return at;
    };
    auto first = [&](std::vector<Expr> at, const kir::Slice& c, int64_t capacity) {
      const Expr number = at.back();
      at.pop_back();
      const At row_start = start(at, c);
      TileBody row(l_, row_start, 1, capacity, &p_.box.space);
      const std::vector<Ref> totals = sweep(row, row_start, 0, capacity, Part{static_cast<int>(dim), block, number});
      for (size_t i = 0; i < totals.size(); i++)
        l_.b.copy(l_.ref(partial[i], place(at, {number}, c)), horizontal_ ? totals[i] : row.cut(totals[i]));
    };
    const int64_t part_work = std::max<int64_t>(kUnitElements, others * block);
    if (horizontal_) {
      Dims extents = kept_extents();
      extents.push_back(parts);
      nest(l_, extents, part_work, [&](const std::vector<Expr>& at) { first(at, {0}, 1); });
    } else {
      kept_tiles(first, part_work, {parts});
    }
    l_.b.put({kir::Barrier{}});
    auto second = [&](const std::vector<Expr>& at, const kir::Slice& c, int64_t capacity) {
      TileBody row(l_, start(at, c), 1, capacity, &p_.box.space);
      for (size_t i = 0; i < partial.size(); i++) {
        const SweepPlan::Reduction& r = s.reductions[i];
        Ref total = l_.b.tile("s", r.type, 1, capacity);
        l_.b.map(total, S::mov, {r.neutral});
        l_.b.loop("k", 0, parts, 1, kir::LoopKind::seq, [&](const Expr& k) {
          Ref src = l_.ref(partial[i], place(at, {k}, c));
          if (row.ragged()) {
            Ref one = l_.b.tile("t", r.type, 1, capacity);
            l_.b.copy(one, std::move(src), r.neutral);
            src = one;
          }
          l_.b.map(total, r.op, {total, src});
        });
        row.bind(r.value, total);
      }
      for (size_t o : s.row_outputs) row.store_output(o);
    };
    if (horizontal_)
      nest(l_, kept_extents(), 1, [&](const std::vector<Expr>& at) { second(at, {0}, 1); });
    else
      kept_tiles(second, step_ * 64);
  }

  Lowering& l_;
  SweepPlan p_;
  size_t rank_;
  Dims extents_;
  std::vector<size_t> kept_, loops_;  // merged dims but the last: kept, reduced
  bool horizontal_ = true;
  int64_t step_ = 1;
};

}  // namespace

Attempt lower_row(const Graph& fn, const Target& t) {
  std::optional<Graph> rows = row_form(fn);
  if (!rows) return {};
  Lowering l(*rows, t);
  auto plan = plan_sweeps(l, fn.outputs.size());
  if (auto* why = std::get_if<Verdict>(&plan)) return std::move(*why);
  RowKernel(l, std::get<SweepPlan>(std::move(plan))).write();
  return l.finish("row");
}

}  // namespace gaf
