// The static part of running a plan, see schedule.h.
#include "runtime/schedule.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace gaf {
namespace {

template <class F>
void for_each_buffer(const PlanStep& step, F f) {
  if (step.kernel)
    for (int b : step.kernel->args) f(b);
  if (step.host) {
    for (int b : step.host->args) f(b);
    for (int b : step.host->results) f(b);
  }
}

// Symbols of `dims` that are not in `known`.
std::vector<int> unknown_symbols(const Dims& dims, const std::vector<char>& known) {
  std::vector<int> r;
  for (const Expr& d : dims)
    for (int s = 0; s <= d.max_sym(); s++)
      if (d.mentions(s) && !known[static_cast<size_t>(s)]) r.push_back(s);
  return r;
}

void check_shape_of_plan(const RunPlan& p) {
  const int buffers = static_cast<int>(p.buffers.size()), symbols = static_cast<int>(p.symbols.size());
  auto in_table = [&](int b) { GAF_CHECK(b >= 0 && b < buffers) << "plan names buffer " << b << " of " << buffers; };
  for (int b : p.inputs) in_table(b);
  for (int b : p.outputs) in_table(b);
  for (const PlanBuffer& b : p.buffers) {
    for (const Expr& d : b.dims)
      GAF_CHECK(d.max_sym() < symbols) << "buffer " << b.name << " mentions symbol " << d.max_sym();
    GAF_CHECK(b.kind != PlanBuffer::constant || b.data.data || b.data.numel() == 0)
        << "constant " << b.name << " has no data";
    if (b.kind == PlanBuffer::alias) in_table(b.index);
  }
  for (const PlanStep& s : p.steps) {
    GAF_CHECK(s.kernel.has_value() != s.host.has_value()) << "a step is a kernel or a host step";
    for_each_buffer(s, in_table);
    if (s.kernel) {
      const auto args = static_cast<int>(s.kernel->args.size());
      for (auto [out, in] : s.kernel->kernel.in_place)
        GAF_CHECK(out >= 0 && out < args && in >= 0 && in < args && out != in)
            << s.kernel->name << ": in place " << out << ", " << in;
      for (const Expr& e : s.kernel->sizes)
        GAF_CHECK(e.max_sym() < symbols) << s.kernel->name << " mentions symbol " << e.max_sym();
    } else {
      for (auto [symbol, position, element] : s.host->binds)
        GAF_CHECK(symbol >= 0 && symbol < symbols && position >= 0 && element >= 0 &&
                  position < static_cast<int>(s.host->args.size() + s.host->results.size()))
            << s.host->name << ": binds symbol " << symbol << " to element " << element << " of " << position;
    }
  }
}

}  // namespace

Schedule::Schedule(const RunPlan& plan) {
  check_shape_of_plan(plan);
  resolve_aliases(plan);
  cut_segments(plan);
  set_lifetimes(plan);
  place_outputs(plan);
  allow_in_place(plan);
  released.resize(plan.steps.size());
  for (size_t b = 0; b < place.size(); b++)
    if (place[b].kind == Place::held && place[b].last < static_cast<int>(plan.steps.size()))
      released[static_cast<size_t>(place[b].last)].push_back(static_cast<int>(b));
}

void Schedule::resolve_aliases(const RunPlan& plan) {
  root.resize(plan.buffers.size());
  for (size_t b = 0; b < root.size(); b++) {
    size_t r = b;
    for (size_t steps = 0; plan.buffers[r].kind == PlanBuffer::alias; r = static_cast<size_t>(plan.buffers[r].index))
      GAF_CHECK(steps++ < root.size()) << "buffer " << plan.buffers[b].name << " is an alias of itself";
    root[b] = static_cast<int>(r);
  }
}

// A segment ends behind a host step that gives a symbol its value. A buffer belongs to the segment that first mentions
// it; results of a segment's last step belong to the next one, which knows their sizes.
void Schedule::cut_segments(const RunPlan& plan) {
  std::vector<char> known(plan.symbols.size(), 0), mentioned(plan.buffers.size(), 0);
  for (int b : plan.inputs)
    for (int s : unknown_symbols(plan.buffers[static_cast<size_t>(b)].dims, known)) known[static_cast<size_t>(s)] = 1;

  segments.emplace_back();
  auto mention = [&](int b, bool result) {
    if (std::exchange(mentioned[static_cast<size_t>(b)], 1)) return;
    const PlanBuffer& buffer = plan.buffers[static_cast<size_t>(b)];
    const std::vector<int> missing = unknown_symbols(buffer.dims, known);
    if (!missing.empty())
      throw UserError("GAF3105", "dimension '" + plan.symbols[static_cast<size_t>(missing[0])] + "' of tensor '" +
                                     buffer.name + "' is given by no input" + (result ? " and no result" : ""));
    segments.back().buffers.push_back(b);
  };
  for (int b : plan.inputs) mention(b, false);
  for (size_t i = 0; i < plan.steps.size(); i++) {
    const PlanStep& step = plan.steps[i];
    if (step.kernel) {
      for (int b : step.kernel->args) mention(b, false);
      max_args = std::max(max_args, static_cast<int64_t>(step.kernel->args.size()));
      continue;
    }
    for (int b : step.host->args) mention(b, false);
    std::set<int> set;
    for (auto [symbol, position, element] : step.host->binds)
      if (!known[static_cast<size_t>(symbol)]) set.insert(symbol);
    for (int b : step.host->results)
      for (const Expr& d : plan.buffers[static_cast<size_t>(b)].dims)
        if (d.op() == ExprOp::sym && !known[static_cast<size_t>(d.sym_id())]) set.insert(d.sym_id());
    for (int s : set) known[static_cast<size_t>(s)] = 1;
    if (!set.empty()) {
      segments.back().end = static_cast<int>(i) + 1;
      segments.emplace_back().begin = static_cast<int>(i) + 1;
    }
    for (int b : step.host->results) mention(b, true);
  }
  for (int b : plan.outputs) mention(b, false);
  segments.back().end = static_cast<int>(plan.steps.size());
  // An alias may be mentioned before its root: the root then belongs to the alias's segment.
  for (Segment& s : segments) {
    const std::vector<int> here = s.buffers;
    for (int b : here)
      if (!std::exchange(mentioned[static_cast<size_t>(root[static_cast<size_t>(b)])], 1))
        s.buffers.push_back(root[static_cast<size_t>(b)]);
    std::sort(s.buffers.begin(), s.buffers.end());
  }
}

void Schedule::set_lifetimes(const RunPlan& plan) {
  place.resize(plan.buffers.size());
  for (size_t i = 0; i < plan.steps.size(); i++) {
    for_each_buffer(plan.steps[i], [&](int b) {
      Place& p = place[static_cast<size_t>(root[static_cast<size_t>(b)])];
      if (p.first < 0) p.first = static_cast<int>(i), p.kind = Place::arena;
      p.last = static_cast<int>(i);
    });
    if (!plan.steps[i].host) continue;
    for (int b : plan.steps[i].host->results) {
      Place& p = place[static_cast<size_t>(b)];
      GAF_CHECK(root[static_cast<size_t>(b)] == b && p.first == static_cast<int>(i) &&
                plan.buffers[static_cast<size_t>(b)].kind != PlanBuffer::input)
          << "host step " << plan.steps[i].host->name << " writes buffer " << plan.buffers[static_cast<size_t>(b)].name
          << " of somebody else";
      p.kind = Place::held, p.by_host = true;
    }
  }
  for (size_t b = 0; b < place.size(); b++)
    if (plan.buffers[b].kind == PlanBuffer::constant) place[b].kind = Place::constant;
  for (size_t i = 0; i < plan.inputs.size(); i++) {
    Place& p = place[static_cast<size_t>(plan.inputs[i])];
    GAF_CHECK(plan.buffers[static_cast<size_t>(plan.inputs[i])].kind == PlanBuffer::input)
        << "input " << i << " is no input buffer";
    p.kind = Place::input, p.index = static_cast<int>(i);
  }
}

// A value that a step computes goes straight into the output's memory, also when the output is a whole view of it. The
// rest (inputs, constants, one value given out twice) is copied at the end.
void Schedule::place_outputs(const RunPlan& plan) {
  for (size_t i = 0; i < plan.outputs.size(); i++) {
    const int b = plan.outputs[i], r = root[static_cast<size_t>(b)];
    const PlanBuffer &view = plan.buffers[static_cast<size_t>(b)], &whole = plan.buffers[static_cast<size_t>(r)];
    Place& p = place[static_cast<size_t>(r)];
    const bool computed = p.kind == Place::arena || p.kind == Place::held;
    if (computed && product(view.dims) * bytes(view.dtype) == product(whole.dims) * bytes(whole.dtype)) {
      p.kind = Place::output, p.index = static_cast<int>(i);
    } else {
      GAF_CHECK(p.kind != Place::unused) << "output " << view.name << " is computed by no step";
      copies.emplace_back(static_cast<int>(i), b);
      p.last = static_cast<int>(plan.steps.size());
    }
  }
  for (size_t b = 0; b < place.size(); b++)
    GAF_CHECK(place[b].kind != Place::arena || plan.buffers[b].kind == PlanBuffer::arena)
        << "buffer " << plan.buffers[b].name << " is "
        << (plan.buffers[b].kind == PlanBuffer::output ? "an output" : "an input") << " that the plan's list lacks";
}

// Where the input is in the arena and nobody reads it later: a result in the arena takes its memory over, a result that
// is an output lends it its own. Of several inputs a result takes the first that no other result has. Last steps first:
// what an output has lent its memory to may lend it on.
void Schedule::allow_in_place(const RunPlan& plan) {
  std::vector<int> segment_of(place.size(), -1);
  for (size_t s = 0; s < segments.size(); s++)
    for (int b : segments[s].buffers) segment_of[static_cast<size_t>(b)] = static_cast<int>(s);
  std::vector<char> gave(place.size(), 0), took(place.size(), 0);
  for (size_t i = plan.steps.size(); i-- > 0;) {
    if (!plan.steps[i].kernel) continue;
    const KernelStep& k = *plan.steps[i].kernel;
    auto root_of = [&](int position) {
      return static_cast<size_t>(root[static_cast<size_t>(k.args[static_cast<size_t>(position)])]);
    };
    for (auto [out, in] : k.kernel.in_place) {
      const size_t t = root_of(out), f = root_of(in);
      Place &to = place[t], &from = place[f];
      int readers = 0;  // the same buffer as two operands: not what the kernel's author had in mind
      for (size_t a = 0; a < k.args.size(); a++) readers += root_of(static_cast<int>(a)) == f;
      if (to.first != static_cast<int>(i) || from.kind != Place::arena || from.first >= to.first ||
          from.last != to.first || readers != 1 || gave[f] || took[t])
        continue;
      if (to.kind == Place::arena)
        to.in_place_of = static_cast<int>(f);
      else if (to.kind == Place::output && segment_of[t] == segment_of[f])
        from.kind = Place::output, from.index = to.index, from.lent = true;
      else
        continue;
      gave[f] = took[t] = 1;
    }
  }
}

}  // namespace gaf
