// What a row kernel does in which order, before any of it is written: the reductions and outputs of each sweep over the
// reduced dims, and where values needed by several sweeps are kept. Knows graph values and accesses; writes no
// statement.
#pragma once
#include "lower/space.h"

namespace gaf {

struct SweepPlan {
  Box box;                    // merged
  std::vector<bool> reduced;  // per merged dim
  bool short_rows = false;    // rows of a few elements: the reduced dim is second last, the last is kept
  struct Reduction {
    Value value, arg;
    kir::S op = kir::S::add;
    DType type = DType::f32;  // computed in
    double neutral = 0;
  };
  struct Sweep {
    std::vector<Reduction> reductions;
    std::vector<size_t> outputs;      // written along the sweep
    std::vector<size_t> row_outputs;  // one element a row, written behind the sweep
  };
  std::vector<Sweep> sweeps;  // sweep k needs the reductions of sweeps before it
  struct Kept {
    Value value;
    DType type = DType::f32;
    size_t first = 0, last = 0;  // sweeps: computed in, last read in
    enum Where : uint8_t { own_output, output, scratch, temp } where = scratch;
    std::optional<Access> access;  // unless scratch
    kir::Ref tile;                 // scratch, once declared
  };
  std::vector<Kept> kept;
  int widest = 4;  // bytes of the widest value computed
};

// The function with composites expanded, reductions that keep their dims, and outputs reachable as rows; nothing if it
// has no reduction or has nodes that no row kernel does. Outputs of the function stand first, as before.
std::optional<Graph> row_form(const Graph& fn);
// Axes of a reduction, sorted, none negative; are they only known at run time; dims with ones at axes; the reduction whose
// operand is the space: the first that an output needs.
std::vector<int64_t> axes_of(const Graph& g, const Node& n);
bool run_time_axes(const Graph& g, const Node& n);
Dims ones_at(Dims dims, const std::vector<int64_t>& axes);
std::optional<uint32_t> first_reduction(const Graph& g);
std::variant<SweepPlan, Verdict> plan_sweeps(Lowering& l, size_t outputs);

}  // namespace gaf
