// See expand.h. Result types follow from the operands, so that an expansion needs no inference of its own.
#include "ops/expand.h"

#include <algorithm>

#include "ops/infer_util.h"

namespace gaf {

Value Expander::unary(const char* op, Value a, Attrs attrs) const { return b.op(op, {a}, std::move(attrs), type(a)); }

Value Expander::binary(const char* op, Value a, Value c) const {
  const Type &x = type(a), &y = type(c);
  Dims dims(std::max(x.dims.size(), y.dims.size()), Expr(1));
  std::copy(x.dims.begin(), x.dims.end(), dims.end() - static_cast<ptrdiff_t>(x.dims.size()));
  for (size_t i = 0; i < y.dims.size(); i++) {
    Dim& d = dims[dims.size() - y.dims.size() + i];
    auto both = broadcast_dim(d, y.dims[i]);
    GAF_CHECK(both) << "expansion of " << op << ": operands do not broadcast";
    d = *both;
  }
  static constexpr std::string_view kTests[] = {"Equal",          "Less", "LessOrEqual", "Greater",
                                                "GreaterOrEqual", "And",  "Or",          "Xor"};
  const bool test = std::find(std::begin(kTests), std::end(kTests), op) != std::end(kTests);
  return b.op(op, {a, c}, {}, {test ? DType::b1 : x.dtype, dims});
}

Value Expander::number(double v, DType t) const { return b.constant(scalar_tensor(t, v)); }

Value Expander::where(Value test, Value yes, Value no) const {
  Value both = type(yes).dims.size() >= type(no).dims.size() ? yes : no;
  Dims dims = type(both).dims.size() >= type(test).dims.size() ? type(both).dims : type(test).dims;
  return b.op("Where", {test, yes, no}, {}, {type(yes).dtype, dims});
}

Value Expander::reduce(const char* op, Value a, std::vector<int64_t> axes, bool keepdims) const {
  const Type t = type(a);
  Type out{t.dtype, {}};
  for (size_t i = 0; i < t.dims.size(); i++) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!gone) out.dims.push_back(t.dims[i]);
    if (gone && keepdims) out.dims.emplace_back(1);
  }
  return b.op(op, {a}, {{"axes", std::move(axes)}, {"keepdims", int64_t{keepdims}}}, out);
}

Value Expander::mean(Value a, std::vector<int64_t> axes, bool keepdims) const {
  const Type t = type(a);
  Dims over;
  for (int64_t i : axes) over.push_back(t.dims[static_cast<size_t>(i)]);
  const Expr count = product(over);
  Value sum = reduce("ReduceSum", a, std::move(axes), keepdims);
  if (count.is_num()) return binary("Div", sum, number(static_cast<double>(count.num()), t.dtype));
  Value n = b.op("Extent", {}, {{"dims", over}, {"dtype", std::string(name(t.dtype))}}, {t.dtype, {}});
  return binary("Div", sum, n);
}

Value Expander::reshape(Value a, Dims dims) const {
  const DType t = type(a).dtype;
  return b.op("Reshape", {a}, {{"shape", dims}}, {t, dims});
}

Value Expander::transpose(Value a, std::vector<int64_t> perm) const {
  Type t{type(a).dtype, {}};
  for (int64_t p : perm) t.dims.push_back(type(a).dims[static_cast<size_t>(p)]);
  return b.op("Transpose", {a}, {{"perm", std::move(perm)}}, t);
}

Value Expander::cast(Value a, DType t) const {
  if (type(a).dtype == t) return a;
  return b.op("Cast", {a}, {{"to", std::string(name(t))}}, {t, type(a).dims});
}

std::vector<int64_t> axes_from(int64_t first, size_t rank) {
  std::vector<int64_t> out;
  for (auto i = first; i < static_cast<int64_t>(rank); i++) out.push_back(i);
  return out;
}

}  // namespace gaf
