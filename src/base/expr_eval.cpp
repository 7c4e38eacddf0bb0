// Expressions: evaluation, interval arithmetic, substitution and printing.
#include <algorithm>
#include <limits>

#include "base/expr_node.h"

namespace gaf {

namespace {
constexpr int64_t kBig = std::numeric_limits<int64_t>::max() / 4;  // intervals saturate here
int64_t clamp(__int128 v) { return static_cast<int64_t>(std::clamp<__int128>(v, -kBig, kBig)); }
}  // namespace

int64_t Expr::eval(std::span<const int64_t> values) const {
  const auto& x = node_->args;
  switch (op()) {
    case ExprOp::num: return node_->v;
    case ExprOp::sym:
      GAF_CHECK(static_cast<size_t>(node_->v) < values.size()) << "symbol " << node_->v << " has no value";
      return values[static_cast<size_t>(node_->v)];
    case ExprOp::add: {
      int64_t s = 0;
      for (const Expr& a : x) s = checked_add(s, a.eval(values));
      return s;
    }
    case ExprOp::mul: {
      int64_t s = 1;
      for (const Expr& a : x) s = checked_mul(s, a.eval(values));
      return s;
    }
    case ExprOp::min: return std::min(x[0].eval(values), x[1].eval(values));
    case ExprOp::max: return std::max(x[0].eval(values), x[1].eval(values));
    case ExprOp::div:
    case ExprOp::mod: break;
  }
  int64_t p = x[0].eval(values), q = x[1].eval(values);
  if (q <= 0) throw UserError("GAF6002", "a size expression divides by " + std::to_string(q));
  int64_t d = floor_div(p, q);
  return op() == ExprOp::div ? d : p - d * q;
}

Range Expr::range(std::span<const Range> r) const {
  const auto& x = node_->args;
  switch (op()) {
    case ExprOp::num: return {node_->v, node_->v};
    case ExprOp::sym:
      GAF_CHECK(static_cast<size_t>(node_->v) < r.size()) << "symbol " << node_->v << " has no range";
      return r[static_cast<size_t>(node_->v)];
    case ExprOp::add: {
      __int128 lo = 0, hi = 0;
      for (const Expr& a : x) {
        Range q = a.range(r);
        lo += q.lo, hi += q.hi;
      }
      return {clamp(lo), clamp(hi)};
    }
    case ExprOp::mul: {
      Range s{1, 1};
      for (const Expr& a : x) {
        Range q = a.range(r);
        __int128 c[] = {__int128(s.lo) * q.lo, __int128(s.lo) * q.hi, __int128(s.hi) * q.lo, __int128(s.hi) * q.hi};
        s = {clamp(*std::min_element(c, c + 4)), clamp(*std::max_element(c, c + 4))};
      }
      return s;
    }
    default: break;
  }
  Range a = x[0].range(r), b = x[1].range(r);
  if (op() == ExprOp::min) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
  if (op() == ExprOp::max) return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  b.lo = std::max<int64_t>(b.lo, 1), b.hi = std::max(b.hi, b.lo);
  if (op() == ExprOp::mod) {
    if (a.lo >= 0 && a.hi < b.lo) return a;
    return {0, a.lo >= 0 ? std::min(a.hi, b.hi - 1) : b.hi - 1};
  }
  int64_t c[] = {floor_div(a.lo, b.lo), floor_div(a.lo, b.hi), floor_div(a.hi, b.lo), floor_div(a.hi, b.hi)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

Expr Expr::substitute(const std::function<Expr(int)>& symbol) const {
  if (node_->max_sym < 0) return *this;
  const auto& x = node_->args;
  switch (op()) {
    case ExprOp::num: return *this;
    case ExprOp::sym: return symbol(static_cast<int>(node_->v));
    case ExprOp::add: {
      Expr s = 0;
      for (const Expr& a : x) s += a.substitute(symbol);
      return s;
    }
    case ExprOp::mul: {
      Expr s = 1;
      for (const Expr& a : x) s *= a.substitute(symbol);
      return s;
    }
    default: break;
  }
  Expr a = x[0].substitute(symbol), b = x[1].substitute(symbol);
  switch (op()) {
    case ExprOp::div: return floordiv(a, b);
    case ExprOp::mod: return mod(a, b);
    case ExprOp::min: return min(a, b);
    default: return max(a, b);
  }
}

namespace {
// Text of an atom or number as a factor of a product or as a divisor.
std::string factor(const Expr& x, const std::function<std::string(int)>& name) {
  std::string s = x.str(name);
  bool bare = x.op() == ExprOp::sym || x.op() == ExprOp::min || x.op() == ExprOp::max || (x.is_num() && x.num() >= 0);
  return bare ? s : "(" + s + ")";
}
}  // namespace

std::string Expr::str(const std::function<std::string(int)>& name) const {
  const auto& x = node_->args;
  switch (op()) {
    case ExprOp::num: return std::to_string(node_->v);
    case ExprOp::sym: return name(static_cast<int>(node_->v));
    case ExprOp::min: return "min(" + x[0].str(name) + ", " + x[1].str(name) + ")";
    case ExprOp::max: return "max(" + x[0].str(name) + ", " + x[1].str(name) + ")";
    case ExprOp::mul: {
      size_t first = x[0].is_num();
      std::string s;
      for (size_t i = first; i < x.size(); i++) s += (i > first ? "*" : "") + factor(x[i], name);
      if (!first) return s;
      int64_t c = x[0].num();
      return c == -1 ? "-" + s : c < 0 ? "-" + s + "*" + std::to_string(-c) : s + "*" + std::to_string(c);
    }
    case ExprOp::add: {
      std::string s;
      for (const Expr& a : x) {
        std::string t = a.str(name);
        if (s.empty()) s = t;
        else if (t[0] == '-') s += " - " + t.substr(1);
        else s += " + " + t;
      }
      return s;
    }
    case ExprOp::div:
    case ExprOp::mod: break;
  }
  bool bare = x[0].op() != ExprOp::add && !(x[0].op() == ExprOp::mul && x[0].str(name)[0] == '-') && !(x[0].is_num() && x[0].num() < 0);
  return (bare ? x[0].str(name) : "(" + x[0].str(name) + ")") + (op() == ExprOp::div ? "/" : "%") + factor(x[1], name);
}

}  // namespace gaf
