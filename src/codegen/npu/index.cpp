// Prints expressions with C's precedences. The canonical form puts the number of a product first and that of a sum
// last.
#include "codegen/npu/index.h"

namespace gaf::npu {
namespace {

struct Printer {
  const kir::Kernel& k;

  std::string sum(const Expr& x) const {
    if (x.op() != ExprOp::add) return product(x);
    std::string s;
    for (const Expr& a : x.args()) {
      const bool minus =
          a.is_num() ? a.num() < 0 : a.op() == ExprOp::mul && a.args()[0].is_num() && a.args()[0].num() < 0;
      s += s.empty() ? (minus ? "-" : "") : minus ? " - " : " + ";
      s += product(minus ? -a : a);
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

}  // namespace gaf::npu
