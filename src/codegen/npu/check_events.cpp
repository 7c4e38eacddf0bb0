// Rules 11 to 14: runs the sync statements in the order of the text, for shares of the par loop as blocks get them, and
// follows what each pipe may know of the others (vector clocks): a use of a tile that an earlier one is not known to
// have finished before is a missing event or fence.
#include <algorithm>
#include <array>
#include <set>

#include "codegen/npu/check.h"
#include "ir/sync.h"

namespace gaf::npu {

using namespace kir;

namespace {

constexpr int64_t kLongLoop = 96;  // longer loops leave out iterations in the middle ...
constexpr int64_t kPeriod = 48;    // ... a multiple of this many, so that ring slots go on as they would

std::string pipe(Pipe p) { return std::string(kPipeName[static_cast<int>(p)]); }

using Clock = std::array<uint32_t, std::size(kPipeName)>;
constexpr size_t at(Pipe p) { return static_cast<size_t>(p); }

// Statements that have finished, as each pipe knows them. A pipe finishes in order where the target has no row for it.
class Order {
 public:
  explicit Order(const Target& t) : t_(t) {}

  void fence(Pipe p) { seen_[at(p)][at(p)] = issued_[at(p)]; }
  Clock set(Pipe p) {  // after all that p was given before
    Clock c = seen_[at(p)];
    c[at(p)] = issued_[at(p)];
    return c;
  }
  uint32_t wait(Pipe p, const Clock& c) {
    for (size_t q = 0; q < c.size(); q++) seen_[at(p)][q] = std::max(seen_[at(p)][q], c[q]);
    return ++issued_[at(p)];
  }
  bool knows(Pipe p, Pipe other, uint32_t statement) const { return seen_[at(p)][at(other)] >= statement; }

  // The pipe begins a statement. Then its uses of tile slots; the answer names what is missing.
  void begin(Pipe p) { issued_[at(p)]++; }
  std::string use(Pipe p, std::pair<int, int64_t> slot, bool write) {
    Uses& u = uses_[slot];
    const uint32_t now = issued_[at(p)];
    const Hazard h = hazard(p);
    std::string missing;
    auto after = [&](Pipe q, uint32_t statement, std::string_view what, Hazard least) {
      if (statement == 0 || knows(p, q, statement)) return;
      if (q == p && (statement == now || h < least)) return;
      missing =
          std::string(what) + (q == p ? ": no fence of " + pipe(p) : ": no event from " + pipe(q) + " to " + pipe(p));
    };
    after(u.writer, u.written, "may not be written yet", Hazard::write);
    for (size_t q = 0; write && q < u.read.size(); q++)
      after(static_cast<Pipe>(q), u.read[q], "may still be read", Hazard::any);
    if (write)
      u.writer = p, u.written = now, u.read = {};
    else
      u.read[at(p)] = now;
    return missing;
  }

 private:
  struct Uses {
    Pipe writer = Pipe::s;
    uint32_t written = 0;  // 0: not yet
    Clock read{};
  };
  const Target& t_;
  Clock issued_{};
  std::array<Clock, std::size(kPipeName)> seen_{};
  std::map<std::pair<int, int64_t>, Uses> uses_;

  Hazard hazard(Pipe p) const {
    for (const OrderRow& r : t_.order)
      if (r.pipe == p) return t_.strict_order ? r.open : r.known;
    return Hazard::none;
  }
};

struct Run {
  const Kernel& k;
  const Target& t;
  const Report& report;
  std::set<const Stmt*>& told;
  int64_t first, count;  // of the par loop's iterations; count < 0: all
  std::vector<int64_t> values;
  Order order{t};
  std::vector<const For*> nest;
  std::vector<int64_t> slots;  // of each tile, in this iteration
  using Event = std::tuple<Pipe, Pipe, int64_t>;
  std::map<Event, std::pair<const Stmt*, Clock>> up;  // set and not yet waited for
  std::map<Event, uint32_t> waited;                   // the last wait
  std::map<std::pair<Pipe, int64_t>, Pipe> owner;

  void tell(const Stmt& s, std::string text) {
    if (told.insert(&s).second) report(s, std::move(text), false);
  }
  int64_t eval(const Expr& x) const { return x.eval(values); }

  void body(const Body& b) {
    for (const Stmt& s : b) {
      if (const For* f = std::get_if<For>(&s.alt)) loop(*f);
      if (const If* i = std::get_if<If>(&s.alt)) body(holds(*i) ? i->yes : i->no);
      if (const Sync* y = std::get_if<Sync>(&s.alt)) sync(s, *y);
      if (const Declare* d = std::get_if<Declare>(&s.alt))
        slots[static_cast<size_t>(d->tile)] = eval(ring_slot(k, nest, k.tiles[static_cast<size_t>(d->tile)].ring));
      if (const std::optional<Pipe> p = pipe_of(k, t, s)) uses(s, *p);
    }
  }
  void uses(const Stmt& s, Pipe p) {
    order.begin(p);
    for_each_access(s, [&](const Access& a) {
      const std::string missing = order.use(p, {a.tile, slots[static_cast<size_t>(a.tile)]}, a.write);
      if (!missing.empty()) tell(s, "tile " + k.tiles[static_cast<size_t>(a.tile)].name + " " + missing);
    });
  }
  bool holds(const If& i) const {
    const int64_t a = eval(i.a), b = eval(i.b);
    return i.cmp == Cmp::lt ? a < b : i.cmp == Cmp::le ? a <= b : i.cmp == Cmp::eq ? a == b : a != b;
  }
  void loop(const For& f) {
    int64_t trips = 1;
    for (const Axis& a : f.axes) trips *= std::max<int64_t>(0, (eval(a.hi) - eval(a.lo) + a.step - 1) / a.step);
    nest.push_back(&f);
    const bool share = f.kind == LoopKind::par && count >= 0;
    const int64_t begin = share ? std::min(first, trips) : 0, end = share ? std::min(first + count, trips) : trips;
    for (int64_t i = begin; i < end; i++) {
      int64_t rest = i;
      for (size_t j = f.axes.size(); j-- > 0;) {
        const Axis& a = f.axes[j];
        const int64_t own = (eval(a.hi) - eval(a.lo) + a.step - 1) / a.step;
        values[static_cast<size_t>(a.sym)] = eval(a.lo) + (rest % own) * a.step;
        rest /= own;
      }
      body(f.body);
      if (end - begin > kLongLoop && i == begin + kPeriod - 1) i += (end - begin - 2 * kPeriod) / kPeriod * kPeriod;
    }
    nest.pop_back();
  }

  void sync(const Stmt& s, const Sync& y) {
    if (y.kind == SyncKind::fence) {
      if (y.from == Pipe::s) tell(s, "the scalar pipe has no barrier");
      return order.fence(y.from);
    }
    if (y.from == y.to) return tell(s, "an event from a pipe to itself: a fence orders one pipe");
    const int64_t id = eval(y.event);
    const std::string name = "event " + std::to_string(id) + " from " + pipe(y.from) + " to " + pipe(y.to);
    if (id < 0 || id >= t.event_ids) return tell(s, name + ": ids are 0 to " + std::to_string(t.event_ids - 1));
    auto [o, fresh] = owner.emplace(std::pair(y.from, id), y.to);
    if (!fresh && o->second != y.to)
      return tell(s, name + " has the id of one from " + pipe(y.from) + " to " + pipe(o->second) +
                         ": an id of a source pipe can belong to one destination only");
    const Event key(y.from, y.to, id);
    const auto it = up.find(key);
    if (y.kind == SyncKind::set) {
      if (it != up.end()) return tell(s, name + " is set twice without a wait between");
      if (const auto w = waited.find(key); w != waited.end() && !order.knows(y.from, y.to, w->second))
        tell(s, name + " may be set again before its last wait has run");
      up[key] = {&s, order.set(y.from)};
    } else {
      if (it == up.end()) return tell(s, name + " is waited for and nothing has set it");
      waited[key] = order.wait(y.to, it->second.second);
      up.erase(it);
    }
  }
};

}  // namespace

void check_events(const Kernel& k, const Target& t, const Report& r) {
  std::set<const Stmt*> told;
  auto run = [&](int64_t first, int64_t count) {
    Run x{k, t, r, told, first, count, std::vector<int64_t>(k.syms.size(), 0)};
    x.slots.resize(k.tiles.size());
    x.body(k.body);
    for (auto& [key, set] : x.up)
      x.tell(*set.first, "event " + std::to_string(std::get<2>(key)) + " from " + pipe(std::get<0>(key)) + " to " +
                             pipe(std::get<1>(key)) + " is never waited for");
  };
  run(0, -1);
  for (int64_t first = 0; first < 3; first++)
    for (int64_t count = 0; count < 6; count++) run(first, count);
}

}  // namespace gaf::npu
