// Where a pipe must finish what it has begun before it goes on: fences between statements of one pipe that touch the
// same bytes. The kernel is walked with the accesses that may still be under way on each pipe; loops to a fixpoint,
// their first iteration apart from the later ones, so that a branch on `k == 0` is not fenced for nothing. What an
// event's round trip through other pipes has already ordered needs no fence. At the end every fence that the others
// make idle is dropped.
#include <algorithm>
#include <map>

#include "ir/sync.h"

namespace gaf::kir {
namespace {

constexpr int64_t kFar = int64_t{1} << 40;  // bounds of symbols that nothing is known of

class Walk {
 public:
  Walk(const Kernel& k, const Target& t, const std::vector<Channel>& channels) : k_(k), t_(t), channels_(channels) {
    number(k.body);
    for (const Symbol& s : k.syms) ranges_.push_back(s.kind == SymKind::size ? Range{s.lo, s.hi} : Range{-kFar, kFar});
  }

  std::set<const Stmt*> run() {
    std::set<const Stmt*> fences;
    while (const Stmt* s = conflict(fences)) fences.insert(s);
    for (auto it = fences.begin(); it != fences.end();) {
      std::set<const Stmt*> fewer = fences;
      fewer.erase(*it);
      it = conflict(fewer) ? std::next(it) : fences.erase(it);
    }
    return fences;
  }

 private:
  struct Entry {  // an access that its own pipe may not have finished
    int at, tile;
    bool write;
    const Ref* ref;
    auto operator<=>(const Entry&) const = default;
  };
  using State = std::map<Pipe, std::set<Entry>>;

  const Kernel& k_;
  const Target& t_;
  const std::vector<Channel>& channels_;
  std::map<const Stmt*, std::pair<int, int>> place_;  // first and last number of a statement and what stands in it
  int numbered_ = 0;
  std::vector<Range> ranges_;
  State state_;
  const std::set<const Stmt*>* fences_ = nullptr;
  const Stmt* found_ = nullptr;

  void number(const Body& b) {
    for (const Stmt& s : b) {
      int first = numbered_++;
      if (const For* f = std::get_if<For>(&s.alt)) number(f->body);
      if (const If* i = std::get_if<If>(&s.alt)) number(i->yes), number(i->no);
      place_[&s] = {first, numbered_ - 1};
    }
  }
  // The first statement that these fences leave in conflict with an earlier one.
  const Stmt* conflict(const std::set<const Stmt*>& fences) {
    fences_ = &fences, found_ = nullptr;
    state_.clear();
    body(k_.body);
    return found_;
  }

  static void add(State& to, const State& from) {
    for (const auto& [p, entries] : from) to[p].insert(entries.begin(), entries.end());
  }
  void body(const Body& b) {
    for (size_t i = 0; i < b.size() && !found_; i++) {
      waits(b, i);
      if (const For* f = std::get_if<For>(&b[i].alt))
        loop(*f);
      else if (const If* f = std::get_if<If>(&b[i].alt))
        branch(*f);
      else
        leaf(b[i]);
    }
  }

  // A wait for a group's event: the accesses of its own pipe that the setting pipe waited for have finished.
  void waits(const Body& b, size_t i) {
    for (const Channel& c : channels_) {
      const Group& g = *c.group;
      if (g.block != &b || c.wait_before() != i) continue;
      std::set<Entry>& mine = state_[c.to];
      std::erase_if(mine,
                    [&](const Entry& e) { return std::find(g.tiles.begin(), g.tiles.end(), e.tile) != g.tiles.end(); });
      if (!c.needed) continue;   // what implies it may come later, though before the next use of these tiles
      size_t before = c.to_run;  // the run of this pipe before it, perhaps of the iteration before
      do before = (before + g.runs.size() - 1) % g.runs.size();
      while (g.runs[before].pipe != c.to);
      bool same_iteration = before < c.to_run;
      if (!same_iteration && (g.ring > 1 || g.nest.empty())) continue;
      int here = place_.at(&b[i]).first, finished = place_.at(&b[g.runs[before].last]).second;
      std::erase_if(mine, [&](const Entry& e) {
        return same_iteration ? e.at <= finished || e.at >= here : e.at >= here && e.at <= finished;
      });
    }
  }

  static bool apart(const Ref* a, const Ref* b) {
    if (!a || !b || a->at.size() != 2 || b->at.size() != 2) return false;
    for (size_t d = 0; d < 2; d++) {
      const Slice &x = a->at[d], &y = b->at[d];
      Expr nx = x.n.value_or(1), ny = y.n.value_or(1);
      if (!x.at.is_num() || !y.at.is_num() || !nx.is_num() || !ny.is_num()) continue;
      if (x.at.num() + (nx.num() - 1) * x.step < y.at.num() || y.at.num() + (ny.num() - 1) * y.step < x.at.num())
        return true;
    }
    return false;
  }
  void leaf(const Stmt& s) {
    std::optional<Pipe> p = pipe_of(k_, t_, s);
    const OrderRow* row = p ? t_.order_of(*p) : nullptr;
    if (!row) return;
    Hazard hazard = t_.strict_order ? row->open : row->known;
    std::set<Entry>& mine = state_[*p];
    if (fences_->count(&s)) mine.clear();
    bool conflict = false;
    for_each_access(s, [&](const Access& a) {
      for (const Entry& e : mine)
        conflict = conflict || (e.tile == a.tile && !apart(e.ref, a.ref) &&
                                ((e.write && hazard >= Hazard::write) || (a.write && hazard >= Hazard::any)));
    });
    if (conflict) found_ = &s;
    for_each_access(s, [&](const Access& a) { mine.insert({place_.at(&s).first, a.tile, a.write, a.ref}); });
  }

  void branch(const If& f) {
    Range d = (f.a - f.b).range(ranges_);
    auto decide = [&](bool never, bool always) { return never ? -1 : always ? 1 : 0; };
    bool zero = d.lo == 0 && d.hi == 0, no_zero = d.lo > 0 || d.hi < 0;
    int taken = f.cmp == Cmp::lt   ? decide(d.lo >= 0, d.hi < 0)
                : f.cmp == Cmp::le ? decide(d.lo > 0, d.hi <= 0)
                : f.cmp == Cmp::eq ? decide(no_zero, zero)
                                   : decide(zero, no_zero);
    if (taken > 0) return body(f.yes);
    if (taken < 0) return body(f.no);
    State other = state_;
    body(f.yes);
    std::swap(state_, other);
    body(f.no);
    add(state_, other);
  }

  void loop(const For& f) {
    State before = state_;
    Expr n = ceildiv(f.axes[0].hi - f.axes[0].lo, f.axes[0].step);
    Range r = n.range(ranges_);
    std::vector<Range> saved = ranges_;
    for (const Axis& a : f.axes)
      ranges_[static_cast<size_t>(a.sym)] = {a.lo.range(ranges_).lo, a.hi.range(ranges_).hi - 1};
    bool several = f.axes.size() > 1 || r.hi > 1, may_be_empty = f.kind == LoopKind::par || r.lo < 1;
    if (f.kind != LoopKind::par) {  // the first iteration; of a par loop a worker may start anywhere
      auto v = static_cast<size_t>(f.axes[0].sym);
      Range all = ranges_[v], lo = f.axes[0].lo.range(ranges_);
      ranges_[v] = lo;
      body(f.body);
      ranges_[v] = {lo.lo + f.axes[0].step, all.hi};
    } else {
      body(f.body);
    }
    for (State reached = state_; several && !found_;) {
      state_ = reached;
      body(f.body);
      add(state_, reached);
      if (state_ == reached) break;
      reached = state_;
    }
    if (may_be_empty) add(state_, before);
    std::copy(saved.begin(), saved.end(), ranges_.begin());
  }
};

}  // namespace

std::set<const Stmt*> sync_fences(const Kernel& k, const Target& t, const std::vector<Channel>& channels) {
  return Walk(k, t, channels).run();
}

}  // namespace gaf::kir
