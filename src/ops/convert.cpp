// Changes of element type. Floats to integers truncate towards zero and saturate; integers to narrower ones wrap;
// anything to bool is "not zero" (ONNX Cast).
#include <fmt/format.h>

#include <cmath>

#include "ops/pointwise_row.h"

namespace gaf {

namespace {

void infer_cast(InferContext& c) {
  if (!c.node.attrs.contains("to")) c.fail("GAF3101", "attribute 'to' is missing");
  c.types = {{dtype_attr(c.node, "to", DType::f32), c.arg(0).dims}};
  if (c.types[0].dtype != DType::b1 && c.arg(0).dtype != DType::b1)
    known_unary(c, [](const Expr& e) -> std::optional<Expr> { return e; });
}

void infer_cast_like(InferContext& c) { c.types = {{c.arg(1).dtype, c.arg(0).dims}}; }

Tensor converted(const Tensor& x, DType to) {
  if (x.dtype == to) return x;
  if (!is_float(x.dtype)) {
    if (x.dtype == DType::u64) return tensor_of(to, x.dims, elements<uint64_t>(x));
    return tensor_of(to, x.dims, elements<int64_t>(x));
  }
  std::vector<double> v = elements<double>(x);
  if (is_int(to))
    for (double& e : v) e = std::trunc(e);
  return tensor_of(to, x.dims, v);
}

void eval_cast(EvalContext& c) { c.results = {converted(arg(c, 0), c.types[0].dtype)}; }

kir::ScalarProgram cast_program(const Node&, std::span<const DType> t, DType result) {
  // The kernels' own cast rounds to the nearest.
  const std::string_view whole = is_float(t[0]) && is_int(result) ? "trunc(a)" : "a";
  return kir::parse_scalar(fmt::format("{}({})", name(result), whole), t, result);
}

void infer_bitcast(InferContext& c) {
  const DType to = dtype_attr(c.node, "to", DType::f32);
  if (bytes(to) != bytes(c.arg(0).dtype)) c.fail("GAF3101", "BitCast between element types of different size");
  c.types = {{to, c.arg(0).dims}};
}
void eval_bitcast(EvalContext& c) {
  Tensor t = arg(c, 0);
  t.dtype = c.types[0].dtype;
  c.results = {t};
}

const OpRow kRows[] = {
    {.name = "Cast",
     .friendly = "Cast",
     .kind = OpKind::pointwise,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_cast,
     .eval = eval_cast,
     .program = cast_program},
    {.name = "CastLike",
     .friendly = "CastLike",
     .kind = OpKind::other,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_cast_like,
     .eval = eval_cast},
    {.name = "BitCast",
     .friendly = "BitCast",
     .kind = OpKind::other,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_bitcast,
     .eval = eval_bitcast},
};

}  // namespace

std::span<const OpRow> convert_rows() { return kRows; }

}  // namespace gaf
