// Runs a kernel's text statement by statement, element by element: the definition of what a kernel does, and the oracle
// of every code generator. Slow and obvious. Refuses what a compiled kernel would do silently: indices out of bounds,
// reads of elements never written, parallel iterations that touch each other's elements, broken promises of `read` and
// `expn`. On request it tells a race check (race.h) all that a worker's statements touch.
#include <cmath>

#include "base/error.h"
#include "ir/interp_memory.h"
#include "ir/race.h"

namespace gaf::kir {
namespace {

struct Extents {  // of a tile's contents
  int64_t rows, cols;
  bool one_row, one_col;
};

class Machine {
 public:
  Machine(const Kernel& k, const Target& t, std::span<void* const> buffers, std::span<const int64_t> sizes)
      : k_(k),
        t_(t),
        values_(k.syms.size(), 0),
        bufs_(k.bufs.size()),
        tiles_(k.tiles.size()),
        extents_(k.tiles.size()) {
    bind_sizes(k, sizes, values_);
    bind_buffers(k, buffers, values_, bufs_);
  }
  void run() { body(k_.body); }
  // Tells `race` of this worker's share; the tiles have been placed.
  void run(RaceCheck& race, int worker, int workers) {
    race_ = &race, worker_ = worker, workers_ = workers;
    for (const Tile& x : k_.tiles)
      if (x.at < 0) fail("tile " + x.name + " has no place: place the kernel first");
    run();
  }

 private:
  const Kernel& k_;
  const Target& t_;
  std::vector<int64_t> values_;  // of each symbol
  std::vector<Array> bufs_, tiles_;
  std::vector<Extents> extents_;
  const Stmt* now_ = nullptr;
  int32_t iteration_ = 0, iterations_ = 0;  // of par loops, counted through the kernel; 0: outside
  RaceCheck* race_ = nullptr;
  int64_t worker_ = 0, workers_ = 1, turn_ = 0, first_ = 0, end_ = 0;  // its iterations of the par loop, counted from 0
  std::vector<const For*> nest_;

  [[noreturn]] void fail(const std::string& what) const { fail_at(k_, now_, what); }

  // ---- references ----
  Array& array(const Ref& r) {
    if (r.tile) return tiles_[static_cast<size_t>(r.id)];
    return bufs_[static_cast<size_t>(parameter_of(k_, r.id))];
  }
  const Tile& tile(const Ref& r) const { return k_.tiles[static_cast<size_t>(r.id)]; }

  Window window(const Ref& r) {
    if (r.tile) {
      const Tile& t = tile(r);
      if (array(r).size == 0) fail("tile " + t.name + " is used outside its block");
      int64_t shape[] = {t.rows, t.cols}, strides[] = {t.cols, 1};
      if (!r.at.empty()) return finish(make_window(r.at, shape, strides, 0, values_), r);
      const Extents& e = extents_[static_cast<size_t>(r.id)];
      Slice all[] = {{0, e.rows, 1}, {0, e.cols, 1}};
      Window w = make_window(all, shape, strides, 0, values_);
      w.one_row = e.one_row, w.one_col = e.one_col;
      return finish(std::move(w), r);
    }
    const Buf& b = k_.bufs[static_cast<size_t>(r.id)];
    if (r.at.size() != b.shape.size()) fail(print_ref(k_, r) + " needs " + std::to_string(b.shape.size()) + " indices");
    std::vector<int64_t> shape, strides;
    for (const Expr& d : b.shape) shape.push_back(d.eval(values_));
    for (const Expr& s : b.role == Role::view ? b.strides : row_major(b.shape)) strides.push_back(s.eval(values_));
    return finish(make_window(r.at, shape, strides, b.offset.eval(values_), values_), r);
  }
  static Window finish(Window w, const Ref& r) {
    if (r.transposed) w.transpose();
    return w;
  }

  void touch(const Ref& r, int64_t i, bool write) {
    if (!race_) return;
    const int width = bytes(type_of(k_, r));
    race_->touch(r.tile ? r.id : -1 - parameter_of(k_, r.id), i * width, width, write);
  }
  Element load(const Ref& r, int64_t i) {
    Array& a = array(r);
    if (i < 0 || i >= a.size) fail("index outside " + print_ref(k_, r));
    auto n = static_cast<size_t>(i);
    if (!a.written.empty() && !a.written[n]) fail("reads an element never written: " + print_ref(k_, r));
    if (iteration_ && !a.writer.empty()) {
      if (a.writer[n] && a.writer[n] != iteration_)
        fail("reads what another par iteration writes: " + print_ref(k_, r));
      a.reader[n] = a.reader[n] == 0 || a.reader[n] == iteration_ ? iteration_ : -1;
    }
    touch(r, i, false);
    return a.load(i);
  }
  void store(const Ref& r, int64_t i, Element x) {
    Array& a = array(r);
    if (i < 0 || i >= a.size) fail("index outside " + print_ref(k_, r));
    auto n = static_cast<size_t>(i);
    if (!r.tile && a.writer.empty()) fail("writes the input " + print_ref(k_, r));
    if (iteration_ && !a.writer.empty()) {
      if (a.writer[n] && a.writer[n] != iteration_)
        fail("writes what another par iteration writes: " + print_ref(k_, r));
      if (a.reader[n] && a.reader[n] != iteration_)
        fail("writes what another par iteration reads: " + print_ref(k_, r));
      a.writer[n] = iteration_;
    }
    if (!a.written.empty()) a.written[n] = 1;
    touch(r, i, true);
    a.store(i, x);
  }

  // The window that takes a result of the given extents; a whole tile takes them over and forgets what it held.
  Window target(const Ref& d, const Extents& e) {
    if (d.tile && d.at.empty()) {
      const Tile& t = tile(d);
      if (e.rows > t.rows || e.cols > t.cols) fail(shape(e.rows, e.cols) + " does not fit tile " + t.name);
      extents_[static_cast<size_t>(d.id)] = {e.rows, e.cols, e.one_row || t.rows == 1, e.one_col || t.cols == 1};
      Array& a = array(d);
      std::fill(a.written.begin(), a.written.end(), 0);
    }
    Window w = window(d);
    if (w.rows() != e.rows || w.cols() != e.cols) fail(shape(e.rows, e.cols) + " does not fit " + print_ref(k_, d));
    return w;
  }
  static std::string shape(int64_t r, int64_t c) { return "[" + std::to_string(r) + ", " + std::to_string(c) + "]"; }
  Extents capacity(const Ref& d) {
    if (!d.tile || !d.at.empty()) {
      Window w = window(d);
      return {w.rows(), w.cols(), w.one_row, w.one_col};
    }
    const Tile& t = tile(d);
    return {t.rows, t.cols, t.rows == 1, t.cols == 1};
  }
  void write(const Ref& d, const Extents& e, const std::vector<Element>& v) {
    Window w = target(d, e);
    for (int64_t r = 0; r < e.rows; r++)
      for (int64_t c = 0; c < e.cols; c++) store(d, w.at(r, c), v[static_cast<size_t>(r * e.cols + c)]);
  }
  void spoil(int tmp) {  // scratch of a statement holds nothing afterwards
    if (tmp < 0) return;
    auto& written = tiles_[static_cast<size_t>(tmp)].written;
    if (race_) race_->touch(tmp, 0, k_.tiles[static_cast<size_t>(tmp)].size_bytes(), true);
    std::fill(written.begin(), written.end(), 0);
  }

  // ---- statements ----
  void body(const Body& b) {
    for (const Stmt& s : b) {
      now_ = &s;
      if (race_) race_->begin(s);
      std::visit([&](const auto& x) { exec(x); }, s.alt);
    }
    for (const Stmt& s : b)
      if (const Declare* d = std::get_if<Declare>(&s.alt)) tiles_[static_cast<size_t>(d->tile)] = {};
  }
  void exec(const Declare& d) {
    const Tile& t = k_.tiles[static_cast<size_t>(d.tile)];
    if (race_) race_->declare(d.tile, ring_slot(k_, nest_, t.ring).eval(values_));
    Array& a = tiles_[static_cast<size_t>(d.tile)];
    a.type = t.type;
    a.size = t.rows * t.cols;
    a.own.assign(static_cast<size_t>(t.size_bytes()), 0xcd);
    a.data = a.own.data();
    a.written.assign(static_cast<size_t>(a.size), 0);
    extents_[static_cast<size_t>(d.tile)] = {t.rows, t.cols, t.rows == 1, t.cols == 1};
  }
  void exec(const View&) {}
  void exec(const Sync& s) {
    if (race_) race_->sync(s, s.event.eval(values_));
  }
  void exec(const Barrier&) {
    for (Array& a : bufs_) {
      std::fill(a.writer.begin(), a.writer.end(), 0);
      std::fill(a.reader.begin(), a.reader.end(), 0);
    }
  }

  void exec(const Copy& c) {
    Window s = window(c.src);
    Extents d = capacity(c.dst);
    bool whole = c.dst.tile && c.dst.at.empty();
    // a vector may lie down or stand up
    if ((s.one_row && d.one_col && !d.one_row && !s.one_col) || (s.one_col && d.one_row && !d.one_col && !s.one_row))
      s.transpose();
    Extents e = c.pad || !whole ? d : Extents{s.rows(), s.cols(), s.one_row, s.one_col};
    if (c.pad && (s.rows() > e.rows || s.cols() > e.cols))
      fail(print_ref(k_, c.src) + " does not fit " + print_ref(k_, c.dst));
    if (!c.pad && (s.rows() != e.rows || s.cols() != e.cols))
      fail("copies " + shape(s.rows(), s.cols()) + " to " + shape(e.rows, e.cols));
    DType from = type_of(k_, c.src), to = type_of(k_, c.dst);
    const EdgeRow* edge = t_.edge(mem_of(k_, c.src), mem_of(k_, c.dst));
    if (from != to && !(edge && edge->casts))
      fail("copies " + std::string(name(from)) + " to " + std::string(name(to)));
    std::vector<Element> v;
    for (int64_t r = 0; r < e.rows; r++)
      for (int64_t q = 0; q < e.cols; q++) {
        int64_t at = r < s.rows() && q < s.cols() ? s.at(r, q) : -1;
        Element x = at < 0 && c.pad ? number(to, *c.pad) : convert(load(c.src, at), from, to);
        if (c.relu && is_float(to)) x.f = x.f > 0 || x.f != x.f ? x.f : 0;
        if (c.relu && is_int(to)) x.i = eval_int(S::max, to, 0, x.i, 0);
        v.push_back(x);
      }
    write(c.dst, e, v);
  }

  void exec(const Map& m) {
    std::vector<Window> w(m.args.size());
    Extents e = capacity(m.dst);
    bool rows_known = false, cols_known = false;
    auto agree = [&](int64_t& extent, bool& one, bool& known, int64_t n, bool n_one) {
      if (n_one) return;
      if (known && extent != n) fail("operands do not broadcast");
      extent = n, one = false, known = true;
    };
    for (size_t i = 0; i < m.args.size(); i++) {
      const Ref* r = std::get_if<Ref>(&m.args[i]);
      if (!r) continue;
      w[i] = window(*r);
      agree(e.rows, e.one_row, rows_known, w[i].rows(), w[i].one_row);
      agree(e.cols, e.one_col, cols_known, w[i].cols(), w[i].one_col);
    }
    DType to = type_of(k_, m.dst), in = to;
    for (size_t i = m.op == S::select ? 1 : 0; i < m.args.size(); i++)
      if (const Ref* r = std::get_if<Ref>(&m.args[i])) in = type_of(k_, *r);
    std::vector<Element> out;
    for (int64_t r = 0; r < e.rows; r++)
      for (int64_t c = 0; c < e.cols; c++) {
        Element a[3];
        for (size_t i = 0; i < m.args.size(); i++) {
          DType type = m.op == S::select && i == 0 ? DType::b1 : in;
          if (const Ref* ref = std::get_if<Ref>(&m.args[i]))
            a[i] = load(*ref, w[i].at(w[i].one_row ? 0 : r, w[i].one_col ? 0 : c));
          else
            a[i] = number(type, std::get<double>(m.args[i]));
        }
        out.push_back(apply(m.op, in, to, a));
      }
    write(m.dst, e, out);
    spoil(m.tmp);
  }
  Element apply(S op, DType in, DType to, const Element (&a)[3]) {
    if (op == S::cast) return convert(a[0], in, to);
    if (op == S::bitcast) return bitcast(a[0], in, to);
    if (op == S::select) return a[0].i ? a[1] : a[2];
    if (op == S::expn && a[0].f > 0) fail("expn of " + print_number(a[0].f) + ": promised to be <= 0");
    Element x;
    if (!is_float(in))
      x.i = eval_int(op, in, a[0].i, a[1].i, a[2].i);
    else if (double v = eval_float(op, in, a[0].f, a[1].f, a[2].f); row(op).nan == Nan::never)
      x.i = v != 0;
    else
      x.f = v;
    return x;
  }

  void exec(const Reduce& m) {
    Window s = window(m.src);
    DType t = type_of(k_, m.dst);
    Extents e{m.axis == 1 ? s.rows() : 1, m.axis == 0 ? s.cols() : 1, m.axis != 1 || s.one_row,
              m.axis != 0 || s.one_col};
    std::vector<Element> out(static_cast<size_t>(e.rows * e.cols), neutral(m.op, t));
    for (int64_t r = 0; r < s.rows(); r++)
      for (int64_t c = 0; c < s.cols(); c++) {
        Element x = load(m.src, s.at(r, c));
        Element& sum = out[static_cast<size_t>((m.axis == 1 ? r : 0) * e.cols + (m.axis == 0 ? c : 0))];
        if (is_float(t))
          sum.f = row(m.op).eval(sum.f, x.f, 0);  // in double, rounded once: order is free
        else
          sum.i = eval_int(m.op, t, sum.i, x.i, 0);
      }
    for (Element& x : out) x.f = round_float(t, x.f);
    write(m.dst, e, out);
    spoil(m.tmp);
  }

  std::vector<Element> load_all(const Ref& r, const Window& w) {
    std::vector<Element> v;
    v.reserve(static_cast<size_t>(w.rows() * w.cols()));
    for (int64_t i = 0; i < w.rows(); i++)
      for (int64_t j = 0; j < w.cols(); j++) v.push_back(load(r, w.at(i, j)));
    return v;
  }
  void exec(const Mma& m) {
    Window wa = window(m.a), wb = window(m.b);
    if (wa.cols() != wb.rows())
      fail("mma: inner sizes " + std::to_string(wa.cols()) + " and " + std::to_string(wb.rows()));
    int64_t rows = wa.rows(), cols = wb.cols();
    std::vector<Element> a = load_all(m.a, wa), b = load_all(m.b, wb), out(static_cast<size_t>(rows * cols));
    if (m.add) {
      Window old = window(m.dst);
      if (old.rows() != rows || old.cols() != cols)
        fail("mma: adds " + shape(rows, cols) + " to " + shape(old.rows(), old.cols()));
      out = load_all(m.dst, old);
    } else if (m.bias) {
      Window w = window(*m.bias);
      if (w.rows() != 1 || w.cols() != cols) fail("mma: the bias is not [1, " + std::to_string(cols) + "]");
      for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) out[static_cast<size_t>(r * cols + c)] = load(*m.bias, w.at(0, c));
    }
    multiply_add(type_of(k_, m.dst), a, b, cols, out);
    write(m.dst, {rows, cols, wa.one_row, wb.one_col}, out);
  }

  void exec(const Iota& m) {
    Extents e = capacity(m.dst);
    int64_t base = m.base.eval(values_);
    std::vector<Element> out;
    for (int64_t r = 0; r < e.rows; r++)
      for (int64_t c = 0; c < e.cols; c++)
        out.push_back(convert({0, base + (m.axis == 0 ? r : c)}, DType::i64, type_of(k_, m.dst)));
    write(m.dst, e, out);
  }
  void exec(const Gather& g) {
    Window s = window(g.src), x = window(g.index);
    std::vector<Element> out;
    for (const Element& i : load_all(g.index, x)) {
      if (i.i < 0 || i.i >= s.rows() * s.cols())
        fail("gathers element " + std::to_string(i.i) + " of " + print_ref(k_, g.src));
      out.push_back(load(g.src, s.at(i.i / s.cols(), i.i % s.cols())));
    }
    write(g.dst, {x.rows(), x.cols(), x.one_row, x.one_col}, out);
  }
  void exec(const Read& r) {
    Window w = window(r.src);
    if (w.rows() != 1 || w.cols() != 1) fail("reads more than one element");
    int64_t v = load(r.src, w.at(0, 0)).i, lo = r.lo.eval(values_), hi = r.hi.eval(values_);
    if (v < lo || v >= hi)
      fail("read " + std::to_string(v) + ", promised to lie in " + std::to_string(lo) + ".." + std::to_string(hi));
    values_[static_cast<size_t>(r.sym)] = v;
  }

  void exec(const For& f) {
    nest_.push_back(&f);
    if (race_ && f.kind == LoopKind::par) {  // the worker's contiguous share; axes of a par loop are independent
      int64_t all = 1;
      for (const Axis& a : f.axes) all *= std::max<int64_t>(0, ceildiv(a.hi - a.lo, a.step).eval(values_));
      int64_t share = (all + workers_ - 1) / workers_;
      turn_ = 0, first_ = worker_ * share, end_ = first_ + share;
    }
    nest(f, 0);
    nest_.pop_back();
  }
  void nest(const For& f, size_t axis) {
    if (axis == f.axes.size()) {
      if (race_ && f.kind == LoopKind::par && (turn_++ < first_ || turn_ > end_)) return;
      if (f.kind == LoopKind::par) iteration_ = ++iterations_;
      body(f.body);
      if (f.kind == LoopKind::par) iteration_ = 0;
      return;
    }
    const Axis& a = f.axes[axis];
    int64_t hi = a.hi.eval(values_);
    for (int64_t i = a.lo.eval(values_); i < hi; i += a.step) {
      values_[static_cast<size_t>(a.sym)] = i;
      nest(f, axis + 1);
    }
  }
  void exec(const If& f) {
    int64_t a = f.a.eval(values_), b = f.b.eval(values_);
    bool yes = f.cmp == Cmp::lt ? a < b : f.cmp == Cmp::le ? a <= b : f.cmp == Cmp::eq ? a == b : a != b;
    body(yes ? f.yes : f.no);
  }
};

}  // namespace

void interpret(const Kernel& k, const Target& t, std::span<void* const> buffers, std::span<const int64_t> sizes) {
  Machine(k, t, buffers, sizes).run();
}

std::vector<KernelProblem> check_races(const Kernel& k, const Target& t, std::span<void* const> buffers,
                                       std::span<const int64_t> sizes, int worker, int workers) {
  RaceCheck race(k, t);
  Machine(k, t, buffers, sizes).run(race, worker, workers);
  return race.finish();
}

}  // namespace gaf::kir
