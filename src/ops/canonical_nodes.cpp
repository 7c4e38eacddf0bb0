// Canonical form of single nodes, by op: see canonical.h.
#include <algorithm>
#include <unordered_map>

#include "ops/canonical.h"
#include "ops/expand.h"
#include "ops/infer_util.h"
#include "ops/reduce_util.h"
#include "ops/slice.h"
#include "ops/window.h"

namespace gaf {

namespace {

using Rule = bool (*)(InferContext&, Node&);  // true: the node is its operand 0

// Ints where all are numbers, else Dims.
Attr list(const Dims& dims) {
  std::vector<int64_t> ints;
  for (const Expr& e : dims) {
    if (!e.is_num()) return dims;
    ints.push_back(e.num());
  }
  return ints;
}

void keep_operands(Node& n, size_t count) { n.args.resize(std::min(n.args.size(), count)); }

int64_t set_axis(InferContext& c, Node& n, int64_t fallback) {
  const int64_t axis = normal_axis(c, attr_int(c.node, "axis", fallback), std::max<size_t>(c.arg(0).dims.size(), 1));
  n.attrs["axis"] = axis;
  return axis;
}

// The result's dims say it all, where they are not symbols made up for an unknown operand.
bool to_reshape(InferContext& c, Node& n) {
  const bool by_shape = c.node.op == "Reshape";
  if (c.node.op != "Flatten" && !list_of(c, by_shape ? "shape" : "axes", 1)) return false;
  const Dims& dims = c.node.types[0].dims;
  n.op = "Reshape";
  n.attrs = {{"shape", dims}};
  if (std::any_of(dims.begin(), dims.end(), [](const Expr& e) { return e.is(0); })) n.attrs["allowzero"] = int64_t{1};
  keep_operands(n, 1);
  return dims == c.arg(0).dims;
}

bool expand(InferContext& c, Node& n) {
  if (!list_of(c, "shape", 1)) return false;
  n.attrs = {{"shape", c.node.types[0].dims}};
  keep_operands(n, 1);
  return c.node.types[0].dims == c.arg(0).dims;
}

bool slice(InferContext& c, Node& n) {
  const auto ranges = slices_of(c);
  if (!ranges) return false;
  Dims starts, ends;
  std::vector<int64_t> axes, steps;
  for (const SliceRange& r : *ranges) {
    if (r.step == 1 && r.start.is(0) && r.extent == c.arg(0).dims[r.axis]) continue;
    Expr end = r.start + r.extent * Expr(r.step);
    if (r.step < 0 && !(end.is_num() && end.num() >= 0)) end = -(int64_t{1} << 40);
    starts.push_back(r.start);
    ends.push_back(end);
    axes.push_back(static_cast<int64_t>(r.axis));
    steps.push_back(r.step);
  }
  n.attrs = {{"axes", axes}, {"starts", list(starts)}, {"ends", list(ends)}, {"steps", steps}};
  keep_operands(n, 1);
  return axes.empty();
}

bool reduce(InferContext& c, Node& n) {
  const auto axes = reduce_axes(c, c.arg(0).dims.size());
  if (!axes) return false;
  n.attrs.erase("noop_with_empty_axes");
  n.attrs["axes"] = *axes;
  n.attrs["keepdims"] = attr_int(c.node, "keepdims", 1);
  keep_operands(n, 1);
  const std::string& op = c.node.op;
  const bool plain =
      op == "ReduceSum" || op == "ReduceMax" || op == "ReduceMin" || op == "ReduceProd" || op == "ReduceMean";
  return axes->empty() && plain;
}

bool transpose(InferContext& c, Node& n) {
  std::vector<int64_t> perm = attr_ints(c.node, "perm");
  const size_t rank = c.arg(0).dims.size();
  if (perm.empty())
    for (size_t i = rank; i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  for (int64_t& p : perm) p = normal_axis(c, p, rank);
  n.attrs = {{"perm", perm}};
  return std::is_sorted(perm.begin(), perm.end());
}

bool concat(InferContext& c, Node& n) {
  set_axis(c, n, 1);
  return c.args.size() == 1;
}

bool split(InferContext& c, Node& n) {
  const int64_t axis = set_axis(c, n, 0);
  if (!list_of(c, "split", 1)) return false;
  Dims sizes;
  for (const Type& t : c.node.types) sizes.push_back(t.dims[static_cast<size_t>(axis)]);
  n.attrs = {{"axis", axis}, {"split", list(sizes)}};
  keep_operands(n, 1);
  return c.node.types.size() == 1;
}

bool pad(InferContext& c, Node& n) {
  auto pads = list_of(c, "pads", 1);
  auto axes = ints_of(c, "axes", 3);
  if (!pads || !axes) return false;
  const size_t rank = c.arg(0).dims.size();
  if (axes->empty()) axes = axes_from(0, rank);
  Dims all(2 * rank, Expr(0));
  for (size_t i = 0; i < axes->size(); i++) {
    const auto a = static_cast<size_t>(normal_axis(c, (*axes)[i], rank));
    all[a] = (*pads)[i];
    all[rank + a] = (*pads)[axes->size() + i];
  }
  const std::string mode = attr_str(c.node, "mode", "constant");
  n.attrs = {{"pads", list(all)}, {"mode", mode}};
  const Tensor* value = c.constants.size() > 2 ? c.constants[2] : nullptr;
  if (mode == "constant" && c.has_arg(2) && !value) {
    n.args = {n.args[0], kNoValue, n.args[2]};
  } else {
    if (mode == "constant") n.attrs["value"] = value && value->numel() ? value->get(0) : attr_float(c.node, "value", 0);
    keep_operands(n, 1);
  }
  return std::all_of(all.begin(), all.end(), [](const Expr& e) { return e.is(0); });
}

bool tile(InferContext& c, Node& n) {
  const auto repeats = list_of(c, "repeats", 1);
  if (!repeats) return false;
  n.attrs = {{"repeats", list(*repeats)}};
  keep_operands(n, 1);
  return std::all_of(repeats->begin(), repeats->end(), [](const Expr& e) { return e.is(1); });
}

bool clip(InferContext& c, Node& n) {
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!c.has_arg(i) || !c.constants[i] || c.constants[i]->numel() != 1) continue;
    if (!is_float(c.arg(0).dtype) && std::abs(c.constants[i]->get(0)) > 9e15) continue;  // not exact as a double
    n.attrs[i == 1 ? "min" : "max"] = c.constants[i]->get(0);
    n.args[i] = kNoValue;
  }
  while (n.args.size() > 1 && n.args.back() == kNoValue) n.args.pop_back();
  return n.args.size() == 1 && !n.attrs.contains("min") && !n.attrs.contains("max");
}

bool with_axis(InferContext& c, Node& n, int64_t fallback) {
  set_axis(c, n, fallback);
  return false;
}
bool axis0(InferContext& c, Node& n) { return with_axis(c, n, 0); }
bool axis_last(InferContext& c, Node& n) { return with_axis(c, n, -1); }

bool softmax(InferContext& c, Node& n) {
  const bool old = c.opset < 13;
  const int64_t axis = set_axis(c, n, old ? 1 : -1);
  const Dims& dims = c.arg(0).dims;
  bool inner = false;  // dims behind the axis that take part in the old meaning
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); i++) inner = inner || !dims[i].is(1);
  if (old && inner) n.attrs["flatten"] = int64_t{1};
  return false;
}

bool cast(InferContext& c, Node& n) {
  n.op = "Cast";
  n.attrs = {{"to", std::string(name(c.node.types[0].dtype))}};
  keep_operands(n, 1);
  return c.arg(0).dtype == c.node.types[0].dtype;
}

bool variadic(InferContext& c, Node&) { return c.args.size() == 1; }
bool identity(InferContext&, Node&) { return true; }

bool dropout(InferContext& c, Node&) {
  const bool training = c.has_arg(2) && !(c.constants[2] && c.constants[2]->get(0) == 0);
  return !training && c.node.types.size() == 1;
}

bool window(InferContext& c, Node& n) {
  const Dims spatial = spatial_dims(c.node, c.arg(0).dims);
  std::vector<int64_t> kernel = attr_ints(c.node, "kernel_shape");
  const bool conv = c.node.op == "Conv";
  if (conv) {
    kernel.clear();
    for (size_t i = 2; i < c.arg(1).dims.size(); i++) kernel.push_back(c.arg(1).dims[i].num());
    n.attrs["group"] = attr_int(c.node, "group", 1);
  }
  const Window w = window_of(c.node, spatial, kernel, attr_int(c.node, "ceil_mode", 0) != 0);
  n.attrs.erase("auto_pad");
  n.attrs["kernel_shape"] = w.kernel;
  n.attrs["strides"] = w.strides;
  n.attrs["dilations"] = w.dilations;
  n.attrs["pads"] = list(w.pads);
  return false;
}

bool top_k(InferContext& c, Node& n) {
  set_axis(c, n, -1);
  const auto k = list_of(c, "k", 1);
  if (!k || k->size() != 1 || !(*k)[0].is_num()) return false;
  n.attrs["k"] = (*k)[0].num();
  keep_operands(n, 1);
  return false;
}

bool resize(InferContext& c, Node& n) {
  const auto numbers = [&](size_t i) -> std::optional<std::vector<double>> {
    if (i >= c.constants.size() || !c.constants[i]) return std::nullopt;
    std::vector<double> v;
    for (int64_t k = 0; k < c.constants[i]->numel(); k++) v.push_back(c.constants[i]->get(k));
    return v;
  };
  const bool old = c.opset < 11 && c.args.size() == 2;  // opset 10: (x, scales)
  const size_t scales_at = old ? 1 : 2;
  const auto scales = numbers(scales_at);
  const bool empty_scales = scales && scales->empty();
  const auto roi = numbers(1);
  if (old) n.attrs["coordinate_transformation_mode"] = std::string("asymmetric");
  if (old) n.attrs["nearest_mode"] = std::string("floor");
  if (!old && c.has_arg(1) && !roi) return false;
  if (c.has_arg(3)) {
    const auto sizes = list_of(c, "sizes", 3);
    if (!sizes) return false;
    n.attrs["sizes"] = list(*sizes);
  } else if (c.has_arg(scales_at) && !empty_scales) {
    if (!scales) return false;
    n.attrs["scales"] = *scales;
  }
  if (!old && roi && !roi->empty()) n.attrs["roi"] = *roi;
  keep_operands(n, 1);
  return false;
}

const std::unordered_map<std::string_view, Rule> kRules = {
    {"Reshape", to_reshape},
    {"Squeeze", to_reshape},
    {"Unsqueeze", to_reshape},
    {"Flatten", to_reshape},
    {"Expand", expand},
    {"Slice", slice},
    {"Transpose", transpose},
    {"Concat", concat},
    {"Split", split},
    {"Pad", pad},
    {"Tile", tile},
    {"Clip", clip},
    {"Gather", axis0},
    {"GatherElements", axis0},
    {"ScatterElements", axis0},
    {"ArgMax", axis0},
    {"ArgMin", axis0},
    {"LayerNormalization", axis_last},
    {"RMSNormalization", axis_last},
    {"LpNormalization", axis_last},
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"Hardmax", softmax},
    {"Cast", cast},
    {"CastLike", cast},
    {"Max", variadic},
    {"Min", variadic},
    {"Sum", variadic},
    {"Mean", variadic},
    {"Identity", identity},
    {"Dropout", dropout},
    {"Conv", window},
    {"MaxPool", window},
    {"AveragePool", window},
    {"LpPool", window},
    {"TopK", top_k},
    {"Resize", resize},
    {"Upsample", resize},
};

}  // namespace

bool canonical_node(InferContext& c, Node& n) {
  const OpRow& r = op_row(c.node);
  n.op = std::string(r.name);  // without a domain
  if (r.name.starts_with("Reduce")) return reduce(c, n);
  auto it = kRules.find(r.name);
  return it != kRules.end() && it->second(c, n);
}

}  // namespace gaf
