// Phases, parallel nests, loops and branches: what runs how often, and which register tiles are carried through.
#include <algorithm>

#include "base/error.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

Emitter::Emitter(const Kernel& k, const Target& t, Ir& ir, std::span<const int> shared)
    : k_(k), t_(t), ir_(ir), syms_(k, ir) {
  const std::vector<int> all = parameters(k);
  for (const int position : shared) shared_.insert(all.at(static_cast<size_t>(position)));
  const std::function<void(const Body&)> find = [&](const Body& b) {
    for (const Stmt& s : b)
      std::visit(Match{[&](const Mma& m) { accumulators_.insert(m.dst.id); },
                       [&](const For& f) { find_rows_ahead(f), find(f.body); },
                       [&](const If& f) { find(f.yes), find(f.no); }, [](const auto&) {}},
                 s.alt);
  };
  find(k.body);
}

void Emitter::run() {
  std::vector<const Stmt*> stmts, declared;  // a name declared before a barrier may be written anew behind it
  auto flush = [&] {
    std::vector<const Stmt*> all = declared;
    all.insert(all.end(), stmts.begin(), stmts.end());
    for (const Stmt* s : stmts)
      if (std::holds_alternative<Declare>(s->alt)) declared.push_back(s);
    phase(phases_++, all);
    stmts.clear();
  };
  for (const Stmt& s : k_.body)
    if (std::holds_alternative<Barrier>(s.alt))
      flush();
    else
      stmts.push_back(&s);
  flush();
}

void Emitter::phase(int number, std::span<const Stmt* const> stmts) {
  // The inner function has a pointer per buffer, so that noalias can be said; the exported one unpacks the arrays.
  std::vector<Ir::Param> params;
  std::vector<int> bufs, sizes;
  for (size_t i = 0; i < k_.bufs.size(); i++)
    if (k_.bufs[i].role != Role::view) {
      bufs.push_back(static_cast<int>(i));
      params.push_back({Elem::ptr, k_.bufs[i].role != Role::inout && !shared_.count(bufs.back())});
    }
  for (size_t i = 0; i < k_.syms.size(); i++)
    if (k_.syms[i].kind == SymKind::size) sizes.push_back(static_cast<int>(i)), params.push_back({Elem::i64});
  params.push_back({Elem::ptr, true});
  params.push_back({Elem::i64});
  params.push_back({Elem::i64});

  const std::string inner = "phase_" + std::to_string(number);
  Vals args = ir_.begin(inner, params, false);
  buffers_.assign(k_.bufs.size(), nullptr);
  tiles_.clear();
  syms_.begin_function();
  for (size_t i = 0; i < bufs.size(); i++) buffers_[static_cast<size_t>(bufs[i])] = args[i];
  for (size_t i = 0; i < sizes.size(); i++) {
    const Symbol& s = k_.syms[static_cast<size_t>(sizes[i])];
    syms_.bind(sizes[i], args[bufs.size() + i], {s.lo, s.hi});
  }
  scratch_ = args[args.size() - 3];
  Val lo = args[args.size() - 2], hi = args[args.size() - 1];

  Expr before = 0;  // iterations of the parallel nests already seen in this phase
  for (const Stmt* s : stmts) {
    const auto* f = std::get_if<For>(&s->alt);
    if (!f || f->kind != LoopKind::par) {
      emit(*s);
      continue;
    }
    Expr n = 1;
    for (const Axis& a : f->axes) n *= trips(a);
    Val first = ir_.smax(ir_.sub(lo, syms_.value(before)), ir_.i64(0));
    Val end = ir_.smin(ir_.sub(hi, syms_.value(before)), syms_.value(n));
    when(ir_.icmp(Pred::lt, first, end), [&] { par(*f, first, end); });
    before += n;
  }
  ir_.ret();

  Vals outer = ir_.begin("gaf_run_" + std::to_string(number),
                         {{Elem::ptr}, {Elem::ptr}, {Elem::ptr}, {Elem::i64}, {Elem::i64}}, true);
  Vals call;
  for (size_t i = 0; i < bufs.size(); i++)
    call.push_back(ir_.load({Elem::ptr, 1}, ir_.offset(outer[0], static_cast<int64_t>(8 * i)), 8));
  for (size_t i = 0; i < sizes.size(); i++)
    call.push_back(ir_.load({Elem::i64, 1}, ir_.offset(outer[1], static_cast<int64_t>(8 * i)), 8));
  call.insert(call.end(), outer.begin() + 2, outer.end());
  ir_.call_and_return(inner, call);
  trips_function(number, stmts);
}

void Emitter::trips_function(int number, std::span<const Stmt* const> stmts) {
  Val array = ir_.begin("gaf_trips_" + std::to_string(number), {{Elem::ptr}}, true, Elem::i64)[0];
  std::vector<std::pair<int, Val>> sizes;  // loaded before the level that uses them begins
  for (size_t i = 0; i < k_.syms.size(); i++)
    if (k_.syms[i].kind == SymKind::size)
      sizes.emplace_back(static_cast<int>(i),
                         ir_.load({Elem::i64, 1}, ir_.offset(array, static_cast<int64_t>(8 * sizes.size())), 8));
  syms_.begin_function();
  for (auto [sym, v] : sizes)
    syms_.bind(sym, v, {k_.syms[static_cast<size_t>(sym)].lo, k_.syms[static_cast<size_t>(sym)].hi});
  Expr total = 0;
  bool parallel = false;
  for (const Stmt* s : stmts)
    if (const auto* f = std::get_if<For>(&s->alt); f && f->kind == LoopKind::par) {
      Expr n = 1;
      for (const Axis& a : f->axes) n *= trips(a);
      total += n;
      parallel = true;
    }
  ir_.ret(syms_.value(parallel ? total : Expr(1)));
}

Expr Emitter::trips(const Axis& a) const {
  Expr n = floordiv(a.hi - a.lo + Expr(a.step - 1), Expr(a.step));
  return syms_.range(n).lo < 0 ? max(n, Expr(0)) : n;
}

// lo..hi counts iterations of the whole nest. The outer indices are decoded once, then carried: no division per
// iteration.
void Emitter::par(const For& f, Val lo, Val hi) {
  const size_t n = f.axes.size();
  Vals count(n), start(n);
  for (size_t i = 0; i < n; i++) count[i] = syms_.value(trips(f.axes[i]));
  Val left = lo;
  for (size_t i = n; i-- > 0;) {
    if (i == 0)
      start[i] = left;
    else {
      start[i] = ir_.urem(left, count[i]);
      left = ir_.udiv(left, count[i]);
    }
  }
  auto index = [&](size_t i, Val number) {  // the symbol's value in the number-th iteration
    return ir_.add(syms_.value(f.axes[i].lo), ir_.mul(number, ir_.i64(f.axes[i].step)));
  };
  auto range = [&](const Axis& a) { return Range{syms_.range(a.lo).lo, syms_.range(a.hi).hi - 1}; };
  auto run = [&](Val first, Val end) {  // iterations of the innermost axis
    loop(first, end, 1, {}, [&](Val i, const Vals&) {
      Val v = index(n - 1, i);
      syms_.open();
      syms_.bind(f.axes[n - 1].sym, v, range(f.axes[n - 1]));
      body(f.body);
      syms_.close();
      return Vals{};
    });
  };
  if (n == 1) return run(lo, hi);

  // rows of the innermost axis: do { a row, or the part of it that is ours } while (iterations are left)
  Vals init = start;
  init.push_back(ir_.sub(hi, lo));
  Block before = ir_.here(), head = ir_.block("rows"), out = ir_.block("done");
  ir_.br(head);
  ir_.enter(head);
  Vals now;
  for (Val v : init) now.push_back(ir_.phi({Elem::i64, 1})), ir_.incoming(now.back(), v, before);
  Vals at;
  for (size_t i = 0; i + 1 < n; i++) at.push_back(index(i, now[i]));
  syms_.open();
  for (size_t i = 0; i + 1 < n; i++) syms_.bind(f.axes[i].sym, at[i], range(f.axes[i]));
  Val end = ir_.smin(ir_.add(now[n - 1], now[n]), count[n - 1]);
  run(now[n - 1], end);
  Val rest = ir_.sub(now[n], ir_.sub(end, now[n - 1]));
  Vals next(n + 1);
  next[n - 1] = ir_.i64(0);
  next[n] = rest;
  Val carry = ir_.i64(1);
  for (size_t i = n - 1; i-- > 0;) {
    Val x = ir_.add(now[i], carry);
    if (i == 0)
      next[i] = x;
    else {
      Val over = ir_.icmp(Pred::ge, x, count[i]);
      next[i] = ir_.select(over, ir_.i64(0), x);
      carry = ir_.select(over, ir_.i64(1), ir_.i64(0));
    }
  }
  Block last = ir_.here();
  for (size_t i = 0; i <= n; i++) ir_.incoming(now[i], next[i], last);
  ir_.loop_br(ir_.icmp(Pred::gt, rest, ir_.i64(0)), head, out);
  syms_.close();
  ir_.enter(out);
}

void Emitter::body(const Body& b) {
  int levels = 0;
  for (const Stmt& s : b) {
    emit(s);
    levels += std::holds_alternative<Read>(s.alt);  // opens a level that lasts to the end of the block
  }
  for (; levels > 0; levels--) syms_.close();
  for (const Stmt& s : b)
    if (const auto* d = std::get_if<Declare>(&s.alt)) tiles_.erase(d->tile);
}

void Emitter::emit(const Stmt& s) {
  std::visit(
      Match{[&](const Declare& d) { declare(d.tile); }, [](const View&) {}, [](const Sync&) {},
            [](const Barrier&) { GAF_CHECK(false) << "a barrier inside a block"; }, [&](const auto& x) { emit(x); }},
      s.alt);
}

// What a loop or a side of a branch leaves in a tile may have other valid extents than before; then nobody behind it
// knows them, and the whole tile counts (its lanes exist, so nothing is touched that should not be).
void Emitter::merge_extents(const std::vector<int>& tiles, const std::vector<RegTile>& before) {
  for (size_t i = 0; i < tiles.size(); i++) {
    RegTile& t = tiles_.at(tiles[i]);
    if (t.rows != before[i].rows) t.rows.reset();
    if (t.cols != before[i].cols) t.cols.reset();
  }
}
std::vector<Emitter::RegTile> Emitter::snapshot(const std::vector<int>& tiles) const {
  std::vector<RegTile> out;
  for (int id : tiles) out.push_back(tiles_.at(id));
  return out;
}

// Register tiles declared outside and written inside.
std::vector<int> Emitter::carried(std::span<const Body* const> bodies) const {
  std::set<int> out;
  const std::function<void(const Body&)> find = [&](const Body& b) {
    for (const Stmt& s : b) {
      for_each_ref(s, [&](const Ref& r, bool write) {
        if (write && r.tile && tiles_.count(r.id)) out.insert(r.id);
      });
      if (const auto* f = std::get_if<For>(&s.alt)) find(f->body);
      if (const auto* f = std::get_if<If>(&s.alt)) find(f->yes), find(f->no);
    }
  };
  for (const Body* b : bodies) find(*b);
  return {out.begin(), out.end()};
}
Vals Emitter::values(const std::vector<int>& tiles) const {
  Vals v;
  for (int id : tiles) v.insert(v.end(), tiles_.at(id).v.begin(), tiles_.at(id).v.end());
  return v;
}
void Emitter::assign(const std::vector<int>& tiles, const Vals& v) {
  size_t n = 0;
  for (int id : tiles)
    for (Val& x : tiles_.at(id).v) x = v[n++];
}

Vals Emitter::branch(Val c, const std::function<Vals()>& yes, const std::function<Vals()>& no) {
  Block t = ir_.block("then"), e = ir_.block("else"), join = ir_.block("join");
  ir_.br(c, t, e);
  ir_.enter(t);
  Vals a = yes();
  Block a_end = ir_.here();
  ir_.br(join);
  ir_.enter(e);
  Vals b = no();
  Block b_end = ir_.here();
  ir_.br(join);
  ir_.enter(join);
  for (size_t i = 0; i < a.size(); i++) {
    if (a[i] == b[i]) continue;
    Val p = ir_.phi(ir_.type(a[i]));
    ir_.incoming(p, a[i], a_end);
    ir_.incoming(p, b[i], b_end);
    a[i] = p;
  }
  return a;
}
void Emitter::when(Val c, const std::function<void()>& yes) {
  Block t = ir_.block("then"), join = ir_.block("join");
  ir_.br(c, t, join);
  ir_.enter(t);
  yes();
  ir_.br(join);
  ir_.enter(join);
}

Vals Emitter::loop(Val lo, Val hi, int64_t step, const Vals& init, const LoopBody& f) {
  Block before = ir_.here(), head = ir_.block("loop"), out = ir_.block("end");
  ir_.br(head);
  ir_.enter(head);
  Val i = ir_.phi({Elem::i64, 1});
  ir_.incoming(i, lo, before);
  Vals phis;
  for (Val v : init) phis.push_back(ir_.phi(ir_.type(v))), ir_.incoming(phis.back(), v, before);
  Vals result = f(i, phis);
  Val next = ir_.add(i, ir_.i64(step));
  Block last = ir_.here();
  ir_.incoming(i, next, last);
  for (size_t n = 0; n < phis.size(); n++) ir_.incoming(phis[n], result[n], last);
  ir_.loop_br(ir_.icmp(Pred::lt, next, hi), head, out);
  ir_.enter(out);
  return result;
}
Vals Emitter::loop_if_any(Val lo, Val hi, int64_t step, const Vals& init, const LoopBody& f) {
  return branch(
      ir_.icmp(Pred::lt, lo, hi), [&] { return loop(lo, hi, step, init, f); }, [&] { return init; });
}

void Emitter::repeat(const Expr& n, int64_t step, int64_t unroll,
                     const std::function<void(Val, std::optional<int64_t>)>& f) {
  if (const auto known = syms_.number(n); known && *known <= unroll * step) {
    for (int64_t i = 0; i < *known; i += step) f(ir_.i64(i), i);
    return;
  }
  const LoopBody once = [&](Val i, const Vals&) { return f(i, std::nullopt), Vals{}; };
  if (syms_.range(n).lo >= 1)
    loop(ir_.i64(0), syms_.value(n), step, {}, once);
  else
    loop_if_any(ir_.i64(0), syms_.value(n), step, {}, once);
}

void Emitter::emit(const If& f) {
  const Range d = syms_.range(syms_.known(f.a - f.b));
  const bool lt = f.cmp == Cmp::lt, le = f.cmp == Cmp::le, eq = f.cmp == Cmp::eq, ne = f.cmp == Cmp::ne;
  const bool always =
      (lt && d.hi < 0) || (le && d.hi <= 0) || (eq && d.lo == 0 && d.hi == 0) || (ne && (d.lo > 0 || d.hi < 0));
  const bool never =
      (lt && d.lo >= 0) || (le && d.lo > 0) || (eq && (d.lo > 0 || d.hi < 0)) || (ne && d.lo == 0 && d.hi == 0);
  if (always || never) return body(always ? f.yes : f.no);
  static constexpr Pred kPred[] = {Pred::lt, Pred::le, Pred::eq, Pred::ne};
  Val c = ir_.icmp(kPred[static_cast<int>(f.cmp)], syms_.value(f.a), syms_.value(f.b));
  const Body* bodies[] = {&f.yes, &f.no};
  const std::vector<int> ids = carried(bodies);
  const std::vector<RegTile> before = snapshot(ids);
  std::vector<RegTile> yes;
  auto side = [&](const Body& b) {
    for (size_t i = 0; i < ids.size(); i++) tiles_.at(ids[i]) = before[i];
    body(b);
    return values(ids);
  };
  const Vals merged = branch(
      c,
      [&] {
        Vals v = side(f.yes);
        yes = snapshot(ids);
        return v;
      },
      [&] { return side(f.no); });
  assign(ids, merged);
  merge_extents(ids, yes);
}

void Emitter::emit(const For& f) {
  GAF_CHECK(f.kind != LoopKind::par && f.axes.size() == 1) << "a parallel loop inside a block";
  const Axis& a = f.axes[0];
  const Range lo = syms_.range(syms_.known(a.lo)), hi = syms_.range(syms_.known(a.hi));
  if (hi.hi <= lo.lo) return;
  const bool fixed = lo.lo == lo.hi && hi.lo == hi.hi;
  GAF_CHECK(f.kind != LoopKind::unroll || fixed) << "`unroll` needs constant bounds";
  if (fixed && (f.kind == LoopKind::unroll || lo.lo + a.step >= hi.hi)) {
    for (int64_t i = lo.lo; i < hi.hi; i += a.step) {
      syms_.bind(a.sym, i);
      body(f.body);
    }
    syms_.unbind(a.sym);
    return;
  }
  const int64_t last = lo.lo == lo.hi ? lo.lo + (hi.hi - 1 - lo.lo) / a.step * a.step : hi.hi - 1;
  const Body* bodies[] = {&f.body};
  const std::vector<int> ids = carried(bodies);
  const std::vector<RegTile> before = snapshot(ids);
  const LoopBody once = [&](Val i, const Vals& v) {
    syms_.open();
    syms_.bind(a.sym, i, {lo.lo, std::max(lo.lo, last)});
    assign(ids, v);
    fetch_ahead(f);
    body(f.body);
    syms_.close();
    return values(ids);
  };
  Val first = syms_.value(a.lo), end = syms_.value(a.hi);
  const bool some = lo.hi < hi.lo || syms_.range(syms_.known(a.hi - a.lo)).lo >= 1;
  assign(ids, some ? loop(first, end, a.step, values(ids), once) : loop_if_any(first, end, a.step, values(ids), once));
  merge_extents(ids, before);
}

}  // namespace gaf::cpu
