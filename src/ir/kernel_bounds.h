// Upper bounds of index expressions over everything that sizes, loops and `read` promises allow. Intervals alone fail
// on `oh + kh - 1` with kh in max(0, 1 - oh)..; so atoms are opened (each branch of min and max, division as a pair of
// inequalities) and symbols replaced by their own bounds, innermost first. Sound, not complete: a bound may be too
// high.
#pragma once
#include <vector>

#include "ir/kernel.h"

namespace gaf::kir {

// What holds on either side of a branch, as x <= 0.
struct BranchFacts {
  std::vector<Expr> yes, no;
};
BranchFacts facts_of(const If& f);

class Bounds {
 public:
  explicit Bounds(const Kernel& k);  // knows the size symbols

  // Last value of a loop that runs at all: lo + floor((hi - 1 - lo) / step) * step.
  Expr last_of(const Axis& axis);
  // Symbols enter and leave like blocks.
  void enter(int sym, const Expr& lo, const Expr& last);
  void leave() { scope_.pop_back(); }
  bool in_scope(int sym) const;
  int add_symbol();  // one more, for a second copy of a symbol; enter() it next
  const Expr& lo(int sym) const { return symbols_[static_cast<size_t>(sym)].lo; }
  const Expr& last(int sym) const { return symbols_[static_cast<size_t>(sym)].last; }

  // Facts of the branches around: x <= 0.
  void assume(const Expr& x);
  void forget();

  int64_t most(const Expr& x);                 // an upper bound; saturates at +-INT64_MAX / 4
  bool at_most(const Expr& x, int64_t limit);  // x <= limit always? Uses facts
  Range range(const Expr& x) const { return x.range(ranges_); }

 private:
  struct Info {
    Expr lo = 0, last = 0;
    int64_t mult = 1;
    bool size = false;
  };
  std::vector<Info> symbols_;
  std::vector<Range> ranges_;
  std::vector<int> scope_;  // outermost first; sizes come before
  std::vector<int> sizes_;
  struct Fact {
    Expr x;
    int sym = -1;  // the one symbol it bounds, and what was known of it before
    Info info;
    Range range, scaled;
  };
  std::vector<Fact> facts_;
  int fuel_ = 0;

  Expr scaled(const Expr& x) const;  // sizes with a multiple: N = mult * N'
  std::vector<Range> scaled_ranges_;
  int64_t bound(const Expr& x);
  bool open_atom(const Expr& x, int sym, int64_t& result);
  bool open_atom(const Expr& x, int sym, bool divisions, int64_t& result);
  int64_t open_division(const Expr& x, const Expr& others, const Expr& rest, const Expr& atom, bool up);
  bool eliminate(const Expr& x, int sym, int64_t& result);
};

}  // namespace gaf::kir
