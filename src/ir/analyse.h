// Parts of the analysis (analyse.cpp puts them together): gm traffic through a cache of a given size, and live
// registers. Both count on the text alone and know nothing of time.
#pragma once
#include <span>
#include <vector>

#include "ir/kernel.h"

namespace gaf::kir {

// Bytes that pass between a cache of `cache` bytes and what lies beyond it, for one worker: of each par loop the worker
// runs 1/workers of the iterations. sizes: values of all symbols, size symbols set.
double traffic(const Kernel& k, std::span<const int64_t> values, double cache, int workers);
// Distinct bytes of memory that the whole kernel touches.
double footprint(const Kernel& k, std::span<const int64_t> values);

// What the iterations of one axis of a loop may differ in: extents, inner bounds and branches.
class LoopShapes {
 public:
  LoopShapes(const For& f, size_t axis);
  bool depends() const { return !sizes_.empty() || !signs_.empty(); }
  // Do all iterations between these two values of the variable look the same, the others as in `values`?
  bool alike(std::vector<int64_t>& values, int64_t first, int64_t last) const;

 private:
  int sym_;
  std::vector<Expr> sizes_, signs_;  // equal values, equal signs make iterations alike
  bool followed_ = true;             // each rises or falls with the variable and depends on no loop inside
};

struct LiveRegisters {
  int all = 0;    // most vector registers live at once
  int added = 0;  // the same without the tiles `mma` accumulates in and what mma itself needs
};
LiveRegisters live_registers(const Kernel& k, const Target& t);

// Trips of one axis.
inline int64_t trips(int64_t lo, int64_t hi, int64_t step) { return hi <= lo ? 0 : (hi - lo + step - 1) / step; }

}  // namespace gaf::kir
