// Which iterations of a loop are alike. Extents, inner bounds and branches that rise or fall with the loop's variable
// are the same between two iterations that agree on them; others are not followed, and every iteration stands for
// itself.
#include <algorithm>
#include <optional>

#include "ir/analyse.h"

namespace gaf::kir {
namespace {

// 1: x does not fall as the symbol rises, -1: does not rise, 0: does not depend on it; nothing: neither is known.
std::optional<int> direction(const Expr& x, int sym) {
  if (!x.mentions(sym)) return 0;
  switch (x.op()) {
    case ExprOp::sym: return 1;
    case ExprOp::add:
    case ExprOp::min:
    case ExprOp::max: {
      int all = 0;
      for (const Expr& a : x.args()) {
        std::optional<int> d = direction(a, sym);
        if (!d || all * *d < 0) return std::nullopt;
        if (*d) all = *d;
      }
      return all;
    }
    case ExprOp::mul: {
      int sign = 1;
      std::optional<int> of;
      for (const Expr& a : x.args()) {
        if (a.is_num())
          sign *= a.num() < 0 ? -1 : 1;
        else if (of || !a.mentions(sym))
          return std::nullopt;
        else if (of = direction(a, sym); !of)
          return std::nullopt;
      }
      return of ? std::optional(sign * *of) : std::nullopt;
    }
    case ExprOp::div: return x.args()[1].is_num() ? direction(x.args()[0], sym) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

LoopShapes::LoopShapes(const For& f, size_t axis) : sym_(f.axes[axis].sym) {
  std::vector<int> inner;
  for (size_t i = axis + 1; i < f.axes.size(); i++) inner.push_back(f.axes[i].sym);
  for_each_stmt(f.body, [&](const Stmt& s) {
    if (const For* l = std::get_if<For>(&s.alt))
      for (const Axis& a : l->axes) inner.push_back(a.sym);
    if (const Read* r = std::get_if<Read>(&s.alt)) inner.push_back(r->sym);
  });
  auto see = [&](const Expr& x, bool sign) {
    if (!x.mentions(sym_)) return;
    bool followed = direction(x, sym_).has_value();
    for (int i : inner) followed = followed && !x.mentions(i);
    followed_ = followed_ && followed;
    (sign ? signs_ : sizes_).push_back(x);
  };
  for (size_t i = axis + 1; i < f.axes.size(); i++) see(f.axes[i].lo, false), see(f.axes[i].hi, false);
  for_each_stmt(f.body, [&](const Stmt& s) {
    if (const For* l = std::get_if<For>(&s.alt))
      for (const Axis& a : l->axes) see(a.lo, false), see(a.hi, false);
    else if (const If* i = std::get_if<If>(&s.alt))
      see(i->a - i->b, true);
    else
      for_each_ref(s, [&](const Ref& r, bool) {
        for (const Slice& x : r.at)
          if (x.n) see(*x.n, false);
      });
  });
}

bool LoopShapes::alike(std::vector<int64_t>& values, int64_t first, int64_t last) const {
  if (first == last) return true;
  if (!followed_) return false;
  int64_t& v = values[static_cast<size_t>(sym_)];
  auto at = [&](const Expr& x, int64_t i) {
    v = i;
    return x.eval(values);
  };
  auto sign = [](int64_t x) { return x < 0 ? -1 : x > 0; };
  return std::all_of(sizes_.begin(), sizes_.end(), [&](const Expr& x) { return at(x, first) == at(x, last); }) &&
         std::all_of(signs_.begin(), signs_.end(),
                     [&](const Expr& x) { return sign(at(x, first)) == sign(at(x, last)); });
}

}  // namespace gaf::kir
