// Contractions seen as products. See product.h.
#include "lower/product.h"

#include <fmt/format.h>

#include <algorithm>

namespace gaf {
namespace {

Roles roles(const Graph& fn, const Node& n) {
  Roles r;
  size_t a = fn.type(n.args[0]).dims.size(), b = fn.type(n.args[1]).dims.size(), out = n.types[0].dims.size();
  auto last = [](size_t rank, size_t back) { return static_cast<int>(rank) - static_cast<int>(back); };
  if (n.op == "Conv") {  // [N, spatial..., C] x [O, C, 1...]
    r.batch = out - 2, r.a_m = last(a, 2), r.a_k = last(a, 1), r.n_dim = 0, r.k_dim = 1;
    return r;
  }
  r.a_vector = a == 1, r.b_vector = b == 1;
  r.batch = out - (r.a_vector ? 0 : 1) - (r.b_vector ? 0 : 1);
  r.a_k = last(a, 1), r.a_m = r.a_vector ? -1 : last(a, 2);
  r.k_dim = r.b_vector ? 0 : last(b, 2), r.n_dim = r.b_vector ? -1 : last(b, 1);
  if (attr_int(n, "transA", 0)) std::swap(r.a_k, r.a_m);
  if (attr_int(n, "transB", 0)) std::swap(r.k_dim, r.n_dim);
  return r;
}

// Batch dims of an operand, aligned right against the result's.
Dims batch_dims(const Dims& operand, size_t own, size_t batch) {
  Dims d(operand.begin(), operand.begin() + static_cast<long>(std::min(own, operand.size())));
  Dims p(batch > d.size() ? batch - d.size() : 0, Expr(1));
  p.insert(p.end(), d.begin(), d.end());
  return p;
}

}  // namespace

// Batch dims from `first` on are rows.
Product::Product(const Graph& fn, uint32_t node, const Target& t, size_t first) : t_(t), l_(split_bias(fn, node), t) {
  op_ = fn.nodes[node].op;
  anchor_ = find_anchor(l_, op_);
  const Graph& g = l_.fn();
  const Node& n = g.nodes[anchor_];
  roles_ = roles(g, n);
  const Dims& a = g.type(n.args[0]).dims;
  const Dims& b = g.type(n.args[1]).dims;
  size_t batch = roles_.batch;
  a_batch_ = batch_dims(a, op_ == "Conv" ? batch : own_batch(a.size()), batch);
  b_batch_ = batch_dims(b, op_ == "Conv" ? 0 : own_batch(b.size()), batch);
  ok_ = first <= batch && group(n.types[0].dims, first);
  if (!ok_) return;
  a_dims_ = operand_dims(a_batch_, roles_.a_vector ? Expr(1) : a[static_cast<size_t>(roles_.a_m)],
                         a[static_cast<size_t>(roles_.a_k)]);
  space_.dims = l_.sizes(n.types[0].dims);
  for (auto [lo, hi] : groups_) space_.merge.push_back(hi - lo);
}

std::optional<Verdict> Product::prepare(bool& again) {
  again = true;
  const Node& n = node();
  auto no = [&](std::string reason, std::string_view why) {
    return Verdict::no(std::move(reason), fmt::format("{} '{}' {}", n.op, n.name, why));
  };
  if (!ok_) return no("iteration-mismatch", "has batch dims that its second operand has too");
  if (std::optional<Verdict> v = refuse_space(l_, anchor_, space_)) return v;
  again = false;
  bool made = !l_.access(n.args[0]);
  if (!made)
    if (Verdict v = check_operands(l_, anchor_); !v.ok) return v;
  for (Value v : {n.args[0], n.args[1], Value{anchor_, 0}})
    if (DType d = l_.fn().type(v).dtype; d != DType::f32)
      return no("unsupported-dtype", fmt::format("of {} has no kernel", name(d)));
  Dims out = space_.merged();
  m_ = out[out.size() - 2], n_ = out.back(), k_ = l_.size(a_dims_.back());
  batch_.assign(out.begin(), out.end() - 2);
  if (made)
    if (std::optional<Verdict> v = find_made_a()) return v;
  again = true;
  if ((!made && !find_a()) || !find_b()) return no("layout", "has an operand that is no strided view");
  return std::nullopt;
}

// Batch dims from `first` on become rows, if B does not have them and A has them in full.
bool Product::group(const Dims& full, size_t first) {
  size_t n = roles_.batch + (roles_.a_vector ? 0 : 1);
  bool turned = !roles_.a_vector && roles_.a_m > roles_.a_k;
  for (size_t i = first; i < roles_.batch; i++)
    if (turned || roles_.a_vector || !(a_batch_[i] == full[i]) || !b_batch_[i].is(1)) return false;
  for (size_t i = 0; i < first; i++) groups_.push_back({i, i + 1});
  groups_.push_back({first, n});
  groups_.push_back({n, full.size()});
  return true;
}

// Grouped batch dims of an operand, then its two own dims; `rows` takes in what the group of M merges.
Dims Product::operand_dims(const Dims& batch, const Expr& rows, const Expr& cols) const {
  Dims d;
  for (size_t i = 0; i + 2 < groups_.size(); i++)
    d.push_back(product(std::span(batch).subspan(groups_[i].first, groups_[i].second - groups_[i].first)));
  auto [lo, hi] = groups_[groups_.size() - 2];
  Expr r = rows;
  for (size_t i = lo; i < std::min(hi, batch.size()); i++) r *= batch[i];
  d.push_back(r);
  d.push_back(cols);
  return d;
}

std::optional<Access> Product::swap_last(const Access& a) {
  std::vector<int64_t> perm;
  for (size_t i = 0; i < a.dims.size(); i++) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(a, perm);
}

bool Product::find_a() {
  Lowering& l = l_;
  Dims want = l.sizes(a_dims_);
  bool turned = !roles_.a_vector && roles_.a_m > roles_.a_k;
  if (turned) std::swap(want[want.size() - 1], want[want.size() - 2]);
  std::optional<Access> a = reshape(*l.access(node().args[0]), want);
  if (a && turned) a = swap_last(*a);
  if (!a) return false;
  a_ = *a;
  copy_a_ = !unit_inner(a_);
  return true;
}

std::optional<Verdict> Product::find_made_a() {
  const Node& n = node();
  const Node& last = l_.fn().node(n.args[0]);
  auto no = [&](std::string reason, std::string_view why) {
    return Verdict::no(std::move(reason), fmt::format("{} '{}' {} {}", last.op, last.name, why, n.op));
  };
  const Dims& dims = l_.fn().type(n.args[0]).dims;
  bool as_it_stands =
      !roles_.a_vector && roles_.a_m < roles_.a_k && dims.size() == groups_[groups_.size() - 2].second + 1;
  if (!as_it_stands || !l_.access(n.args[1])) return no("not-fusable-op", "stands before");
  if (!k_.is_num()) return no("dynamic-shape", "has rows of symbolic length before");
  Space s;
  s.dims = l_.sizes(dims);
  for (size_t i = 0; i + 1 < groups_.size(); i++) s.merge.push_back(groups_[i].second - groups_[i].first);
  s.merge.push_back(1);
  std::vector<kir::Slice> at(s.merge.size(), one(0));
  at[at.size() - 2] = at.back() = span_of(0, 1);
  if (std::optional<Verdict> why = TileBody(l_, at, 1, 1, &s).refuse(n.args[0])) return why;
  made_a_ = std::move(s);
  copy_a_ = true;
  return std::nullopt;
}

bool Product::find_b() {
  Lowering& l = l_;
  Value b = node().args[1];
  const Node& source = l.fn().node(b);
  if (source.op == "input" && attr_int(source, "const", 0)) {
    constant_b_ = b;
    return true;
  }
  const Dims& dims = l.fn().type(b).dims;
  Dims own = operand_dims(b_batch_, 1, 1);
  own[own.size() - 2] = dims[static_cast<size_t>(roles_.k_dim)];
  own.back() = roles_.n_dim < 0 ? Expr(1) : dims[static_cast<size_t>(roles_.n_dim)];
  bool turned = roles_.n_dim >= 0 && roles_.n_dim < roles_.k_dim;
  Dims want = l.sizes(own);
  if (turned) std::swap(want[want.size() - 1], want[want.size() - 2]);
  std::optional<Access> r = reshape(*l.access(b), want);
  if (r && turned) r = swap_last(*r);
  if (!r) return false;
  b_ = *r;
  turn_b_ = !unit_inner(b_);
  return true;
}

}  // namespace gaf
