// Questions to TileBody before anything is written: may a value be emitted at all, and what of it need not be emitted in the
// innermost block. Emits only what it hoists.
#include "lower/lowering.h"

namespace gaf {

using kir::S;

std::optional<Verdict> TileBody::refuse(Value v) { return refuse(v, nullptr); }

std::optional<Verdict> TileBody::refuse(Value v, const Path* p) {
  if (bound_at(v, p) || !settled_.insert({v, p}).second) return {};
  const Node& n = l_.fn().node(v);
  auto no = [&](std::string reason, std::string why) { return Verdict::no(std::move(reason), n.op + " " + n.name + ": " + why); };
  if (const Tensor* t = constant(l_.fn(), v)) {
    if (t->numel() == 1) return {};
    return no("not-fusable-op", "a constant of several elements stands inside the function");
  }
  if (n.op == "Extent") return {};
  if (bound_.contains(v)) return no("iteration-mismatch", "is read through a view that moves its elements");
  if (const Access* a = leaf(v, p)) {
    for (const Indirect& i : a->indirect) {
      if (!varies(*i.index, ranged())) continue;
      std::vector<Range> sizes;
      for (const kir::Symbol& s : l_.b.k.syms) sizes.push_back({s.lo, s.hi});
      if (product(l_.b.k.bufs[static_cast<size_t>(a->buf)].shape).range(sizes).hi >= INT32_MAX)
        return no("backend-limit", "the gathered tensor may have 2^31 elements or more");
    }
    return {};
  }
  if (l_.access(v)) return no("iteration-mismatch", "is no strided view at the kernel's iteration space");
  if (l_.piece_fill(v, space_)) return {};
  if (std::optional<Value> source = l_.step_source(v, space_)) return refuse(*source, l_.path(v, p));
  if (!is_kind(n, OpKind::pointwise)) return no("not-fusable-op", "is not pointwise");
  for (Value a : n.args)
    if (a != kNoValue)
      if (std::optional<Verdict> why = refuse(a, p)) return why;
  return {};
}

std::vector<bool> TileBody::inner_dims(const TileBody& outer) const {
  std::vector<bool> inner;
  for (size_t i = 0; i < at_.size(); i++) {
    const kir::Slice &a = at_[i], &b = outer.at_[i];
    inner.push_back(!(a.at == b.at && a.n == b.n && a.step == b.step));
  }
  return inner;
}

bool TileBody::varies(Value v, const Path* p, const TileBody& outer) {
  if (bound_.contains(v)) return !outer.bound_.contains(v);
  if (constant(l_.fn(), v) || l_.fn().node(v).op == "Extent") return false;
  if (auto it = varies_.find({v, p}); it != varies_.end()) return it->second;
  bool r = true;
  if (const Access* a = leaf(v, p)) {
    r = varies(*a, inner_dims(outer));
  } else if (l_.piece_fill(v, space_)) {
    r = false;
  } else if (std::optional<Value> source = l_.step_source(v, space_)) {
    r = varies(*source, l_.path(v, p), outer);
  } else if (is_kind(l_.fn().node(v), OpKind::pointwise)) {
    r = false;
    for (Value a : l_.fn().node(v).args) r = r || (a != kNoValue && varies(a, p, outer));
  }
  return varies_[{v, p}] = r;
}

void TileBody::hoist(TileBody& outer, Value v, const Path* p) {
  if (bound_.contains(v) || have_.contains({v, p}) || constant(l_.fn(), v)) return;
  if (const Access* a = leaf(v, p)) {
    const std::vector<bool> inner = inner_dims(outer);
    if (!varies(*a, inner)) {
      if (compute_type(l_.fn().type(v).dtype) == l_.fn().type(v).dtype && a->indirect.empty()) return;  // a load is cheap
      Operand o = outer.eval(v, p);
      o.reuse = false;
      have_[{v, p}] = o;
      return;
    }
    if (a->indirect.empty() || indices_.contains({v, p})) return;
    for (const Indirect& i : a->indirect)
      if (varies(*i.index, inner)) return;
    std::vector<Expr>& read = indices_[{v, p}];
    for (const Indirect& i : a->indirect) read.push_back(l_.read_index(i, outer.at_));
    return;
  }
  if (l_.piece_fill(v, space_)) return;
  if (std::optional<Value> source = l_.step_source(v, space_)) return hoist(outer, *source, l_.path(v, p));
  const Node& n = l_.fn().node(v);
  if (!is_kind(n, OpKind::pointwise) && n.op != "Extent") return;
  if (!varies(v, p, outer)) {
    Operand o = outer.settle(outer.eval(v, p));
    outer.have_[{v, p}] = o;
    o.reuse = false;
    have_[{v, p}] = o;
    return;
  }
  const DType t = compute_type(n.types[0].dtype);
  if (n.op == "Div" && is_float(t) && !constant(l_.fn(), n.args[1]) && !varies(n.args[1], p, outer)) {
    if (recips_.contains({n.args[1], p})) return hoist(outer, n.args[0], p);
    Operand r = outer.settle(outer.eval(n.args[1], p));
    r.reuse = false;
    r = outer.emit(S::recip, t, {r});
    r.reuse = false;
    recips_[{n.args[1], p}] = r;
    return hoist(outer, n.args[0], p);
  }
  for (Value a : n.args)
    if (a != kNoValue) hoist(outer, a, p);
}

}  // namespace gaf
