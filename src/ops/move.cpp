// Data movement that is not one view of one tensor: Concat, Split, Pad, Tile, DepthToSpace and their kin.
#include <fmt/format.h>

#include <algorithm>

#include "ops/eval_util.h"
#include "ops/expand.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

// ---- Concat, Split ----

void infer_concat(InferContext& c) {
  need_same_dtype(c);
  Type out = c.arg(0);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 1), out.dims.size()));
  for (size_t i = 1; i < c.args.size(); i++) {
    const Dims& d = c.arg(i).dims;
    if (d.size() != out.dims.size())
      c.fail("GAF3101", fmt::format("operands of rank {} and {} are joined", out.dims.size(), d.size()));
    for (size_t k = 0; k < d.size(); k++) {
      if (k == axis)
        out.dims[k] += d[k];
      else if (d[k].is_num() && out.dims[k].is_num() && d[k] != out.dims[k])
        c.fail("GAF3101",
               fmt::format("dimension {} is {} in one operand and {} in another", k, out.dims[k].num(), d[k].num()));
      else if (d[k].is_num())
        out.dims[k] = d[k];
    }
  }
  c.types = {out};
}

void eval_concat(EvalContext& c) {
  Ints dims = arg(c, 0).dims;
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 1), dims.size()));
  for (size_t i = 1; i < c.args.size(); i++) {
    const Ints& d = arg(c, i).dims;
    for (size_t k = 0; k < dims.size(); k++)
      if (k != axis && d[k] != dims[k])
        fail(c, "GAF3101", fmt::format("dimension {} is {} in one operand and {} in another", k, dims[k], d[k]));
    dims[axis] += d[axis];
  }
  Tensor out = Tensor::make(arg(c, 0).dtype, dims);
  const Ints strides = strides_of(dims);
  int64_t at = 0;
  for (size_t i = 0; i < c.args.size(); i++) {
    strided_store(out, arg(c, i), strides, at * strides[axis]);
    at += arg(c, i).dims[axis];
  }
  c.results = {out};
}

// Sizes of the parts: given, or `count` equal ones of which the last may be smaller.
void infer_split(InferContext& c) {
  const Type& x = c.arg(0);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), x.dims.size()));
  const size_t parts = std::max<size_t>(c.node.types.size(), 1);
  if (given(c, "split", 1)) {
    auto sizes = list_of(c, "split", 1);
    if (sizes && sizes->size() != parts)
      c.fail("GAF3101", fmt::format("{} sizes for {} results", sizes->size(), parts));
    Expr total(0);
    for (size_t i = 0; i < parts; i++) {
      c.types.push_back(x);
      c.types.back().dims[axis] = sizes ? (*sizes)[i] : fresh_dim(c);
      total += c.types.back().dims[axis];
    }
    if (total.is_num() && x.dims[axis].is_num() && total != x.dims[axis])
      c.fail("GAF3101", fmt::format("the parts have {} elements, the axis {}", total.num(), x.dims[axis].num()));
    return;
  }
  const Expr part = ceildiv(x.dims[axis], Expr(static_cast<int64_t>(parts)));
  for (size_t i = 0; i < parts; i++) {
    c.types.push_back(x);
    c.types.back().dims[axis] = i + 1 < parts ? part : x.dims[axis] - part * Expr(static_cast<int64_t>(parts) - 1);
  }
}

void eval_split(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const auto axis = static_cast<size_t>(normal_axis(c, attr_int(c.node, "axis", 0), x.dims.size()));
  Ints sizes = list_of(c, "split", 1);
  if (sizes.empty()) {
    const auto parts = static_cast<int64_t>(std::max<size_t>(c.types.size(), 1));
    const int64_t part = (x.dims[axis] + parts - 1) / parts;
    sizes.assign(static_cast<size_t>(parts), part);
    sizes.back() = x.dims[axis] - part * (parts - 1);
  }
  const Ints strides = strides_of(x.dims);
  int64_t at = 0;
  for (int64_t n : sizes) {
    Ints dims = x.dims;
    if (n < 0 || at + n > x.dims[axis]) fail(c, "GAF3101", "the parts do not fit the axis");
    dims[axis] = n;
    c.results.push_back(strided_copy(x, dims, strides, at * strides[axis]));
    at += n;
  }
}

// ---- Pad ----

// pads of every dim: begins, then ends; axes restrict them (opset 18).
std::vector<Expr> all_pads(const std::vector<Expr>& pads, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<Expr> out(2 * rank, Expr(0));
  const size_t n = axes.size();
  for (size_t i = 0; i < n; i++) {
    out[static_cast<size_t>(axes[i])] = pads[i];
    out[rank + static_cast<size_t>(axes[i])] = pads[n + i];
  }
  return out;
}

void infer_pad(InferContext& c) {
  Type out = c.arg(0);
  const size_t rank = out.dims.size();
  auto pads = list_of(c, c.node.attrs.contains("paddings") ? "paddings" : "pads", 1);
  auto axes = ints_of(c, "axes", 3);
  if (!pads || !axes) {
    out.dims = fresh_dims(c, rank);
    c.types = {out};
    return;
  }
  if (axes->empty()) axes = axes_from(0, rank);
  for (int64_t& a : *axes) a = normal_axis(c, a, rank);
  if (pads->size() != 2 * axes->size())
    c.fail("GAF3101", fmt::format("{} pads for {} dimensions", pads->size(), axes->size()));
  const auto full = all_pads(*pads, *axes, rank);
  for (size_t i = 0; i < rank; i++) out.dims[i] = out.dims[i] + full[i] + full[rank + i];
  c.types = {out};
}

void eval_pad(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const size_t rank = x.dims.size();
  const Ints given_pads = list_of(c, "pads", 1);
  Ints axes = list_of(c, "axes", 3);
  if (axes.empty()) axes = axes_from(0, rank);
  for (int64_t& a : axes) a = normal_axis(c, a, rank);
  if (given_pads.size() != 2 * axes.size())
    fail(c, "GAF3101", fmt::format("{} pads for {} dimensions", given_pads.size(), axes.size()));
  const auto pads = all_pads(Dims(given_pads.begin(), given_pads.end()), axes, rank);
  const std::string mode = attr_str(c.node, "mode", "constant");
  Ints dims = x.dims;
  for (size_t i = 0; i < rank; i++) dims[i] += pads[i].num() + pads[rank + i].num();
  Tensor fill = Tensor::make(x.dtype, {});
  if (has(c, 2) && arg(c, 2).numel())
    fill = reshaped(arg(c, 2), {});
  else if (c.node.attrs.contains("value"))
    fill.set(0, attr_float(c.node, "value", 0));
  Tensor out = Tensor::make(x.dtype, dims);
  if (x.numel() == 0 && mode != "constant" && out.numel() != 0)
    fail(c, "GAF3101", "an empty tensor has no edge to repeat");
  const int size = bytes(x.dtype);
  const Ints in_strides = strides_of(x.dims), out_strides = strides_of(dims);
  for (int64_t o = 0; o < numel(dims); o++) {
    int64_t at = 0;
    bool inside = true;
    for (size_t d = 0; d < rank; d++) {
      int64_t p = o / out_strides[d] % dims[d] - pads[d].num();
      const int64_t n = x.dims[d];
      if (mode == "edge") p = std::clamp<int64_t>(p, 0, n - 1);
      if (mode == "wrap" && n > 0) p = ((p % n) + n) % n;
      if (mode == "reflect" && n > 1) {
        p = ((p % (2 * n - 2)) + 2 * n - 2) % (2 * n - 2);
        if (p >= n) p = 2 * n - 2 - p;
      } else if (mode == "reflect") {
        p = 0;
      }
      inside = inside && p >= 0 && p < n;
      at += p * in_strides[d];
    }
    std::memcpy(out.mut<char>() + o * size, inside ? x.as<char>() + at * size : fill.as<char>(),
                static_cast<size_t>(size));
  }
  c.results = {out};
}

// ---- Tile ----

void infer_tile(InferContext& c) {
  Type out = c.arg(0);
  auto repeats = list_of(c, "repeats", 1);
  if (!repeats) {
    out.dims = fresh_dims(c, out.dims.size());
  } else {
    if (repeats->size() != out.dims.size())
      c.fail("GAF3101", fmt::format("{} repeats for rank {}", repeats->size(), out.dims.size()));
    for (size_t i = 0; i < out.dims.size(); i++) out.dims[i] *= (*repeats)[i];
  }
  c.types = {out};
}

void eval_tile(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Ints repeats = list_of(c, "repeats", 1);
  if (repeats.size() != x.dims.size())
    fail(c, "GAF3101", fmt::format("{} repeats for rank {}", repeats.size(), x.dims.size()));
  // each dim as [repeats, size], the first with stride 0
  Ints dims = x.dims, split, strides, own = strides_of(x.dims);
  for (size_t i = 0; i < dims.size(); i++) {
    dims[i] *= repeats[i];
    split.insert(split.end(), {repeats[i], x.dims[i]});
    strides.insert(strides.end(), {0, own[i]});
  }
  c.results = {reshaped(strided_copy(x, split, strides, 0), dims)};
}

// ---- DepthToSpace, SpaceToDepth: a reshape, a transpose, a reshape ----

struct Blocks {
  Dims split, out;
  std::vector<int64_t> perm;
};

Blocks blocks_of(const Node& n, const Dims& d) {
  if (d.size() != 4) throw UserError("GAF3101", "four dimensions are needed").at(n.name, n.op);
  const Expr b(attr_int(n, "blocksize", 1));
  if (b.num() < 1) throw UserError("GAF3101", "blocksize must be positive").at(n.name, n.op);
  if (n.op == "SpaceToDepth" && attr_str(n, "mode", "DCR") == "CRD")
    return {{d[0], d[1], floordiv(d[2], b), b, floordiv(d[3], b), b},
            {d[0], d[1] * b * b, floordiv(d[2], b), floordiv(d[3], b)},
            {0, 1, 3, 5, 2, 4}};
  if (n.op == "SpaceToDepth")
    return {{d[0], d[1], floordiv(d[2], b), b, floordiv(d[3], b), b},
            {d[0], d[1] * b * b, floordiv(d[2], b), floordiv(d[3], b)},
            {0, 3, 5, 1, 2, 4}};
  const Expr rest = floordiv(d[1], b * b);
  const Dims out{d[0], rest, d[2] * b, d[3] * b};
  if (attr_str(n, "mode", "DCR") == "DCR") return {{d[0], b, b, rest, d[2], d[3]}, out, {0, 3, 4, 1, 5, 2}};
  return {{d[0], rest, b, b, d[2], d[3]}, out, {0, 1, 4, 2, 5, 3}};
}

void infer_blocks(InferContext& c) { c.types = {{c.arg(0).dtype, blocks_of(c.node, c.arg(0).dims).out}}; }
void eval_blocks(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const Blocks b = blocks_of(c.node, Dims(x.dims.begin(), x.dims.end()));
  auto fixed = [](const Dims& d) {
    Ints out;
    for (const Expr& e : d) out.push_back(e.num());
    return out;
  };
  c.results = {reshaped(transposed(reshaped(x, fixed(b.split)), b.perm), fixed(b.out))};
}
Value expand_blocks(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  const Blocks k = blocks_of(n, e.type(a[0]).dims);
  return e.reshape(e.transpose(e.reshape(a[0], k.split), k.perm), k.out);
}

// ---- Dropout at inference; com.microsoft has none of its own ----

void infer_dropout(InferContext& c) { c.types = {c.arg(0), {DType::b1, c.arg(0).dims}}; }
void eval_dropout(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  if (has(c, 2) && arg(c, 2).get(0) != 0 && !(has(c, 1) && arg(c, 1).get(0) == 0))
    fail(c, "GAF4001", "Dropout in training mode is random and has no implementation");
  c.results = {x};
  if (c.types.size() > 1) c.results.push_back(tensor_of(DType::b1, x.dims, Ints(static_cast<size_t>(x.numel()), 1)));
}

OpRow move(std::string_view name, int min_args, int max_args, void (*infer)(InferContext&), void (*eval)(EvalContext&),
           int results = 1) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::move,
          .min_args = min_args,
          .max_args = max_args,
          .results = results,
          .infer = infer,
          .eval = eval,
          .ulp = 0};
}

const OpRow kRows[] = {
    move("Concat", 1, -1, infer_concat, eval_concat),
    move("Split", 1, 2, infer_split, eval_split, -1),
    move("Pad", 1, 4, infer_pad, eval_pad),
    move("Tile", 1, 2, infer_tile, eval_tile),
    {.name = "DepthToSpace",
     .friendly = "DepthToSpace",
     .kind = OpKind::composite,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_blocks,
     .eval = eval_blocks,
     .expand = expand_blocks,
     .ulp = 0},
    {.name = "SpaceToDepth",
     .friendly = "SpaceToDepth",
     .kind = OpKind::composite,
     .min_args = 1,
     .max_args = 1,
     .infer = infer_blocks,
     .eval = eval_blocks,
     .expand = expand_blocks,
     .ulp = 0},
    {.name = "Dropout",
     .friendly = "Dropout",
     .kind = OpKind::other,
     .min_args = 1,
     .max_args = 3,
     .results = -1,
     .infer = infer_dropout,
     .eval = eval_dropout},
};

}  // namespace

std::span<const OpRow> move_rows() { return kRows; }

}  // namespace gaf
