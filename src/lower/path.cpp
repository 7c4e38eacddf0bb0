// Values behind view-like nodes: what a Transpose, Gather, Concat piece or Pad piece does to the access of its operand,
// so that such a node costs an index map instead of a pass over memory. Knows nothing of tiles or loops.
#include <algorithm>

#include "lower/lowering.h"

namespace gaf {

namespace {

size_t axis_of(const Node& n, size_t rank, int64_t fallback = 0) {
  int64_t axis = attr_int(n, "axis", fallback);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

// `a` with dims [.., axis, ..] becomes one with dims [.., put.., ..] along which it does not vary. The axis itself is
// given to an indirect term; index accesses of `a` must not vary along it.
std::optional<Access> replace_axis(const Access& a, size_t axis, const Dims& put) {
  Access out = a;
  const auto at = static_cast<ptrdiff_t>(axis);
  out.dims.erase(out.dims.begin() + at);
  out.strides.erase(out.strides.begin() + at);
  out.dims.insert(out.dims.begin() + at, put.begin(), put.end());
  out.strides.insert(out.strides.begin() + at, put.size(), Expr(0));
  if (!a.window.empty()) {
    if (!(a.window[axis].start.is(0) && a.window[axis].extent == a.dims[axis])) return {};
    out.window.erase(out.window.begin() + at);
    std::vector<Access::Window> w;
    for (const Expr& d : put) w.push_back({0, d});
    out.window.insert(out.window.begin() + at, w.begin(), w.end());
  }
  out.indirect.clear();
  for (const Indirect& i : a.indirect) {
    if (!i.index->strides[axis].is(0) && !i.index->dims[axis].is(1)) return {};
    std::optional<Access> index = replace_axis(*i.index, axis, put);
    if (!index) return {};
    out.indirect.push_back({std::make_shared<Access>(std::move(*index)), i.extent, i.stride});
  }
  return out;
}

// An access with dims `d` placed at dims begin.. of a value with dims `to`.
std::optional<Access> placed(const Access& a, size_t begin, const Dims& to) {
  Dims ones(to.size(), Expr(1));
  if (begin + a.dims.size() > to.size()) return {};
  std::copy(a.dims.begin(), a.dims.end(), ones.begin() + static_cast<ptrdiff_t>(begin));
  std::optional<Access> r = reshape(a, ones);
  return r ? broadcast(*r, to) : r;
}

std::optional<Access> gather(const Access& a, const Access& index, size_t axis) {
  const Expr extent = a.dims[axis], stride = a.strides[axis];
  std::optional<Access> out = replace_axis(a, axis, index.dims);
  if (!out) return {};
  std::optional<Access> at = placed(index, axis, out->dims);
  if (!at) return {};
  if (!stride.is(0) && !extent.is(1))
    out->indirect.push_back({std::make_shared<Access>(std::move(*at)), extent, stride});
  return out;
}

// out[i...] = a[i... with index[i...] at axis]; the index has the rank of a and may be shorter along the other dims.
std::optional<Access> gather_elements(const Access& a, const Access& index, size_t axis) {
  const Expr extent = a.dims[axis], stride = a.strides[axis];
  if (index.dims.size() != a.dims.size()) return {};
  std::optional<Access> out = replace_axis(a, axis, {index.dims[axis]});
  for (size_t d = 0; out && d < a.dims.size(); d++)
    if (d != axis && !(out->dims[d] == index.dims[d])) out = slice(*out, d, 0, 1, index.dims[d]);
  if (out && !stride.is(0)) out->indirect.push_back({std::make_shared<Access>(index), extent, stride});
  return out;
}

// indices [.., k] name k leading dims of a.
std::optional<Access> gather_nd(const Access& a, const Access& index) {
  if (index.dims.empty() || !index.dims.back().is_num()) return {};
  const size_t k = static_cast<size_t>(index.dims.back().num()), last = index.dims.size() - 1;
  if (k > a.dims.size() || !a.indirect.empty() || !a.window.empty()) return {};
  Access out = a;
  out.dims.erase(out.dims.begin(), out.dims.begin() + static_cast<ptrdiff_t>(k));
  out.strides.erase(out.strides.begin(), out.strides.begin() + static_cast<ptrdiff_t>(k));
  out.dims.insert(out.dims.begin(), index.dims.begin(), index.dims.end() - 1);
  out.strides.insert(out.strides.begin(), last, Expr(0));
  for (size_t j = 0; j < k; j++) {
    std::optional<Access> one = slice(index, last, static_cast<int64_t>(j), 1, 1);
    if (!one) return {};
    one->dims.pop_back();
    one->strides.pop_back();
    if (!one->window.empty()) return {};
    std::optional<Access> at = placed(*one, 0, out.dims);
    if (!at) return {};
    out.indirect.push_back({std::make_shared<Access>(std::move(*at)), a.dims[j], a.strides[j]});
  }
  return out;
}

// The operand as a window of the result: element i of the result is element i - start of the operand.
std::optional<Access> windowed(const Access& a, size_t axis, const Expr& start, const Expr& total) {
  Access out = a;
  const Access::Window of = a.window.empty() ? Access::Window{0, a.dims[axis]} : a.window[axis];
  out.dims[axis] = total;
  set_window(out, axis, {of.start + start, of.extent});
  for (Indirect& i : out.indirect) {
    std::optional<Access> index = windowed(*i.index, axis, start, total);
    if (!index) return {};
    i.index = std::make_shared<Access>(std::move(*index));
  }
  return out;
}

std::optional<Access> concat_piece(const Graph& g, const Node& n, const Access& a, int piece) {
  const size_t axis = axis_of(n, n.types[0].dims.size());
  Expr start = 0;
  for (int i = 0; i < piece; i++) start += g.type(n.args[static_cast<size_t>(i)]).dims[axis];
  return windowed(a, axis, start, n.types[0].dims[axis]);
}

// Digit `axis` of a pad piece, base 3: 0 inside, 1 before, 2 behind the source.
int pad_side(int piece, size_t axis) {
  for (size_t d = 0; d < axis; d++) piece /= 3;
  return piece % 3;
}

std::optional<Access> pad_piece(const Node& n, const Access& a, int piece, const Dims& before) {
  const std::string mode = attr_str(n, "mode", "constant");
  std::optional<Access> out = a;
  for (size_t d = 0; d < a.dims.size() && out; d++) {
    const Expr& total = n.types[0].dims[d];
    const Expr size = a.dims[d];
    if (before[d].is(0) && total == size) continue;
    const int side = pad_side(piece, d);
    if (side == 0) {
      out = windowed(*out, d, before[d], total);
    } else if (mode == "edge") {
      out = slice(*out, d, side == 1 ? Expr(0) : size - 1, 1, 1);
      if (!out) return {};
      out->dims[d] = total;  // the same element everywhere
      out->strides[d] = 0;
      if (!out->window.empty()) out->window[d] = {0, total};
      if (!out->indirect.empty()) return {};
    } else if (mode == "reflect") {
      // before: result i reads element before - i; behind: the first one there reads size - 2, and so on down
      const Expr n = side == 1 ? before[d] : total - size - before[d];
      out = slice(*out, d, side == 1 ? before[d] : size - 2, -1, n);
      if (out) out = windowed(*out, d, side == 1 ? Expr(0) : before[d] + size, total);
    } else if (mode == "wrap") {
      out = windowed(*out, d, side == 1 ? before[d] - size : before[d] + size, total);
    } else {
      return {};
    }
  }
  return out;
}

}  // namespace

std::optional<Dims> pads_before(const Graph& g, const Node& n) {
  const size_t rank = n.types[0].dims.size();
  Dims all;
  if (n.attrs.contains("pads")) {
    all = attr_exprs(n, "pads");
  } else if (const Tensor* t = n.args.size() > 1 ? constant(g, n.args[1]) : nullptr) {
    for (int64_t i = 0; i < t->numel(); i++) all.emplace_back(t->get_int(i));
  } else {
    return {};
  }
  if (n.args.size() > 3 && n.args[3] != kNoValue) {  // axes
    const Tensor* t = constant(g, n.args[3]);
    if (!t) return {};
    Dims out(rank, Expr(0));
    for (int64_t i = 0; i < t->numel(); i++) {
      const int64_t axis = t->get_int(i);
      out[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = all[static_cast<size_t>(i)];
    }
    return out;
  }
  if (all.size() != 2 * rank) return {};
  all.resize(rank);
  return all;
}

std::optional<std::vector<int64_t>> repeats_of(const Graph& g, const Node& n) {
  const Dims &from = g.type(n.args[0]).dims, &to = n.types[0].dims;
  if (n.op == "Resize") {
    // element i of the result is element i / factor of the source only by these rules of rounding
    const std::string mode = attr_str(n, "mode", "nearest"),
                      place = attr_str(n, "coordinate_transformation_mode", "half_pixel"),
                      nearest = attr_str(n, "nearest_mode", "round_prefer_floor");
    const bool half = (place == "half_pixel" || place == "pytorch_half_pixel") && nearest.starts_with("round");
    if (mode != "nearest" || !(half || (place == "asymmetric" && nearest == "floor"))) return {};
  } else if (n.op != "Tile") {
    return {};
  }
  std::vector<int64_t> out;
  for (size_t d = 0; d < from.size(); d++) {
    int64_t r = 0;
    if (to[d] == from[d])
      r = 1;
    else if (from[d].is_num() && to[d].is_num() && from[d].num() > 0 && to[d].num() % from[d].num() == 0)
      r = to[d].num() / from[d].num();
    else
      for (int64_t k = 2; k <= 16 && !r; k++)
        if (to[d] == from[d] * Expr(k)) r = k;
    if (!r) return {};
    out.push_back(r);
  }
  return out;
}

std::optional<Value> Lowering::step_source(Value v, const Space* space) const {
  const Node& n = fn_.node(v);
  if (n.args.empty() || n.op == "input" || n.op == "constant" || n.op == "call") return {};
  if (is_kind(n, OpKind::view) || n.op == "Split" || n.op == "Gather" || n.op == "GatherElements" || n.op == "Tile" ||
      (n.op == "Resize" && repeats_of(fn_, n)) || (n.op == "GatherND" && attr_int(n, "batch_dims", 0) == 0))
    return n.args[0];
  if (!space) return {};
  auto it = space->piece.find(v.node);
  if (it == space->piece.end()) return {};
  if (n.op == "Concat") return n.args[static_cast<size_t>(it->second)];
  if (n.op == "Pad") return n.args[0];
  return {};
}

std::optional<double> Lowering::piece_fill(Value v, const Space* space) const {
  const Node& n = fn_.node(v);
  if (n.op != "Pad" || !space || attr_str(n, "mode", "constant") != "constant") return {};
  auto it = space->piece.find(v.node);
  if (it == space->piece.end() || it->second == 0) return {};
  if (n.attrs.contains("value")) return attr_float(n, "value", 0);
  if (n.args.size() > 2 && n.args[2] != kNoValue)
    if (const Tensor* t = constant(fn_, n.args[2])) return t->get(0);
  return 0;
}

std::optional<Access> Lowering::step_access(const Access& a, Value step, const Space* space, const Dims& to) const {
  const Node& n = fn_.node(step);
  auto index_of = [&]() -> const Access* { return n.args.size() > 1 ? access(n.args[1]) : nullptr; };
  if (const Tensor* t =
          n.op == "Gather" && n.args.size() > 1 ? constant(fn_, n.args[1]) : nullptr) {  // one element: a slice
    if (t->numel() != 1) return {};
    const size_t axis = axis_of(n, a.dims.size());
    const int64_t k = t->get_int(0);
    std::optional<Access> one = slice(a, axis, k < 0 ? a.dims[axis] + Expr(k) : Expr(k), 1, 1);
    return one ? reshape(*one, to) : one;
  }
  if (n.op == "Gather") return index_of() ? gather(a, *index_of(), axis_of(n, a.dims.size())) : std::nullopt;
  if (n.op == "GatherElements")
    return index_of() ? gather_elements(a, *index_of(), axis_of(n, a.dims.size())) : std::nullopt;
  if (n.op == "GatherND") return index_of() ? gather_nd(a, *index_of()) : std::nullopt;
  if (n.op == "Tile" || n.op == "Resize") {
    const std::optional<std::vector<int64_t>> repeats = repeats_of(fn_, n);
    if (!repeats) return {};
    Dims split, wide;
    for (size_t d = 0; d < a.dims.size(); d++) {
      const Expr r = (*repeats)[d];
      if (n.op == "Tile")
        split.emplace_back(1), split.push_back(a.dims[d]), wide.push_back(r), wide.push_back(a.dims[d]);
      else
        split.push_back(a.dims[d]), split.emplace_back(1), wide.push_back(a.dims[d]), wide.push_back(r);
    }
    std::optional<Access> out = reshape(a, split);
    if (out) out = broadcast(*out, wide);
    return out ? reshape(*out, to) : out;
  }
  if (n.op == "Concat" || n.op == "Pad") {
    auto it = space ? space->piece.find(step.node) : std::map<uint32_t, int>::const_iterator{};
    if (!space || it == space->piece.end()) return {};
    if (n.op == "Concat") return concat_piece(fn_, n, a, it->second);
    std::optional<Dims> before = pads_before(fn_, n);
    return before ? pad_piece(n, a, it->second, *before) : std::nullopt;
  }
  if (to != n.types[step.result].dims && n.op != "Transpose" && n.op != "Slice" && n.op != "Split" &&
      n.op != "Expand") {
    if (n.op == "DepthToSpace" || n.op == "SpaceToDepth") {
      Node finer = n;
      finer.types[0].dims = to;
      return apply_view(fn_, finer, a, 0);
    }
    return reshape(a, to);
  }
  return apply_view(fn_, n, a, step.result);
}

std::optional<Access> Lowering::through(const Access& a, const Path* p, const Space* space) const {
  std::optional<Access> cur = a;
  for (; p && cur; p = p->next) {
    const Node& n = fn_.node(p->step);
    const std::optional<Value> source = step_source(p->step, space);
    if (!source) return {};
    cur = broadcast(*cur, fn_.type(*source).dims);
    const Dims& dims = n.types[p->step.result].dims;
    const bool last = !p->next && space && !space->fine.empty() && dims == space->dims;
    if (cur) cur = step_access(*cur, p->step, space, last ? space->fine : dims);
  }
  if (!cur || !space) return cur;
  if (space->fine.empty() || cur->dims != space->fine) {
    cur = broadcast(*cur, space->dims);
    if (cur && !space->fine.empty()) cur = reshape(*cur, space->fine);
  }
  if (cur && !space->merge.empty()) {
    Space straight = *space;
    straight.order.clear();
    cur = reshape(*cur, straight.merged());
  }
  return cur && !space->order.empty() ? transpose(*cur, space->order) : cur;
}

}  // namespace gaf
