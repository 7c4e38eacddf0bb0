// Rectangles in memory: addresses, the positions that exist, and loads and stores of vectors of them. Where the machine
// has masked loads of the element's size they are used; elsewhere a full vector is tested for first, and the rare
// partial one goes element by element through a slot of the frame.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

int64_t Emitter::capacity(const Expr& n) const { return syms_.range(syms_.known(n)).hi; }

Stride Emitter::stride(const Expr& elements, int64_t step, DType t) {
  const Expr e = syms_.known(elements * Expr(step * gaf::bytes(t)));
  if (const auto n = syms_.number(e)) return {*n, nullptr};
  return {0, syms_.value(e)};
}
Val Emitter::times(Val i, const Stride& s) const { return ir_.mul(i, s.v ? s.v : ir_.i64(s.n)); }

Bound Emitter::bound(const Expr& at, const Expr& n, int64_t cap, const Expr& dim, int64_t step, bool padded) const {
  Bound b;
  if (syms_.range(n).lo < cap) b.hi = n;
  if (!padded) return b;
  const Expr end = syms_.known(ceildiv(dim - at, Expr(step)));  // 0 <= at + i * step < dim
  if (syms_.range(end).lo < cap) b.hi = b.hi ? min(*b.hi, end) : end;
  if (syms_.range(at).lo < 0) b.lo = syms_.known(-floordiv(at, Expr(step)));
  return b;
}

Window Emitter::window(const Ref& r, bool padded) {
  Window w;
  w.padded = padded;
  Dims shape, strides;
  Expr offset = 0;
  Val base = nullptr;
  int64_t known_align = 1;
  if (r.tile) {
    const Tile& x = tile(r.id);
    GAF_CHECK(x.mem == Mem::scratch) << "tile " << x.name << " is not in memory";
    w.type = x.type, shape = {x.rows, x.cols}, strides = {x.cols, 1};
    base = scratch_;
    w.rest = x.at;
    known_align = 64;
  } else {
    const Buf& b = k_.bufs[static_cast<size_t>(r.id)];
    w.type = b.type, shape = b.shape;
    base = buffers_[static_cast<size_t>(b.role == Role::view ? b.base : r.id)];
    if (b.role == Role::view)
      strides = b.strides, offset = b.offset;
    else {
      strides.assign(shape.size(), 1);
      for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    }
  }
  const int64_t size = gaf::bytes(w.type);
  std::vector<Slice> at = r.at;
  if (r.tile && at.empty()) at = {{0, shape[0], 1}, {0, shape[1], 1}};
  GAF_CHECK(at.size() == shape.size()) << "a rectangle of " << print_ref(k_, r) << " has " << at.size() << " indices";

  struct Axis {
    Expr at, n, dim;
    int64_t step;
    Expr stride;
  };
  std::vector<Axis> ranged;
  std::vector<Axis> fixed;
  for (size_t i = 0; i < at.size(); i++) {
    const Expr start = syms_.known(at[i].at);
    offset += start * strides[i];
    Axis a{start, at[i].n ? syms_.known(*at[i].n) : Expr(1), syms_.known(shape[i]), at[i].step, strides[i]};
    (at[i].n ? ranged : fixed).push_back(a);
  }
  // Extents of one in front say where the rectangle is, not how it goes on.
  for (size_t i = 0; i + 1 < ranged.size();)
    if (ranged[i].n.is(1))
      fixed.push_back(ranged[i]), ranged.erase(ranged.begin() + static_cast<int64_t>(i));
    else
      i++;
  // Two axes in front that follow on from each other are one.
  for (size_t i = 0; !padded && i + 2 < ranged.size();) {
    Axis &a = ranged[i], &b = ranged[i + 1];
    if (b.n.is_num() && a.stride * Expr(a.step) == b.n * b.stride * Expr(b.step)) {
      b.n = a.n * b.n;
      ranged.erase(ranged.begin() + static_cast<int64_t>(i));
    } else
      i++;
  }
  GAF_CHECK(ranged.size() <= 3) << "rows of " << print_ref(k_, r) << " need more than two strides";
  w.col = {size, nullptr};
  if (!ranged.empty()) {
    const Axis& a = ranged.back();
    w.ncols = a.n, w.cols = capacity(a.n), w.col = stride(a.stride, a.step, w.type);
    w.col_bound = bound(a.at, a.n, w.cols, a.dim, a.step, padded);
  }
  if (ranged.size() >= 2) {
    const Axis& a = ranged[ranged.size() - 2];
    w.nrows = a.n, w.rows = capacity(a.n), w.row = stride(a.stride, a.step, w.type);
    w.row_bound = bound(a.at, a.n, w.rows, a.dim, a.step, padded);
  }
  if (ranged.size() == 3) {
    const Axis& a = ranged[0];
    GAF_CHECK(w.nrows.is_num()) << "the inner rows of " << print_ref(k_, r) << " have a run-time extent";
    w.inner = w.rows;
    const int64_t cap = capacity(a.n);
    w.outer = stride(a.stride, a.step, w.type);
    w.outer_bound = bound(a.at, a.n, cap, a.dim, a.step, padded);
    w.nouter = a.n;
    w.nrows = w.nrows * a.n, w.rows *= cap;
  }
  if (padded)
    for (const Axis& a : fixed) {
      const Range low = syms_.range(a.at), high = syms_.range(syms_.known(a.at - a.dim));
      auto also = [&](Val c) { w.exists = w.exists ? ir_.and_(w.exists, c) : c; };
      if (low.lo < 0) also(ir_.icmp(Pred::ge, syms_.value(a.at), ir_.i64(0)));
      if (high.hi >= 0) also(ir_.icmp(Pred::lt, syms_.value(a.at), syms_.value(a.dim)));
    }
  if (r.transposed) {
    GAF_CHECK(!w.inner) << "^T of rows with two strides";
    std::swap(w.rows, w.cols), std::swap(w.nrows, w.ncols), std::swap(w.row, w.col);
    w.row_bound.lo.swap(w.col_bound.lo), w.row_bound.hi.swap(w.col_bound.hi);
  }
  const Expr bytes = syms_.known(offset * Expr(size));
  const Linear l = linear(bytes);
  if (known_align > 1) {
    int64_t g = std::gcd(known_align, std::gcd(w.rest, l.constant));
    for (auto& [s, f] : l.coef) g = std::gcd(g, f);
    for (auto& [x, f] : l.rest) g = std::gcd(g, f);
    g = std::gcd(g, std::gcd(w.row.n, w.outer.n));
    known_align = w.row.v || w.outer.v ? 1 : g;
  }
  w.align = std::max(known_align, element_align(w.type));
  w.base = syms_.address(base, bytes, w.rest);
  // Rows that might all be missing cannot be replaced by the last one that exists.
  if (!padded && w.row_bound.hi && syms_.range(*w.row_bound.hi).lo < 1) w.padded = true;
  if (!padded && w.outer_bound.hi && syms_.range(*w.outer_bound.hi).lo < 1) w.padded = true;
  return w;
}

Val Emitter::address(const Window& w, int64_t r, int64_t c) {
  const int64_t i = w.inner ? r % w.inner : r, q = w.inner ? r / w.inner : 0;
  Val p = w.base;
  if (w.outer.v && q) p = ir_.offset(p, times(ir_.i64(q), w.outer));
  if (w.row.v && i) p = ir_.offset(p, times(ir_.i64(i), w.row));
  if (w.col.v && c) p = ir_.offset(p, times(ir_.i64(c), w.col));
  return ir_.offset(p, w.rest + i * w.row.n + q * w.outer.n + c * w.col.n);
}

Window Emitter::moved(const Window& w, Val rows, Val cols) const {
  Window m = w;
  if (rows) m.base = ir_.offset(m.base, times(rows, w.row));
  if (cols) m.base = ir_.offset(m.base, times(cols, w.col)), m.align = element_align(w.type);
  return m;
}

Val Emitter::row_exists(const Window& w, int64_t r) {
  Val all = w.exists;
  auto also = [&](Val c) { all = all ? ir_.and_(all, c) : c; };
  auto inside = [&](int64_t i, const Bound& b) {
    if (b.hi && syms_.range(*b.hi).lo <= i) also(ir_.icmp(Pred::lt, ir_.i64(i), syms_.value(*b.hi)));
    if (b.lo && syms_.range(*b.lo).hi > i) also(ir_.icmp(Pred::ge, ir_.i64(i), syms_.value(*b.lo)));
  };
  inside(w.inner ? r % w.inner : r, w.row_bound);
  if (w.inner) inside(r / w.inner, w.outer_bound);
  return all;
}

Lanes Emitter::lanes(const Window& w, int64_t c, int64_t n) {
  Lanes l;
  if (w.columns_left) return {nullptr, ir_.sub(w.columns_left, ir_.i64(c))};
  if (w.col_bound.hi && syms_.range(*w.col_bound.hi).lo < c + n)
    l.hi = ir_.sub(syms_.value(*w.col_bound.hi), ir_.i64(c));
  else if (c + n > w.cols)
    l.hi = ir_.i64(w.cols - c);
  if (w.col_bound.lo && syms_.range(*w.col_bound.lo).hi > c) l.lo = ir_.sub(syms_.value(*w.col_bound.lo), ir_.i64(c));
  return l;
}
Lanes Emitter::both(const Lanes& a, const Lanes& b) {
  return {a.lo && b.lo ? ir_.smax(a.lo, b.lo)
          : a.lo       ? a.lo
                       : b.lo,
          a.hi && b.hi ? ir_.smin(a.hi, b.hi)
          : a.hi       ? a.hi
                       : b.hi};
}

Val Emitter::clamped_row(const Window& w, int64_t r) {
  auto part = [&](int64_t i, const Bound& b, const Stride& s) -> Val {
    if (!b.hi || syms_.range(*b.hi).lo > i) return times(ir_.i64(i), s);
    Val last = syms_.value(*b.hi - Expr(1));
    if (syms_.range(*b.hi).lo < 1) last = ir_.smax(last, ir_.i64(0));
    return times(ir_.smin(ir_.i64(i), last), s);
  };
  Val bytes = part(w.inner ? r % w.inner : r, w.row_bound, w.row);
  return w.inner ? ir_.add(bytes, part(r / w.inner, w.outer_bound, w.outer)) : bytes;
}

Val Emitter::load(const Window& w, int64_t r, int64_t c, int64_t n, double pad) {
  const Type t{memory_elem(w.type), static_cast<int>(n)};
  Lanes l = lanes(w, c, n);
  Val p = nullptr;
  if (w.padded) {
    p = address(w, r, c);
    if (Val row = row_exists(w, r)) {
      Val all = l.hi ? l.hi : ir_.i64(n);
      l.hi = ir_.select(row, all, ir_.i64(0));
    }
  } else if (w.row_bound.hi || w.outer_bound.hi) {
    p = ir_.offset(ir_.offset(w.base, clamped_row(w, r)), w.rest);
    p = w.col.v ? ir_.offset(p, times(ir_.i64(c), w.col)) : ir_.offset(p, c * w.col.n);
  } else {
    p = address(w, r, c);
  }
  const int64_t align = std::max(element_align(w.type), std::gcd(w.align, w.col.v ? 1 : c * w.col.n));
  Val other = w.type == DType::b1 ? ir_.num(t, pad != 0) : constant(w.type, pad, n);
  Val v = load_lanes(t, p, align, w.col, l, other);
  return w.type == DType::b1 ? ir_.icmp(Pred::ne, v, ir_.inum(t, 0)) : v;
}

void Emitter::store(const Window& w, int64_t r, int64_t c, int64_t n, Val v, Lanes more) {
  const Lanes l = both(lanes(w, c, n), more);
  const int64_t align = std::max(element_align(w.type), std::gcd(w.align, w.col.v ? 1 : c * w.col.n));
  if (w.type == DType::b1) v = ir_.zext(v, Elem::i8);
  auto put = [&] { store_lanes(v, address(w, r, c), align, w.col, l); };
  if (Val row = row_exists(w, r))
    when(row, put);
  else
    put();
}

// ---- lanes ----
bool Emitter::native_mask(Elem e) const {
  return cpu::bytes(e) >= 4 ? ir_.machine().native_mask32 : ir_.machine().native_mask8;
}

Val Emitter::lane_mask(int64_t n, const Lanes& l, Elem like) {
  const int size = cpu::bytes(like);
  const Elem e = size == 1 ? Elem::i8 : size == 2 ? Elem::i16 : size == 8 ? Elem::i64 : Elem::i32;
  const Type t{e, static_cast<int>(n)};
  std::vector<int64_t> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  auto limit = [&](Val x) {
    x = ir_.smax(ir_.smin(x, ir_.i64(n)), ir_.i64(0));
    return ir_.splat(e == Elem::i64 ? x : ir_.narrow(x, e), t.lanes);
  };
  Val mask = nullptr, number = ir_.ilist(e, numbers);
  if (l.hi) mask = ir_.icmp(Pred::lt, number, limit(l.hi));
  if (l.lo) {
    Val low = ir_.icmp(Pred::ge, number, limit(l.lo));
    mask = mask ? ir_.and_(mask, low) : low;
  }
  return mask;
}

Val Emitter::load_lanes(Type t, Val p, int64_t align, const Stride& step, const Lanes& l, Val other) {
  const int64_t n = t.lanes, size = cpu::bytes(t.e);
  const Type one{t.e, 1};
  Val lo = l.lo ? ir_.smax(l.lo, ir_.i64(0)) : ir_.i64(0), hi = l.hi ? ir_.smin(l.hi, ir_.i64(n)) : ir_.i64(n);
  if (n == 1 || (step.n == 0 && !step.v)) {  // one element
    if (l.all()) return ir_.splat(ir_.load(one, p, size), t.lanes);
    Val safe = ir_.select(ir_.icmp(Pred::lt, lo, hi), p, ir_.local(one));
    Val v = ir_.splat(ir_.load(one, safe, size), t.lanes);
    return ir_.select(n == 1 ? ir_.icmp(Pred::lt, lo, hi) : lane_mask(n, l, t.e), v, other);
  }
  const bool unit = !step.v && step.n == size;
  if (unit && l.all()) return ir_.load(t, p, align);
  if (unit && native_mask(t.e)) return ir_.masked_load(t, p, align, lane_mask(n, l, t.e), other);
  if (l.all() && n <= 16) {
    Val v = ir_.undef(t);
    for (int64_t i = 0; i < n; i++) {
      Val q = step.v ? ir_.offset(p, times(ir_.i64(i), step)) : ir_.offset(p, i * step.n);
      v = ir_.insert(v, ir_.load(one, q, size), static_cast<int>(i));
    }
    return v;
  }
  auto one_by_one = [&] {
    Val slot = ir_.local(t);
    ir_.store(other, slot, size);
    loop_if_any(lo, hi, 1, {}, [&](Val i, const Vals&) {
      ir_.store(ir_.load(one, ir_.offset(p, times(i, step)), size), ir_.offset(slot, ir_.mul(i, ir_.i64(size))), size);
      return Vals{};
    });
    return Vals{ir_.load(t, slot, size)};
  };
  if (!unit) return one_by_one()[0];
  Val full = ir_.and_(ir_.icmp(Pred::le, lo, ir_.i64(0)), ir_.icmp(Pred::ge, hi, ir_.i64(n)));
  return branch(
      full, [&] { return Vals{ir_.load(t, p, align)}; }, one_by_one)[0];
}

void Emitter::store_lanes(Val v, Val p, int64_t align, const Stride& step, const Lanes& l) {
  const Type t = ir_.type(v), one{t.e, 1};
  const int64_t n = t.lanes, size = cpu::bytes(t.e);
  Val lo = l.lo ? ir_.smax(l.lo, ir_.i64(0)) : ir_.i64(0), hi = l.hi ? ir_.smin(l.hi, ir_.i64(n)) : ir_.i64(n);
  const bool unit = n == 1 || (!step.v && step.n == size);
  if (unit && l.all()) return ir_.store(v, p, align);
  if (n == 1) return when(ir_.icmp(Pred::lt, lo, hi), [&] { ir_.store(v, p, align); });
  auto all_lanes = [&] { return ir_.and_(ir_.icmp(Pred::le, lo, ir_.i64(0)), ir_.icmp(Pred::ge, hi, ir_.i64(n))); };
  if (unit && native_mask(t.e)) {
    auto masked = [&] { return ir_.masked_store(v, p, align, lane_mask(n, l, t.e)), Vals{}; };
    // Before AVX-512 a masked store is slow on some machines (Zen: a dozen cycles), and most vectors are full.
    const bool partial = ir_.constant(hi).value_or(n) < n || ir_.constant(lo).value_or(0) > 0;
    if (ir_.machine().native_mask8 || partial)
      masked();
    else
      branch(
          all_lanes(), [&] { return ir_.store(v, p, align), Vals{}; }, masked);
    return;
  }
  if (l.all() && n <= 16) {
    for (int64_t i = 0; i < n; i++)
      ir_.store(ir_.extract(v, static_cast<int>(i)),
                step.v ? ir_.offset(p, times(ir_.i64(i), step)) : ir_.offset(p, i * step.n), size);
    return;
  }
  auto one_by_one = [&] {
    Val slot = ir_.local(t);
    ir_.store(v, slot, size);
    loop_if_any(lo, hi, 1, {}, [&](Val i, const Vals&) {
      ir_.store(ir_.load(one, ir_.offset(slot, ir_.mul(i, ir_.i64(size))), size), ir_.offset(p, times(i, step)), size);
      return Vals{};
    });
    return Vals{};
  };
  if (!unit) {
    one_by_one();
    return;
  }
  branch(
      all_lanes(), [&] { return ir_.store(v, p, align), Vals{}; }, one_by_one);
}

}  // namespace gaf::cpu
