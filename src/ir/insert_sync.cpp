// insert_sync: orders the pipes of a kernel. Where tiles go from one pipe to the next, the first sets an event and the
// second waits for it; where a slot comes round again, the last pipe sets an event for the first, primed before the
// outermost loop and drained after it, so that a worker with no iterations balances too. The event of a ring is base +
// slot. Ids are numbered apart within a source pipe, whatever their destinations: right whether hardware knows an event
// by (source, destination, id) or by (source, id). A pipe that overlaps its own statements gets fences.
#include <algorithm>

#include "base/error.h"
#include "ir/sync.h"

namespace gaf::kir {
namespace {

[[noreturn]] void refuse(const Kernel& k, std::string what, std::string remedy, int line = 0) {
  ErrorInfo e;
  e.code = "GAF4002", e.line = line;
  e.message = "kernel @" + k.name + ": " + std::move(what);
  e.remedy = std::move(remedy);
  throw UserError(std::move(e));
}

// What the events of one core cannot order.
void check(const Kernel& k, const Target& t) {
  std::vector<uint8_t> read(k.bufs.size()), written(k.bufs.size());
  for_each_stmt(k.body, [&](const Stmt& s) {
    if (std::holds_alternative<Barrier>(s.alt))
      refuse(k, "phases need a barrier over all cores, which " + t.name + " does not have yet",
             "use one kernel a phase", s.line);
    if (std::holds_alternative<Sync>(s.alt)) refuse(k, "has set, wait or fence already", "", s.line);
    for_each_ref(s, [&](const Ref& r, bool write) {
      if (r.tile) return;
      auto b = static_cast<size_t>(parameter_of(k, r.id));
      (write ? written : read)[b] = 1;
      if (read[b] && written[b])
        refuse(k, "buffer " + k.bufs[b].name + " is read and written; events order tiles, not memory",
               "read from one buffer and write to another", s.line);
    });
  });
  for (size_t i = 0; i < k.tiles.size(); i++)
    for (size_t j = 0; j < i; j++) {
      const Tile &a = k.tiles[i], &b = k.tiles[j];
      if (a.mem != b.mem || a.at < 0 || b.at < 0) continue;
      if (a.at < b.at + slot_bytes(b, t) * b.ring && b.at < a.at + slot_bytes(a, t) * a.ring)
        refuse(
            k,
            "tiles " + b.name + " and " + a.name + " share bytes of " + std::string(kMemName[static_cast<int>(a.mem)]),
            "place the kernel again");
    }
}

// Numbers the events; the most that one source pipe needs.
int number_events(std::vector<Channel>& channels) {
  std::map<Pipe, int> next;
  int most = 0;
  for (Channel& c : channels) {
    if (!c.needed) continue;
    c.base = next[c.from];
    most = std::max(most, next[c.from] += c.group->ring);
  }
  return most;
}

class Writer {
 public:
  Writer(const Kernel& k, const std::vector<Channel>& channels, const std::set<const Stmt*>& fences, const Target& t)
      : k_(k), channels_(channels), fences_(fences), t_(t) {}
  Body body(const Body& b) {
    Body out;
    for (size_t i = 0; i < b.size(); i++) {
      for (const Channel& c : channels_)
        if (rooted(c, b, i)) each_slot(out, SyncKind::set, c);
      for (const Channel& c : channels_)
        if (c.needed && c.group->block == &b && c.wait_before() == i) put(out, SyncKind::wait, c, event(c));
      if (fences_.count(&b[i])) {
        Pipe p = *pipe_of(k_, t_, b[i]);
        out.push_back({Sync{SyncKind::fence, p, p, 0}, b[i].line});
      }
      Stmt s{b[i].alt, b[i].line};
      if (For* f = std::get_if<For>(&s.alt)) f->body = body(std::get_if<For>(&b[i].alt)->body);
      if (If* f = std::get_if<If>(&s.alt)) {
        const If& old = *std::get_if<If>(&b[i].alt);
        f->yes = body(old.yes), f->no = body(old.no);
      }
      out.push_back(std::move(s));
      for (const Channel& c : channels_)
        if (c.needed && c.group->block == &b && c.set_after() == i) put(out, SyncKind::set, c, event(c));
      for (const Channel& c : channels_)
        if (rooted(c, b, i)) each_slot(out, SyncKind::wait, c);
    }
    return out;
  }

 private:
  const Kernel& k_;
  const std::vector<Channel>& channels_;
  const std::set<const Stmt*>& fences_;
  const Target& t_;

  static bool rooted(const Channel& c, const Body& b, size_t i) {
    return c.needed && c.backward() && c.group->root == &b && c.group->root_at == i;
  }
  Expr event(const Channel& c) const { return Expr(c.base) + ring_slot(k_, c.group->nest, c.group->ring); }
  static void put(Body& out, SyncKind kind, const Channel& c, Expr event) {
    out.push_back({Sync{kind, c.from, c.to, std::move(event)}, 0});
  }
  static void each_slot(Body& out, SyncKind kind, const Channel& c) {
    for (int i = 0; i < c.group->ring; i++) put(out, kind, c, c.base + i);
  }
};

}  // namespace

Kernel insert_sync(Kernel k, const Target& t) {
  if (!t.pipes) return k;
  check(k, t);
  std::vector<Group> groups = sync_groups(k, t, false);
  std::vector<Channel> channels = sync_channels(k, groups);
  if (int most = number_events(channels); most > t.events) {  // fewer and coarser events, if these help
    std::vector<Group> coarse = sync_groups(k, t, true);
    std::vector<Channel> fewer = sync_channels(k, coarse);
    int least = number_events(fewer);
    if (least <= t.events || (most > t.event_ids && least < most))
      groups = std::move(coarse), channels = std::move(fewer), most = least;
    if (most > t.event_ids)
      refuse(k, "needs " + std::to_string(most) + " events from one pipe, which has " + std::to_string(t.event_ids),
             "use fewer tiles at a time, or smaller rings");
  }
  k.body = Writer(k, channels, sync_fences(k, t, channels), t).body(k.body);
  return k;
}

}  // namespace gaf::kir
