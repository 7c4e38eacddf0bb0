// The elimination behind Bounds::most. Works on polynomials (base/expr.h): a term is a coefficient times symbols and
// atoms.
#include "ir/kernel_bounds.h"

#include <algorithm>

#include "base/error.h"

namespace gaf::kir {
namespace {

constexpr int64_t kBig = INT64_MAX / 4;
constexpr int kFuel = 1500;  // steps of one question; then the interval answers

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

std::span<const Expr> terms(const Expr& x) { return x.op() == ExprOp::add ? x.args() : std::span(&x, 1); }
std::span<const Expr> factors(const Expr& t) { return t.op() == ExprOp::mul ? t.args() : std::span(&t, 1); }

bool is_atom(const Expr& x) {
  return x.op() == ExprOp::div || x.op() == ExprOp::mod || x.op() == ExprOp::min || x.op() == ExprOp::max;
}

// The product of all factors but one.
Expr without(const Expr& term, size_t skip) {
  Expr p = 1;
  auto f = factors(term);
  for (size_t i = 0; i < f.size(); i++)
    if (i != skip) p *= f[i];
  return p;
}

}  // namespace

namespace {
int nesting(const Expr& x) {
  int n = 0;
  for (const Expr& a : x.args()) n = std::max(n, nesting(a));
  return n + is_atom(x);
}

// floor((x + min(p, q)) / b) = min(floor((x + p) / b), floor((x + q) / b)): division by a positive number is monotone.
// Where the numerator holds no min or max, the division itself.
Expr through_division(const Expr& a, const Expr& b) {
  if (b.is_num() && b.num() > 0)
    for (const Expr& t : terms(a)) {
      auto f = factors(t);
      const Expr& m = f.back();
      bool unit = f.size() == 1 || (f.size() == 2 && f[0].is_num());
      if (!unit || (m.op() != ExprOp::min && m.op() != ExprOp::max)) continue;
      Expr q = f.size() == 2 ? f[0] : Expr(1), others = a - t;
      bool least = (m.op() == ExprOp::min) == (q.num() > 0);
      Expr x = through_division(others + q * m.args()[0], b), y = through_division(others + q * m.args()[1], b);
      return least ? min(x, y) : max(x, y);
    }
  return floordiv(a, b);
}
bool mentions_division(const Expr& e) {
  if (e.op() == ExprOp::div || e.op() == ExprOp::mod) return true;
  if (e.op() == ExprOp::num || e.op() == ExprOp::sym) return false;
  return std::ranges::any_of(e.args(), mentions_division);
}
}  // namespace

Expr Bounds::last_of(const Axis& axis) {
  Expr hi = axis.hi;
  if (hi.op() == ExprOp::div)
    if (Expr moved = through_division(hi.args()[0], hi.args()[1]); moved.op() == ExprOp::max) hi = moved;
  while (hi.op() == ExprOp::max) {  // the loop runs, so its end lies above its start
    Expr a = hi.args()[0], b = hi.args()[1];
    if (at_most(a - axis.lo, 0))
      hi = b;
    else if (at_most(b - axis.lo, 0))
      hi = a;
    else
      break;
  }
  if (axis.step <= 1) return hi - Expr(1);
  const Expr stepped = axis.lo + floordiv(hi - Expr(1) - axis.lo, axis.step) * Expr(axis.step);
  // a quotient in the end merges into the one of the step and no longer cancels: hi - 1 says it without
  return mentions_division(hi) ? min(hi - Expr(1), stepped) : stepped;
}

BranchFacts facts_of(const If& f) {
  const Expr d = f.a - f.b;
  switch (f.cmp) {
    case Cmp::lt: return {{d + Expr(1)}, {-d}};
    case Cmp::le: return {{d}, {Expr(1) - d}};
    case Cmp::eq: return {{d, -d}, {}};
    case Cmp::ne: return {{}, {d, -d}};
  }
  return {};
}

Bounds::Bounds(const Kernel& k) : symbols_(k.syms.size()), ranges_(k.syms.size()) {
  for (size_t i = 0; i < k.syms.size(); i++) {
    const Symbol& s = k.syms[i];
    if (s.kind != SymKind::size) continue;
    int64_t m = std::max<int64_t>(s.mult, 1);
    symbols_[i] = {-floor_div(-s.lo, m), floor_div(s.hi, m), m, true};
    sizes_.push_back(static_cast<int>(i));
    ranges_[i] = {-floor_div(-s.lo, m) * m, floor_div(s.hi, m) * m};
  }
  scaled_ranges_ = ranges_;
  for (int i : sizes_) {
    int64_t m = symbols_[static_cast<size_t>(i)].mult;
    scaled_ranges_[static_cast<size_t>(i)] = {ranges_[static_cast<size_t>(i)].lo / m,
                                              ranges_[static_cast<size_t>(i)].hi / m};
  }
}

int Bounds::add_symbol() {
  symbols_.emplace_back();
  ranges_.emplace_back();
  scaled_ranges_.emplace_back();
  return static_cast<int>(symbols_.size()) - 1;
}

Expr Bounds::scaled(const Expr& x) const {
  bool any = std::any_of(sizes_.begin(), sizes_.end(),
                         [&](int s) { return symbols_[static_cast<size_t>(s)].mult != 1 && x.mentions(s); });
  if (!any) return x;
  return x.substitute([&](int s) {
    const Info& i = symbols_[static_cast<size_t>(s)];
    return i.size ? Expr::sym(s) * Expr(i.mult) : Expr::sym(s);
  });
}

void Bounds::enter(int sym, const Expr& lo, const Expr& last) {
  auto i = static_cast<size_t>(sym);
  int64_t low = -most(-lo), high = most(last);
  symbols_[i].lo = scaled(lo), symbols_[i].last = scaled(last);
  ranges_[i] = scaled_ranges_[i] = {low, std::max(low, high)};
  scope_.push_back(sym);
}

// A fact about one symbol narrows its range, so that it holds in every branch of a question; others are tried one by
// one.
void Bounds::assume(const Expr& x) {
  Fact f{x};
  Linear l = linear(x);
  if (l.rest.empty() && l.coef.size() == 1) {
    auto [sym, q] = l.coef[0];
    auto i = static_cast<size_t>(sym);
    f.sym = sym, f.info = symbols_[i], f.range = ranges_[i], f.scaled = scaled_ranges_[i];
    int64_t m = symbols_[i].mult;
    if (q > 0) {
      int64_t top = floor_div(floor_div(-l.constant, q), m);
      symbols_[i].last = min(symbols_[i].last, top);
      scaled_ranges_[i].hi = std::max(scaled_ranges_[i].lo, std::min(scaled_ranges_[i].hi, top));
    } else {
      int64_t bottom = -floor_div(floor_div(-l.constant, -q), m);  // q s + c <= 0: s >= c / -q, rounded up
      symbols_[i].lo = max(symbols_[i].lo, bottom);
      scaled_ranges_[i].lo = std::min(scaled_ranges_[i].hi, std::max(scaled_ranges_[i].lo, bottom));
    }
    ranges_[i] = {scaled_ranges_[i].lo * m, scaled_ranges_[i].hi * m};
  }
  facts_.push_back(std::move(f));
}

void Bounds::forget() {
  if (const Fact& f = facts_.back(); f.sym >= 0) {
    auto i = static_cast<size_t>(f.sym);
    symbols_[i] = f.info, ranges_[i] = f.range, scaled_ranges_[i] = f.scaled;
  }
  facts_.pop_back();
}

bool Bounds::in_scope(int sym) const {
  return symbols_[static_cast<size_t>(sym)].size || std::find(scope_.begin(), scope_.end(), sym) != scope_.end();
}

int64_t Bounds::most(const Expr& x) {
  if (x.is_num()) return x.num();
  fuel_ = kFuel;
  return std::min(x.range(ranges_).hi, bound(scaled(x)));
}

bool Bounds::at_most(const Expr& x, int64_t limit) {
  if (x.is_num()) return x.num() <= limit;
  if (x.range(ranges_).hi <= limit) return true;
  if (most(x) <= limit) return true;
  // a fact f <= 0 gives x <= x - f; two facts together cover a branch inside a branch
  for (size_t i = 0; i < facts_.size(); i++) {
    if (most(x - facts_[i].x) <= limit) return true;
    for (size_t j = 0; j < i; j++)
      if (most(x - facts_[i].x - facts_[j].x) <= limit) return true;
  }
  return false;
}

int64_t Bounds::bound(const Expr& x) {
  if (x.is_num()) return x.num();
  int64_t interval = x.range(scaled_ranges_).hi;
  if (--fuel_ <= 0) return interval;
  int sym = -1;  // the innermost symbol: its bounds mention others, so it goes first
  for (size_t i = scope_.size(); i-- > 0 && sym < 0;)
    if (x.mentions(scope_[i])) sym = scope_[i];
  for (size_t i = 0; i < sizes_.size() && sym < 0; i++)
    if (x.mentions(sizes_[i])) sym = sizes_[i];
  int64_t result = kBig;
  try {
    if (sym >= 0 && !open_atom(x, sym, result)) eliminate(x, sym, result);
  } catch (const UserError&) {  // a product of the largest sizes beyond 64 bits bounds nothing
    result = kBig;
  }
  return std::min(interval, result);
}

// Replaces an atom of x that holds sym, and whose cofactor has a known sign, by what bounds it. The most deeply nested
// one goes first, because what comes out of it may cancel against the others. False where there is none.
bool Bounds::open_atom(const Expr& x, int sym, int64_t& result) {
  Expr term, rest;
  const Expr* atom = nullptr;
  bool up = true;  // an upper bound of the atom is wanted
  int depth = 0;
  for (const Expr& t : terms(x)) {
    auto f = factors(t);
    for (size_t i = 0; i < f.size(); i++) {
      if (!is_atom(f[i]) || !f[i].mentions(sym) || nesting(f[i]) <= depth) continue;
      Expr r = without(t, i);
      Range sign = r.range(scaled_ranges_);
      if (sign.lo < 0 && sign.hi > 0) continue;
      term = t, rest = r, atom = &f[i], up = sign.lo >= 0, depth = nesting(f[i]);
    }
  }
  if (!atom) return false;
  Expr others = x - term, a = atom->args()[0], b = atom->args()[1];
  auto with = [&](const Expr& v) { return bound(others + rest * v); };
  switch (atom->op()) {
    case ExprOp::min:
    case ExprOp::max:
      // of min, any branch bounds from above; from below the smaller does
      if ((atom->op() == ExprOp::min) == up)
        result = std::min(with(a), with(b));
      else
        result = std::max(with(a), with(b));
      return true;
    case ExprOp::div: result = open_division(x, others, rest, *atom, up); return true;
    default:  // 0 <= a % b < b, and a % b <= a for a >= 0
      result = up ? with(b - Expr(1)) : with(0);
      if (!up) return true;
      if (a.range(scaled_ranges_).lo >= 0) result = std::min(result, with(a));
      result = std::min(result, with(Expr(atom->range(scaled_ranges_).hi)));
      return true;
  }
}

// Bound of others + rest * (a / b): the least of what is known of a floor division.
int64_t Bounds::open_division(const Expr& x, const Expr& others, const Expr& rest, const Expr& atom, bool up) {
  Expr a = atom.args()[0], b = atom.args()[1];
  Expr whole = up ? a : a - b + Expr(1);  // b * (a / b) <= a, >= a - b + 1
  if (!b.is_num() || b.num() <= 0) {
    auto r = factors(rest);
    auto at = std::find(r.begin(), r.end(), b);
    int64_t result = bound(others + rest * Expr(up ? atom.range(scaled_ranges_).hi : atom.range(scaled_ranges_).lo));
    if (at != r.end())
      result = std::min(result, bound(others + without(rest, static_cast<size_t>(at - r.begin())) * whole));
    return result;
  }
  int64_t d = b.num(), result = floor_div(bound(others * b + rest * whole), d);
  // through min and max of the numerator, where every branch may divide exactly
  if (Expr moved = through_division(a, b); !(moved == atom)) result = std::min(result, bound(others + rest * moved));
  // as a number, from the numerator's own bound
  int64_t limit = up ? bound(a) : -bound(-a);
  if (limit > -kBig && limit < kBig) result = std::min(result, bound(others + rest * Expr(floor_div(limit, d))));
  // against another quotient of the same numerator: a / (d2 k) = (a / d2) / k
  for (const Expr& t : terms(x))
    for (const Expr& f : factors(t)) {
      if (f.op() != ExprOp::div || !f.args()[1].is_num() || !(f.args()[0] == a)) continue;
      int64_t d2 = f.args()[1].num();
      if (d2 <= 0 || d2 >= d || d % d2 != 0) continue;
      int64_t k = d / d2;
      result = std::min(result, floor_div(bound(others * Expr(k) + rest * (up ? f : f - Expr(k - 1))), k));
    }
  return result;
}

// Replaces a symbol of x by its bound. x is linear in it, so its largest value is at an end of the range.
bool Bounds::eliminate(const Expr& x, int s, int64_t& result) {
  for (const Expr& term : terms(x)) {
    int times = 0;
    for (const Expr& f : factors(term)) {
      if (f.op() == ExprOp::sym && f.sym_id() == s)
        times++;
      else if (f.mentions(s))
        return false;  // inside an atom that could not be opened
    }
    if (times > 1) return false;
  }
  auto with = [&](const Expr& v) { return x.substitute([&](int id) { return id == s ? v : Expr::sym(id); }); };
  const Info& info = symbols_[static_cast<size_t>(s)];
  Expr lo = info.lo, last = info.last;  // copies: the table may grow below
  Expr base = with(0);
  Range slope = (with(1) - base).range(scaled_ranges_);
  result = INT64_MIN;
  if (slope.hi > 0) result = std::max(result, bound(with(last)));
  if (slope.lo < 0) result = std::max(result, bound(with(lo)));
  if (slope.lo >= 0 && slope.hi <= 0) result = bound(base);
  return true;
}

}  // namespace gaf::kir
