// Canonical integer expressions: construction and comparison. Evaluation, intervals and printing are
// expr_eval.cpp, reading is expr_parse.cpp.
// Everything goes through polynomials: a map from sorted products of atoms to coefficients; atoms are symbols and the
// operations that do not distribute (div, mod, min, max).
#include "base/expr_node.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace gaf {

struct ExprBuild {
  struct Less {
    bool operator()(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
      if (a.size() != b.size()) return a.size() > b.size();  // longer products first, the constant last
      for (size_t i = 0; i < a.size(); i++)
        if (int c = Expr::compare(a[i], b[i])) return c < 0;
      return false;
    }
  };
  using Poly = std::map<std::vector<Expr>, int64_t, Less>;

  static void add(int64_t& sum, int64_t term) { sum = checked_add(sum, term); }
  static void add_term(Poly& p, const Expr& x, int64_t f) {
    if (x.op() == ExprOp::num) {
      add(p[{}], checked_mul(f, x.num()));
    } else if (x.op() == ExprOp::mul) {
      auto args = x.args();
      size_t first = args[0].is_num();
      add(p[std::vector<Expr>(args.begin() + static_cast<long>(first), args.end())], first ? checked_mul(f, args[0].num()) : f);
    } else {
      add(p[{x}], f);
    }
  }
  static Poly poly(const Expr& x, int64_t f = 1) {
    Poly p;
    if (x.op() == ExprOp::add) {
      for (const Expr& t : x.args()) add_term(p, t, f);
    } else {
      add_term(p, x, f);
    }
    return p;
  }
  static Expr term(const std::vector<Expr>& atoms, int64_t coef) {
    if (atoms.empty()) return Expr(coef);
    if (coef == 1 && atoms.size() == 1) return atoms[0];
    std::vector<Expr> args;
    if (coef != 1) args.emplace_back(coef);
    args.insert(args.end(), atoms.begin(), atoms.end());
    return Expr::make(ExprOp::mul, std::move(args));
  }
  static Expr build(const Poly& p) {
    std::vector<Expr> terms;
    for (const auto& [atoms, coef] : p)
      if (coef != 0) terms.push_back(term(atoms, coef));
    if (terms.empty()) return Expr(0);
    if (terms.size() == 1) return terms[0];
    return Expr::make(ExprOp::add, std::move(terms));
  }
  // Does the product `a` hold all atoms of `b`? Removes them.
  static bool divide(std::vector<Expr>& a, const std::vector<Expr>& b) {
    for (const Expr& x : b) {
      auto it = std::find(a.begin(), a.end(), x);
      if (it == a.end()) return false;
      a.erase(it);
    }
    return true;
  }
  // a = b * quotient + rest, moving to the quotient every term that b divides. b > 0.
  static void split(const Expr& a, const Expr& b, Poly& quotient, Poly& rest) {
    Poly by = poly(b);
    if (by.size() != 1) {
      if (a == b) quotient[{}] = 1;
      else rest = poly(a);
      return;
    }
    const auto& [b_atoms, b_coef] = *by.begin();
    for (auto& [atoms, coef] : poly(a)) {
      std::vector<Expr> left = atoms;
      if (atoms.empty() && b_atoms.empty()) {
        quotient[{}] += floor_div(coef, b_coef);
        rest[{}] += coef - floor_div(coef, b_coef) * b_coef;
      } else if (coef % b_coef == 0 && divide(left, b_atoms)) {
        quotient[left] += coef / b_coef;
      } else {
        rest[atoms] += coef;
      }
    }
  }
};

Expr Expr::make(ExprOp op, std::vector<Expr> args) {
  auto n = std::make_shared<ExprNode>();
  n->op = op;
  n->hash = static_cast<size_t>(op) * 0x9e3779b97f4a7c15u + 17;
  for (const Expr& a : args) {
    n->hash = (n->hash ^ a.hash()) * 0x100000001b3u + (n->hash >> 29);
    n->max_sym = std::max(n->max_sym, a.max_sym());
  }
  n->args = std::move(args);
  return Expr(std::shared_ptr<const ExprNode>(std::move(n)));
}

static std::shared_ptr<const ExprNode> number(int64_t v) {
  auto n = std::make_shared<ExprNode>();
  n->op = ExprOp::num;
  n->v = v;
  n->hash = static_cast<size_t>(v) * 0xff51afd7ed558ccdu + 1;
  return n;
}

Expr::Expr(int64_t v) {
  static const std::vector<std::shared_ptr<const ExprNode>> small = [] {
    std::vector<std::shared_ptr<const ExprNode>> s;
    for (int64_t i = -1; i <= 128; i++) s.push_back(number(i));
    return s;
  }();
  node_ = v >= -1 && v <= 128 ? small[static_cast<size_t>(v + 1)] : number(v);
}

Expr Expr::sym(int id) {
  auto n = std::make_shared<ExprNode>();
  n->op = ExprOp::sym;
  n->v = id;
  n->hash = static_cast<size_t>(id) * 0xc4ceb9fe1a85ec53u + 2;
  n->max_sym = id;
  return Expr(std::shared_ptr<const ExprNode>(std::move(n)));
}

ExprOp Expr::op() const { return node_->op; }
int64_t Expr::num() const {
  GAF_CHECK(op() == ExprOp::num) << "not a number";
  return node_->v;
}
int Expr::sym_id() const {
  GAF_CHECK(op() == ExprOp::sym) << "not a symbol";
  return static_cast<int>(node_->v);
}
std::span<const Expr> Expr::args() const { return node_->args; }
int Expr::max_sym() const { return node_->max_sym; }
size_t Expr::hash() const { return node_->hash; }

bool Expr::mentions(int s) const {
  if (node_->max_sym < s) return false;
  if (op() == ExprOp::sym) return node_->v == s;
  return std::any_of(node_->args.begin(), node_->args.end(), [&](const Expr& a) { return a.mentions(s); });
}

int Expr::compare(const Expr& a, const Expr& b) {
  if (a.node_ == b.node_) return 0;
  if (a.op() != b.op()) return a.op() < b.op() ? -1 : 1;
  if (a.node_->v != b.node_->v) return a.node_->v < b.node_->v ? -1 : 1;
  const auto &x = a.node_->args, &y = b.node_->args;
  if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  for (size_t i = 0; i < x.size(); i++)
    if (int c = compare(x[i], y[i])) return c;
  return 0;
}
bool operator==(const Expr& a, const Expr& b) { return a.hash() == b.hash() && Expr::compare(a, b) == 0; }

Expr operator+(const Expr& a, const Expr& b) {
  if (a.is_num() && b.is_num()) return checked_add(a.num(), b.num());
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  auto p = ExprBuild::poly(a);
  for (const auto& [atoms, coef] : ExprBuild::poly(b)) ExprBuild::add(p[atoms], coef);
  return ExprBuild::build(p);
}
Expr operator-(const Expr& a, const Expr& b) {
  if (a.is_num() && b.is_num()) return checked_add(a.num(), checked_mul(b.num(), -1));
  if (b.is(0)) return a;
  auto p = ExprBuild::poly(a);
  for (const auto& [atoms, coef] : ExprBuild::poly(b)) ExprBuild::add(p[atoms], checked_mul(coef, -1));
  return ExprBuild::build(p);
}
Expr operator*(const Expr& a, const Expr& b) {
  if (a.is_num() && b.is_num()) return checked_mul(a.num(), b.num());
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  ExprBuild::Poly r;
  for (const auto& [x, f] : ExprBuild::poly(a))
    for (const auto& [y, g] : ExprBuild::poly(b)) {
      std::vector<Expr> atoms = x;
      atoms.insert(atoms.end(), y.begin(), y.end());
      std::sort(atoms.begin(), atoms.end(), [](const Expr& p, const Expr& q) { return Expr::compare(p, q) < 0; });
      ExprBuild::add(r[atoms], checked_mul(f, g));
    }
  return ExprBuild::build(r);
}

Expr floordiv(const Expr& a, const Expr& b) {
  if (b.is(1)) return a;
  if (a.is_num() && b.is_num() && b.num() > 0) return floor_div(a.num(), b.num());
  if (b.is_num() && b.num() <= 0) return Expr::make(ExprOp::div, {a, b});
  ExprBuild::Poly q, r;
  ExprBuild::split(a, b, q, r);
  Expr rest = ExprBuild::build(r);
  Expr whole = ExprBuild::build(q);
  if (rest.is(0)) return whole;
  if (b.is_num()) {
    if (rest.is_num()) return whole;  // 0 <= rest < b
    int64_t g = b.num();              // a common factor of b and all coefficients
    for (const auto& [atoms, coef] : r)
      if (!atoms.empty()) g = std::gcd(g, coef);
    if (g > 1) {
      ExprBuild::Poly s;
      for (const auto& [atoms, coef] : r) s[atoms] = floor_div(coef, g);
      return whole + floordiv(ExprBuild::build(s), b.num() / g);
    }
    int64_t c = 0;  // (x/d + c)/b = (x + c*d)/(b*d)
    const Expr* atom = nullptr;
    int terms = 0;
    for (const auto& [atoms, coef] : r) {
      if (coef == 0) continue;
      if (atoms.empty()) {
        c = coef;
        continue;
      }
      terms++;
      if (coef == 1 && atoms.size() == 1 && atoms[0].op() == ExprOp::div && atoms[0].args()[1].is_num()) atom = &atoms[0];
    }
    if (atom && terms == 1) {
      int64_t d = atom->args()[1].num();
      if (d > 0) return whole + floordiv(atom->args()[0] + Expr(c * d), d * b.num());
    }
  }
  return whole + Expr::make(ExprOp::div, {rest, b});
}

Expr mod(const Expr& a, const Expr& b) {
  if (b.is(1)) return 0;
  if (b.is_num() && b.num() <= 0) return Expr::make(ExprOp::mod, {a, b});
  ExprBuild::Poly q, r;
  ExprBuild::split(a, b, q, r);
  Expr rest = ExprBuild::build(r);
  if (rest.is_num() && (rest.is(0) || b.is_num())) return rest;
  return Expr::make(ExprOp::mod, {rest, b});
}

static Expr extreme(ExprOp op, const Expr& a, const Expr& b, Expr (*make)(ExprOp, const Expr&, const Expr&)) {
  if (Expr d = a - b; d.is_num()) return ((d.num() < 0) == (op == ExprOp::min)) ? a : b;
  return make(op, a, b);
}
Expr min(const Expr& a, const Expr& b) {
  return extreme(ExprOp::min, a, b, [](ExprOp op, const Expr& x, const Expr& y) {
    return Expr::compare(x, y) <= 0 ? Expr::make(op, {x, y}) : Expr::make(op, {y, x});
  });
}
Expr max(const Expr& a, const Expr& b) {
  return extreme(ExprOp::max, a, b, [](ExprOp op, const Expr& x, const Expr& y) {
    return Expr::compare(x, y) <= 0 ? Expr::make(op, {x, y}) : Expr::make(op, {y, x});
  });
}

Linear linear(const Expr& x) {
  Linear l;
  for (const auto& [atoms, coef] : ExprBuild::poly(x)) {
    if (coef == 0) continue;
    if (atoms.empty()) l.constant = coef;
    else if (atoms.size() == 1 && atoms[0].op() == ExprOp::sym) l.coef.push_back({atoms[0].sym_id(), coef});
    else l.rest.push_back({ExprBuild::term(atoms, 1), coef});
  }
  std::sort(l.coef.begin(), l.coef.end());
  return l;
}

Expr product(std::span<const Expr> dims) {
  Expr p = 1;
  for (const Expr& d : dims) p *= d;
  return p;
}

}  // namespace gaf
