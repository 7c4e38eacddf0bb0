// Which events order the pipes of a kernel. Tiles of a block that travel through the same pipes together form a group;
// its runs are ordered by events from each pipe to the next, and from the last one back to the first of a later
// iteration. Channels that others imply are marked: their events would only cost ids.
#include <algorithm>

#include "base/error.h"
#include "ir/sync.h"

namespace gaf::kir {
namespace {

bool uses(const Stmt& s, const std::vector<int>& tiles) {
  bool found = false;
  for_each_inside(s, [&](const Stmt& x) {
    for_each_access(
        x, [&](const Access& a) { found = found || std::find(tiles.begin(), tiles.end(), a.tile) != tiles.end(); });
  });
  return found;
}

class Grouper {
 public:
  Grouper(const Kernel& k, const Target& t, bool loose) : k_(k), t_(t), loose_(loose) {}
  std::vector<Group> run() {
    body(k_.body);
    return std::move(groups_);
  }

 private:
  const Kernel& k_;
  const Target& t_;
  bool loose_;
  std::vector<Group> groups_;
  std::vector<const For*> nest_;
  const Body* root_ = nullptr;
  size_t root_at_ = 0;

  void body(const Body& b) {
    size_t mine = groups_.size();
    for (const Stmt& s : b)
      if (const Declare* d = std::get_if<Declare>(&s.alt)) tile(b, d->tile, s.line);
    merge(mine);
    for (size_t i = 0; i < b.size(); i++) {
      if (const If* f = std::get_if<If>(&b[i].alt)) body(f->yes), body(f->no);
      const For* f = std::get_if<For>(&b[i].alt);
      if (!f) continue;
      if (nest_.empty()) root_ = &b, root_at_ = i;
      nest_.push_back(f);
      body(f->body);
      nest_.pop_back();
    }
  }

  // Pipes that use the tile in a statement, nested ones included.
  void pipes(const Stmt& s, int tile, std::set<Pipe>& out) const {
    for_each_inside(s, [&](const Stmt& x) {
      for_each_access(x, [&](const Access& a) {
        if (a.tile == tile) out.insert(*pipe_of(k_, t_, x));
      });
    });
  }
  bool on_pipe(const Stmt& s, Pipe p) const {
    bool found = false;
    for_each_inside(s, [&](const Stmt& x) { found = found || pipe_of(k_, t_, x) == p; });
    return found;
  }

  void tile(const Body& b, int id, int line) {
    const Tile& x = k_.tiles[static_cast<size_t>(id)];
    std::vector<Run> runs;
    for (size_t i = 0; i < b.size(); i++) {
      std::set<Pipe> p;
      pipes(b[i], id, p);
      if (p.size() > 1) {
        ErrorInfo e;
        e.code = "GAF4002", e.line = line;
        e.message = "kernel @" + k_.name + ": tile " + x.name + " is used on two pipes (" +
                    std::string(kPipeName[static_cast<int>(*p.begin())]) + ", " +
                    std::string(kPipeName[static_cast<int>(*p.rbegin())]) +
                    ") in a block inside the one that declares it";
        e.remedy = "declare the tile in the block that loads and uses it";
        throw UserError(std::move(e));
      }
      if (p.empty()) continue;
      if (!runs.empty() && runs.back().pipe == *p.begin())
        runs.back().last = i;
      else
        runs.push_back({*p.begin(), i, i});
    }
    if (runs.size() < 2) return;
    groups_.push_back({&b, {id}, std::move(runs), nest_, root_, root_at_, nest_.empty() ? 1 : x.ring});
  }

  // The runs of both, one after the other, if that keeps their order.
  std::optional<Group> together(const Group& a, const Group& b) const {
    if (a.ring != b.ring || a.runs.size() != b.runs.size()) return std::nullopt;
    Group g = a;
    g.tiles.insert(g.tiles.end(), b.tiles.begin(), b.tiles.end());
    for (size_t r = 0; r < g.runs.size(); r++) {
      Run& x = g.runs[r];
      if (x.pipe != b.runs[r].pipe) return std::nullopt;
      x.first = std::min(x.first, b.runs[r].first), x.last = std::max(x.last, b.runs[r].last);
      if (r && g.runs[r - 1].last >= x.first) return std::nullopt;
      for (size_t i = x.first; !loose_ && i <= x.last;
           i++)  // nothing else of the pipe in between: no tile waits for long
        if (on_pipe((*g.block)[i], x.pipe) && !uses((*g.block)[i], g.tiles)) return std::nullopt;
    }
    return g;
  }
  void merge(size_t from) {
    for (size_t i = from; i < groups_.size(); i++)
      for (size_t j = i + 1; j < groups_.size();) {
        std::optional<Group> g = together(groups_[i], groups_[j]);
        if (!g) {
          j++;
          continue;
        }
        groups_[i] = std::move(*g);
        groups_.erase(groups_.begin() + static_cast<long>(j));
        j = i + 1;
      }
  }
};

// ---- what other channels imply ----
class Implied {
 public:
  Implied(const Kernel& k, std::vector<Channel>& channels) : k_(k), channels_(channels) {}
  void run() {  // innermost first: what is implied may not imply
    std::vector<Channel*> order;
    for (Channel& c : channels_) order.push_back(&c);
    std::stable_sort(order.begin(), order.end(),
                     [](const Channel* a, const Channel* b) { return a->group->nest.size() > b->group->nest.size(); });
    for (Channel* c : order) c->needed = !(c->backward() ? free_again(*c) : ready(*c));
  }

 private:
  const Kernel& k_;
  std::vector<Channel>& channels_;

  // Is every use in the body behind a wait for an event between the same pipes that is set in the same iteration? That
  // set comes after the one in question, which stands before the loop.
  bool behind(const Channel& c, const Body& b) const {
    std::optional<size_t> waits;
    for (const Channel& d : channels_)
      if (d.needed && d.group->block == &b && d.from == c.from && d.to == c.to && !d.backward())
        waits = std::min(waits.value_or(SIZE_MAX), d.wait_before());
    for (size_t i = 0; i < b.size(); i++) {
      if (waits && *waits <= i) return true;
      if (!uses(b[i], c.group->tiles)) continue;
      const For* f = std::get_if<For>(&b[i].alt);
      if (!f || !behind(c, f->body)) return false;
    }
    return true;
  }
  // A forward channel whose reader is a loop with such events inside.
  bool ready(const Channel& c) const {
    const Run& r = c.group->runs[c.to_run];
    for (size_t i = r.first; i <= r.last; i++) {
      const Stmt& s = (*c.group->block)[i];
      if (!uses(s, c.group->tiles)) continue;
      const For* f = std::get_if<For>(&s.alt);
      if (!f || !behind(c, f->body)) return false;
    }
    return true;
  }
  static std::optional<int64_t> trips(const For& f) {
    int64_t n = 1;
    for (const Axis& a : f.axes) {
      Expr x = ceildiv(a.hi - a.lo, a.step);
      if (!x.is_num() || x.num() < 1) return std::nullopt;
      n *= x.num();
    }
    return n;
  }
  // A slot is free again `ring` iterations of the block later. An inner loop with `count` iterations in each has then
  // waited for sets at most `r` of its iterations back: is the last use among what these sets follow?
  bool free_again(const Channel& c) const {
    const Group& g = *c.group;
    for (size_t i = 1; i < g.nest.size(); i++)
      if (!trips(*g.nest[i])) return false;
    if (!directly(&g.nest[0]->body, 1, g)) return false;  // a branch on the way may skip iterations
    for (const Channel& d : channels_) {
      const Group& h = *d.group;
      if (!d.backward() || d.from != c.from || d.to != c.to || h.nest.size() <= g.nest.size()) continue;
      if (!std::equal(g.nest.begin(), g.nest.end(), h.nest.begin())) continue;
      int64_t count = 1;
      bool fixed = true;
      for (size_t i = g.nest.size(); i < h.nest.size(); i++) {
        std::optional<int64_t> n = trips(*h.nest[i]);
        fixed = fixed && n;
        count *= n.value_or(1);
      }
      const For* outer = h.nest[g.nest.size()];
      if (!fixed || !directly(g.block, g.nest.size(), h)) continue;
      size_t loop = 0;
      while (loop < g.block->size() && std::get_if<For>(&(*g.block)[loop].alt) != outer) loop++;
      int64_t missing = c.set_after() < loop ? 1 - count : c.set_after() == loop && inside(c, d) ? 0 : 1;
      if ((g.ring - 1) * count >= h.ring + missing) return true;
    }
    return false;
  }
  // Do the loops of a group's nest from number i on stand directly one in the other, the first in b?
  static bool directly(const Body* b, size_t i, const Group& h) {
    for (; i < h.nest.size(); i++) {
      bool found = false;
      for (const Stmt& s : *b) found = found || std::get_if<For>(&s.alt) == h.nest[i];
      if (!found) return false;
      b = &h.nest[i]->body;
    }
    return b == h.block;
  }
  // All uses of c's last run stand in d's block before d's set.
  bool inside(const Channel& c, const Channel& d) const {
    const Group &g = *c.group, &h = *d.group;
    const Body* b = g.block;
    for (size_t i = g.nest.size(); i < h.nest.size(); i++) {
      if (i > g.nest.size())
        for (const Stmt& s : *b)
          if (std::get_if<For>(&s.alt) != h.nest[i] && uses(s, g.tiles)) return false;
      b = &h.nest[i]->body;
    }
    for (size_t i = d.set_after() + 1; i < b->size(); i++)
      if (uses((*b)[i], g.tiles)) return false;
    return true;
  }
};

}  // namespace

void for_each_inside(const Stmt& s, const std::function<void(const Stmt&)>& f) {
  f(s);
  if (const For* l = std::get_if<For>(&s.alt)) for_each_stmt(l->body, f);
  if (const If* i = std::get_if<If>(&s.alt)) for_each_stmt(i->yes, f), for_each_stmt(i->no, f);
}

void for_each_access(const Stmt& s, const std::function<void(const Access&)>& f) {
  for_each_ref(s, [&](const Ref& r, bool write) {
    if (r.tile) f({r.id, write, &r});
  });
  int tmp = -1;
  if (const Map* m = std::get_if<Map>(&s.alt)) tmp = m->tmp;
  if (const Reduce* r = std::get_if<Reduce>(&s.alt)) tmp = r->tmp;
  if (tmp >= 0) f({tmp, true, nullptr});
}

std::vector<Group> sync_groups(const Kernel& k, const Target& t, bool loose) { return Grouper(k, t, loose).run(); }

std::vector<Channel> sync_channels(const Kernel& k, const std::vector<Group>& groups) {
  std::vector<Channel> channels;
  for (const Group& g : groups) {
    for (size_t r = 1; r < g.runs.size(); r++) channels.push_back({g.runs[r - 1].pipe, g.runs[r].pipe, &g, r});
    if (!g.nest.empty() && g.runs.back().pipe != g.runs.front().pipe)
      channels.push_back({g.runs.back().pipe, g.runs.front().pipe, &g, 0});
  }
  Implied(k, channels).run();
  return channels;
}

}  // namespace gaf::kir
