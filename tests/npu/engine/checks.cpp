// The checks of checks.h.
#include "checks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>
#include <tuple>

namespace npu {

namespace {

void execute(const Op& op) {
  op.run();
  // What the hardware touched beyond the result is unspecified: NaN, so that using it shows.
  if (op.carries) return;
  for (const Range& r : without(op.writes, op.defines)) memset(core.pointer(r.at), 0xFF, r.bytes);
}

std::string at(const Op& op) { return std::string(op.what) + " (line " + std::to_string(op.line) + ")"; }

using Clock = std::array<uint32_t, kPipes>;
using Flag = std::tuple<int, int, int>;  // source, destination or -1, id

Flag flag_of(const Op& op, bool by_source) {
  const Pipe from = op.kind == Kind::set ? op.pipe : op.other, to = op.kind == Kind::set ? op.other : op.pipe;
  return {from, by_source ? -1 : int(to), op.event};
}

std::string name(const Flag& f) {
  const auto [from, to, id] = f;
  return std::string(kPipeName[from]) + "->" + (to < 0 ? "any" : kPipeName[to]) + " " + std::to_string(id);
}

bool skipped(const Op& op, int index, Without w) {
  return index == w.op || (op.kind != Kind::run && op.line == w.line);
}

// The state of the happens-before analysis.
struct Races {
  const std::vector<Op>& trace;
  const Cells& cells;
  Findings found;
  std::array<Clock, kPipes> seen{};  // seen[p][q]: how many operations of q are known to be complete where p stands
  Clock count{};
  struct Signal {
    bool up = false;
    Clock clock{};
    int waiter = -1;      // who waited last,
    uint32_t waited = 0;  // and when
    int set_line = 0;
  };
  std::map<Flag, Signal> flags, by_source;
  struct Cell {
    int writer = -1;    // operation
    uint32_t when = 0;  // of the writer, on its pipe
    Clock read{};       // last reader per pipe since the write, 1-based count
    std::array<int, kPipes> reader{};
  };
  std::vector<Cell> memory;

  Races(const std::vector<Op>& t, const Cells& c) : trace(t), cells(c), memory(c.count) {}

  void fault(const std::string& s) { found.faults[s]++; }

  void set(const Op& op) {
    for (bool source : {false, true}) {
      Signal& f = (source ? by_source : flags)[flag_of(op, source)];
      if (f.up)
        fault("flag " + name(flag_of(op, source)) + " set while up (line " + std::to_string(op.line) + ")");
      else if (f.waiter >= 0 && f.waited > seen[op.pipe][size_t(f.waiter)] && f.waiter != op.pipe)
        fault("flag " + name(flag_of(op, source)) + " may be set again before its wait (line " +
              std::to_string(op.line) + ")");
      f.up = true;
      f.set_line = op.line;
      f.clock = seen[op.pipe];
      f.clock[op.pipe] = count[op.pipe];
    }
  }
  void wait(const Op& op) {
    for (bool source : {false, true}) {
      Signal& f = (source ? by_source : flags)[flag_of(op, source)];
      if (!f.up && !source)
        fault("wait for flag " + name(flag_of(op, false)) + " that nothing set (line " + std::to_string(op.line) + ")");
      f.up = false;
    }
    const Signal& f = flags[flag_of(op, false)];
    const uint32_t now = ++count[op.pipe];
    for (bool source : {false, true}) {
      Signal& x = (source ? by_source : flags)[flag_of(op, source)];
      x.waiter = op.pipe;
      x.waited = now;
    }
    for (size_t q = 0; q < kPipes; q++) seen[op.pipe][q] = std::max(seen[op.pipe][q], f.clock[q]);
  }
  void barrier(const Op& op) {
    if (op.pipe == ALL)
      for (Clock& c : seen) c = count;
    else
      seen[op.pipe][op.pipe] = count[op.pipe];
  }
  void clash(const char* kind, const Op& first, const Op& second, bool same_pipe) {
    const bool product = same_pipe && first.pipe == M && second.pipe == M;
    const bool vector_over_read = same_pipe && first.pipe == V && kind[0] == 'o';
    const std::string text =
        at(second) + " on " + kPipeName[second.pipe] + " " + kind + " " + at(first) + " on " + kPipeName[first.pipe];
    (product || vector_over_read ? found.open : found.faults)[text]++;
  }
  void run(const Op& op, size_t index) {
    const Pipe p = op.pipe;
    if (p == S) seen[p][p] = count[p];
    const uint32_t now = ++count[p];
    const auto clashes_with_writer = [&](const Cell& c) {
      return c.writer >= 0 && seen[p][trace[size_t(c.writer)].pipe] < c.when;
    };
    int last = -1;  // one report per pair of operations
    for (const Cells::Span& s : cells.reads[index]) {
      for (uint32_t i = s.first; i < s.last; i++) {
        Cell& c = memory[i];
        if (clashes_with_writer(c) && last != c.writer)
          last = c.writer,
          clash("reads what may not be written yet by", trace[size_t(c.writer)], op, trace[size_t(c.writer)].pipe == p);
      }
    }
    last = -1;
    int last_reader = -1;
    for (const Cells::Span& s : cells.writes[index]) {
      for (uint32_t i = s.first; i < s.last; i++) {
        Cell& c = memory[i];
        if (clashes_with_writer(c) && last != c.writer)
          last = c.writer, clash("writes where a write may be pending by", trace[size_t(c.writer)], op,
                                 trace[size_t(c.writer)].pipe == p);
        for (size_t q = 0; q < kPipes; q++)
          if (c.read[q] > seen[p][q] && last_reader != c.reader[q])
            last_reader = c.reader[q],
            clash("overwrites what may still be read by", trace[size_t(c.reader[q])], op, q == p);
      }
    }
    for (const Cells::Span& s : cells.reads[index])
      for (uint32_t i = s.first; i < s.last; i++) memory[i].read[p] = now, memory[i].reader[p] = int(index);
    for (const Cells::Span& s : cells.writes[index])
      for (uint32_t i = s.first; i < s.last; i++)
        memory[i].writer = int(index), memory[i].when = now, memory[i].read = {};
  }
  void finish() {
    for (const auto& [key, f] : flags)
      if (f.up) fault("flag " + name(key) + " set and never waited for (line " + std::to_string(f.set_line) + ")");
  }
};

}  // namespace

bool Findings::worse_than(const Findings& base) const {
  const auto more = [](const std::map<std::string, int>& a, const std::map<std::string, int>& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& x) {
      const auto at = b.find(x.first);
      return at == b.end() || at->second < x.second;
    });
  };
  return more(faults, base.faults) || more(open, base.open);
}

std::map<std::string, int> run_in_order(const std::vector<Op>& trace, bool keep_outputs) {
  std::map<std::string, int> faults;
  core.fill_undefined(keep_outputs);
  core.in_order = true;
  for (const Op& op : trace) {
    if (op.kind != Kind::run) continue;
    for (const Range& r : op.needs) {
      if (memchr(&core.defined[r.at], 0, r.bytes)) {
        faults[at(op) + " uses bytes that nothing wrote"]++;
        break;
      }
    }
    execute(op);
    if (op.carries) continue;
    for (const Range& r : op.writes) memset(&core.defined[r.at], 0, r.bytes);
    for (const Range& r : op.defines) memset(&core.defined[r.at], 1, r.bytes);
  }
  return faults;
}

Cells::Cells(const std::vector<Op>& trace) {
  std::vector<size_t> cuts;
  for (const Op& op : trace)
    for (const Ranges* rs : {&op.reads, &op.writes})
      for (const Range& r : *rs) cuts.push_back(r.at), cuts.push_back(r.at + r.bytes);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  count = uint32_t(cuts.size());
  const auto cell = [&](size_t byte) {
    return uint32_t(std::lower_bound(cuts.begin(), cuts.end(), byte) - cuts.begin());
  };
  const auto spans = [&](const Ranges& rs) {
    std::vector<Span> out;
    for (const Range& r : rs) out.push_back({cell(r.at), cell(r.at + r.bytes)});
    return out;
  };
  for (const Op& op : trace) reads.push_back(spans(op.reads)), writes.push_back(spans(op.writes));
}

Findings find_races(const std::vector<Op>& trace, const Cells& cells, Without w) {
  Races r(trace, cells);
  for (size_t i = 0; i < trace.size(); i++) {
    const Op& op = trace[i];
    if (skipped(op, int(i), w)) continue;
    switch (op.kind) {
      case Kind::set: r.set(op); break;
      case Kind::wait: r.wait(op); break;
      case Kind::barrier: r.barrier(op); break;
      case Kind::run: r.run(op, i); break;
    }
  }
  r.finish();
  return r.found;
}

std::string run_scheduled(const std::vector<Op>& trace, uint32_t seed, bool by_source, bool values, Without w) {
  std::vector<std::vector<int>> queue(kPipes);
  int everywhere = 0;
  for (size_t i = 0; i < trace.size(); i++) {
    if (skipped(trace[i], int(i), w)) continue;
    if (trace[i].pipe == ALL)
      for (auto& q : queue) q.push_back(int(i));
    else
      queue[trace[i].pipe].push_back(int(i));
    everywhere += trace[i].pipe == ALL;
  }
  std::vector<size_t> next(kPipes);
  std::map<Flag, bool> up;
  std::mt19937 random(seed);
  std::array<uint32_t, kPipes> priority{};
  for (uint32_t& p : priority) p = uint32_t(random());
  if (values) core.fill_undefined();
  core.in_order = false;
  const auto front = [&](size_t p) -> const Op& { return trace[size_t(queue[p][next[p]])]; };
  for (;;) {
    int chosen = -1;
    bool left = false, all_stand = everywhere > 0;
    for (size_t p = 0; p < kPipes; p++) {
      if (next[p] == queue[p].size()) continue;
      left = true;
      const Op& op = front(p);
      if (op.pipe == ALL) continue;
      all_stand = false;
      if (op.kind == Kind::wait && !up[flag_of(op, by_source)]) continue;
      if (chosen < 0 || priority[p] > priority[size_t(chosen)]) chosen = int(p);
    }
    if (!left) return "";
    if (chosen < 0) {
      if (all_stand) {
        for (size_t p = 0; p < kPipes; p++) next[p]++;
        continue;
      }
      for (size_t p = 0; p < kPipes; p++)
        if (next[p] < queue[p].size() && front(p).kind == Kind::wait)
          return "hang: " + std::string(kPipeName[p]) + " waits for flag " + name(flag_of(front(p), by_source)) +
                 " at line " + std::to_string(front(p).line);
      return "hang";
    }
    if (random() % 64 == 0)
      priority[random() % kPipes] = uint32_t(random());  // 64: long runs of one pipe and short ones both occur
    const Op& op = front(size_t(chosen));
    next[size_t(chosen)]++;
    if (op.kind == Kind::set) {
      bool& flag = up[flag_of(op, by_source)];
      if (flag) return "flag " + name(flag_of(op, by_source)) + " set while up at line " + std::to_string(op.line);
      flag = true;
    } else if (op.kind == Kind::wait) {
      up[flag_of(op, by_source)] = false;
    } else if (op.kind == Kind::run && values) {
      execute(op);
    }
  }
}

namespace {

void judge(Mutation& m, const std::vector<Op>& trace, const Cells& cells, const Findings& base, Without w,
           const std::string& name) {
  const Findings f = find_races(trace, cells, w);
  m.removed++;
  if (f.worse_than(base)) {
    m.noticed++;
    Findings only_faults = f;
    only_faults.open.clear();
    m.open += !only_faults.worse_than(base);
  } else if (!run_scheduled(trace, 0, false, false, w).empty()) {
    m.noticed++;
  } else {
    m.missed.push_back(name);
  }
}

const char* name_of(Kind k) { return k == Kind::set ? "set" : k == Kind::wait ? "wait" : "barrier"; }

}  // namespace

Mutation drop_each_operation(const std::vector<Op>& trace) {
  const Cells cells(trace);
  const Findings base = find_races(trace, cells);
  Mutation m;
  std::map<int, int> runs;  // of each sync statement
  for (const Op& op : trace) runs[op.line] += op.kind != Kind::run;
  std::set<int> begun;
  for (size_t i = 0; i < trace.size(); i++) {
    if (trace[i].kind == Kind::run) continue;
    const int line = trace[i].line;
    const size_t missed = m.missed.size();
    judge(
        m, trace, cells, base, {.op = int(i)},
        std::string(name_of(trace[i].kind)) + " of line " + std::to_string(line) + ", operation " + std::to_string(i));
    const bool first = begun.insert(line).second;
    if (m.missed.size() > missed && first && trace[i].kind == Kind::barrier && runs[line] > 1) {
      m.idle++;
      m.missed.pop_back();
    }
  }
  return m;
}

Mutation drop_each_statement(const std::vector<Op>& trace) {
  const Cells cells(trace);
  const Findings base = find_races(trace, cells);
  Mutation m;
  std::set<int> lines;
  for (const Op& op : trace)
    if (op.kind != Kind::run && lines.insert(op.line).second)
      judge(m, trace, cells, base, {.line = op.line},
            std::string(name_of(op.kind)) + " of line " + std::to_string(op.line));
  return m;
}

}  // namespace npu
