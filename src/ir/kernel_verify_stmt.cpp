// Verifier: what each statement demands of its operands' memories, dtypes and shapes.
#include <algorithm>

#include "ir/kernel_verify.h"
#include "ir/legalise_scratch.h"

namespace gaf::kir {
namespace {
bool has(const std::vector<Mem>& v, Mem m) { return std::find(v.begin(), v.end(), m) != v.end(); }
std::string mem_name(Mem m) { return std::string(kMemName[static_cast<int>(m)]); }
std::string dtype_name(DType t) { return std::string(name(t)); }
}  // namespace

float Verifier::cycles(S op) const {
  const ScalarRow& r = row(op);
  if (t_.pipes) return r.npu;
  return t_.isa == "avx512" ? r.avx512 : t_.isa == "avx2" ? r.avx2 : r.sse;
}

void Verifier::instruction(S op, DType t) {
  if (cycles(op) == 0)
    complain(std::string(row(op).name) + " is not an instruction of " + t_.name + ": legalise first");
  if (!computes(op, t)) complain(std::string(row(op).name) + " does not compute in " + dtype_name(t));
}

void Verifier::vector_source(const Ref& r) {
  if (!has(t_.map_src, mem_of(k_, r)))
    complain(show(r) + " cannot be read by a vector statement from " + mem_name(mem_of(k_, r)));
  if (r.transposed) complain(show(r) + ": ^T stands in copy and mma only");
  const Buf* b = r.tile ? nullptr : &k_.bufs[static_cast<size_t>(r.id)];
  if (b && b->role == Role::view && !r.at.empty()) {  // the stride of the columns: of the last ranged dim
    for (size_t i = r.at.size(); i-- > 0;)
      if (r.at[i].n) {
        if (!b->strides[i].is(0) && !b->strides[i].is(1) && !b->strides[i].is(-1) && !r.at[i].n->is(1))
          complain(show(r) + ": columns of stride " + print_expr(k_, b->strides[i]) + " must be copied first");
        break;
      }
  }
}

void Verifier::vector_result(const Ref& d, std::string_view what, bool fill) {
  Mem m = mem_of(k_, d);
  if (m != t_.map_dst && !(fill && m == Mem::scratch))
    complain("the result of " + std::string(what) + " must lie in " + mem_name(t_.map_dst));
  if (d.transposed) complain(show(d) + ": ^T stands in copy and mma only");
}

// A whole tile takes the extents (they must fit); a part must have them.
void Verifier::result(const Ref& d, const Shape& s, std::string_view what) {
  Shape own = reference(d, Access::write);
  if (!s.known) return;
  if (d.tile && d.at.empty()) {
    const Tile& t = k_.tiles[static_cast<size_t>(d.id)];
    if (!bounds_.at_most(s.rows, t.rows) || !bounds_.at_most(s.cols, t.cols))
      complain(std::string(what) + ": [" + print_expr(k_, s.rows) + ", " + print_expr(k_, s.cols) + "] does not fit " +
               show(d));
  } else if (!equal(own.rows, s.rows) || !equal(own.cols, s.cols)) {
    complain(std::string(what) + ": [" + print_expr(k_, s.rows) + ", " + print_expr(k_, s.cols) + "] and " + show(d) +
             " differ in shape");
  }
}

void Verifier::scratch(int tmp, const Ref& dst, const std::vector<const Ref*>& operands, const Stmt& s) {
  if (tmp < 0) return;
  const Tile& t = k_.tiles[static_cast<size_t>(tmp)];
  if (!tiles_[static_cast<size_t>(tmp)].live)
    complain("tile " + t.name + " is used outside the block that declares it");
  auto is = [&](const Ref& r) { return r.tile && r.id == tmp; };
  if (is(dst) || std::any_of(operands.begin(), operands.end(), [&](const Ref* r) { return is(*r); }))
    complain("tmp " + t.name + " is an operand");
  std::optional<Tile> want = scratch_of(k_, t_, s);
  int64_t need = want ? want->size_bytes() : 0;
  for (const Ref* r : operands) {  // no rule for it: room for an operand
    if (want) break;
    auto [rows, cols] = extents(k_, *r);
    need = std::max(need, bounds_.most(rows * cols) * bytes(type_of(k_, *r)));
  }
  if (want && t.mem != want->mem) complain("tmp " + t.name + " must lie in " + mem_name(want->mem));
  if (want && t.type != want->type) complain("tmp " + t.name + " must be " + dtype_name(want->type));
  if (t.size_bytes() < need) complain("tmp " + t.name + " needs " + std::to_string(need) + " bytes");
}

void Verifier::check(const Copy& c) {
  Shape s = reference(c.src, c.pad ? Access::loose : Access::read);
  Mem from = mem_of(k_, c.src), to = mem_of(k_, c.dst);
  const EdgeRow* e = t_.edge(from, to);
  if (!e) complain("no copy from " + mem_name(from) + " to " + mem_name(to) + " on this target");
  if (e && !e->casts && type_of(k_, c.src) != type_of(k_, c.dst))
    complain("copy: " + show(c.src) + " and " + show(c.dst) + " differ in dtype");
  if (c.relu && e && !e->relu) complain("this copy cannot apply relu");
  if (t_.pipes && c.pad) complain("copies of this target cannot fill: give the tile smaller extents");
  if (t_.pipes && c.src.transposed) complain("copies of this target cannot turn rows and columns");
  if (c.dst.transposed) complain(show(c.dst) + ": ^T stands on the source of a copy");
  Shape d = result_shape(k_, tiles_, {c});
  if (s.known && d.known) {
    Shape own = c.dst.tile && c.dst.at.empty() ? Shape{k_.tiles[static_cast<size_t>(c.dst.id)].rows,
                                                       k_.tiles[static_cast<size_t>(c.dst.id)].cols, true}
                                               : shape_of(k_, tiles_, c.dst);
    bool turned = (s.rows.is(1) && own.cols.is(1)) || (s.cols.is(1) && own.rows.is(1));
    bool same = equal(s.rows, own.rows) && equal(s.cols, own.cols);
    bool same_turned = turned && equal(s.rows, own.cols) && equal(s.cols, own.rows);
    auto fits = [&](const Expr& r, const Expr& q) {
      return bounds_.at_most(r - own.rows, 0) && bounds_.at_most(q - own.cols, 0);
    };
    bool partial = c.pad || (c.dst.tile && c.dst.at.empty());
    if (!same && !same_turned && !(partial && (fits(s.rows, s.cols) || (turned && fits(s.cols, s.rows)))))
      complain("copy: [" + print_expr(k_, s.rows) + ", " + print_expr(k_, s.cols) + "] does not fit " + show(c.dst) +
               " [" + print_expr(k_, own.rows) + ", " + print_expr(k_, own.cols) + "]");
  }
  reference(c.dst, Access::write);
}

void Verifier::check(const Map& m) {
  const ScalarRow& op = row(m.op);
  std::string what(op.name);
  if (static_cast<int>(m.args.size()) != op.arity)
    return complain(what + " takes " + std::to_string(op.arity) + " operands");
  DType to = type_of(k_, m.dst), in = to;
  bool free_type = m.op == S::cast || m.op == S::bitcast || op.nan == Nan::never;
  std::vector<const Ref*> refs;
  std::vector<Shape> shapes;
  bool first = true;
  for (size_t i = 0; i < m.args.size(); i++) {
    const Ref* r = std::get_if<Ref>(&m.args[i]);
    if (!r) continue;
    shapes.push_back(reference(*r, Access::read));
    vector_source(*r);
    refs.push_back(r);
    DType t = type_of(k_, *r);
    if (m.op == S::select && i == 0) {
      if (t != DType::b1) complain("select needs a b1 first, not " + show(*r));
      continue;
    }
    if (!free_type && t != to) complain(what + ": " + show(*r) + " and " + show(m.dst) + " differ in dtype");
    if (!first && t != in) complain(what + ": operands differ in dtype");
    in = t, first = false;
  }
  if (op.nan == Nan::never && to != DType::b1) complain(what + " gives b1");
  if (m.op == S::bitcast && bytes(in) != bytes(to))
    complain("bitcast: " + dtype_name(in) + " and " + dtype_name(to) + " differ in width");
  instruction(m.op, in);
  bool fill = m.op == S::mov && refs.empty();
  vector_result(m.dst, what, fill);
  Shape s = result_shape(k_, tiles_, {m});
  for (size_t i = 0; i < shapes.size(); i++)
    if (shapes[i].known && s.known &&
        ((!shapes[i].rows.is(1) && !equal(shapes[i].rows, s.rows)) ||
         (!shapes[i].cols.is(1) && !equal(shapes[i].cols, s.cols))))
      complain(what + ": " + show(*refs[i]) + " [" + print_expr(k_, shapes[i].rows) + ", " +
               print_expr(k_, shapes[i].cols) + "] does not broadcast to [" + print_expr(k_, s.rows) + ", " +
               print_expr(k_, s.cols) + "]");
  result(m.dst, s, what);
  scratch(m.tmp, m.dst, refs, {m});
  if ((m.op == S::max || m.op == S::min) && is_float(to) && std::holds_alternative<double>(m.args[1]) &&
      std::holds_alternative<Ref>(m.args[0]))
    complain(what + " with the constant second loses a NaN: write " + what + "(constant, x)", true);
}

void Verifier::check(const Reduce& r) {
  std::string what = "reduce";
  Shape s = reference(r.src, Access::read);
  (void)s;
  if (!can_reduce(r.op))
    complain(std::string(row(r.op).name) + " is not a reduction");
  else
    instruction(r.op, type_of(k_, r.src));
  if (r.axis < 0 || r.axis > 2) complain("reduce: the axis is 0, 1 or 2 (both)");
  if (type_of(k_, r.src) != type_of(k_, r.dst))
    complain("reduce: " + show(r.src) + " and " + show(r.dst) + " differ in dtype");
  vector_source(r.src), vector_result(r.dst, what);
  result(r.dst, result_shape(k_, tiles_, {r}), what);
  scratch(r.tmp, r.dst, {&r.src}, {r});
}

void Verifier::check(const Mma& m) {
  Shape a = reference(m.a, Access::read), b = reference(m.b, Access::read);
  for (const Ref& p : m.prefetch) reference(p, Access::hint);
  if (m.bias) {
    Shape s = reference(*m.bias, Access::read);
    if (m.add) complain("mma: a bias stands with '=' only");
    if (!s.rows.is(1) || (s.known && b.known && !equal(s.cols, b.cols)))
      complain("mma: the bias " + show(*m.bias) + " is not [1, columns]");
  }
  if (!has(t_.mma.a, mem_of(k_, m.a)) || !has(t_.mma.b, mem_of(k_, m.b)) || mem_of(k_, m.dst) != t_.mma.acc)
    complain("mma: operands are not where this target's mma takes them");
  if (a.known && b.known && !equal(a.cols, b.rows))
    complain("mma: inner sizes " + print_expr(k_, a.cols) + " and " + print_expr(k_, b.rows) + " differ");
  DType ta = type_of(k_, m.a), tb = type_of(k_, m.b), td = type_of(k_, m.dst);
  bool ints = is_int(ta) && is_int(tb) && bytes(ta) == 1 && bytes(tb) == 1;
  if (ta != tb && !ints) complain("mma: " + show(m.a) + " and " + show(m.b) + " differ in dtype");
  DType want = ints ? DType::i32 : ta == DType::f64 ? DType::f64 : DType::f32;
  if (!ints && !is_float(ta))
    complain("mma does not multiply " + dtype_name(ta));
  else if (td != want)
    complain("mma of " + dtype_name(ta) + " accumulates in " + dtype_name(want));
  Shape s = result_shape(k_, tiles_, {m});
  if (m.add) {
    Shape old = reference(m.dst, Access::read);
    if (old.known && s.known && (!equal(old.rows, s.rows) || !equal(old.cols, s.cols)))
      complain("mma: [" + print_expr(k_, s.rows) + ", " + print_expr(k_, s.cols) + "] is added to " + show(m.dst) +
               " [" + print_expr(k_, old.rows) + ", " + print_expr(k_, old.cols) + "]");
  }
  const MmaRow& lim = t_.mma;
  if (!t_.pipes && s.known && (!bounds_.at_most(s.rows, lim.m) || !bounds_.at_most(s.cols, lim.n)))
    complain("mma: the register tile is larger than " + std::to_string(lim.m) + "x" + std::to_string(lim.n));
  if (t_.pipes) {  // of the tiles; what lies in them may be ragged
    auto multiple = [&](const Ref& r, int rows, int cols) {
      auto [nr, nc] = extents(k_, r);
      return (!nr.is_num() || nr.num() % rows == 0) && (!nc.is_num() || nc.num() % cols == 0);
    };
    if (!multiple(m.dst, lim.m, lim.n) || !multiple(m.a, lim.m, lim.k) || !multiple(m.b, lim.k, lim.n))
      complain("mma: tiles must be multiples of " + std::to_string(lim.m) + ", " + std::to_string(lim.k) + ", " +
               std::to_string(lim.n));
  }
  result(m.dst, s, "mma");
}

void Verifier::check(const Iota& i) {
  DType t = type_of(k_, i.dst);
  if (t != DType::i32 && t != DType::i64 && t != DType::f32) complain("iota gives i32, i64 or f32");
  if (i.axis != 0 && i.axis != 1) complain("iota: the axis is 0 or 1");
  symbols(i.base);
  vector_result(i.dst, "iota");
  result(i.dst, result_shape(k_, tiles_, {i}), "iota");
}

void Verifier::check(const Gather& g) {
  reference(g.src, Access::read), reference(g.index, Access::read);
  DType t = type_of(k_, g.index);
  if (t != DType::i32 && t != DType::i64) complain("gather: the index " + show(g.index) + " must be i32 or i64");
  if (type_of(k_, g.src) != type_of(k_, g.dst))
    complain("gather: " + show(g.src) + " and " + show(g.dst) + " differ in dtype");
  vector_source(g.index), vector_result(g.dst, "gather");
  result(g.dst, result_shape(k_, tiles_, {g}), "gather");
}

}  // namespace gaf::kir
