// Control flow: If, Loop and Scan, whose bodies are regions (ops/regions.h). Evaluation runs regions through the
// interpreter.
#include <fmt/format.h>

#include <algorithm>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/interpret.h"
#include "ops/regions.h"
#include "ops/rows.h"

namespace gaf {

namespace {

const Type& output_type(const Graph& g, size_t i) { return g.type(g.outputs[i].value); }

std::vector<Tensor> run_region(const EvalContext& c, size_t region, std::vector<Tensor> formal) {
  const size_t own = c.args.size() - captures(c.node);
  for (size_t i = own; i < c.args.size(); i++) formal.push_back(arg(c, i));
  return interpret_region(*c.node.regions[region], formal, c.syms, nullptr);
}

bool truth(const Tensor& t) { return t.numel() > 0 && t.get(0) != 0; }

// ---- If ----

void infer_if(InferContext& c) {
  if (c.node.regions.size() != 2) c.fail("GAF3101", "an If needs two branches");
  const Graph &yes = *c.node.regions[0], &no = *c.node.regions[1];
  if (yes.outputs.size() != no.outputs.size()) c.fail("GAF3101", "the branches have different numbers of outputs");
  const auto& cond = c.value(0);
  const bool decided = cond && cond->size() == 1 && (*cond)[0].is_num();
  for (size_t i = 0; i < yes.outputs.size(); i++) {
    if (decided) {
      c.types.push_back(output_type((*cond)[0].is(0) ? no : yes, i));
      continue;
    }
    const Type &a = output_type(yes, i), &b = output_type(no, i);
    if (a.dtype != b.dtype) c.fail("GAF3101", fmt::format("output {} of the branches differs in type", i));
    if (a.dims.size() != b.dims.size())
      c.fail("GAF3101",
             fmt::format("output {} has rank {} in one branch, {} in the other", i, a.dims.size(), b.dims.size()));
    Type t = a;
    for (size_t d = 0; d < t.dims.size(); d++)
      if (a.dims[d] != b.dims[d]) t.dims[d] = fresh_dim(c);
    c.types.push_back(t);
  }
}

void eval_if(EvalContext& c) { c.results = run_region(c, truth(arg(c, 0)) ? 0 : 1, {}); }

// ---- Loop: (trip count?, condition?, carried...) -> (carried..., scanned...) ----

size_t carried(const Node& n) { return n.args.size() - captures(n) - 2; }

void infer_loop(InferContext& c) {
  if (c.node.regions.size() != 1) c.fail("GAF3101", "a Loop needs one body");
  const Graph& body = *c.node.regions[0];
  const size_t n = carried(c.node);
  if (body.outputs.size() < n + 1) c.fail("GAF3101", "the body has too few outputs");
  for (size_t i = 0; i < n; i++) c.types.push_back(output_type(body, i + 1));
  for (size_t i = n + 1; i < body.outputs.size(); i++) {
    Type t = output_type(body, i);
    t.dims.insert(t.dims.begin(), fresh_dim(c));
    c.types.push_back(t);
  }
}

// Joins tensors of one shape along a new axis.
Tensor stacked(const EvalContext& c, const std::vector<Tensor>& parts, size_t axis, bool reversed, const Type& type) {
  if (parts.empty()) {
    Ints dims;
    for (const Expr& e : type.dims) dims.push_back(e.is_num() ? e.num() : 0);
    if (!dims.empty()) dims[axis] = 0;
    return Tensor::make(type.dtype, dims);
  }
  Ints dims = parts[0].dims;
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), static_cast<int64_t>(parts.size()));
  Tensor out = Tensor::make(parts[0].dtype, dims);
  Ints strides = strides_of(dims);
  const int64_t step = strides[axis];
  strides.erase(strides.begin() + static_cast<ptrdiff_t>(axis));
  for (size_t i = 0; i < parts.size(); i++) {
    if (parts[i].dims != parts[0].dims) fail(c, "GAF3101", "iterations give different shapes");
    strided_store(out, parts[i], strides, step * static_cast<int64_t>(reversed ? parts.size() - 1 - i : i));
  }
  return out;
}

void eval_loop(EvalContext& c) {
  const size_t n = carried(c.node), scans = c.node.regions[0]->outputs.size() - 1 - n;
  const int64_t trips = has(c, 0) ? arg(c, 0).get_int(0) : std::numeric_limits<int64_t>::max();
  bool go = !has(c, 1) || truth(arg(c, 1));
  std::vector<Tensor> state;
  for (size_t i = 0; i < n; i++) state.push_back(arg(c, i + 2));
  std::vector<std::vector<Tensor>> parts(scans);
  for (int64_t k = 0; k < trips && go; k++) {
    std::vector<Tensor> in{tensor_of(DType::i64, {}, Ints{k}), tensor_of(DType::b1, {}, Ints{1})};
    in.insert(in.end(), state.begin(), state.end());
    std::vector<Tensor> out = run_region(c, 0, std::move(in));
    go = truth(out[0]);
    for (size_t i = 0; i < n; i++) state[i] = out[i + 1];
    for (size_t i = 0; i < scans; i++) parts[i].push_back(out[n + 1 + i]);
  }
  c.results = state;
  for (size_t i = 0; i < scans; i++) c.results.push_back(stacked(c, parts[i], 0, false, c.types[n + i]));
}

// ---- Scan (opset 9 and later): (state..., scanned inputs...) -> (state..., scanned outputs...) ----

struct ScanShape {
  size_t states, inputs, outputs;
};
ScanShape scan_shape(const Node& n) {
  const auto inputs = static_cast<size_t>(attr_int(n, "num_scan_inputs", 1));
  const size_t states = n.args.size() - captures(n) - inputs;
  return {states, inputs, n.regions[0]->outputs.size() - states};
}
int64_t list_entry(const Node& n, const char* key, size_t i) {
  const auto list = attr_ints(n, key);
  return i < list.size() ? list[i] : 0;
}

void infer_scan(InferContext& c) {
  const Graph& body = *c.node.regions[0];
  const ScanShape s = scan_shape(c.node);
  const Type& first = c.arg(s.states);
  const Dim length =
      first.dims[static_cast<size_t>(normal_axis(c, list_entry(c.node, "scan_input_axes", 0), first.dims.size()))];
  for (size_t i = 0; i < s.states; i++) c.types.push_back(output_type(body, i));
  for (size_t i = 0; i < s.outputs; i++) {
    Type t = output_type(body, s.states + i);
    const int64_t axis = normal_axis(c, list_entry(c.node, "scan_output_axes", i), t.dims.size() + 1);
    t.dims.insert(t.dims.begin() + axis, length);
    c.types.push_back(t);
  }
}

void eval_scan(EvalContext& c) {
  const ScanShape s = scan_shape(c.node);
  std::vector<Tensor> state;
  for (size_t i = 0; i < s.states; i++) state.push_back(arg(c, i));
  std::vector<std::vector<Tensor>> parts(s.outputs);
  auto axis_of = [&](size_t i) {
    return static_cast<size_t>(
        normal_axis(c, list_entry(c.node, "scan_input_axes", i), arg(c, s.states + i).dims.size()));
  };
  const int64_t length = arg(c, s.states).dims[axis_of(0)];
  for (int64_t k = 0; k < length; k++) {
    std::vector<Tensor> in = state;
    for (size_t i = 0; i < s.inputs; i++) {
      const Tensor& x = arg(c, s.states + i);
      const size_t axis = axis_of(i);
      Ints dims = x.dims, strides = strides_of(x.dims);
      const int64_t at = list_entry(c.node, "scan_input_directions", i) ? length - 1 - k : k,
                    offset = at * strides[axis];
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
      strides.erase(strides.begin() + static_cast<ptrdiff_t>(axis));
      in.push_back(strided_copy(x, dims, strides, offset));
    }
    std::vector<Tensor> out = run_region(c, 0, std::move(in));
    for (size_t i = 0; i < s.states; i++) state[i] = out[i];
    for (size_t i = 0; i < s.outputs; i++) parts[i].push_back(out[s.states + i]);
  }
  c.results = state;
  for (size_t i = 0; i < s.outputs; i++) {
    const Type& t = c.types[s.states + i];
    const int64_t axis = normal_axis(c, list_entry(c.node, "scan_output_axes", i), t.dims.size());
    c.results.push_back(
        stacked(c, parts[i], static_cast<size_t>(axis), list_entry(c.node, "scan_output_directions", i) != 0, t));
  }
}

OpRow control(std::string_view name, void (*infer)(InferContext&), void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = 1,
          .max_args = -1,
          .results = -1,
          .infer = infer,
          .eval = eval};
}

const OpRow kRows[] = {
    control("If", infer_if, eval_if),
    control("Loop", infer_loop, eval_loop),
    control("Scan", infer_scan, eval_scan),
};

}  // namespace

std::span<const OpRow> control_rows() { return kRows; }

}  // namespace gaf
