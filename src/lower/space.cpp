// Boxes and merged dims of iteration spaces.
#include "lower/space.h"

#include <algorithm>

namespace gaf {

namespace {

bool is_move_step(const Node& n) {
  static constexpr std::string_view ops[] = {"Gather", "GatherElements", "GatherND", "Split",
                                             "Tile",   "Resize",         "Concat",   "Pad"};
  return std::ranges::find(ops, n.op) != std::end(ops);
}

}  // namespace

bool only_elementwise(const Graph& g, std::initializer_list<OpKind> extra) {
  for (const Node& n : g.nodes) {
    if (n.op == "input" || n.op == "constant" || n.op == "Extent" || is_move_step(n)) continue;
    if (is_kind(n, OpKind::pointwise) || is_kind(n, OpKind::view)) continue;
    if (std::ranges::none_of(extra, [&](OpKind k) { return is_kind(n, k); })) return false;
  }
  return true;
}

bool has_move(const Graph& g) { return std::ranges::any_of(g.nodes, is_move_step); }

std::vector<OutputGroup> output_groups(const Lowering& l) {
  std::vector<OutputGroup> groups;
  for (size_t o = 0; o < l.fn().outputs.size(); o++) {
    Dims dims = l.output_sink(o).access.dims;
    if (dims.empty()) dims = {1};
    auto it = std::ranges::find_if(groups, [&](const OutputGroup& g) { return g.dims == dims; });
    if (it == groups.end())
      groups.push_back({std::move(dims), {o}});
    else
      it->outputs.push_back(o);
  }
  return groups;
}

namespace {

struct Met {
  uint32_t node;
  const Path* path;
};

// The first Concat or Pad that `v` reads and whose piece is not chosen yet.
std::optional<Met> unchosen(Lowering& l, Value v, const Path* p, const Space& space,
                            std::set<std::pair<Value, const Path*>>& seen) {
  if (l.access(v) || !seen.insert({v, p}).second) return {};
  const Node& n = l.fn().node(v);
  if ((n.op == "Concat" || n.op == "Pad") && !space.piece.contains(v.node)) return Met{v.node, p};
  if (l.piece_fill(v, &space)) return {};
  if (std::optional<Value> source = l.step_source(v, &space)) return unchosen(l, *source, l.path(v, p), space, seen);
  if (n.op == "constant") return {};
  for (Value a : n.args)
    if (a != kNoValue)
      if (auto found = unchosen(l, a, p, space, seen)) return found;
  return {};
}

struct Place {
  size_t dim;
  Expr shift;  // element i along the node's axis is at i - shift along the space's dim
};

// Where an axis of a node's result lies in the space: an access that varies along that axis only is sent through the
// path.
std::optional<Place> place_of(Lowering& l, const Met& m, size_t axis, const Space& space) {
  Access probe = dense(0, l.fn().nodes[m.node].types[0].dims);
  for (size_t d = 0; d < probe.dims.size(); d++) probe.strides[d] = d == axis ? 1 : 0;
  std::optional<Access> a = l.through(probe, m.path, &space);
  if (!a || !a->indirect.empty()) return {};
  std::optional<Place> found;
  for (size_t d = 0; d < a->dims.size(); d++) {
    if (a->strides[d].is(0)) continue;
    if (found || !a->strides[d].is(1)) return {};
    found = Place{d, a->offset};
    if (!a->window.empty()) found->shift = found->shift - a->window[d].start;
  }
  return found;
}

// The part of lo..hi within from..to; nothing if it is empty. Symbolic sides must be equal or whole.
std::optional<Box::Side> meet(const Box::Side& side, const Box::Side& piece, bool& unknown) {
  if (side.lo == piece.lo && side.hi == piece.hi) return side;
  auto pick = [&](const Expr& a, const Expr& b, bool larger) -> Expr {
    if (a == b) return a;
    if (a.is_num() && b.is_num()) return larger ? std::max(a.num(), b.num()) : std::min(a.num(), b.num());
    if (larger && a.is(0)) return b;  // a side of a whole dim: 0..dim, and pieces lie within it
    unknown = unknown || larger;
    return b;
  };
  Box::Side out{pick(side.lo, piece.lo, true), pick(side.hi, piece.hi, false)};
  if (out.lo.is_num() && out.hi.is_num() && out.lo.num() >= out.hi.num()) return {};
  return out;
}

struct Piece {
  int code;
  std::vector<std::pair<size_t, Box::Side>> sides;  // per axis of the node
};

std::optional<std::vector<Piece>> pieces_of(const Graph& g, const Node& n) {
  std::vector<Piece> out;
  const Dims& dims = n.types[0].dims;
  if (n.op == "Concat") {
    int64_t axis = attr_int(n, "axis", 0);
    const size_t d = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
    Expr start = 0;
    for (size_t k = 0; k < n.args.size(); k++) {
      const Expr& size = g.type(n.args[k]).dims[d];
      if (!size.is(0)) out.push_back({static_cast<int>(k), {{d, {start, start + size}}}});
      start += size;
    }
    return out;
  }
  std::optional<Dims> before = pads_before(g, n);
  if (!before) return {};
  out.push_back({0, {}});
  int digit = 1;
  for (size_t d = 0; d < dims.size(); d++, digit *= 3) {
    const Expr size = g.type(n.args[0]).dims[d], lo = (*before)[d], hi = lo + size;
    if (lo.is(0) && dims[d] == size) continue;
    std::vector<Piece> next;
    for (const Piece& p : out)
      for (int side = 0; side < 3; side++) {
        if ((side == 1 && lo.is_num() && lo.num() <= 0) || (side == 2 && dims[d] == hi)) continue;
        Piece q = p;
        q.code += side * digit;
        q.sides.push_back({d, side == 0   ? Box::Side{max(Expr(0), lo), min(hi, dims[d])}
                              : side == 1 ? Box::Side{0, lo}
                                          : Box::Side{hi, dims[d]}});
        next.push_back(std::move(q));
      }
    out = std::move(next);
  }
  return out;
}

constexpr size_t kMaxBoxes = 64;  // each is a body of its own to compile

}  // namespace

std::variant<std::vector<Box>, Verdict> cut_boxes(Lowering& l, const Dims& dims, std::span<const Value> values) {
  Box whole;
  whole.space.dims = dims;
  for (const Expr& d : dims) whole.sides.push_back({0, d});
  std::vector<Box> open{std::move(whole)}, done;
  while (!open.empty()) {
    Box box = std::move(open.front());
    open.erase(open.begin());
    std::optional<Met> met;
    std::set<std::pair<Value, const Path*>> seen;
    for (Value v : values)
      if (!met) met = unchosen(l, v, nullptr, box.space, seen);
    if (!met) {
      done.push_back(std::move(box));
      continue;
    }
    const Node& n = l.fn().nodes[met->node];
    auto no = [&](std::string why) { return Verdict::no("iteration-mismatch", n.op + " " + n.name + ": " + why); };
    const std::optional<std::vector<Piece>> pieces = pieces_of(l.fn(), n);
    if (!pieces) return no("the pads are only known at run time");
    for (const Piece& p : *pieces) {
      Box part = box;
      part.space.piece[met->node] = p.code;
      bool empty = false, unknown = false;
      for (const auto& [axis, side] : p.sides) {
        const std::optional<Place> at = place_of(l, *met, axis, box.space);
        if (!at) return no("its axis is none of the kernel's dims");
        auto both = meet(part.sides[at->dim], {side.lo - at->shift, side.hi - at->shift}, unknown);
        if (!both)
          empty = true;
        else
          part.sides[at->dim] = *both;
      }
      if (unknown) return no("its pieces are cut at sizes only known at run time");
      if (!empty) open.push_back(std::move(part));
    }
    if (open.size() + done.size() > kMaxBoxes) return no("cuts the kernel into too many pieces");
  }
  return done;
}

namespace {

// May dim `outer` run on into dim `inner`, as far as this access goes? Dims between them are 1.
bool runs_on(const Access& a, size_t outer, size_t inner) {
  for (size_t k : {outer, inner})
    if (!a.window.empty() && !(a.window[k].start.is(0) && a.window[k].extent == a.dims[k])) return false;
  if (!a.dims[outer].is(1) && !a.dims[inner].is(1) && !(a.strides[outer] == a.strides[inner] * a.dims[inner]))
    return false;
  return std::ranges::all_of(a.indirect, [&](const Indirect& i) { return runs_on(*i.index, outer, inner); });
}

// Is a * b a size that bounds can be proved of? A number times anything, or a product of plain symbols; sums and
// quotients of several sizes multiply into terms that no longer cancel.
bool countable(const Expr& a, const Expr& b) {
  auto plain = [](const Expr& e) {
    if (e.is_num() || e.op() == ExprOp::sym) return true;
    return e.op() == ExprOp::mul &&
           std::ranges::all_of(e.args(), [](const Expr& f) { return f.is_num() || f.op() == ExprOp::sym; });
  };
  return a.is_num() || b.is_num() || (plain(a) && plain(b));
}

}  // namespace

void merge_space(Box& box, std::span<const Access> accesses, const std::vector<int>& classes) {
  const Dims dims = box.space.merged();
  const std::vector<Box::Side> all = box.sides;
  auto whole = [&](size_t k) { return all[k].lo.is(0) && all[k].hi == dims[k]; };
  box.space.merge = {1};
  box.sides = {all[0]};
  size_t last = 0;  // of the current run, the last dim that is not 1
  for (size_t d = 1; d < dims.size(); d++) {
    bool join = whole(last) && whole(d);
    if (!classes.empty() && classes[last] != classes[d] && !dims[last].is(1) && !dims[d].is(1)) join = false;
    join = join && countable(box.sides.back().hi, dims[d]);
    for (size_t i = 0; join && i < accesses.size(); i++) join = runs_on(accesses[i], last, d);
    if (join) {
      box.space.merge.back()++;
      box.sides.back().hi = box.sides.back().hi * dims[d];
      if (!dims[d].is(1)) last = d;
    } else {
      box.space.merge.push_back(1);
      box.sides.push_back(all[d]);
      last = d;
    }
  }
}

std::optional<Dims> refined(const Dims& a, const Dims& b) {
  Dims out;
  size_t i = 0, j = 0;
  Expr left = 1, right = 1;  // what is left of the current dim of a, of b
  bool open_a = false, open_b = false;
  while (i < a.size() || j < b.size() || open_a || open_b) {
    if (!open_a) {
      if (i == a.size()) return {};
      left = a[i++], open_a = true;
    }
    if (!open_b) {
      if (j == b.size()) return left.is(1) && i == a.size() ? std::optional(out) : std::nullopt;
      right = b[j++], open_b = true;
    }
    if (left == right) {
      out.push_back(left);
      open_a = open_b = false;
    } else if (left.is(1)) {
      out.push_back(1);
      open_a = false;
    } else if (right.is(1)) {
      open_b = false;
    } else {
      if (!left.is_num() || !right.is_num()) return {};
      const int64_t x = left.num(), y = right.num(), inner = std::min(x, y), outer = std::max(x, y);
      if (outer % inner) return {};
      out.push_back(inner);
      if (x < y)
        open_a = false, right = outer / inner;
      else
        open_b = false, left = outer / inner;
    }
  }
  return out;
}

// How the dims of a view-like node's result are made of finer ones along which it is strided.
std::optional<Dims> factors_of(const Lowering& l, Value v) {
  const Node& n = l.fn().node(v);
  const Dims& to = n.types[v.result].dims;
  if (n.op == "Reshape") return refined(to, l.fn().type(n.args[0]).dims);
  if (n.op != "Tile" && n.op != "Resize") return {};
  const Dims& from = l.fn().type(n.args[0]).dims;
  const std::optional<std::vector<int64_t>> repeats = repeats_of(l.fn(), n);
  if (!repeats) return {};
  Dims out;
  for (size_t d = 0; d < from.size(); d++) {
    const int64_t r = (*repeats)[d];
    if (r == 1)
      out.push_back(to[d]);
    else if (n.op == "Tile")
      out.insert(out.end(), {Expr(r), from[d]});
    else
      out.insert(out.end(), {from[d], Expr(r)});
  }
  return out;
}

std::optional<Dims> finer_dims(const Lowering& l, const Dims& dims, std::span<const Value> values) {
  Dims fine = dims;
  std::set<Value> seen;
  bool fails = false;
  std::function<void(Value)> visit = [&](Value v) {
    if (l.fn().type(v).dims != dims || !seen.insert(v).second) return;
    const Node& n = l.fn().node(v);
    if (is_kind(n, OpKind::pointwise)) {
      for (Value a : n.args)
        if (a != kNoValue) visit(a);
    } else if (std::optional<Dims> f = factors_of(l, v)) {
      std::optional<Dims> both = fine == dims ? f : refined(fine, *f);
      fails = fails || !both;
      if (both) fine = std::move(*both);
    }
  };
  for (Value v : values) visit(v);
  return fails || fine == dims ? std::nullopt : std::optional(fine);
}

}  // namespace gaf
