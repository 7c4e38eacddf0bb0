// Elementwise statements: map, iota, gather, and read. Each handles a row in the chunks of its destination; operands
// come as lanes, whatever they are (numbers, register tiles, memory, broadcast rows or columns).
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

DType Emitter::operand_type(const Map& m) const {
  for (size_t i = m.op == S::select ? 1 : 0; i < m.args.size(); i++)
    if (const Ref* r = std::get_if<Ref>(&m.args[i])) return type_of(k_, *r);
  return type_of(k_, m.dst);
}

Emitter::Operand Emitter::operand(const Arg& a, DType like) {
  Operand o;
  o.type = like;
  if (const double* v = std::get_if<double>(&a)) {
    o.number = *v;
    return o;
  }
  const Ref& r = std::get<Ref>(a);
  o.type = type_of(k_, r);
  auto dynamic = [&](const Expr& n) { return syms_.number(n) ? std::nullopt : std::optional(n); };
  if (in_reg(r)) {
    o.reg = true;
    o.part = part(r);
    o.rows = o.part.rows, o.cols = o.part.cols, o.nrows = o.part.nrows, o.ncols = o.part.ncols;
  } else {
    o.window = window(r);
    o.rows = o.window.rows, o.cols = o.window.cols;
    o.nrows = dynamic(o.window.nrows), o.ncols = dynamic(o.window.ncols);
  }
  return o;
}

Val Emitter::fetch(Operand& o, int64_t r, int64_t c, int64_t n) {
  if (o.number) return constant(o.type, *o.number, n);
  if (o.rows == 1) r = 0;
  const int lanes = static_cast<int>(n);
  if (o.reg) {
    if (o.cols == 1) return ir_.splat(get(o.part.tile, o.part.r + r, o.part.c, 1), lanes);
    return get(o.part.tile, o.part.r + r, o.part.c + c, n);
  }
  if (o.cols == 1) c = 0;
  const int64_t m = o.cols == 1 ? 1 : n;
  Val& v = o.loaded[{r, c, m}];
  if (!v) v = load(o.window, r, c, m);
  return m == n ? v : ir_.splat(v, lanes);
}

Val Emitter::apply(const Map& m, DType like, std::vector<Operand>& args, int64_t r, int64_t c, int64_t n) {
  Vals v;
  for (Operand& o : args) v.push_back(fetch(o, r, c, n));
  const DType out = type_of(k_, m.dst);
  if (m.op == S::cast || m.op == S::mov) return convert(v[0], args[0].type, out);
  if (m.op == S::bitcast) return reinterpret(v[0], args[0].type, out);
  return scalar(m.op, like, std::move(v));
}

void Emitter::emit(const Map& m) {
  const DType like = operand_type(m);
  std::vector<Operand> args;
  for (size_t i = 0; i < m.args.size(); i++)
    args.push_back(operand(m.args[i], m.op == S::select && i == 0 ? DType::b1 : like));
  if (!in_reg(m.dst)) return map_to_memory(m, like, args);
  const Part d = part(m.dst);
  const bool whole = m.dst.at.empty();
  struct Out {
    int64_t r, c, n;
    Val v;
  };
  std::vector<Out> out;   // written at the end: the destination may be an operand
  int64_t rows = d.rows;  // an operand may have fewer: then so has the result
  for (const Operand& o : args)
    if (!o.number && o.rows > 1) rows = std::min(rows, o.rows);
  for (int64_t r = 0; r < rows; r++)
    for_chunks(d, [&](int64_t c, int64_t n) { out.push_back({r, c, n, apply(m, like, args, r, c, n)}); });
  for (const Out& o : out) set_valid(d, whole, o.r, o.c, o.n, o.v);
  if (!whole) return;
  RegTile& t = tiles_.at(m.dst.id);
  t.rows.reset(), t.cols.reset();
  for (const Operand& o : args) {
    if (o.number) continue;
    if (o.rows > 1 && (o.nrows || o.rows < d.rows)) t.rows = o.nrows ? *o.nrows : Expr(o.rows);
    if (o.cols > 1 && (o.ncols || o.cols < d.cols)) t.cols = o.ncols ? *o.ncols : Expr(o.cols);
  }
}

// Into scratch or a buffer: rows and columns in loops, a few of them written out.
void Emitter::map_to_memory(const Map& m, DType like, std::vector<Operand>& args) {
  const Window d = window(m.dst);
  bool by_hand = d.inner != 0 || !syms_.number(d.nrows);  // rows whose numbers must be known
  for (const Operand& o : args) by_hand = by_hand || (o.reg && o.rows > 1) || o.window.inner || o.window.row_bound.hi;
  const int64_t lanes = chunk(d.cols);
  repeat(by_hand ? Expr(d.rows) : d.nrows, 1, by_hand ? d.rows : 4, [&](Val i, std::optional<int64_t> known) {
    Window row = d;
    std::vector<Operand> a = args;
    if (!known) {
      row = moved(d, i, nullptr);
      for (Operand& o : a)
        if (!o.number && !o.reg && o.rows > 1) o.window = moved(o.window, i, nullptr), o.rows = 1;
    }
    const int64_t r = known.value_or(0);
    auto columns = [&](const Window& w, std::vector<Operand>& ops, int64_t c, int64_t n) {
      store(w, r, c, n, apply(m, like, ops, r, c, n));
    };
    const bool in_regs = std::any_of(a.begin(), a.end(), [](const Operand& o) { return o.reg && o.cols > 1; });
    if (in_regs || d.cols <= 16 * lanes) {
      for (int64_t c = 0; c < d.cols; c += lanes) columns(row, a, c, d.cols - c < lanes ? chunk(d.cols - c) : lanes);
      return;
    }
    auto from = [&](Val c, Val left) {
      Window w = moved(row, nullptr, c);
      w.columns_left = left;
      std::vector<Operand> ops = a;
      for (Operand& o : ops)
        if (!o.number && !o.reg && o.cols > 1) o.window = moved(o.window, nullptr, c), o.window.columns_left = left;
      columns(w, ops, 0, lanes);
    };
    Val n = syms_.value(d.ncols), full = ir_.sub(n, ir_.and_(n, ir_.i64(lanes - 1)));
    loop_if_any(ir_.i64(0), full, lanes, {}, [&](Val c, const Vals&) { return from(c, ir_.i64(lanes)), Vals{}; });
    when(ir_.icmp(Pred::lt, full, n), [&] { from(full, ir_.sub(n, full)); });
  });
}

void Emitter::emit(const Iota& m) {
  GAF_CHECK(in_reg(m.dst)) << "iota into memory";
  const Part d = part(m.dst);
  const DType type = tile(m.dst.id).type;
  Val base = syms_.value(m.base);
  for (int64_t r = 0; r < d.rows; r++)
    for_chunks(d, [&](int64_t c, int64_t n) {
      std::vector<int64_t> numbers(static_cast<size_t>(n), r);
      if (m.axis == 1) std::iota(numbers.begin(), numbers.end(), c);
      Val v = ir_.add(ir_.splat(base, static_cast<int>(n)), ir_.ilist(Elem::i64, numbers));
      set_valid(d, m.dst.at.empty(), r, c, n, convert(v, DType::i64, type));
    });
  if (m.dst.at.empty()) tiles_.at(m.dst.id).rows.reset(), tiles_.at(m.dst.id).cols.reset();
}

void Emitter::emit(const Gather& m) {
  GAF_CHECK(in_reg(m.dst) && !in_reg(m.src)) << "gather goes from memory to a register tile";
  const Part d = part(m.dst);
  const Window src = window(m.src);
  const int64_t size = gaf::bytes(src.type);
  GAF_CHECK(src.col.n == size && (src.rows == 1 || src.row.n == src.cols * size)) << "gather from a strided rectangle";
  Operand index = operand(Arg{m.index}, DType::i32);
  Val base = address(src, 0, 0);
  const bool whole = m.dst.at.empty();
  const std::optional<Expr> rows = whole && index.rows > 1 ? index.nrows : d.nrows,
                            cols = whole && index.cols > 1 ? index.ncols : d.ncols;
  for (int64_t r = 0; r < d.rows; r++)
    for_chunks(d, [&](int64_t c, int64_t n) {
      Val at = fetch(index, r, c, n);
      if (!row(index.type).is_signed) at = ir_.zext(at, Elem::i64);
      // Lanes that do not exist hold anything: they take element 0.
      Lanes l;
      if (cols)
        l.hi = ir_.sub(syms_.value(*cols), ir_.i64(c));
      else if (c + n > d.cols)
        l.hi = ir_.i64(d.cols - c);
      if (rows)
        l.hi = ir_.select(ir_.icmp(Pred::lt, ir_.i64(r), syms_.value(*rows)), l.hi ? l.hi : ir_.i64(n), ir_.i64(0));
      const Type it = ir_.type(at);
      if (l.hi) at = ir_.select(lane_mask(n, l, it.e), at, ir_.inum(it, 0));
      const Type t{memory_elem(src.type), static_cast<int>(n)};
      Val v =
          n == 1
              ? ir_.load(t, ir_.offset(base, ir_.mul(it.e == Elem::i64 ? at : ir_.sext(at, Elem::i64), ir_.i64(size))),
                         size)
              : ir_.gather(t, base, at, ir_.inum({Elem::i1, t.lanes}, 1));
      if (src.type == DType::b1) v = ir_.icmp(Pred::ne, v, ir_.inum(t, 0));
      set_valid(d, whole, r, c, n, v);
    });
  if (whole) tiles_.at(m.dst.id).rows = rows, tiles_.at(m.dst.id).cols = cols;
}

// The symbol lives to the end of the block: what is computed from it is hoisted to here.
void Emitter::emit(const Read& m) {
  Val v;
  const DType type = type_of(k_, m.src);
  if (in_reg(m.src)) {
    const Part p = part(m.src);
    v = get(p.tile, p.r, p.c, 1);
  } else {
    v = load(window(m.src), 0, 0, 1);
  }
  v = convert(v, type, DType::i64);
  const Range r{syms_.range(m.lo).lo, syms_.range(m.hi).hi - 1};
  syms_.open();
  syms_.bind(m.sym, v, r);
}

}  // namespace gaf::cpu
