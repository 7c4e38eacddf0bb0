// Prints expressions with C's precedences. The canonical form puts the number of a product first and that of a sum
// last.
#include "codegen/npu/index.h"

#include <algorithm>

namespace gaf::npu {
namespace {

constexpr std::string_view kTaken[] = {
    // C++
    "auto", "bool", "break", "case", "char", "class", "const", "continue", "default", "delete", "do", "double", "else",
    "enum", "extern", "false", "float", "for", "goto", "if", "inline", "int", "long", "new", "operator", "private",
    "public", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true",
    "try", "typedef", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "int64_t",
    "half",
    // of the generated text
    "least", "most", "share", "view", "rows_of", "mmad", "pto", "AscendC"};

struct Printer {
  const kir::Kernel& k;

  std::string sum(const Expr& x) const {
    if (x.op() != ExprOp::add) return product(x);
    auto negative = [](const Expr& a) {
      return a.is_num() ? a.num() < 0 : a.op() == ExprOp::mul && a.args()[0].is_num() && a.args()[0].num() < 0;
    };
    std::vector<Expr> terms(x.args().begin(), x.args().end());  // 130 - u * 128, not -u * 128 + 130
    std::stable_partition(terms.begin(), terms.end(), [&](const Expr& a) { return !negative(a); });
    std::string s;
    for (const Expr& a : terms) {
      s += s.empty() ? (negative(a) ? "-" : "") : negative(a) ? " - " : " + ";
      s += product(negative(a) ? -a : a);
    }
    return s;
  }
  std::string product(const Expr& x) const {
    if (x.op() != ExprOp::mul) return atom(x, true);
    std::string s;
    for (const Expr& a : x.args().subspan(x.args()[0].is_num() ? 1 : 0))
      s += (s.empty() ? "" : " * ") + atom(a, s.empty());
    if (x.args()[0].is_num()) s += " * " + atom(x.args()[0], false);
    return s;
  }
  // first: nothing of the same precedence stands before it, so a quotient needs no parentheses
  std::string atom(const Expr& x, bool first) const {
    switch (x.op()) {
      case ExprOp::num: return x.num() < 0 ? "(" + std::to_string(x.num()) + ")" : std::to_string(x.num());
      case ExprOp::sym: return k.syms[static_cast<size_t>(x.sym_id())].name;
      case ExprOp::div: return quotient(x, " / ", first);
      case ExprOp::mod: return quotient(x, " % ", first);
      case ExprOp::min: return call("least", x);
      case ExprOp::max: return call("most", x);
      default: return "(" + sum(x) + ")";
    }
  }
  std::string quotient(const Expr& x, std::string_view op, bool first) const {
    std::string s = atom(x.args()[0], true) + std::string(op) + atom(x.args()[1], false);
    return first ? s : "(" + s + ")";
  }
  std::string call(std::string_view name, const Expr& x) const {
    std::string s = sum(x.args()[0]);
    for (const Expr& a : x.args().subspan(1)) s = std::string(name) + "(" + s + ", " + sum(a) + ")";
    return s;
  }
};

}  // namespace

std::string c_index(const kir::Kernel& k, const Expr& x) { return Printer{k}.sum(x); }
std::string c_factor(const kir::Kernel& k, const Expr& x) { return Printer{k}.atom(x, true); }

bool calls(const Expr& x, ExprOp op) {
  if (x.op() == op) return true;
  if (x.is_num() || x.op() == ExprOp::sym) return false;
  for (const Expr& a : x.args())
    if (calls(a, op)) return true;
  return false;
}

bool taken(const std::string& n) {
  const bool parameter = n.size() > 1 && (n[0] == 'p' || n[0] == 'g') &&
                         std::all_of(n.begin() + 1, n.end(), [](char c) { return c >= '0' && c <= '9'; });
  return parameter || std::find(std::begin(kTaken), std::end(kTaken), n) != std::end(kTaken);
}

kir::Kernel with_free_names(kir::Kernel k) {
  auto used = [&](const std::string& n) {
    auto same = [&](const auto& x) { return x.name == n; };
    return std::any_of(k.tiles.begin(), k.tiles.end(), same) || std::any_of(k.syms.begin(), k.syms.end(), same);
  };
  auto rename = [&](std::string& name) {
    if (!taken(name)) return;
    std::string n = name + "_";
    while (used(n)) n += "_";
    name = n;
  };
  for (kir::Tile& t : k.tiles) rename(t.name);
  for (kir::Symbol& s : k.syms) rename(s.name);
  return k;
}

}  // namespace gaf::npu
