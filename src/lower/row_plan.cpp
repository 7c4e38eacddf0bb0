// The order of a row kernel's work, and what it keeps between sweeps.
#include "lower/row_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lower/nest.h"

namespace gaf {

namespace {

class Planner {
 public:
  Planner(Lowering& l, size_t outputs) : l_(l), g_(l.fn()), outputs_(outputs) {}

  std::variant<SweepPlan, Verdict> plan() {
    const uint32_t first = *first_reduction(g_);
    dims_ = g_.type(g_.nodes[first].args[0]).dims;
    axes_ = axes_of(g_, g_.nodes[first]);
    rows_ = ones_at(dims_, axes_);
    if (dims_.empty()) return Verdict::no("iteration-mismatch", "reduces a scalar");
    p_.box.space.dims = dims_;
    for (size_t o = 0; o < outputs_; o++)
      if (std::optional<Verdict> why = place_output(o)) return std::move(*why);
    find_live();
    for (uint32_t i = 0; i < g_.nodes.size(); i++)
      if (live_[i] && is_kind(g_.nodes[i], OpKind::reduction))
        if (std::optional<Verdict> why = add_reduction(i)) return std::move(*why);
    if (std::optional<Verdict> why = merge()) return std::move(*why);
    order();
    keep_values();
    return std::move(p_);
  }

 private:
  Lowering& l_;
  const Graph& g_;
  size_t outputs_;
  SweepPlan p_;
  Dims dims_, rows_;
  std::vector<int64_t> axes_;
  std::vector<bool> live_;
  std::vector<SweepPlan::Reduction> reductions_;
  std::vector<size_t> need_;  // per node: sweeps that must be over before it can be computed

  // The output as an access over the space, or over its rows.
  std::optional<Verdict> place_output(size_t o) {
    Lowering::Sink sink = l_.output_sink(o);
    if (sink.access.dims == dims_ || sink.access.dims == rows_) return {};
    const Node& node = g_.node(sink.value);
    for (uint32_t i = 0; i < g_.nodes.size(); i++) {
      const Node& n = g_.nodes[i];
      if (n.op != "Reshape" || n.args[0] != sink.value || (n.types[0].dims != dims_ && n.types[0].dims != rows_))
        continue;
      std::optional<Access> a = reshape(sink.access, n.types[0].dims);
      if (!a) continue;
      // finer dims than either shape has, so that operands of both are strided
      if (std::optional<Dims> fine = refined(dims_, sink.access.dims);
          fine && *fine != dims_ && n.types[0].dims == dims_ && p_.box.space.fine.empty())
        p_.box.space.fine = *fine;
      l_.set_output_sink(o, {{i, 0}, std::move(*a)});
      return {};
    }
    return Verdict::no("iteration-mismatch",
                       node.op + " " + node.name + " has neither the shape of the reduced tensor nor of its rows");
  }

  void find_live() {
    live_.assign(g_.nodes.size(), false);
    for (size_t o = 0; o < outputs_; o++) live_[l_.output_sink(o).value.node] = true;
    for (size_t i = g_.nodes.size(); i-- > 0;)
      if (live_[i])
        for (Value a : g_.nodes[i].args)
          if (a != kNoValue) live_[a.node] = true;
  }

  std::optional<Verdict> add_reduction(uint32_t i) {
    const Node& n = g_.nodes[i];
    auto no = [&](std::string reason, std::string why) {
      return Verdict::no(std::move(reason), n.op + " " + n.name + ": " + why);
    };
    if (run_time_axes(g_, n)) return no("dynamic-shape", "its axes are only known at run time");
    if (g_.type(n.args[0]).dims != dims_ || axes_of(g_, n) != axes_)
      return no("iteration-mismatch", "reduces another shape or other axes than the rest of the group");
    SweepPlan::Reduction r;
    r.value = {i, 0}, r.arg = n.args[0];
    const DType t = n.types[0].dtype;
    if (t == DType::b1) return no("unsupported-dtype", "reduces booleans");
    r.type = compute_type(t);
    const bool real = is_float(r.type);
    if (n.op == "ReduceSum")
      r.op = kir::S::add;
    else if (n.op == "ReduceProd")
      r.op = kir::S::mul;
    else if (n.op == "ReduceMax")
      r.op = real && !only_subtracted(r.value) ? kir::S::maxp : kir::S::max;
    else if (n.op == "ReduceMin")
      r.op = real ? kir::S::minp : kir::S::min;
    else
      return no("not-fusable-op", "no reduction that kernels know");
    r.neutral = kir::neutral(r.op);
    if (!real && (r.op == kir::S::max || r.op == kir::S::min)) r.neutral = end_of(r.type, r.op == kir::S::max);
    reductions_.push_back(r);
    return {};
  }

  // Softmax: the maximum is only subtracted, so a NaN that it misses still reaches every result through the exponent.
  bool only_subtracted(Value v) const {
    for (uint32_t i = 0; i < g_.nodes.size(); i++)
      if (live_[i] && std::ranges::find(g_.nodes[i].args, v) != g_.nodes[i].args.end() && g_.nodes[i].op != "Sub")
        return false;
    for (size_t o = 0; o < outputs_; o++)
      if (l_.output_sink(o).value == v) return false;
    return true;
  }

  // The lowest or highest integer of a dtype, as near as a double tells it.
  static double end_of(DType t, bool low) {
    const int bits = 8 * bytes(t);
    if (!row(t).is_signed) return low ? 0 : std::ldexp(1.0, bits) - (bits > 53 ? 2048 : 1);
    return low ? -std::ldexp(1.0, bits - 1) : std::ldexp(1.0, bits - 1) - (bits > 53 ? 1024 : 1);
  }

  // Where everything that the reductions and outputs read lies, or why it does not.
  std::optional<Verdict> probe_leaves(std::vector<Access>& accesses) {
    const std::vector<kir::Slice> all(p_.box.space.merged().size(), kir::Slice{0, Expr(1)});
    TileBody probe(l_, all, 1, 1, &p_.box.space);
    for (const SweepPlan::Reduction& r : reductions_) probe.assume(r.value);
    for (const SweepPlan::Reduction& r : reductions_)
      if (std::optional<Verdict> why = probe.refuse(r.arg)) return why;
    for (size_t o = 0; o < outputs_; o++)
      if (std::optional<Verdict> why = probe.refuse(l_.output_sink(o).value)) return why;
    accesses = probe.leaf_accesses();
    return {};
  }

  std::optional<Verdict> merge() {
    Space& space = p_.box.space;
    std::vector<Access> accesses;
    std::optional<Verdict> why = probe_leaves(accesses);
    if (why && space.fine.empty()) {
      std::vector<Value> values;
      for (const SweepPlan::Reduction& r : reductions_) values.push_back(r.arg);
      for (size_t o = 0; o < outputs_; o++) values.push_back(l_.output_sink(o).value);
      if (std::optional<Dims> fine = finer_dims(l_, dims_, values)) {
        space.fine = std::move(*fine);
        why = probe_leaves(accesses);
      }
    }
    if (why) return why;
    const Dims& dims = space.fine.empty() ? dims_ : space.fine;
    for (size_t o = 0; o < outputs_; o++) {
      std::optional<Access> a = l_.through(l_.output_sink(o).access, nullptr, &space);
      if (!a) return Verdict::no("iteration-mismatch", "an output is no strided view over the reduced tensor");
      accesses.push_back(std::move(*a));
    }
    // which dims are reduced: a stand-in that varies along rows only
    Access row_probe = dense(0, rows_);
    for (size_t d = 0; d < rows_.size(); d++) row_probe.strides[d] = rows_[d].is(1) ? 0 : 1;
    const Access varies = *l_.through(row_probe, nullptr, &space);
    std::vector<int> classes;
    for (size_t d = 0; d < dims.size(); d++) classes.push_back(varies.strides[d].is(0));
    for (const Expr& d : dims) p_.box.sides.push_back({0, d});
    merge_space(p_.box, accesses, classes);
    size_t at = 0;
    for (size_t m : p_.box.space.merge) {
      bool reduced = false, real = false;
      for (size_t i = 0; i < m; i++, at++) {
        reduced = reduced || (classes[at] && !dims[at].is(1));
        real = real || !dims[at].is(1);
      }
      p_.reduced.push_back(reduced || !real);
    }
    turn_short_rows();
    return {};
  }

  // Lanes along a row of a few elements would mostly be empty: many rows are taken at once and transposed in registers.
  void turn_short_rows() {
    const Dims merged = p_.box.space.merged();
    const size_t rank = merged.size();
    if (rank < 2 || !p_.reduced[rank - 1] || p_.reduced[rank - 2] || std::ranges::count(p_.reduced, true) != 1) return;
    const Expr& n = merged[rank - 1];
    // Each element of a row is a register; of several reductions, three of them live at once.
    const int most = reductions_.size() > 1 ? l_.target().max_regs / 4 : l_.target().lanes;
    if (!n.is_num() || n.num() > std::max(4, most) || l_.expect(merged[rank - 2]) < 8) return;
    p_.short_rows = true;
    for (size_t d = 0; d < rank; d++) p_.box.space.order.push_back(static_cast<int64_t>(d));
    std::swap(p_.box.space.order[rank - 1], p_.box.space.order[rank - 2]);
    std::swap(p_.box.sides[rank - 1], p_.box.sides[rank - 2]);
    p_.reduced[rank - 1] = false, p_.reduced[rank - 2] = true;
  }

  bool full(size_t o) const { return l_.output_sink(o).access.dims == dims_; }

  void order() {
    need_.assign(g_.nodes.size(), 0);
    for (size_t i = 0; i < g_.nodes.size(); i++) {
      for (Value a : g_.nodes[i].args)
        if (a != kNoValue) need_[i] = std::max(need_[i], need_[a.node]);
      if (is_kind(g_.nodes[i], OpKind::reduction)) need_[i]++;
    }
    auto sweep = [&](size_t k) -> SweepPlan::Sweep& {
      if (p_.sweeps.size() <= k) p_.sweeps.resize(k + 1);
      return p_.sweeps[k];
    };
    for (const SweepPlan::Reduction& r : reductions_) sweep(need_[r.arg.node]).reductions.push_back(r);
    for (size_t o = 0; o < outputs_; o++) {
      const size_t k = need_[l_.output_sink(o).value.node];
      if (full(o))
        sweep(k).outputs.push_back(o);
      else
        sweep(k ? k - 1 : 0).row_outputs.push_back(o);
    }
    for (uint32_t i = 0; i < g_.nodes.size(); i++) {
      if (!live_[i]) continue;
      for (const Type& t : g_.nodes[i].types) p_.widest = std::max(p_.widest, bytes(compute_type(t.dtype)));
      // exp(x - max x): the exponent is never positive
      const Node& n = g_.nodes[i];
      if (n.op != "Exp" || g_.node(n.args[0]).op != "Sub") continue;
      const Node& sub = g_.node(n.args[0]);
      const Node& top = g_.node(sub.args[1]);
      if (top.op == "ReduceMax" && top.args[0] == sub.args[0]) l_.promise_nonpositive({i, 0});
    }
  }

  // ---- what is kept between sweeps ----

  static constexpr double kWorthKeeping = 4;  // cycles a vector: about a store and a load that hit the first cache

  std::map<Value, double> cost_;
  double cost(Value v) {
    if (auto it = cost_.find(v); it != cost_.end()) return it->second;
    const Node& n = g_.node(v);
    double c = 0.5;  // a load
    if (!l_.access(v) && is_kind(n, OpKind::pointwise)) {
      c = 0;
      for (const kir::ScalarStep& s : scalar_program(g_, n).steps) c += kir::row(s.op).avx512;
      for (Value a : n.args)
        if (a != kNoValue) c += varies(a) ? cost(a) : 0;
    } else if (!l_.access(v) && l_.step_source(v, nullptr)) {
      c = cost(*l_.step_source(v, nullptr)) + (n.op.starts_with("Gather") ? 8 : 0);
    }
    return cost_[v] = c;
  }
  // Does it differ along the reduced dims? (by its shape)
  bool varies(Value v) const {
    const Dims& d = g_.type(v).dims;
    for (int64_t a : axes_) {
      const size_t from_right = dims_.size() - static_cast<size_t>(a);
      if (from_right <= d.size() && !d[d.size() - from_right].is(1)) return true;
    }
    return false;
  }

  void keep_values() {
    if (p_.short_rows) return;
    std::map<Value, std::vector<size_t>> seen;  // value over the whole space -> sweeps that compute it
    std::map<Value, size_t> stored;             // -> sweep that stores it
    std::map<Value, size_t> viewed;             // values that something reads through a view: the last sweep that does
    for (size_t k = 0; k < p_.sweeps.size(); k++) {
      std::set<Value> visited, beyond;
      std::function<void(Value)> look_beyond = [&](Value v) {
        if (v == kNoValue || l_.access(v) || !beyond.insert(v).second) return;
        viewed[v] = k;
        for (Value a : g_.node(v).args) look_beyond(a);
      };
      std::function<void(Value)> visit = [&](Value v) {
        const Node& n = g_.node(v);
        const bool pointwise = is_kind(n, OpKind::pointwise);
        if (l_.access(v) || !(pointwise || l_.step_source(v, nullptr)) || !varies(v) || !visited.insert(v).second)
          return;
        if (g_.type(v).dims == dims_) {
          std::vector<size_t>& by = seen[v];
          if (!by.empty() && cost(v) > kWorthKeeping) {
            stored.emplace(v, by.front());
            by.push_back(k);
            return;
          }
          by.push_back(k);
        }
        if (!pointwise) return look_beyond(v);  // what lies behind a view has another shape
        for (Value a : n.args)
          if (a != kNoValue) visit(a);
      };
      for (const SweepPlan::Reduction& r : p_.sweeps[k].reductions) visit(r.arg);
      for (size_t o : p_.sweeps[k].outputs) visit(l_.output_sink(o).value);
    }
    std::set<size_t> taken;
    for (const auto& [v, first] : stored) {
      SweepPlan::Kept kept;
      kept.value = v, kept.first = first, kept.last = seen[v].back();
      kept.type = compute_type(g_.type(v).dtype);
      const auto view = viewed.find(v);
      if (view != viewed.end()) kept.last = std::max(kept.last, view->second);
      place(kept, taken, view == viewed.end());
      p_.kept.push_back(std::move(kept));
    }
  }

  // `lend`: an output that is written in the last sweep may hold it until then. What is read through a view may be read
  // again behind that write.
  void place(SweepPlan::Kept& v, std::set<size_t>& taken, bool lend) {
    for (size_t o = 0; o < outputs_; o++) {
      const Lowering::Sink& sink = l_.output_sink(o);
      const bool same_type = g_.type(sink.value).dtype == v.type;
      if (!full(o) || !same_type || taken.contains(o)) continue;
      const size_t written = need_[sink.value.node];
      if (sink.value == v.value && written == v.first) {
        v.where = SweepPlan::Kept::own_output;
      } else if (lend && written >= v.last && g_.type(v.value).dtype == v.type) {
        v.where = SweepPlan::Kept::output;
      } else {
        continue;
      }
      taken.insert(o);
      v.access = sink.access;
      return;
    }
    const Dims merged = p_.box.space.merged();
    const size_t last = merged.size() - 1;
    std::vector<size_t> loops;
    for (size_t d = 0; d < last; d++)
      if (p_.reduced[d]) loops.push_back(d);
    const int64_t limit = std::max<int64_t>(l_.target().l2_bytes / 8, 16 << 10);
    const int64_t width = bytes(v.type);
    if (p_.reduced[last] ? loops.empty() && merged[last].is_num() && merged[last].num() * width <= limit
                         : loops.size() == 1 && merged[loops[0]].is_num() &&
                               merged[loops[0]].num() * width * row_width(l_.target(), p_.widest) <= limit) {
      v.where = SweepPlan::Kept::scratch;
      return;
    }
    v.where = SweepPlan::Kept::temp;
    v.access = dense(l_.temp(v.type, dims_), dims_);
  }
};

}  // namespace

std::variant<SweepPlan, Verdict> plan_sweeps(Lowering& l, size_t outputs) { return Planner(l, outputs).plan(); }

}  // namespace gaf
