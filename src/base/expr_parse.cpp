// Reads the text of an expression: sums, products, "/" "%" (floor, left to right), min( , ), max( , ), names, parentheses.
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "base/expr.h"

namespace gaf {
namespace {

struct Reader {
  std::string_view s;
  size_t& i;
  const std::function<int(std::string_view)>& symbol;
  int depth = 0;  // of primaries in one another: the text may be anyone's, the stack is ours

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("GAF3001", what + " at '" + std::string(s.substr(i, 12)) + "'");
  }
  void space() { while (i < s.size() && s[i] == ' ') i++; }
  bool eat(char c) {
    space();
    if (i >= s.size() || s[i] != c) return false;
    // ".." ends an expression (loop ranges), and so does "->"
    if (c == '-' && i + 1 < s.size() && s[i + 1] == '>') return false;
    i++;
    return true;
  }
  static bool letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  Expr sum() {
    Expr x = eat('-') ? -term() : term();
    for (;;) {
      if (eat('+')) x = x + term();
      else if (eat('-')) x = x - term();
      else return x;
    }
  }
  Expr term() {
    Expr x = primary();
    for (;;) {
      if (eat('*')) x = x * primary();
      else if (eat('/')) x = floordiv(x, primary());
      else if (eat('%')) x = mod(x, primary());
      else return x;
    }
  }
  Expr primary() {
    if (++depth > 200) fail("expression nested too deep");
    Expr x = primary_of_any_depth();
    depth--;
    return x;
  }
  Expr primary_of_any_depth() {
    space();
    if (eat('(')) {
      Expr x = sum();
      if (!eat(')')) fail("expected ')'");
      return x;
    }
    if (eat('-')) return -primary();
    size_t b = i;
    while (i < s.size() && letter(s[i])) i++;
    std::string_view w = s.substr(b, i - b);
    if (w.empty()) fail("expected a number or a name");
    if (std::isdigit(static_cast<unsigned char>(w[0]))) {
      int64_t v = 0;
      for (char c : w) {
        if (!std::isdigit(static_cast<unsigned char>(c)) || v > (INT64_MAX - 9) / 10) fail("bad number");
        v = v * 10 + (c - '0');
      }
      return v;
    }
    if ((w == "min" || w == "max") && eat('(')) {
      Expr x = sum();
      if (!eat(',')) fail("expected ','");
      Expr y = sum();
      if (!eat(')')) fail("expected ')'");
      return w == "min" ? min(x, y) : max(x, y);
    }
    return Expr::sym(symbol(w));
  }
};

}  // namespace

Expr parse_expr(std::string_view text, size_t& pos, const std::function<int(std::string_view)>& symbol) {
  return Reader{text, pos, symbol}.sum();
}

}  // namespace gaf
