// The proofs behind in_place_pairs, see in_place.h. Questions are put to Bounds with two copies of the symbols that may
// differ, as in the verifier's rule on par iterations; conditions of the branches around a statement are used.
#include "ir/in_place.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/kernel_bounds.h"

namespace gaf::kir {
namespace {

// What stands around a statement, outermost first: an axis of a loop, a `read` name, or the condition of a branch.
struct Around {
  const For* loop = nullptr;
  int sym = -1;  // -1: a condition
  Expr lo, last;
  int64_t step = 1;
  Expr fact;  // <= 0
};
struct Touch {
  const Ref* ref;
  const Stmt* stmt;
  bool write;
  int order, phase;  // statements and phases before it
  std::vector<Around> around;
};

// A rectangle as intervals of indices, one for each dimension that has more than one element.
struct Box {
  struct Side {
    Expr stride, size, first, last;
    std::optional<Expr> n;
    int64_t step;
  };
  std::vector<Side> sides;
  Expr offset;
};

class Search {
 public:
  explicit Search(const Kernel& k) : k_(k), bounds_(k), parallel_(1, 0) { body(k.body); }

  bool may_share(int out, int in) const {
    for (const Touch& w : touches_) {
      if (!w.write || parameter_of(k_, w.ref->id) != out) continue;
      for (const Touch& r : touches_)
        if (!r.write && parameter_of(k_, r.ref->id) == in && !safe(r, w)) return false;
    }
    return true;
  }

 private:
  const Kernel& k_;
  Bounds bounds_;
  std::vector<Touch> touches_;
  std::vector<Around> around_;
  std::vector<char> parallel_;  // per phase: it has a par loop
  int order_ = 0;

  // ---- what the text touches ----
  void body(const Body& b) {
    const size_t outside = around_.size();
    for (const Stmt& s : b) {
      order_++;
      if (const For* f = std::get_if<For>(&s.alt)) {
        loop(*f);
      } else if (const If* i = std::get_if<If>(&s.alt)) {
        branch(*i);
      } else if (std::holds_alternative<Barrier>(s.alt)) {
        parallel_.push_back(0);
      } else {
        for_each_ref(s, [&](const Ref& r, bool write) {
          if (!r.tile) touches_.push_back({&r, &s, write, order_, static_cast<int>(parallel_.size()), around_});
        });
        if (const Read* r = std::get_if<Read>(&s.alt)) enter({nullptr, r->sym, r->lo, r->hi - Expr(1), 1, 0});
      }
    }
    leave(outside);
  }
  void loop(const For& f) {
    const size_t outside = around_.size();
    if (f.kind == LoopKind::par) parallel_.back() = 1;
    for (const Axis& a : f.axes) enter({&f, a.sym, a.lo, bounds_.last_of(a), a.step, 0});
    body(f.body);
    leave(outside);
  }
  void branch(const If& i) {
    const BranchFacts holds = facts_of(i);
    for (auto [facts, side] : {std::pair(&holds.yes, &i.yes), std::pair(&holds.no, &i.no)}) {
      const size_t outside = around_.size();
      for (const Expr& x : *facts) enter({nullptr, -1, 0, 0, 1, x});
      body(*side);
      leave(outside);
    }
  }
  void enter(Around a) {
    if (a.sym >= 0)
      bounds_.enter(a.sym, a.lo, a.last);
    else
      bounds_.assume(a.fact);
    around_.push_back(std::move(a));
  }
  void leave(size_t outside) {
    for (; around_.size() > outside; around_.pop_back()) {
      if (around_.back().sym >= 0)
        bounds_.leave();
      else
        bounds_.forget();
    }
  }

  // ---- one read against one write ----
  static std::vector<const Around*> axes(const Touch& t) {
    std::vector<const Around*> v;
    for (const Around& a : t.around)
      if (a.loop) v.push_back(&a);
    return v;
  }
  bool safe(const Touch& r, const Touch& w) const {
    if (r.phase < w.phase) return true;
    const std::vector<const Around*> of_r = axes(r), of_w = axes(w);
    size_t shared = 0;  // axes around both
    while (shared < std::min(of_r.size(), of_w.size()) && of_r[shared]->loop == of_w[shared]->loop &&
           of_r[shared]->sym == of_w[shared]->sym)
      shared++;
    for (size_t i = 0; i < shared; i++) {
      if (!apart(r, w, i, 1)) return false;
      if (of_r[i]->loop->kind == LoopKind::par && !apart(r, w, i, -1)) return false;
    }
    const bool in_order = r.phase == w.phase && (shared > 0 || !parallel_[static_cast<size_t>(w.phase) - 1]);
    if (in_order && r.order < w.order) return true;
    if (in_order && r.order == w.order && onto_itself(r, w)) return true;
    return apart(r, w, shared, 0);
  }

  Box box(const Ref& r, const std::function<Expr(const Expr&)>& in) const {
    const Buf& b = k_.bufs[static_cast<size_t>(r.id)];
    const std::vector<Expr> strides = b.role == Role::view ? b.strides : row_major(b.shape);
    Box out;
    out.offset = in(b.offset);
    for (size_t d = 0; d < b.shape.size(); d++) {
      if (b.shape[d].is(1)) continue;  // its index is 0
      const Slice& s = r.at[d];
      const Expr first = in(s.at), n = s.n ? in(*s.n) : Expr(1);
      out.sides.push_back({in(strides[d]), in(b.shape[d]), first, first + (n - Expr(1)) * Expr(s.step), s.n, s.step});
    }
    return out;
  }

  bool of_sizes(const Expr& x) const {
    for (int s = 0; s <= x.max_sym(); s++)
      if (x.mentions(s) &&
          (s >= static_cast<int>(k_.syms.size()) || k_.syms[static_cast<size_t>(s)].kind != SymKind::size))
        return false;
    return true;
  }
  // Every element has one place: of two dimensions, one's stride is no less than all of the other's elements.
  bool dense(const Box& x) const {
    Bounds b(k_);
    for (size_t i = 0; i < x.sides.size(); i++) {
      const Box::Side& p = x.sides[i];
      if (!of_sizes(p.stride) || !of_sizes(p.size) || !b.at_most(-p.stride, -1)) return false;
      for (size_t j = 0; j < i; j++) {
        const Box::Side& q = x.sides[j];
        if (!b.at_most(p.size * p.stride - q.stride, 0) && !b.at_most(q.size * q.stride - p.stride, 0)) return false;
      }
    }
    return true;
  }
  // The side of y that counts along the same dimension.
  static const Box::Side* along(const Box::Side& s, const Box& y) {
    for (const Box::Side& t : y.sides)
      if (t.stride == s.stride && t.size == s.size) return &t;
    return nullptr;
  }

  bool onto_itself(const Touch& r, const Touch& w) const {
    const Copy* c = std::get_if<Copy>(&w.stmt->alt);
    if (!c || c->pad || r.ref->transposed || w.ref->transposed) return false;
    auto as_written = [](const Expr& x) { return x; };
    const Box x = box(*r.ref, as_written), y = box(*w.ref, as_written);
    return dense(x) && x.offset == y.offset &&
           std::equal(x.sides.begin(), x.sides.end(), y.sides.begin(), y.sides.end(), [](const auto& s, const auto& t) {
             return s.stride == t.stride && s.size == t.size && s.first == t.first && s.n == t.n && s.step == t.step;
           });
  }

  // The rectangles have no address in common where the first `equal` axes around both are in one iteration, and the
  // read is in a later (1) or earlier (-1) iteration of the next one than the write; 0: whatever the rest.
  bool apart(const Touch& r, const Touch& w, size_t equal, int later) const {
    Bounds b(k_);
    std::map<int, Expr> second;  // symbols of w in its own copy
    auto in_r = [](const Expr& x) { return x; };
    auto in_w = [&](const Expr& x) {
      return x.substitute([&](int s) {
        auto it = second.find(s);
        return it == second.end() ? Expr::sym(s) : it->second;
      });
    };
    size_t axis = 0;
    for (const Around& a : w.around) {
      if (a.sym < 0) {
        b.assume(in_w(a.fact));
      } else if (a.loop && axis++ < equal) {
        b.enter(a.sym, in_w(a.lo), in_w(a.last));
      } else {
        const int copy = b.add_symbol();
        b.enter(copy, in_w(a.lo), in_w(a.last));
        second[a.sym] = Expr::sym(copy);
      }
    }
    axis = 0;
    for (const Around& a : r.around) {
      if (a.sym < 0) {
        b.assume(a.fact);
        continue;
      }
      const size_t at = a.loop ? axis++ : SIZE_MAX;
      if (at < equal) continue;
      Expr lo = a.lo, last = a.last;
      if (later != 0 && at == equal) {
        const Expr other = in_w(Expr::sym(a.sym));
        later > 0 ? lo = other + Expr(a.step) : last = other - Expr(a.step);
        if (b.at_most(last - lo, -1)) return true;  // no such iteration
        b.assume(lo - last);                        // there is one: not every write has a later read
      }
      b.enter(a.sym, lo, last);
    }
    const Box x = box(*r.ref, in_r), y = box(*w.ref, in_w);
    if (x.sides.size() != y.sides.size() || !(x.offset == y.offset) || !dense(x) || !dense(y)) return false;
    bool one_system = true, disjoint = false;
    for (const Box::Side& s : x.sides) {
      const Box::Side* t = along(s, y);
      one_system = one_system && t;
      disjoint = disjoint || (t && (b.at_most(s.last - t->first, -1) || b.at_most(t->last - s.first, -1)));
    }
    return one_system && disjoint;
  }
};

}  // namespace

std::vector<std::pair<int, int>> in_place_pairs(const Kernel& k) {
  std::vector<std::pair<int, int>> pairs;
  std::optional<Search> search;
  const std::vector<int> all = parameters(k);
  for (size_t o = 0; o < all.size(); o++)
    for (size_t i = 0; i < all.size(); i++) {
      const Buf &out = k.bufs[static_cast<size_t>(all[o])], &in = k.bufs[static_cast<size_t>(all[i])];
      if (out.role != Role::out || in.role != Role::in || bytes(out.type) != bytes(in.type) ||
          !(product(out.shape) == product(in.shape)))
        continue;
      if (!search) search.emplace(k);
      if (search->may_share(all[o], all[i])) pairs.emplace_back(static_cast<int>(o), static_cast<int>(i));
    }
  return pairs;
}

}  // namespace gaf::kir
