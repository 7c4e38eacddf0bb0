// Verifier: blocks, loops, declarations and references. The rules are listed in kernel_verify.h; what single statements
// demand is kernel_verify_stmt.cpp, the independence of par iterations kernel_verify_par.cpp.
#include "ir/kernel_verify.h"

#include <algorithm>
#include <utility>

namespace gaf::kir {

std::vector<KernelProblem> verify_kernel(const Kernel& k, const Target& t) { return Verifier(k, t).run(); }

std::vector<KernelProblem> Verifier::run() {
  for (size_t i = 0; i < k_.syms.size(); i++) {
    const Symbol& s = k_.syms[i];
    if (s.kind == SymKind::size && (s.lo < 0 || s.hi < s.lo || s.mult < 1))
      complain("size " + s.name + " has an empty range");
  }
  for (const Buf& b : k_.bufs)
    if (b.role != Role::view)
      for (const Expr& d : b.shape) symbols(d);
  for_each_stmt(k_.body, [&](const Stmt& s) {
    if (const For* f = std::get_if<For>(&s.alt)) has_par_ = has_par_ || f->kind == LoopKind::par;
  });
  body(k_.body);
  line_ = 0;
  independent();
  for (const auto& [mem, bytes] : peak_bytes(k_, t_)) {  // registers are the allocator's; counted by the analysis
    const MemoryRow* m = t_.memory(mem);
    if (m && mem != Mem::reg && bytes > m->bytes)
      complain("needs " + std::to_string(bytes) + " bytes of " + std::string(kMemName[static_cast<int>(mem)]) +
               ", there are " + std::to_string(m->bytes));
  }
  return std::move(problems_);
}

void Verifier::body(const Body& b) {
  size_t entered = 0;
  for (const Stmt& s : b) {
    line_ = s.line;
    std::visit([&](const auto& x) { check(x); }, s.alt);
    if (!std::holds_alternative<For>(s.alt) && !std::holds_alternative<If>(s.alt)) apply(k_, s, tiles_);
    if (const Declare* d = std::get_if<Declare>(&s.alt)) tiles_[static_cast<size_t>(d->tile)].depth = depth_;
    if (std::holds_alternative<Read>(s.alt)) entered++;
  }
  for (; entered; entered--) {  // `read` names live to the end of their block
    bounds_.leave();
    inner_.pop_back();
  }
  for (const Stmt& s : b)
    if (const Declare* d = std::get_if<Declare>(&s.alt)) tiles_[static_cast<size_t>(d->tile)].live = false;
  balance(b);
}

// Each run of a block sets an event as often as it waits for it, so any number of iterations and any share of them
// balance.
void Verifier::balance(const Body& b) {
  std::map<std::string, std::pair<int, int>> left;  // sets less waits, and the line of the first
  for (const Stmt& s : b) {
    const Sync* y = std::get_if<Sync>(&s.alt);
    if (!y || y->kind == SyncKind::fence) continue;
    std::string event = "event " + print_expr(k_, y->event) + " from " +
                        std::string(kPipeName[static_cast<int>(y->from)]) + " to " +
                        std::string(kPipeName[static_cast<int>(y->to)]);
    auto [it, fresh] = left.try_emplace(event, 0, s.line);
    it->second.first += y->kind == SyncKind::set ? 1 : -1;
  }
  for (const auto& [event, x] : left) {
    line_ = x.second;
    if (x.first > 0) complain(event + " is set more often than waited for in this block");
    if (x.first < 0) complain(event + " is waited for more often than set in this block");
  }
}

void Verifier::symbols(const Expr& x) {
  for (int i = 0; i <= x.max_sym(); i++)
    if (x.mentions(i) && !bounds_.in_scope(i))
      complain("'" + k_.syms[static_cast<size_t>(i)].name + "' is used outside its loop");
}

void Verifier::check(const Declare& d) {
  const Tile& x = k_.tiles[static_cast<size_t>(d.tile)];
  const MemoryRow* m = t_.memory(x.mem);
  std::string mem(kMemName[static_cast<int>(x.mem)]);
  if (!m || x.mem == Mem::gm) return complain("target " + t_.name + " has no tile memory " + mem);
  if (x.rows < 1 || x.cols < 1 || x.ring < 1) return complain("tile " + x.name + " is empty");
  if (x.at >= 0 && x.at % m->align) complain("tile " + x.name + " is not aligned to " + std::to_string(m->align));
  if (x.mem != Mem::reg && std::max<int64_t>(x.at, 0) + slot_bytes(x, t_) * (x.ring - 1) + x.size_bytes() > m->bytes)
    complain("tile " + x.name + " does not fit " + mem);
  if (t_.pipes && x.mem == Mem::ub && x.cols > 1 && x.cols * bytes(x.type) % m->align)
    complain("tile " + x.name + ": rows must be multiples of " + std::to_string(m->align) + " bytes");
}

namespace {
// An empty rectangle touches nothing, so of max(0, n) only n can pass an end.
Expr unless_empty(const Expr& n) {
  if (n.op() != ExprOp::max || n.args().size() != 2) return n;
  return n.args()[0].is(0) ? n.args()[1] : n.args()[1].is(0) ? n.args()[0] : n;
}
}  // namespace

void Verifier::check(const View& v) {
  const Buf& b = k_.bufs[static_cast<size_t>(v.buf)];
  const Buf& base = k_.bufs[static_cast<size_t>(b.base)];
  if (b.strides.size() != b.shape.size()) return complain("view " + b.name + " needs one stride per dimension");
  if (b.type != base.type) complain("view " + b.name + " and " + base.name + " differ in dtype");
  for (const Expr& x : b.shape) symbols(x);
  for (const Expr& x : b.strides) symbols(x);
  symbols(b.offset);
  Expr first = b.offset, last = b.offset;
  for (size_t i = 0; i < b.shape.size(); i++) {
    Range sign = bounds_.range(b.strides[i]);
    Expr reach = (b.shape[i] - Expr(1)) * b.strides[i];
    if (sign.lo >= 0)
      last += reach;
    else if (sign.hi <= 0)
      first += reach;
    else
      last += max(reach, 0), first += min(reach, 0);
  }
  if (!bounds_.at_most(-first, 0)) complain("view " + b.name + " may start before " + base.name);
  if (!bounds_.at_most(last - product(base.shape), -1))
    complain("view " + b.name + " may pass the end of " + base.name);
}

void Verifier::check(const Read& r) {
  Shape s = reference(r.src, Access::read);
  if (!is_int(type_of(k_, r.src))) complain("read: " + show(r.src) + " holds no integers");
  if (!s.rows.is(1) || !s.cols.is(1)) complain("read: " + show(r.src) + " is more than one element");
  symbols(r.lo), symbols(r.hi);
  bounds_.enter(r.sym, r.lo, r.hi - Expr(1));
  reach_[r.sym] = {r.lo, r.hi - Expr(1)};
  inner_.push_back(r.sym);
}

void Verifier::check(const For& f) {
  bool par = f.kind == LoopKind::par;
  if (par && depth_ > 0) complain("par must stand outermost");
  if (!par && f.axes.size() != 1) complain("only a par loop has several axes");
  enter_loop(k_, f, tiles_);
  std::vector<TileState> before = tiles_;
  for (const Axis& a : f.axes) {
    if (a.step < 1) complain("the step of " + k_.syms[static_cast<size_t>(a.sym)].name + " must be positive");
    symbols(a.lo), symbols(a.hi);
    Expr last = bounds_.last_of(a);
    bounds_.enter(a.sym, a.lo, last);
    reach_[a.sym] = {a.lo, last};
    if (!par) inner_.push_back(a.sym);
  }
  if (par) {
    par_loop_ = &f;
    outer_ = std::exchange(inner_, {});
  }
  depth_++;
  body(f.body);
  depth_--;
  if (par) {
    par_loop_ = nullptr;
    inner_ = outer_;
  }
  for (size_t i = 0; i < f.axes.size(); i++) {
    bounds_.leave();
    if (!par) inner_.pop_back();
  }
  drop_symbols(f, tiles_);
  merge(tiles_, before);
}

void Verifier::check(const If& f) {
  symbols(f.a), symbols(f.b);
  const auto [yes, no] = facts_of(f);
  std::vector<TileState> entry = tiles_;
  depth_++;
  for (const Expr& x : yes) bounds_.assume(x);
  body(f.yes);
  for (size_t i = 0; i < yes.size(); i++) bounds_.forget();
  std::vector<TileState> exit = std::exchange(tiles_, std::move(entry));
  for (const Expr& x : no) bounds_.assume(x);
  body(f.no);
  for (size_t i = 0; i < no.size(); i++) bounds_.forget();
  depth_--;
  merge(tiles_, exit);
}

void Verifier::check(const Barrier&) {
  if (depth_ > 0) complain("a barrier must stand outermost");
  int at = line_;
  independent();
  line_ = at;
}

void Verifier::check(const Sync& s) {
  if (!t_.pipes) complain("target " + t_.name + " has no pipes to synchronise");
  symbols(s.event);
  if (s.kind != SyncKind::fence && s.from == s.to)
    complain("an event goes from one pipe to another; a pipe waits for itself with fence");
  if (s.kind != SyncKind::fence && (!bounds_.at_most(-s.event, 0) || !bounds_.at_most(s.event, t_.event_ids - 1)))
    complain("event " + print_expr(k_, s.event) + " may leave 0.." + std::to_string(t_.event_ids - 1));
}

Shape Verifier::reference(const Ref& r, Access a) {
  if (r.tile && !state(r).live) complain("tile " + show(r) + " is used outside the block that declares it");
  if (r.tile && a != Access::write && state(r).live && !state(r).written)
    complain(show(r) + " is read, but nothing has written it");
  if (a == Access::write && !r.tile) {
    const Buf& b = k_.bufs[static_cast<size_t>(r.id)];
    if ((b.role == Role::view ? k_.bufs[static_cast<size_t>(b.base)] : b).role == Role::in)
      complain("writes the input " + show(r));
    if (has_par_ && !par_loop_) complain(show(r) + " is written beside the par loops, by every worker");
  }
  if (a == Access::write && r.tile && par_loop_ && state(r).live && state(r).depth == 0)
    complain("tile " + show(r) + " from outside the par loop is written inside");
  Shape s = shape_of(k_, tiles_, r);
  if (!s.known && a != Access::write) complain("the extents of " + show(r) + " depend on the path taken");
  if (r.tile && r.at.empty()) return s;
  size_t rank = r.tile ? 2 : k_.bufs[static_cast<size_t>(r.id)].shape.size();
  if (r.at.size() != rank) {
    complain(show(r) + " needs " + std::to_string(rank) + " indices");
    return {1, 1, false};
  }
  for (size_t i = 0; i < rank; i++) {
    const Slice& x = r.at[i];
    symbols(x.at);
    if (x.n) symbols(*x.n);
    if (x.n && !bounds_.at_most(-*x.n, x.n->is_num() ? -1 : 0))
      complain(show(r) + ": the extent " + print_expr(k_, *x.n) + " may be " + (x.n->is_num() ? "empty" : "negative"));
    if (x.step < 1) complain(show(r) + ": the step must be positive");
    if (a == Access::loose || a == Access::hint) continue;
    Expr dim = r.tile ? Expr(i ? k_.tiles[static_cast<size_t>(r.id)].cols : k_.tiles[static_cast<size_t>(r.id)].rows)
                      : k_.bufs[static_cast<size_t>(r.id)].shape[i];
    Expr over = x.at + (x.n ? (unless_empty(*x.n) - Expr(1)) * Expr(x.step) : Expr(0)) - dim;
    if (!bounds_.at_most(-x.at, 0)) complain(show(r) + ": index " + std::to_string(i) + " may be negative");
    if (!bounds_.at_most(over, -1)) {
      int64_t by = bounds_.most(over) + 1;
      complain(show(r) + ": index " + std::to_string(i) + " may pass the end by " + std::to_string(by));
    }
  }
  if (!r.tile && par_loop_ && a != Access::hint) touch(r, a == Access::write);
  return s;
}

void Verifier::touch(const Ref& r, bool write) {
  auto same = [](const Slice& x, const Slice& y) { return x.at == y.at && x.n == y.n && x.step == y.step; };
  for (const Touch& t : touches_)  // unrolled texts repeat themselves
    if (t.write == write && t.par == par_loop_ && t.ref.id == r.id &&
        std::equal(t.ref.at.begin(), t.ref.at.end(), r.at.begin(), r.at.end(), same))
      return;
  touches_.push_back({r, write, line_, par_loop_, outer_, inner_});
}

}  // namespace gaf::kir
