// Rules 11 to 13: runs the sync statements in the order of the text, for shares of the par loop as blocks get them.
#include <algorithm>
#include <set>

#include "codegen/npu/check.h"

namespace gaf::npu {

using namespace kir;

namespace {

constexpr int64_t kLongLoop = 96;  // longer loops leave out iterations in the middle ...
constexpr int64_t kPeriod = 48;    // ... a multiple of this many, so that ring slots go on as they would

std::string pipe(Pipe p) { return std::string(kPipeName[static_cast<int>(p)]); }

struct Run {
  const Kernel& k;
  const Target& t;
  const Report& report;
  std::set<const Stmt*>& told;
  int64_t first, count;  // of the par loop's iterations; count < 0: all
  std::vector<int64_t> values;
  std::map<std::tuple<Pipe, Pipe, int64_t>, const Stmt*> up;  // set and not yet waited for
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
    }
  }
  bool holds(const If& i) const {
    const int64_t a = eval(i.a), b = eval(i.b);
    return i.cmp == Cmp::lt ? a < b : i.cmp == Cmp::le ? a <= b : i.cmp == Cmp::eq ? a == b : a != b;
  }
  void loop(const For& f) {
    int64_t trips = 1;
    for (const Axis& a : f.axes) trips *= std::max<int64_t>(0, (eval(a.hi) - eval(a.lo) + a.step - 1) / a.step);
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
  }

  void sync(const Stmt& s, const Sync& y) {
    if (y.kind == SyncKind::fence) {
      if (y.from == Pipe::s) tell(s, "the scalar pipe has no barrier");
      return;
    }
    if (y.from == y.to) return tell(s, "an event from a pipe to itself: a fence orders one pipe");
    const int64_t id = eval(y.event);
    const std::string name = "event " + std::to_string(id) + " from " + pipe(y.from) + " to " + pipe(y.to);
    if (id < 0 || id >= t.event_ids) return tell(s, name + ": ids are 0 to " + std::to_string(t.event_ids - 1));
    auto [o, fresh] = owner.emplace(std::pair(y.from, id), y.to);
    if (!fresh && o->second != y.to)
      return tell(s, name + " has the id of one from " + pipe(y.from) + " to " + pipe(o->second) +
                         ": an id of a source pipe can belong to one destination only");
    const auto key = std::tuple(y.from, y.to, id);
    const auto it = up.find(key);
    if (y.kind == SyncKind::set) {
      if (it != up.end()) return tell(s, name + " is set twice without a wait between");
      up[key] = &s;
    } else {
      if (it == up.end()) return tell(s, name + " is waited for and nothing has set it");
      up.erase(it);
    }
  }
};

}  // namespace

void check_events(const Kernel& k, const Target& t, const Report& r) {
  std::set<const Stmt*> told;
  auto run = [&](int64_t first, int64_t count) {
    Run x{k, t, r, told, first, count, std::vector<int64_t>(k.syms.size(), 0), {}, {}};
    x.body(k.body);
    for (auto& [key, s] : x.up)
      x.tell(*s, "event " + std::to_string(std::get<2>(key)) + " from " + pipe(std::get<0>(key)) + " to " +
                     pipe(std::get<1>(key)) + " is never waited for");
  };
  run(0, -1);
  for (int64_t first = 0; first < 3; first++)
    for (int64_t count = 0; count < 6; count++) run(first, count);
}

}  // namespace gaf::npu
