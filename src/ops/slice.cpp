// See slice.h. Symbolic dims are taken to be >= 0; a symbolic bound counts as "from the start" unless it can be seen to
// be negative.
#include "ops/slice.h"

#include <fmt/format.h>

#include <limits>

#include "ops/expand.h"

namespace gaf {

namespace {

constexpr int64_t kHuge = int64_t{1} << 40;  // bounds beyond mean "to the end"

// b, counted from the end if negative, clamped to [lo, hi].
Expr bound(const Expr& b, const Dim& dim, const Expr& lo, const Expr& hi, std::span<const Range> ranges) {
  if (b.is_num() && b.num() >= kHuge) return hi;
  if (b.is_num() && b.num() <= -kHuge) return lo;
  const Range r = b.range(ranges);
  Expr v = b;
  if (r.hi < 0) v = b + dim;
  // drop what clamping cannot change
  const Range below = (v - lo).range(ranges), above = (hi - v).range(ranges);
  if (below.lo < 0) v = max(v, lo);
  if (above.lo < 0) v = min(v, hi);
  return v;
}

}  // namespace

SliceRange slice_range(size_t axis, const Dim& dim, Expr start, Expr end, int64_t step, std::span<const Sym> syms) {
  const auto ranges = ranges_of(syms);
  SliceRange s{axis, 0, 0, step};
  Expr length;
  if (step > 0) {
    s.start = bound(start, dim, 0, dim, ranges);
    length = bound(end, dim, 0, dim, ranges) - s.start;
  } else {
    s.start = bound(start, dim, 0, dim - Expr(1), ranges);
    length = s.start - bound(end, dim, -1, dim - Expr(1), ranges);
  }
  const int64_t stride = step > 0 ? step : -step;
  if (length.range(ranges).lo < 0) length = max(length, Expr(0));
  s.extent = stride == 1 ? length : ceildiv(length, Expr(stride));
  return s;
}

std::optional<std::vector<SliceRange>> slices_of(const InferContext& c) {
  auto starts = list_of(c, "starts", 1), ends = list_of(c, "ends", 2);
  auto axes = ints_of(c, "axes", 3), steps = ints_of(c, "steps", 4);
  if (!starts || !ends || !axes || !steps) return std::nullopt;
  const Dims& dims = c.arg(0).dims;
  if (axes->empty()) axes = axes_from(0, starts->size());
  if (steps->empty()) steps->assign(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size())
    c.fail("GAF3101", "starts, ends, axes and steps differ in length");
  std::vector<SliceRange> out;
  for (size_t i = 0; i < starts->size(); i++) {
    if ((*steps)[i] == 0) c.fail("GAF3101", "a step is 0");
    const auto axis = static_cast<size_t>(normal_axis(c, (*axes)[i], dims.size()));
    out.push_back(slice_range(axis, dims[axis], (*starts)[i], (*ends)[i], (*steps)[i], c.syms));
  }
  return out;
}

std::vector<SliceRange> slices_of(const EvalContext& c) {
  const Ints starts = list_of(c, "starts", 1), ends = list_of(c, "ends", 2);
  Ints axes = list_of(c, "axes", 3), steps = list_of(c, "steps", 4);
  const Ints& dims = arg(c, 0).dims;
  if (axes.empty()) axes = axes_from(0, starts.size());
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    fail(c, "GAF3101", "starts, ends, axes and steps differ in length");
  std::vector<SliceRange> out;
  for (size_t i = 0; i < starts.size(); i++) {
    if (steps[i] == 0) fail(c, "GAF3101", "a step is 0");
    const auto axis = static_cast<size_t>(normal_axis(c, axes[i], dims.size()));
    out.push_back(slice_range(axis, Expr(dims[axis]), starts[i], ends[i], steps[i], {}));
  }
  return out;
}

}  // namespace gaf
