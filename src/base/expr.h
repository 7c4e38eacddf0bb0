// Integer expressions over symbols: the dims of graph values, and the indices, extents and trip counts of kernels.
// One canonical form: a sum of products (coefficient times atoms), atoms sorted; so equal polynomials compare equal and
// printing is stable. Division and modulo are floor; the divisor is taken to be > 0. Values are 64 bit and signed.
// A symbol is an index into the table of its owner (Graph::syms or Kernel::syms); names are the owner's.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gaf {

struct ExprNode;

enum class ExprOp : uint8_t { num, sym, add, mul, div, mod, min, max };

// Inclusive interval of values.
struct Range {
  int64_t lo = 0, hi = 0;
  friend bool operator==(Range, Range) = default;
};

class Expr {
 public:
  Expr(int64_t v = 0);  // NOLINT: numbers are expressions
  static Expr sym(int id);

  ExprOp op() const;
  bool is_num() const { return op() == ExprOp::num; }
  bool is(int64_t v) const { return is_num() && num() == v; }
  int64_t num() const;                       // op() == num
  int sym_id() const;                        // op() == sym
  std::span<const Expr> args() const;        // add, mul: n-ary (a number, if any, stands first in mul, last in add)
  bool mentions(int sym) const;
  int max_sym() const;                       // largest symbol id in it, -1 if none

  int64_t eval(std::span<const int64_t> values) const;   // throws UserError on division by <= 0
  Range range(std::span<const Range> ranges) const;      // interval arithmetic, saturating
  Expr substitute(const std::function<Expr(int)>& symbol) const;
  std::string str(const std::function<std::string(int)>& name) const;
  size_t hash() const;

  friend bool operator==(const Expr& a, const Expr& b);
  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  friend Expr floordiv(const Expr& a, const Expr& b);
  friend Expr mod(const Expr& a, const Expr& b);
  friend Expr min(const Expr& a, const Expr& b);
  friend Expr max(const Expr& a, const Expr& b);
  Expr operator-() const { return Expr(0) - *this; }
  Expr& operator+=(const Expr& b) { return *this = *this + b; }
  Expr& operator*=(const Expr& b) { return *this = *this * b; }

 private:
  explicit Expr(std::shared_ptr<const ExprNode> n) : node_(std::move(n)) {}
  static Expr make(ExprOp op, std::vector<Expr> args);
  static int compare(const Expr& a, const Expr& b);  // the canonical order
  std::shared_ptr<const ExprNode> node_;
  friend struct ExprBuild;
};

Expr floordiv(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
inline Expr ceildiv(const Expr& a, const Expr& b) { return floordiv(a + b - Expr(1), b); }

// x as a sum of coefficient * symbol plus a constant plus what is not linear (coefficient * atom).
struct Linear {
  std::vector<std::pair<int, int64_t>> coef;    // symbol -> coefficient, ascending by symbol
  std::vector<std::pair<Expr, int64_t>> rest;   // atoms or products of several symbols
  int64_t constant = 0;
};
Linear linear(const Expr& x);

// "a*2 + b/3 - 1" with names looked up by `symbol` (which may throw); used by the readers of graph and kernel text.
// Reads from text[pos] on and moves pos behind what it took.
Expr parse_expr(std::string_view text, size_t& pos, const std::function<int(std::string_view)>& symbol);

using Dim = Expr;
using Dims = std::vector<Expr>;

Expr product(std::span<const Expr> dims);

}  // namespace gaf
