// Verifier, rule 9: no iteration of a phase's par loops reads or writes what another one writes. Two touches of a
// buffer are compared in two copies of their loops: for the first axis that differs (in some order of the axes), the
// rectangles must lie apart in some dimension. Touches through different views of one buffer are left to the
// interpreter's race check.
#include <algorithm>
#include <map>
#include <numeric>

#include "ir/kernel_verify.h"

namespace gaf::kir {
namespace {

Expr first_of(const Slice& s) { return s.at; }
Expr last_of(const Slice& s) { return s.n ? s.at + (*s.n - Expr(1)) * Expr(s.step) : s.at; }

// Strides of s apart that are no multiple of each other's cannot meet, but that is not looked at: rectangles are boxes
// here.
bool apart(Bounds& b, const std::vector<Slice>& x, const std::vector<Slice>& y) {
  for (size_t d = 0; d < x.size(); d++)
    if (b.at_most(last_of(x[d]) - first_of(y[d]), -1) || b.at_most(last_of(y[d]) - first_of(x[d]), -1)) return true;
  return false;
}

}  // namespace

void Verifier::independent() {
  for (size_t i = 0; i < touches_.size(); i++)
    for (size_t j = i; j < touches_.size(); j++) {
      const Touch &a = touches_[i], &b = touches_[j];
      if ((!a.write && !b.write) || a.ref.id != b.ref.id || (i == j && !a.write)) continue;
      if (disjoint(a, b)) continue;
      line_ = b.line;
      std::string what = a.write && b.write ? "write" : "write what others read";
      complain("par iterations may " + what + (a.write && b.write ? " the same elements: " : ": ") + show(a.ref) +
               (i == j ? "" : " and " + show(b.ref)));
    }
  touches_.clear();
}

bool Verifier::disjoint(const Touch& a, const Touch& b) {
  if (a.par != b.par) return separate(a, b, {}, 0);
  std::vector<int> order(a.par->axes.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    bool all = true;
    for (size_t i = 0; all && i < order.size(); i++) all = separate(a, b, order, i) && separate(b, a, order, i);
    if (all) return true;
  } while (order.size() <= 3 && std::next_permutation(order.begin(), order.end()));
  return false;
}

// Axes order[0..differs) are equal in both, order[differs] is larger in b, the others are free.
bool Verifier::separate(const Touch& a, const Touch& b, const std::vector<int>& order, size_t differs) {
  Bounds bounds(k_);
  std::map<int, Expr> second;  // symbols of b in its own copy
  auto enter = [&](int s, const Expr& lo, const Expr& last) { bounds.enter(s, lo, last); };
  auto in_b = [&](const Expr& x) {
    return x.substitute([&](int s) {
      auto it = second.find(s);
      return it == second.end() ? Expr::sym(s) : it->second;
    });
  };
  for (int s : a.outer) enter(s, reach_.at(s).first, reach_.at(s).second);
  auto first = [&](const Axis& x) { return reach_.at(x.sym).first; };
  auto last = [&](const Axis& x) { return reach_.at(x.sym).second; };
  if (a.par != b.par) {
    for (const Axis& x : a.par->axes) enter(x.sym, first(x), last(x));
    for (const Axis& x : b.par->axes) {
      int copy = bounds.add_symbol();
      enter(copy, in_b(first(x)), in_b(last(x)));
      second[x.sym] = Expr::sym(copy);
    }
  }
  for (size_t i = 0; a.par == b.par && i < a.par->axes.size(); i++) {
    const Axis& x = a.par->axes[i];
    size_t rank = static_cast<size_t>(std::find(order.begin(), order.end(), static_cast<int>(i)) - order.begin());
    if (rank < differs) {
      enter(x.sym, first(x), last(x));
      continue;
    }
    int copy = bounds.add_symbol();
    if (rank == differs) {  // the copy's value first, then a's, which lies a step or more below
      if (bounds.at_most(in_b(last(x)) - in_b(first(x)) - Expr(x.step), -1)) return true;  // one iteration
      enter(copy, in_b(first(x)) + Expr(x.step), in_b(last(x)));
      enter(x.sym, first(x), Expr::sym(copy) - Expr(x.step));
    } else {
      enter(x.sym, first(x), last(x));
      enter(copy, in_b(first(x)), in_b(last(x)));
    }
    second[x.sym] = Expr::sym(copy);
  }
  // inner loops and reads, each touch its own
  for (int s : a.inner) enter(s, reach_.at(s).first, reach_.at(s).second);
  for (int s : b.inner) {
    int copy = bounds.add_symbol();
    enter(copy, in_b(reach_.at(s).first), in_b(reach_.at(s).second));
    second[s] = Expr::sym(copy);
  }
  std::vector<Slice> y = b.ref.at;
  for (Slice& s : y) {
    s.at = in_b(s.at);
    if (s.n) s.n = in_b(*s.n);
  }
  return apart(bounds, a.ref.at, y);
}

}  // namespace gaf::kir
