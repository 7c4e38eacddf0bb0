// What a kernel costs, counted on its own text: arithmetic, copies, memory traffic, registers, and a predicted time
// with every term kept. A pure function of text, target and sizes, and quick (it is asked for each candidate of the
// planner). Formulas: loops multiply; a loop whose variable shapes its body is sampled, on a target with pipes it is
// counted exactly. time = launch + max(compute, memory), where compute is the busiest worker's cycles; with pipes the
// busiest pipe's, plus what the first iteration needs to fill the others.
#include "ir/analyse.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"

namespace gaf::kir {
namespace {

constexpr int64_t kExactTrips =
    8;                           // loops whose shapes depend on their variable: up to here every iteration is counted,
constexpr int64_t kSamples = 5;  // beyond, the first, the last and this many between
constexpr double kFmaLatency = 4;  // cycles of a dependent multiply-add (Intel and AMD optimisation manuals)
constexpr double kLoadsPerCycle = 2;
constexpr double kLoopCycles = 1;        // counting and branching of one iteration
constexpr double kHorizontalCycles = 8;  // shuffles that reduce one register to one element
constexpr double kPaddedRowCycles = 12;  // a row, or an element moved alone, that may lie outside: a test and a branch
constexpr double kElementCycles = 1;     // an element moved alone: gathers, strided columns, transposes of few elements
constexpr double kTurnedCycles =
    0.375;  // an element of an 8x8 block that is transposed in registers: 24 shuffles, one a cycle

struct Extent {
  double rows = 1, cols = 1;
  bool one_row = true, one_col = true;  // 1 by the text: it broadcasts
  double count() const { return rows * cols; }
};

class Counter {
 public:
  Counter(const Kernel& k, const Target& t, std::vector<int64_t> values, Work& w)
      : k_(k), t_(t), values_(std::move(values)), w_(w), valid_(k.tiles.size()) {}

  // Cycles of one worker for one run of the body; adds to the totals of `w`, `times` of it.
  double body(const Body& b, double times) {
    double cycles = 0;
    for (const Stmt& s : b) cycles += statement(s, times);
    return cycles;
  }
  double statement(const Stmt& s, double times) {
    return std::visit([&](const auto& x) { return count(x, times); }, s.alt);
  }
  int64_t iterations(const For& f) {
    int64_t n = 1;
    for (const Axis& a : f.axes) {
      int64_t lo = a.lo.eval(values_);
      n *= trips(lo, a.hi.eval(values_), std::max<int64_t>(a.step, 1));
      values_[static_cast<size_t>(a.sym)] = lo;
    }
    return n;
  }

 private:
  const Kernel& k_;
  const Target& t_;
  std::vector<int64_t> values_;
  Work& w_;
  std::vector<Extent> valid_;                                        // of each tile's contents; where pipes exist
  std::unordered_map<const For*, std::vector<LoopShapes>> shaping_;  // of each axis

  double cycles_of(S op) const {
    const ScalarRow& r = row(op);
    float c = t_.pipes ? r.npu : t_.isa == "avx512" ? r.avx512 : t_.isa == "avx2" ? r.avx2 : r.sse;
    return c > 0 ? c : 8;  // expanded before it runs: a handful of instructions
  }

  // ---- shapes ----
  Extent extent(const Ref& r) const {
    Extent e;
    if (r.tile && r.at.empty()) {
      const Tile& t = k_.tiles[static_cast<size_t>(r.id)];
      e = t_.pipes ? valid_[static_cast<size_t>(r.id)]
                   : Extent{static_cast<double>(t.rows), static_cast<double>(t.cols)};
    }
    for (const Slice& s : r.at)
      if (s.n)
        e.rows *= e.cols,
            e.one_row = e.one_row && e.one_col,
            e.cols = static_cast<double>(s.n->is_num() ? s.n->num() : std::max<int64_t>(0, s.n->eval(values_))),
            e.one_col = s.n->is(1);
    if (r.transposed) std::swap(e.rows, e.cols), std::swap(e.one_row, e.one_col);
    return e;
  }
  // A whole tile takes the extents of what is written to it.
  void take(const Ref& d, Extent e) {
    if (!d.tile || !d.at.empty()) return;
    const Tile& t = k_.tiles[static_cast<size_t>(d.id)];
    e.one_row = e.one_row || t.rows == 1, e.one_col = e.one_col || t.cols == 1;
    valid_[static_cast<size_t>(d.id)] = e;
  }
  // What an elementwise statement covers: the extents of its operands; what none gives is the destination's own.
  Extent covered(const Map& m) const {
    Extent e = extent(m.dst);
    if (!t_.pipes) return e;
    if (m.dst.tile && m.dst.at.empty()) e = capacity(m.dst.id);
    for (const Arg& a : m.args)
      if (const Ref* r = std::get_if<Ref>(&a)) {
        Extent x = extent(*r);
        if (!x.one_row) e.rows = x.rows, e.one_row = false;
        if (!x.one_col) e.cols = x.cols, e.one_col = false;
      }
    return e;
  }
  Extent capacity(int tile) const {
    const Tile& t = k_.tiles[static_cast<size_t>(tile)];
    return {static_cast<double>(t.rows), static_cast<double>(t.cols), t.rows == 1, t.cols == 1};
  }
  double vectors(const Extent& e, DType t) const {
    double width = std::max(bytes(t), is_float(t) && !t_.pipes ? 4 : 1);  // half precision is computed in f32 on a CPU
    return e.rows * std::ceil(e.cols * width / t_.vector_bytes());
  }
  // Columns that do not lie side by side are moved one by one.
  bool strided(const Ref& r) const { return r.transposed || apart(r); }
  bool apart(const Ref& r) const {
    if (r.tile || r.at.empty()) return false;
    const Buf& b = k_.bufs[static_cast<size_t>(r.id)];
    for (size_t i = r.at.size(); i-- > 0;)
      if (r.at[i].n) {
        if (r.at[i].n->is(1)) return false;
        if (r.at[i].step != 1) return true;
        if (b.role == Role::view) return !b.strides[i].is(1) && !b.strides[i].is(0);
        for (size_t d = i + 1; d < b.shape.size(); d++)
          if (!b.shape[d].is(1)) return true;
        return false;
      }
    return false;
  }
  // Rows of a window that follow one another without a gap are copied as one run, bounds and all (codegen/cpu:
  // copy_rows).
  bool one_run(const Ref& r) const {
    if (r.transposed) return false;
    const size_t rank = r.at.size();
    if (r.tile) return rank == 0 || (rank == 2 && r.at[1].n && r.at[1].n->is(k_.tiles[static_cast<size_t>(r.id)].cols));
    const Buf& b = k_.bufs[static_cast<size_t>(r.id)];
    if (b.role == Role::view || rank < 2 || !r.at[rank - 2].n || r.at[rank - 2].step != 1) return false;
    return r.at[rank - 1].n && r.at[rank - 1].at.is(0) && *r.at[rank - 1].n == b.shape[rank - 1];
  }
  double loads(const Ref& r,
               double element_count) const {  // cycles of a map's operand in memory, beyond the instruction's own
    if (mem_of(k_, r) == Mem::reg || t_.pipes) return 0;
    if (strided(r)) return element_count * kElementCycles;
    return vectors(extent(r), type_of(k_, r)) / kLoadsPerCycle;
  }

  // ---- statements ----
  double spend(Pipe p, double cycles, double times) {
    w_.busy[p] += cycles * times;
    return cycles;
  }
  double vector(double cycles, double times) {
    w_.vector_cycles += (cycles + t_.issue) * times;
    return spend(Pipe::v, cycles + t_.issue, times);
  }
  double count(const Declare& d, double) {
    valid_[static_cast<size_t>(d.tile)] = capacity(d.tile);
    return 0;
  }
  double count(const View&, double) { return 0; }
  double count(const Barrier&, double) { return 0; }
  double count(const Sync&, double) { return 0; }
  double count(const Read& r, double times) {
    values_[static_cast<size_t>(r.sym)] = r.lo.eval(values_);
    return spend(Pipe::s, 1, times);
  }
  double count(const Copy& c, double times) {
    Mem from = mem_of(k_, c.src), to = mem_of(k_, c.dst);
    bool whole = c.src.tile && c.src.at.empty() && !t_.pipes;  // its valid extents are the destination's
    Extent e = extent(c.src);
    if (c.pad || whole) e = c.dst.tile && c.dst.at.empty() ? capacity(c.dst.id) : extent(c.dst);
    if (c.dst.tile && c.dst.at.empty()) {
      Extent d = capacity(c.dst.id);  // a vector may lie down or stand up
      bool turned =
          (e.one_row && !e.one_col && d.one_col && !d.one_row) || (e.one_col && !e.one_row && d.one_row && !d.one_col);
      take(c.dst, turned ? Extent{e.cols, e.rows, e.one_col, e.one_row} : e);
    }
    double moved = e.count() * bytes(type_of(k_, from == Mem::gm ? c.src : c.dst));
    w_.moved[{from, to}] += moved * times;
    const EdgeRow* edge = t_.edge(from, to);
    double cycles = edge && edge->bytes_per_cycle > 0 ? moved / edge->bytes_per_cycle : 0;
    // blocks of 8x8 elements of 4 bytes whose rows lie side by side are turned in registers (codegen/cpu: transpose8)
    const bool blocks =
        e.rows >= 8 && e.cols >= 8 && bytes(type_of(k_, c.src)) == 4 && !c.pad && !apart(c.src) && !apart(c.dst);
    if (!t_.pipes && blocks && c.src.transposed != c.dst.transposed)
      cycles = std::max(cycles, e.count() * kTurnedCycles);
    else if (!t_.pipes && (strided(c.src) || strided(c.dst)))
      cycles = std::max(cycles, e.count() * (c.pad && to != Mem::reg ? kPaddedRowCycles : kElementCycles));
    else if (!t_.pipes)
      cycles = std::max(
          cycles, e.rows * (c.pad && !(one_run(c.src) && one_run(c.dst)) ? kPaddedRowCycles
                                                                         : 0.5));  // a row is at least one instruction
    return spend(edge ? edge->pipe : Pipe::v, cycles, times);
  }
  double count(const Map& m, double times) {
    Extent d = covered(m);
    take(m.dst, d);
    DType wide = type_of(k_, m.dst);
    for (const Arg& a : m.args)
      if (const Ref* r = std::get_if<Ref>(&a); r && t_.pipes && bytes(type_of(k_, *r)) > bytes(wide))
        wide = type_of(k_, *r);
    double cycles = vectors(d, wide) * cycles_of(m.op);
    for (const Arg& a : m.args)
      if (const Ref* r = std::get_if<Ref>(&a)) cycles += loads(*r, d.count());
    return vector(cycles, times);
  }
  double count(const Reduce& r, double times) {
    Extent s = extent(r.src);
    double cycles = vectors(s, type_of(k_, r.src)) * cycles_of(r.op) + loads(r.src, s.count());
    take(r.dst,
         {r.axis == 1 ? s.rows : 1, r.axis == 0 ? s.cols : 1, r.axis != 1 || s.one_row, r.axis != 0 || s.one_col});
    if (!t_.pipes && s.cols > 1) cycles += (r.axis == 1 ? s.rows : r.axis == 2 ? 1 : 0) * kHorizontalCycles;
    return vector(cycles, times);
  }
  double count(const Mma& m, double times) {
    Extent a = extent(m.a), b = extent(m.b);
    take(m.dst, {a.rows, b.cols, a.one_row, b.one_col});
    DType t = type_of(k_, m.a);
    double rows = a.rows, inner = a.cols, cols = b.cols, flops = 2 * rows * inner * cols;
    w_.mma_flops += flops * times;
    if (t_.pipes) {  // cube: 16 x 16 x 32 bytes a cycle, f32 in two passes; 2 % off a published run
      double up_k = std::ceil(inner * bytes(t) / 32);
      return spend(Pipe::m, 6 + (t == DType::f32 ? 2 : 1) * std::ceil(rows / 16) * up_k * std::ceil(cols / 16), times);
    }
    // One step of K: multiply-adds of all accumulators, one row of b and one element of each row of a, and the latency
    // of the chain through an accumulator, which few accumulators cannot hide.
    double wide = std::max(bytes(type_of(k_, m.dst)), 4), lanes = t_.vector_bytes() / wide;
    double v = std::ceil(cols / lanes);
    double arithmetic = t_.mma.flops_per_cycle > 0 ? rows * v * lanes * 2 / (t_.mma.flops_per_cycle * 4 / wide)
                                                   : rows * v / t_.fma_per_cycle;
    double step = std::max({arithmetic, (v + rows) / kLoadsPerCycle, kFmaLatency});
    double overhead = rows * v * (m.add ? 0 : 0.5) + kLoopCycles * std::ceil(inner / std::max(t_.k_unroll, 1));
    return spend(Pipe::m, inner * step * (bytes(t) < 4 ? 1.5 : 1) + overhead,
                 times);  // narrow operands are widened first
  }
  double count(const Iota& i, double times) {
    if (i.dst.tile) take(i.dst, capacity(i.dst.id));
    return vector(vectors(extent(i.dst), type_of(k_, i.dst)), times);
  }
  double count(const Gather& g, double times) {
    take(g.dst, extent(g.index));
    return vector(extent(g.index).count() * kElementCycles, times);
  }
  double count(const If& f, double times) {
    int64_t a = f.a.eval(values_), b = f.b.eval(values_);
    bool yes = f.cmp == Cmp::lt ? a < b : f.cmp == Cmp::le ? a <= b : f.cmp == Cmp::eq ? a == b : a != b;
    return body(yes ? f.yes : f.no, times);
  }
  double count(const For& f, double times) { return axes(f, 0, times); }

  double axes(const For& f, size_t n, double times) {
    if (n == f.axes.size()) return body(f.body, times);
    const Axis& a = f.axes[n];
    int64_t lo = a.lo.eval(values_), step = std::max<int64_t>(a.step, 1), number = trips(lo, a.hi.eval(values_), step);
    int64_t& value = values_[static_cast<size_t>(a.sym)];
    if (number == 0) return 0;
    double cycles = 0;
    auto at = [&](int64_t i, double weight) {
      value = lo + i * step;
      cycles += weight * (axes(f, n + 1, times * weight) + (t_.pipes ? 0 : kLoopCycles));
    };
    if (!shaping(f)[n].depends()) {
      at(number / 2, static_cast<double>(number));
    } else if (t_.pipes) {
      const LoopShapes& shapes = shaping(f)[n];
      std::function<void(int64_t, int64_t)> part = [&](int64_t first, int64_t last) {  // in halves until all are alike
        if (shapes.alike(values_, lo + first * step, lo + last * step))
          return at(first, static_cast<double>(last - first + 1));
        int64_t middle = first + (last - first) / 2;
        part(first, middle), part(middle + 1, last);
      };
      part(0, number - 1);
    } else if (number <= kExactTrips) {
      for (int64_t i = 0; i < number; i++) at(i, 1);
    } else {
      at(0, 1);
      double weight = static_cast<double>(number - 2) / kSamples;
      for (int64_t i = 0; i < kSamples; i++) at(1 + (number - 2) * (2 * i + 1) / (2 * kSamples), weight);
      at(number - 1, 1);
    }
    return cycles;
  }

  const std::vector<LoopShapes>& shaping(const For& f) {
    auto [it, fresh] = shaping_.try_emplace(&f);
    if (fresh)
      for (size_t i = 0; i < f.axes.size(); i++) it->second.emplace_back(f, i);
    return it->second;
  }
};

}  // namespace

Work analyse(const Kernel& k, const Target& t, std::span<const int64_t> sizes, int workers) {
  if (workers <= 0) workers = workers_of(k, t);
  Work w;
  std::vector<int64_t> values(k.syms.size(), 0);
  std::vector<int> ids = size_symbols(k);
  GAF_CHECK(ids.size() == sizes.size()) << "kernel @" << k.name << " takes " << ids.size() << " sizes";
  for (size_t i = 0; i < ids.size(); i++) values[static_cast<size_t>(ids[i])] = sizes[i];

  w.peak = peak_bytes(k, t);
  LiveRegisters regs = live_registers(k, t);
  w.regs = regs.all, w.regs_added = regs.added;

  // The busiest worker: its share of each par loop, rounded up; what stands beside them it does itself.
  Counter counter(k, t, values, w);
  double cycles = 0, fill = 0, most_iterations = 1;
  bool par = false;
  for (const Stmt& s : k.body) {
    if (std::holds_alternative<Barrier>(s.alt)) w.phases++;
    const For* f = std::get_if<For>(&s.alt);
    double share = 1;
    if (f && f->kind == LoopKind::par) {
      double n = static_cast<double>(std::max<int64_t>(1, counter.iterations(*f)));
      share = std::ceil(n / workers) / n;
      most_iterations = std::max(most_iterations, n);
      par = true;
    }
    std::map<Pipe, double> before = w.busy;
    double c = counter.statement(s, 1);
    if (t.pipes) {  // pipes run side by side, once the first iteration has filled them
      double all = c = 0, n = f ? static_cast<double>(std::max<int64_t>(1, counter.iterations(*f))) : 1;
      for (const auto& [p, busy] : w.busy) c = std::max(c, busy - before[p]), all += busy - before[p];
      fill += (all - c) / n;
    }
    cycles += c * share;
  }
  w.phases++;
  double hertz = t.clock_mhz * 1e6;
  w.compute_us = hertz > 0 ? cycles / hertz * 1e6 : 0;
  w.fill_us = hertz > 0 ? fill / hertz * 1e6 : 0;

  auto us = [](double bytes_moved, double gbps) { return gbps > 0 ? bytes_moved / (gbps * 1e3) : 0; };
  int active = par ? static_cast<int>(std::min<double>(workers, most_iterations)) : 1;
  double all = footprint(k, values);
  if (t.pipes) {
    for (const auto& [edge, moved] : w.moved)
      if (edge.first == Mem::gm || edge.second == Mem::gm) w.gm_bytes += moved;
    w.memory_us = us(w.gm_bytes, all <= static_cast<double>(t.l2_bytes) && t.l2_gbps > 0 ? t.l2_gbps : t.dram_gbps);
  } else {
    // Data of an earlier kernel still lies in the first cache that holds all this one touches, and comes from there.
    auto level = [&](int64_t inner, double gbps, int shared_by, double& moved) {
      moved = traffic(k, values, static_cast<double>(inner), active) * shared_by;
      return us(moved, gbps);
    };
    double moved = 0, l1 = level(t.l1_bytes, t.l2_gbps, 1, moved), l2 = level(t.l2_bytes, t.l3_gbps, 1, moved);
    w.gm_bytes = moved * active;
    double dram = us(traffic(k, values, static_cast<double>(t.l3_bytes), 1), t.dram_gbps);
    w.memory_us = l1;
    if (all > static_cast<double>(t.l2_bytes) * active) w.memory_us = std::max(w.memory_us, l2);
    if (all > static_cast<double>(t.l3_bytes)) w.memory_us = std::max(w.memory_us, dram);
  }
  w.launch_us = w.phases * t.launch_us + (active > 1 ? w.phases * t.fork_join_us : 0);
  w.us = w.launch_us + std::max(w.compute_us, w.memory_us) + w.fill_us;
  return w;
}

}  // namespace gaf::kir
