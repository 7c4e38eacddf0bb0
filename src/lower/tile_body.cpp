// Emission of pointwise nodes on one tile: values are asked for from the outputs down, each is written once, at the
// tile's rectangle. Knows scalar programs and accesses; loops, accumulators and the choice of tiles are the templates'.
#include <utility>

#include "lower/lowering.h"

namespace gaf {

using kir::S;

TileBody::TileBody(Lowering& l, std::vector<kir::Slice> at, int64_t rows, int64_t cols, const Space* space)
    : l_(l), space_(space) {
  set_rectangle(std::move(at), rows, cols);
}

void TileBody::set_rectangle(std::vector<kir::Slice> at, int64_t rows, int64_t cols) {
  at_ = std::move(at);
  rows_ = rows, cols_ = cols;
  col_dim_ = -1;
  n_rows_ = n_cols_ = 1;
  for (size_t i = 0; i < at_.size(); i++)
    if (at_[i].n) col_dim_ = static_cast<int>(i);
  for (size_t i = 0; i < at_.size(); i++)
    if (at_[i].n) (static_cast<int>(i) == col_dim_ ? n_cols_ : n_rows_) *= *at_[i].n;
  ragged_rows_ = !n_rows_.is(rows_);
  ragged_cols_ = !n_cols_.is(cols_);
}

TileBody TileBody::moved(std::vector<kir::Slice> at, int64_t rows, int64_t cols) const {
  TileBody out = *this;
  out.set_rectangle(std::move(at), rows, cols);
  out.varies_.clear();
  for (auto& [key, o] : out.have_) o.reuse = o.times_reuse = false;
  for (auto& [key, o] : out.bound_) o.reuse = false;
  return out;
}

std::vector<Access> TileBody::leaf_accesses() const {
  std::vector<Access> out;
  for (const auto& [key, a] : leaves_)
    if (a) out.push_back(*a);
  return out;
}

// ---- values ----

void TileBody::bind(Value v, kir::Ref tile, bool reuse) {
  const auto [r, c] = kir::extents(l_.b.k, tile);
  Operand o;
  o.type = kir::type_of(l_.b.k, tile);
  o.rows = !r.is(1), o.cols = !c.is(1);
  o.reuse = reuse && l_.readers(v) == 1;
  o.arg = std::move(tile);
  bound_[v] = std::move(o);
}

const Access* TileBody::leaf(Value v, const Path* p) {
  auto it = leaves_.find({v, p});
  if (it == leaves_.end()) {
    std::optional<Access> a;
    if (const Access* own = l_.access(v)) a = l_.through(*own, p, space_);
    it = leaves_.emplace(Key{v, p}, std::move(a)).first;
  }
  return it->second ? &*it->second : nullptr;
}

// A bound tile holds the value's elements as they lie over the space. Behind a view it serves only if the view leaves
// every element where it is: the strides of a dense stand-in tell.
bool TileBody::bound_at(Value v, const Path* p) const {
  if (!bound_.contains(v)) return false;
  if (!p) return true;
  const Access probe = dense(0, l_.fn().type(v).dims);
  const std::optional<Access> there = l_.through(probe, p, space_), here = l_.through(probe, nullptr, space_);
  return there && here && same_place(*there, *here);
}

TileBody::Operand TileBody::eval(Value v, const Path* p) {
  if (bound_at(v, p)) return bound_.at(v);
  if (auto it = have_.find({v, p}); it != have_.end()) return it->second;
  const Type& type = l_.fn().type(v);
  Operand o;
  if (const Tensor* t = constant(l_.fn(), v)) {
    GAF_CHECK(t->numel() == 1) << "a constant of several elements inside a kernel function";
    o.arg = is_float(t->dtype) ? t->get(0) : static_cast<double>(t->get_int(0));
    o.type = compute_type(type.dtype);
    return o;
  }
  if (l_.fn().node(v).op == "Extent") {
    o = converted(expr_tile(product(attr_exprs(l_.fn().node(v), "dims")), DType::i64), compute_type(type.dtype));
    o.reuse = false;
  } else if (const Access* a = leaf(v, p)) {
    o = load(*a, type.dtype, indices_[{v, p}]);
  } else if (std::optional<double> fill = l_.piece_fill(v, space_)) {
    o.arg = *fill;
    o.type = compute_type(type.dtype);
    return o;
  } else if (std::optional<Value> source = l_.step_source(v, space_)) {
    o = eval(*source, l_.path(v, p));
    o.reuse = false;
    if (o.times) o = settle(o);
  } else {
    GAF_CHECK(is_kind(l_.fn().node(v), OpKind::pointwise)) << l_.fn().node(v).op << " is not pointwise";
    o = node_program(v, p);
    o.reuse = o.reuse && l_.readers(v) == 1 && !keep_.contains(v);
    if (o.times && (l_.readers(v) != 1 || keep_.contains(v))) {
      o = settle(o);
      o.reuse = false;
    }
  }
  have_[{v, p}] = o;
  return o;
}

TileBody::Operand TileBody::node_program(Value v, const Path* p) {
  const Node& n = l_.fn().node(v);
  kir::ScalarProgram program = scalar_program(l_.fn(), n);
  if (l_.nonpositive(v) && program.steps.size() == 1 && program.steps[0].op == S::exp) program.steps[0].op = S::expn;
  if (auto it = n.op == "Div" ? recips_.find({n.args[1], p}) : recips_.end(); it != recips_.end()) {
    const DType t = program.steps[0].in;
    return emit_step({S::mul, t, t, {}}, compute_type(t), {eval(n.args[0], p), it->second}, true);
  }
  // a value that two operands or two steps read is not overwritten by the first of them
  std::vector<int> operand_uses(n.args.size(), 0), step_uses(program.steps.size(), 0);
  for (const kir::ScalarStep& s : program.steps)
    for (const kir::ScalarArg& a : s.args) {
      if (a.kind == kir::ScalarArg::operand) operand_uses[static_cast<size_t>(a.index)]++;
      if (a.kind == kir::ScalarArg::step) step_uses[static_cast<size_t>(a.index)]++;
    }
  std::vector<std::optional<Operand>> operands(n.args.size());
  for (size_t i = 0; i < n.args.size(); i++) {
    if (!operand_uses[i]) continue;
    operands[i] = eval(n.args[i], p);
    if (operand_uses[i] > 1) {
      if (operands[i]->times) operands[i] = settle(*operands[i]);
      operands[i]->reuse = false;
    }
  }
  std::vector<Operand> done;
  for (size_t k = 0; k < program.steps.size(); k++) {
    const kir::ScalarStep& s = program.steps[k];
    std::vector<Operand> args;
    for (const kir::ScalarArg& a : s.args) {
      Operand o;
      if (a.kind == kir::ScalarArg::operand)
        o = *operands[static_cast<size_t>(a.index)];
      else if (a.kind == kir::ScalarArg::step)
        o = done[static_cast<size_t>(a.index)];
      else
        o.arg = a.value, o.type = compute_type(s.in);
      args.push_back(std::move(o));
    }
    const bool last = k + 1 == program.steps.size();
    Operand r = emit_step(s, compute_type(s.out), std::move(args), last || step_uses[k] == 1);
    if (!last && step_uses[k] != 1) r.reuse = false;
    done.push_back(std::move(r));
  }
  return done.back();
}

// ---- statements ----

kir::Ref TileBody::fresh(DType t, bool rows, bool cols) {
  return l_.b.tile("t", t, rows ? rows_ : 1, cols ? cols_ : 1);
}

// Writes d = op(args), into the tile of an operand that nobody reads again where there is one.
TileBody::Operand TileBody::emit(S op, DType out, std::vector<Operand> args) {
  Operand o;
  o.type = out;
  for (const Operand& a : args) o.rows = o.rows || a.rows, o.cols = o.cols || a.cols;
  std::optional<kir::Ref> dst;
  std::vector<kir::Arg> list;
  for (const Operand& a : args) {
    const auto* r = std::get_if<kir::Ref>(&a.arg);
    if (!dst && a.reuse && r && r->tile && a.type == out && a.rows == o.rows && a.cols == o.cols) dst = *r;
    list.push_back(a.arg);
  }
  if (!dst) dst = fresh(out, o.rows, o.cols);
  l_.b.map(*dst, op, std::move(list));
  o.arg = *dst;
  o.reuse = true;
  return o;
}

TileBody::Operand TileBody::settle(Operand o) {
  if (!o.times) return o;
  Operand a = o, b = o;
  a.times.reset(), b.times.reset();
  b.arg = *o.times, b.reuse = o.times_reuse;
  return emit(S::mul, o.type, {a, b});
}

TileBody::Operand TileBody::converted(Operand o, DType to) {
  if (o.type == to) return o;
  if (o.number()) {
    o.type = to;
    return o;
  }
  return emit(S::cast, to, {settle(std::move(o))});
}

// May its result jump where the operand changes by a rounding?
static bool jumps(const kir::ScalarStep& s) {
  return s.op == S::floor || s.op == S::ceil || s.op == S::round || s.op == S::trunc || s.op == S::eq ||
         s.op == S::ne || s.op == S::lt || s.op == S::le || (s.op == S::cast && !is_float(s.out));
}

TileBody::Operand TileBody::emit_step(const kir::ScalarStep& s, DType out, std::vector<Operand> args, bool may_wait) {
  const DType in = compute_type(s.in);
  if (in != s.in && jumps(s))
    for (Operand& a : args)
      if (a.type == in && !a.number()) a = emit(S::cast, in, {emit(S::cast, s.in, {settle(std::move(a))})});
  if (s.op == S::cast || s.op == S::mov) {
    // f16 and bf16 are values of f32 here. What was asked to be rounded is rounded; the rest only when stored.
    if (s.op == S::cast && s.in != s.out && compute_type(s.out) != s.out && !args[0].number())
      return emit(S::cast, out, {emit(S::cast, s.out, {settle(args[0])})});
    if (args[0].type == out) return args[0];
    if (args[0].number()) {
      args[0].type = out;
      return args[0];
    }
    return emit(S::cast, out, {settle(args[0])});
  }
  const bool real = in == DType::f32 || in == DType::f64;
  if (real && s.op == S::mul && may_wait && args.size() == 2) {
    Operand a = settle(args[0]), b = settle(args[1]);
    Operand o = a;
    o.rows = a.rows || b.rows, o.cols = a.cols || b.cols;
    o.times = b.arg, o.times_reuse = b.reuse && b.rows == o.rows && b.cols == o.cols;
    o.reuse = a.reuse && a.rows == o.rows && a.cols == o.cols;
    return o;
  }
  if (real && s.op == S::add && args.size() == 2 && (args[0].times || args[1].times)) {
    Operand& p = args[0].times ? args[0] : args[1];
    Operand z = settle(args[0].times ? args[1] : args[0]);
    Operand x = p, y = p;
    x.times.reset(), y.times.reset();
    y.arg = *p.times, y.reuse = p.times_reuse;
    return emit(S::fma, out, {x, y, z});
  }
  if (real && s.op == S::sub && args.size() == 2 && args[0].times && args[1].number()) {
    Operand x = args[0], y = args[0], z = args[1];
    x.times.reset(), y.times.reset();
    y.arg = *args[0].times, y.reuse = args[0].times_reuse;
    z.arg = -*args[1].number();
    return emit(S::fma, out, {x, y, z});
  }
  if (real && s.op == S::div && args.size() == 2 && !args[1].cols && (args[0].cols || args[1].number())) {
    // one reciprocal for all columns: a division takes as long as many products
    Operand r = settle(args[1]);
    if (const double* c = r.number())
      r.arg = 1 / *c;
    else
      r = emit(S::recip, in, {r});
    const kir::ScalarStep product{S::mul, s.in, s.out, {}};
    return emit_step(product, out, {std::move(args[0]), std::move(r)}, may_wait);
  }
  for (size_t i = 0; i < args.size(); i++) {
    args[i] = settle(std::move(args[i]));
    if (s.op == S::select && i == 0)
      args[i] = converted(std::move(args[i]), DType::b1);
    else if (s.op != S::bitcast)
      args[i] = converted(std::move(args[i]), in);
  }
  return emit(s.op, out, std::move(args));
}

kir::Arg TileBody::get(Value v) {
  Operand o = eval(v, nullptr);
  if (o.times) {
    o = settle(o);
    have_[{v, nullptr}] = o;
  }
  return o.arg;
}

kir::Ref TileBody::tile(Value v) {
  Operand o = eval(v, nullptr);
  if (o.times) o = settle(o);
  const bool rows = rows_ > 1, cols = cols_ > 1;
  const auto* r = std::get_if<kir::Ref>(&o.arg);
  if (!r || !r->tile || o.rows != rows || o.cols != cols) {
    kir::Ref t = fresh(o.type, rows, cols);
    if (r && !r->tile && o.rows == rows && o.cols == cols)
      l_.b.copy(t, *r);
    else
      l_.b.map(t, S::mov, {o.arg});
    o.arg = t;
    o.rows = rows, o.cols = cols, o.reuse = false;
  }
  have_[{v, nullptr}] = o;
  return std::get<kir::Ref>(o.arg);
}

void TileBody::store(Value v, kir::Ref dst) {
  auto copy = [&](kir::Ref tile) {  // ^T stands on the source of a copy
    if (std::exchange(dst.transposed, false)) tile.transposed = true;
    l_.b.copy(std::move(dst), std::move(tile));
  };
  const DType type = kir::type_of(l_.b.k, dst);
  const auto [dr, dc] = kir::extents(l_.b.k, dst);
  // a plain copy keeps its dtype: no way through f32
  if (const Access* a = bound_.contains(v) ? nullptr : leaf(v, nullptr);
      a && compute_type(type) != type && a->indirect.empty()) {
    kir::Ref src = rectangle(*a);
    if (kir::type_of(l_.b.k, src) == type && kir::extents(l_.b.k, src) == std::pair{dr, dc}) {
      kir::Ref raw = fresh(type, !dr.is(1), !dc.is(1));
      l_.b.copy(raw, std::move(src), ragged() ? std::optional<double>(0) : std::nullopt);
      copy(cut(raw));
      return;
    }
  }
  Operand o = eval(v, nullptr);
  if (o.times) {
    o = settle(o);
    have_[{v, nullptr}] = o;
  }
  const bool rows = !dr.is(1) && rows_ > 1, cols = !dc.is(1) && cols_ > 1;
  const auto* r = std::get_if<kir::Ref>(&o.arg);
  const bool same_shape = o.rows == rows && o.cols == cols;
  if (r && o.type != type) {  // rounds to the dtype in memory
    o.reuse = false;
    o = emit(S::cast, type, {o});
    r = std::get_if<kir::Ref>(&o.arg);
  }
  kir::Ref t;
  if (r && r->tile && same_shape) {
    t = *r;
  } else {
    t = fresh(type, rows, cols);
    if (r && !r->tile && same_shape)
      l_.b.copy(t, *r);
    else
      l_.b.map(t, S::mov, {o.arg});
  }
  copy(cut(t));
}

void TileBody::accumulate(S op, kir::Ref acc, Value v) {
  const DType t = kir::type_of(l_.b.k, acc);
  Operand o = converted(eval(v, nullptr), t);
  if (op == S::add && o.times) {
    l_.b.map(acc, S::fma, {o.arg, *o.times, acc});
  } else {
    o = settle(std::move(o));
    l_.b.map(acc, op, {acc, o.arg});
  }
}

void TileBody::store_output(size_t output) {
  const Lowering::Sink& sink = l_.output_sink(output);
  const std::optional<Access> a = l_.through(sink.access, nullptr, space_);
  GAF_CHECK(a) << "output " << output << " has no rectangle in the iteration space";
  store(sink.value, rectangle(*a));
}

}  // namespace gaf
