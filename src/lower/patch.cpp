// Copies of input patches, row by row. See patch.h.
#include "lower/patch.h"

#include "lower/anchor.h"
#include "lower/nest.h"

namespace gaf {
namespace {

using kir::Builder;
using kir::Ref;
using kir::Slice;

void copy_turned(Lowering& l, Access x, const Ref& patch, const Expr& row, const std::vector<Slice>& at, int64_t width,
                 int64_t channels) {
  std::swap(x.dims[3], x.dims[4]), std::swap(x.strides[3], x.strides[4]);
  const int64_t lanes = l.target().lanes;
  auto square = [&](const Expr& w, const Expr& c, int64_t ws, int64_t cs) {
    Ref t = l.b.tile("t", DType::f32, ws, cs);
    Ref src = full_ref(l, x, {at[0], at[1], at[2], span_of(at[4].at + c, cs), span_of(at[3].at + w, ws)});
    src.transposed = true;
    l.b.copy(t, src, 0.0);
    l.b.copy(Builder::part(patch, row + w, ws, c, cs), t);
  };
  columns(l, channels, lanes, [&](const Slice& c, int64_t cs) {
    columns(l, width, lanes, [&](const Slice& w, int64_t ws) { square(w.at, c.at, ws, cs); });
  });
}

}  // namespace

Ref copy_patch(Lowering& l, const Access& x, const Window3& w, const PatchPlace& from, int64_t height, int64_t width,
               int64_t channels) {
  Ref patch = l.b.tile("x", DType::f32, w.kernel[0] * height * width, channels, Mem::scratch);
  loop(l, "kd", w.kernel[0], [&](Expr kd) {
    l.b.loop("y", 0, height, 1, kir::LoopKind::seq, [&](Expr y) {
      std::vector<Slice> at{one(from.image), one(w.first(0, from.plane) + kd * w.dilation[0]),
                            one(w.first(1, from.row) + y), span_of(w.first(2, from.col), width),
                            span_of(from.channel, channels)};
      Expr row = (kd * height + y) * width;
      if (!unit_inner(x) && x.strides[3].is(1)) return copy_turned(l, x, patch, row, at, width, channels);
      l.b.copy(Builder::part(patch, row, width, 0, channels), full_ref(l, x, at), 0.0);
    });
  });
  return patch;
}

}  // namespace gaf
