// See symbols.h. Divisions are the only instructions here that could trap: they may be computed above the branch that
// guards them, so a divisor that could be 0 is taken as 1.
#include "codegen/cpu/symbols.h"

#include <algorithm>

#include "base/error.h"

namespace gaf::cpu {

Symbols::Symbols(const kir::Kernel& k, Ir& ir) : k_(k), ir_(ir) {}

void Symbols::begin_function() {
  const size_t n = k_.syms.size();
  levels_.clear();
  values_.assign(n, nullptr);
  known_.assign(n, std::nullopt);
  ranges_.assign(n, Range{0, 0});
  depth_.assign(n, 0);
  any_known_ = false;
  for (size_t i = 0; i < n; i++)
    if (k_.syms[i].kind == kir::SymKind::size) ranges_[i] = {k_.syms[i].lo, k_.syms[i].hi};
  open();
}
void Symbols::open() { levels_.push_back({ir_.mark(), {}, {}}); }
void Symbols::close() {
  for (int s : levels_.back().symbols) unbind(s);
  levels_.pop_back();
}
void Symbols::bind(int sym, Val v, Range r) {
  const auto i = static_cast<size_t>(sym);
  values_[i] = v;
  known_[i] = r.lo == r.hi ? std::optional(r.lo) : std::nullopt;
  any_known_ = any_known_ || known_[i];
  ranges_[i] = r;
  depth_[i] = static_cast<int>(levels_.size()) - 1;
  levels_.back().symbols.push_back(sym);
}
void Symbols::bind(int sym, int64_t v) {
  const auto i = static_cast<size_t>(sym);
  values_[i] = ir_.i64(v);
  known_[i] = v;
  any_known_ = true;
  ranges_[i] = {v, v};
}
void Symbols::unbind(int sym) {
  values_[static_cast<size_t>(sym)] = nullptr;
  known_[static_cast<size_t>(sym)] = std::nullopt;
}

Expr Symbols::known(const Expr& x) const {
  if (!any_known_ || x.is_num()) return x;
  return x.substitute(
      [&](int s) { return known_[static_cast<size_t>(s)] ? Expr(*known_[static_cast<size_t>(s)]) : Expr::sym(s); });
}
Range Symbols::range(const Expr& x) const { return x.range(ranges_); }
std::optional<int64_t> Symbols::number(const Expr& x) const {
  const Range r = range(x);
  return r.lo == r.hi ? std::optional(r.lo) : std::nullopt;
}

int Symbols::depth(const Expr& x) const {
  if (x.is_num()) return 0;
  if (x.op() == ExprOp::sym) return depth_[static_cast<size_t>(x.sym_id())];
  int d = 0;
  for (const Expr& a : x.args()) d = std::max(d, depth(a));
  return d;
}

Val Symbols::at_level(int depth, Val base, const Expr& x, const std::function<Val()>& make) {
  Level& level = levels_[static_cast<size_t>(depth)];
  const size_t hash = x.hash() ^ reinterpret_cast<size_t>(base);
  auto [it, end] = level.made.equal_range(hash);
  for (; it != end; ++it)
    if (it->second.base == base && it->second.x == x) return it->second.value;
  Val v = ir_.at(level.mark, make);
  level.made.emplace(hash, Made{base, x, v});
  return v;
}

Val Symbols::value(const Expr& written) {
  const Expr x = known(written);
  if (x.is_num()) return ir_.i64(x.num());
  if (x.op() == ExprOp::sym) {
    Val v = values_[static_cast<size_t>(x.sym_id())];
    GAF_CHECK(v) << "symbol " << k_.syms[static_cast<size_t>(x.sym_id())].name << " is used outside its loop";
    return v;
  }
  Vals args;  // first: each at its own level
  for (const Expr& a : x.args()) args.push_back(value(a));
  return at_level(depth(x), nullptr, x, [&] { return build(x, args); });
}

Val Symbols::build(const Expr& x, const Vals& args) {
  Val v = args[0];
  for (size_t i = 1; i < args.size(); i++) switch (x.op()) {
      case ExprOp::add: v = ir_.add(v, args[i]); break;
      case ExprOp::mul: v = ir_.mul(v, args[i]); break;
      case ExprOp::min: v = ir_.smin(v, args[i]); break;
      case ExprOp::max: v = ir_.smax(v, args[i]); break;
      case ExprOp::div: v = divide(x, v, args[i]); break;
      case ExprOp::mod: {
        Val q = divide(x, v, args[i]);
        v = ir_.sub(v, ir_.mul(q, args[i]));
        break;
      }
      default: GAF_CHECK(false) << "an index expression of kind " << static_cast<int>(x.op());
    }
  return v;
}

// Floor division. A 64-bit division costs several times a 32-bit one on many CPUs, hence the narrow form.
Val Symbols::divide(const Expr& x, Val a, Val b) {
  const Range ra = range(x.args()[0]), rb = range(x.args()[1]);
  if (rb.lo < 1) b = ir_.smax(b, ir_.i64(1));
  if (ra.lo >= 0) {
    const int64_t limit = int64_t{1} << 31;
    if (ra.hi >= limit || rb.hi >= limit) return ir_.udiv(a, b);
    return ir_.zext(ir_.udiv(ir_.narrow(a, Elem::i32), ir_.narrow(b, Elem::i32)), Elem::i64);
  }
  Val q = ir_.sdiv(a, b), r = ir_.sub(a, ir_.mul(q, b));
  return ir_.add(q, ir_.ashr(r, 63));  // the remainder has the sign of a: one less if it is negative
}

Val Symbols::address(Val base, const Expr& bytes, int64_t& rest) {
  const Linear l = linear(known(bytes));
  rest += l.constant;
  std::vector<Expr> per_level(levels_.size(), Expr(0));  // outermost first: what a loop does not change is a prefix
  for (auto [s, f] : l.coef) per_level[static_cast<size_t>(depth(Expr::sym(s)))] += Expr::sym(s) * Expr(f);
  for (auto& [x, f] : l.rest) per_level[static_cast<size_t>(depth(x))] += x * Expr(f);
  Val p = base;
  for (size_t d = 0; d < per_level.size(); d++) {
    if (per_level[d].is(0)) continue;
    Val n = value(per_level[d]);
    p = at_level(static_cast<int>(d), p, per_level[d], [&] { return ir_.offset(p, n); });
  }
  return p;
}

}  // namespace gaf::cpu
