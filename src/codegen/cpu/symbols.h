// Index symbols of a kernel while its code is written: their values, ranges, and the level (open loop) that defines
// each. An index expression is computed once, in the header of the loop that defines its innermost symbol, and shared
// by all who ask: nothing behind the emitter hoists (no LICM, no loop strength reduction). Knows nothing of tiles.
#pragma once
#include <unordered_map>

#include "base/expr.h"
#include "codegen/cpu/ir.h"
#include "ir/kernel.h"

namespace gaf::cpu {

class Symbols {
 public:
  Symbols(const kir::Kernel& k, Ir& ir);
  void begin_function();               // forgets everything; the entry block is level 0
  void open();                         // a level that begins where code is written now
  void close();                        // forgets the level and its symbols
  void bind(int sym, Val v, Range r);  // defined at the innermost level
  void bind(int sym, int64_t v);       // a known number (unrolled, one trip)
  void unbind(int sym);

  Expr known(const Expr& x) const;  // numbers put in for the known symbols
  Range range(const Expr& x) const;
  std::optional<int64_t> number(const Expr& x) const;  // if its range is one number
  Val value(const Expr& x);                            // 64 bits
  // base + bytes, without the constant part of `bytes`, which is added to `rest` (a displacement is free).
  Val address(Val base, const Expr& bytes, int64_t& rest);
  int depth(const Expr& x) const;  // the level that defines its innermost symbol

 private:
  struct Made {
    Val base;
    Expr x;
    Val value;
  };
  struct Level {
    Ir::Mark mark;
    std::unordered_multimap<size_t, Made> made;
    std::vector<int> symbols;
  };
  Val at_level(int depth, Val base, const Expr& x, const std::function<Val()>& make);
  Val build(const Expr& x, const Vals& args);
  Val divide(const Expr& x, Val a, Val b);

  const kir::Kernel& k_;
  Ir& ir_;
  std::vector<Level> levels_;
  Vals values_;
  std::vector<std::optional<int64_t>> known_;
  std::vector<Range> ranges_;
  std::vector<int> depth_;
  bool any_known_ = false;
};

}  // namespace gaf::cpu
