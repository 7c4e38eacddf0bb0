// See race.h. Clocks follow program order: what one worker's statements and events allow in any schedule is decided by
// the events, not by the order in which the interpreter happens to run them.
#include "ir/race.h"

#include <algorithm>

namespace gaf::kir {
namespace {

constexpr size_t kMostProblems = 20;
std::string name(size_t pipe) { return std::string(kPipeName[pipe]); }
std::string name(Pipe p) { return name(static_cast<size_t>(p)); }

}  // namespace

RaceCheck::RaceCheck(const Kernel& k, const Target& t)
    : k_(k), t_(t), tiles_(std::size(kMemName)), bufs_(k.bufs.size()), base_(k.tiles.size(), 0) {}

void RaceCheck::begin(const Stmt& s) {
  now_ = &s;
  pipe_ = pipe_of(k_, t_, s);
  if (!pipe_) return;
  auto p = static_cast<size_t>(*pipe_);
  if (!t_.order_of(*pipe_)) seen_[p][p] = count_[p];  // in order by itself
  count_[p]++;
}

void RaceCheck::declare(int tile, int64_t slot) {
  const Tile& x = k_.tiles[static_cast<size_t>(tile)];
  base_[static_cast<size_t>(tile)] = x.at + slot * slot_bytes(x, t_);
}

std::string RaceCheck::place(int id) const {
  return id >= 0 ? "tile " + k_.tiles[static_cast<size_t>(id)].name
                 : "buffer " + k_.bufs[static_cast<size_t>(-1 - id)].name;
}

bool RaceCheck::fresh(Kind kind, int a, int b) {
  return problems_.size() < kMostProblems && told_.insert({now_, kind, a, b}).second;
}
void RaceCheck::tell(std::string text, bool warning) {
  if (now_) text += ": " + print_stmt(k_, *now_);
  problems_.push_back({now_ ? now_->line : 0, std::move(text), warning});
}

void RaceCheck::ordered(Kind kind, size_t q, uint32_t when, int what) {
  auto p = static_cast<size_t>(*pipe_);
  if (when <= seen_[p][q] || (p == q && when == count_[p])) return;
  bool warning = false;
  if (p == q) {
    const OrderRow* row = t_.order_of(*pipe_);
    Hazard needs = kind == war ? Hazard::any : Hazard::write;
    if (!row || needs > row->open) return;
    warning = needs > row->known;
  }
  if (!fresh(kind, what, static_cast<int>(q))) return;
  static constexpr const char* verb[] = {"reads", "writes", "writes"};
  static constexpr const char* earlier[] = {"the write", "the write", "a read"};
  tell("pipe " + name(p) + " " + verb[kind] + " " + place(what) + " and may overtake " + earlier[kind] + " on pipe " +
           name(q),
       warning);
}

void RaceCheck::touch(int id, int64_t offset, int64_t bytes, bool write) {
  if (!pipe_) return;
  auto p = static_cast<size_t>(*pipe_);
  std::vector<Cell>& cells = id >= 0 ? tiles_[static_cast<size_t>(k_.tiles[static_cast<size_t>(id)].mem)]
                                     : bufs_[static_cast<size_t>(-1 - id)];
  auto first = static_cast<size_t>(offset + (id >= 0 ? base_[static_cast<size_t>(id)] : 0)),
       last = first + static_cast<size_t>(bytes);
  if (cells.size() < last) cells.resize(last);
  for (size_t i = first; i < last; i++) {
    Cell& c = cells[i];
    if (c.writer >= 0) {
      ordered(write ? waw : raw, static_cast<size_t>(c.writer), c.when, id);
      if (!write && id >= 0 && c.owner != id && fresh(overwritten, id, c.owner))
        tell("reads bytes of " + place(id) + " that " + place(c.owner) + " has overwritten");
    }
    if (!write) {
      c.read[p] = count_[p];
      continue;
    }
    for (size_t q = 0; q < kPipes; q++)
      if (c.read[q]) ordered(war, q, c.read[q], id);
    c = {static_cast<int8_t>(p), static_cast<int16_t>(id), count_[p], {}};
  }
}

void RaceCheck::set(const Sync& s, int64_t id) {
  auto p = static_cast<size_t>(s.from);
  Event& e = events_[{s.from, s.to, id}];
  std::string what = "event " + std::to_string(id) + " from " + name(s.from) + " to ";
  if (e.up && fresh(event, 0, 0))
    tell(what + name(s.to) + " is set twice without a wait between");
  else if (e.waited > seen_[p][static_cast<size_t>(s.to)] && fresh(event, 1, 0))
    tell(what + name(s.to) + " may be set again before its last wait has run");
  for (const auto& [key, o] : events_) {
    const auto& [from, to, number] = key;
    if (from != s.from || number != id || to == s.to) continue;
    if ((o.up || o.waited > seen_[p][static_cast<size_t>(to)]) && fresh(event, 2, static_cast<int>(to)))
      tell(what + name(s.to) + " may be set while the same id stands for " + name(to) +
           ", which a core that knows events by source cannot tell apart");
  }
  e.up = true;
  e.released = seen_[p];
  e.released[p] = count_[p];
}

void RaceCheck::sync(const Sync& s, int64_t id) {
  auto p = static_cast<size_t>(s.from), q = static_cast<size_t>(s.to);
  if (s.kind == SyncKind::fence) {
    seen_[p][p] = count_[p];
    return;
  }
  if ((id < 0 || id >= t_.event_ids) && fresh(event, 3, 0))
    tell("event " + std::to_string(id) + " is not one of " + std::to_string(t_.event_ids));
  if (s.kind == SyncKind::set) return set(s, id);
  Event& e = events_[{s.from, s.to, id}];
  if (!e.up) {
    if (fresh(event, 4, 0)) tell("waits for event " + std::to_string(id) + ", which nothing has set: the kernel hangs");
    return;
  }
  e.up = false;
  for (size_t i = 0; i < kPipes; i++) seen_[q][i] = std::max(seen_[q][i], e.released[i]);
  e.waited = ++count_[q];
}

std::vector<KernelProblem> RaceCheck::finish() {
  now_ = nullptr;
  for (const auto& [key, e] : events_) {
    const auto& [from, to, id] = key;
    if (e.up)
      tell("event " + std::to_string(id) + " from " + name(from) + " to " + name(to) + " is set and never waited for");
  }
  return std::move(problems_);
}

}  // namespace gaf::kir
