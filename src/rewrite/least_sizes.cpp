// Least values of free sizes: a convolution without padding says that its image is no smaller than its window. Kernels
// are then written, priced and verified for sizes that can be, and a run with less is refused by the input's name.
// Reads the dims of all values; changes symbols only.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "rewrite/rewrite.h"

namespace gaf {
namespace {

constexpr int64_t kFar = 256;  // windows are smaller than this; beyond it nothing is asked

// The only symbol of an expression.
std::optional<int> only_symbol(const Expr& e) {
  const int last = e.max_sym();
  for (int s = 0; s < last; s++)
    if (e.mentions(s)) return std::nullopt;
  return last < 0 ? std::nullopt : std::optional(last);
}

}  // namespace

Graph least_sizes(const Graph& g, RewriteLog&) {
  Graph out = g;
  struct Hash {
    size_t operator()(const Expr& e) const { return e.hash(); }
  };
  std::unordered_set<Expr, Hash> seen;
  for (const Node& n : g.nodes)
    for (const Type& t : n.types)
      for (const Expr& d : t.dims) {
        if (d.is_num() || d.op() == ExprOp::sym || !seen.insert(d).second) continue;
        const std::optional<int> symbol = only_symbol(d);
        if (!symbol) continue;
        Sym& s = out.syms[static_cast<size_t>(*symbol)];
        std::vector<int64_t> values(static_cast<size_t>(*symbol) + 1, 0);
        int64_t least = s.lo;
        for (int64_t v = s.lo; v <= std::min(s.hi, s.lo + kFar); v++) {
          values.back() = v;
          try {
            if (d.eval(values) < 0) least = v + 1;
          } catch (const UserError&) {  // a division that this size makes meaningless
            least = v + 1;
          }
        }
        if (least <= std::min(s.hi, s.lo + kFar)) s.lo = least;
      }
  return out;
}

}  // namespace gaf
