// Canonical form, evaluation, intervals, printing and reading of integer expressions.
#include "base/expr.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace gaf {
namespace {

std::string name(int i) { return std::string(1, static_cast<char>('a' + i)); }
int symbol(std::string_view s) { return s[0] - 'a'; }
std::string str(const Expr& e) { return e.str(name); }
Expr read(std::string_view s) {
  size_t i = 0;
  Expr e = parse_expr(s, i, symbol);
  EXPECT_EQ(i, s.size()) << s;
  return e;
}
const Expr a = Expr::sym(0), b = Expr::sym(1), c = Expr::sym(2);

TEST(Expr, EqualPolynomialsAreEqual) {
  EXPECT_EQ((a + b) * c, c * b + a * c);
  EXPECT_EQ(a * 2 - a, a);
  EXPECT_TRUE((a - a).is(0));
  EXPECT_EQ(a * b * 3, b * (a * 3));
  EXPECT_FALSE(a == b);
}

TEST(Expr, DivisionTakesOutMultiples) {
  EXPECT_EQ(floordiv(a * 6 + b, 3), a * 2 + floordiv(b, 3));
  EXPECT_EQ(floordiv(a * b * c, b), a * c);
  EXPECT_EQ(floordiv(a - 1, 2) + Expr(1), floordiv(a + 1, 2));
  EXPECT_EQ(floordiv(floordiv(a, 2), 3), floordiv(a, 6));
  EXPECT_TRUE(mod(a * 4, 2).is(0));
  EXPECT_EQ(mod(a * 4 + b, 4), mod(b, 4));
}

TEST(Expr, MinAndMaxFold) {
  EXPECT_EQ(min(a, a + 1), a);
  EXPECT_EQ(max(a, a + 1), a + 1);
  EXPECT_EQ(min(a, b), min(b, a));
}

// Random expressions: canonical construction keeps the value, text round-trips, intervals contain the value.
TEST(Expr, RandomExpressionsKeepTheirValue) {
  std::mt19937 rng(7);
  struct Case { Expr e; std::function<int64_t(const std::vector<int64_t>&)> f; };
  std::function<Case(int)> make = [&](int depth) -> Case {
    int k = depth == 0 ? static_cast<int>(rng() % 2) : static_cast<int>(rng() % 9);
    if (k == 0) { int64_t v = static_cast<int64_t>(rng() % 11) - 3; return {Expr(v), [v](auto&) { return v; }}; }
    if (k == 1 || k == 2) { int s = static_cast<int>(rng() % 3); return {Expr::sym(s), [s](auto& v) { return v[static_cast<size_t>(s)]; }}; }
    Case x = make(depth - 1), y = make(depth - 1);
    int64_t d = static_cast<int64_t>(rng() % 6) + 1;
    auto fd = [](int64_t p, int64_t q) { return p / q - (p % q != 0 && p < 0); };
    switch (k) {
      case 3: return {x.e + y.e, [x, y](auto& v) { return x.f(v) + y.f(v); }};
      case 4: return {x.e - y.e, [x, y](auto& v) { return x.f(v) - y.f(v); }};
      case 5: return {x.e * y.e, [x, y](auto& v) { return x.f(v) * y.f(v); }};
      case 6: return {floordiv(x.e, d), [x, d, fd](auto& v) { return fd(x.f(v), d); }};
      case 7: return {mod(x.e, d), [x, d, fd](auto& v) { return x.f(v) - fd(x.f(v), d) * d; }};
      default: return {min(x.e, y.e), [x, y](auto& v) { return std::min(x.f(v), y.f(v)); }};
    }
  };
  for (int i = 0; i < 3000; i++) {
    Case t = make(4);
    EXPECT_EQ(read(str(t.e)), t.e) << str(t.e);
    std::vector<int64_t> v = {static_cast<int64_t>(rng() % 20), static_cast<int64_t>(rng() % 7) + 1, static_cast<int64_t>(rng() % 50)};
    std::vector<Range> r = {{0, 19}, {1, 7}, {0, 49}};
    int64_t value = t.e.eval(v);
    EXPECT_EQ(value, t.f(v)) << str(t.e);
    Range range = t.e.range(r);
    EXPECT_LE(range.lo, value) << str(t.e);
    EXPECT_GE(range.hi, value) << str(t.e);
    EXPECT_EQ(t.e.substitute([](int s) { return Expr::sym(s); }), t.e);
  }
}

TEST(Expr, LinearPart) {
  Linear l = linear(a * 3 + b + floordiv(c, 2) * 5 + 7);
  ASSERT_EQ(l.coef.size(), 2u);
  EXPECT_EQ(l.coef[0], (std::pair<int, int64_t>{0, 3}));
  ASSERT_EQ(l.rest.size(), 1u);
  EXPECT_EQ(l.rest[0].second, 5);
  EXPECT_EQ(l.constant, 7);
}

TEST(Expr, DivisionByZeroIsAnError) { EXPECT_THROW(floordiv(a, b).eval(std::vector<int64_t>{4, 0}), UserError); }

}  // namespace
}  // namespace gaf
