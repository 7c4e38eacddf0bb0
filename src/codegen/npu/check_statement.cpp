// Rules 1 to 5, 9 and 10: what each statement may be, for the device and for the language.
#include <algorithm>

#include "codegen/npu/check.h"
#include "codegen/npu/index.h"

namespace gaf::npu {

using namespace kir;

namespace {

// Limits of the documents. Copies gm <-> ub: DataCopyPad; gm -> l1: DataCopy ND to NZ; l1 -> l0: LoadData (a count of 8
// bits); mma: Mmad; l0c -> gm: Fixpipe; column: Brcb spreads 8 values a repeat, at most 255 repeats.
namespace limit {
constexpr int64_t copy_rows = 4095, copy_row_bytes = (1 << 21) - 1;
constexpr int64_t nz_rows = 16384, nz_cols = 65535, nz_stride = 65535;
constexpr int64_t repeats = 255;
constexpr int64_t mma_size = 4095;
constexpr int64_t fix_cols = 4095, fix_rows = 8192;
constexpr int64_t column_rows = 8 * repeats;
}  // namespace limit

struct Checker final : Walk {
  Checker(const Kernel& k, const Target& t, NpuLanguage l, const Report& report)
      : Walk(k), t_(t), l_(l), report_(report), facts_(k, t), ranges_(k.syms.size()) {}

  void kernel() {
    if (k_.body.empty()) return;
    at_ = &k_.body.front();
    if (!t_.pipes) cannot("target " + t_.name + " has no pipes to generate this language for");
    if (!size_symbols(k_).empty()) cannot("sizes must be known: give every free dimension a value");
    if (taken(k_.name)) cannot("the name " + k_.name + " is one of the language's own");
    run();
  }

 private:
  const Target& t_;
  const NpuLanguage l_;
  const Report& report_;
  const Facts facts_;
  std::vector<Range> ranges_;  // of loop symbols
  const Stmt* at_ = nullptr;
  bool cube_ = false, vector_ = false;

  void fault(std::string text) { report_(*at_, std::move(text), false); }
  void cannot(std::string text) { report_(*at_, std::move(text), true); }
  static std::string dtype(DType t) { return std::string(gaf::name(t)); }

  void statement(const Stmt& s) override {
    at_ = &s;
    std::visit(Match{[&](const Declare& d) { declare(d.tile); }, [&](const View&) {},
                     [&](const Copy& c) { copy(c, s); }, [&](const Map& m) { map(m, s); },
                     [&](const Reduce& r) { reduce(r, s); }, [&](const Mma& m) { mma(m, s); },
                     [&](const For& f) {
                       for (const Axis& a : f.axes) axis(a);
                     },
                     [&](const If& i) { index(i.a), index(i.b); }, [&](const Sync& y) { index(y.event); },
                     [&](const auto&) { cannot("the language has no such statement"); }},
               s.alt);
  }

  // ---- index expressions ----
  void index(const Expr& x) {
    if (x.is_num() || x.op() == ExprOp::sym) return;
    const auto args = x.args();
    if ((x.op() == ExprOp::div || x.op() == ExprOp::mod) && args[0].range(ranges_).lo < 0)
      fault(print_expr(k_, x) + " may divide a negative number, which C rounds the other way");
    for (const Expr& a : args) index(a);
  }
  void axis(const Axis& a) {
    index(a.lo), index(a.hi);
    ranges_[static_cast<size_t>(a.sym)] = {a.lo.range(ranges_).lo,
                                           std::max(a.lo.range(ranges_).lo, a.hi.range(ranges_).hi - 1)};
  }
  int64_t most(const Expr& x) const { return x.range(ranges_).hi; }

  // ---- declarations ----
  void declare(int id) {
    const Tile& t = tile(id);
    (t.mem == Mem::ub ? vector_ : cube_) = true;
    if (cube_ && vector_) cannot("one kernel cannot use the cube's and the vector unit's memories");
    if (c_type(t.type).empty()) cannot("dtype " + dtype(t.type));
    const TileUse& w = facts_.whole[static_cast<size_t>(id)];
    if (l_ == NpuLanguage::ascendc || !w.tile) return;
    if (!facts_.one_extent[static_cast<size_t>(id)])
      cannot("a PTO tile has one valid shape, and this one is written with several");
    for (const Expr* x : {&w.rows, &w.cols})
      for (int s = 0; s <= x->max_sym(); s++)
        if (x->mentions(s) && !in_nest(s))
          cannot("a PTO tile has its valid shape from its declaration, where " + k_.syms[static_cast<size_t>(s)].name +
                 " is not known yet");
  }
  bool in_nest(int sym) const {
    for (const For* f : nest_)
      for (const Axis& a : f->axes)
        if (a.sym == sym) return true;
    return false;
  }

  // ---- references ----
  bool whole(const Ref& r) {
    if (r.transposed) return cannot("^T"), false;
    if (r.tile && !r.at.empty()) return cannot("a part of tile " + std::string(name_of(k_, r))), false;
    if (r.tile) return true;
    size_t ranged = 0;
    const Buf& b = k_.bufs[static_cast<size_t>(r.id)];
    const std::vector<Expr> strides = b.role == Role::view ? b.strides : row_major(b.shape);
    for (size_t i = r.at.size(); i-- > 0;) {
      index(r.at[i].at);
      if (!r.at[i].n) continue;
      index(*r.at[i].n);
      if (ranged == 0 && !(strides[i] * Expr(r.at[i].step)).is(1) && !r.at[i].n->is(1))
        return cannot("columns that do not lie side by side in memory"), false;
      ranged++;
    }
    if (ranged > 2) return cannot("a rectangle over more than two dimensions"), false;
    if (c_type(b.type).empty()) return cannot("dtype " + dtype(b.type)), false;
    return true;
  }
  bool known(const Ref& r) {
    if (!r.tile || shape_of(k_, tiles_, r).known) return true;
    return fault("the valid extents of " + std::string(name_of(k_, r)) + " depend on the path to here"), false;
  }
  bool operand(const Ref& r) { return whole(r) && known(r); }

  // ---- copies ----
  void copy(const Copy& c, const Stmt& s) {
    if (!operand(c.src) || !whole(c.dst)) return;
    if (c.pad) return cannot("`else`");
    const Mem from = mem_of(k_, c.src), to = mem_of(k_, c.dst);
    if (to == Mem::gm && from != Mem::gm) {
      const TileUse u = use(c.src);
      const MemoryUse m = memory(c.dst);
      if (!same(u.rows, m.rows) || !same(u.cols, m.cols))
        fault("the tile holds [" + print_expr(k_, u.rows) + ", " + print_expr(k_, u.cols) +
              "] elements, the destination [" + print_expr(k_, m.rows) + ", " + print_expr(k_, m.cols) + "]");
    }
    const DType ft = type_of(k_, c.src), tt = type_of(k_, c.dst);
    auto below = [&](int64_t x, int64_t most, std::string_view what) {
      if (x > most)
        fault(std::string(what) + " " + std::to_string(x) + " is over the limit of " + std::to_string(most));
    };
    auto extent = [&](const TileUse& u) {
      return std::pair(std::min(u.tile->rows, most(u.rows)), std::min(u.tile->cols, most(u.cols)));
    };
    if (from == Mem::gm && (to == Mem::ub || to == Mem::l1)) {
      const TileUse u = result(s);
      const auto [rows, cols] = extent(u);
      if (u.column()) return cannot("a copy to a packed column");
      const MemoryUse m = memory(c.src);
      if (l_ != NpuLanguage::ascendc && to == Mem::l1 && rows > 1 &&
          most(m.stride) > limit::nz_stride)  // there row by row
        cannot("rows " + print_expr(k_, m.stride) + " elements apart in memory (TLOAD to fractals steps at most " +
               std::to_string(limit::nz_stride) + ")");
      below(rows, to == Mem::ub ? limit::copy_rows : limit::nz_rows, "rows");
      below(to == Mem::ub ? cols * bytes(tt) : cols, to == Mem::ub ? limit::copy_row_bytes : limit::nz_cols,
            to == Mem::ub ? "bytes of a row" : "columns");
    } else if (from == Mem::ub && to == Mem::gm) {
      const TileUse u = use(c.src);
      const auto [rows, cols] = extent(u);
      if (u.column()) return cannot("a copy from a packed column");
      below(rows, limit::copy_rows, "rows"), below(cols * bytes(ft), limit::copy_row_bytes, "bytes of a row");
    } else if (from == Mem::l1 && (to == Mem::l0a || to == Mem::l0b)) {
      below((tile(c.dst.id).cols * bytes(tt) + 31) / 32, limit::repeats, "fractals across");
      if (to == Mem::l0b && bytes(tt) != 2)
        cannot("a right operand of " + dtype(tt) + " (fractals of 2-byte elements only are turned)");
      if (facts_.l1_goes_to[static_cast<size_t>(c.src.id)] != to) cannot("an l1 tile that goes to two memories");
    } else if (from == Mem::l1 && to == Mem::bt) {
      if (tile(c.src.id).rows != 1) fault("a bias is one row");
      if (tt != DType::f32 || (ft != DType::f16 && ft != DType::f32))
        cannot("a bias of " + dtype(ft) + " as " + dtype(tt));
    } else if (from == Mem::l0c && to == Mem::gm) {
      const auto [rows, cols] = extent(use(c.src));
      below(cols, limit::fix_cols, "columns"), below(rows, limit::fix_rows, "rows");
      if (ft != DType::f32 || (tt != DType::f16 && tt != DType::bf16 && tt != DType::f32))
        cannot("results of " + dtype(ft) + " as " + dtype(tt));
      return;
    } else {
      cannot("a copy from " + std::string(kMemName[static_cast<int>(from)]) + " to " +
             std::string(kMemName[static_cast<int>(to)]));
    }
    if (to != Mem::bt && ft != tt) fault(dtype(ft) + " and " + dtype(tt) + ": this copy does not cast");
    if (c.relu) cannot("relu on this copy");
  }

  // ---- vector statements ----
  bool vector_operand(const Ref& r) {
    if (!operand(r)) return false;
    if (!r.tile || tile(r.id).mem != Mem::ub)
      return cannot(print_ref(k_, r) + " as an operand: the vector unit reads ub only"), false;
    return true;
  }
  bool computes(DType t, bool integers) {
    const bool unit = std::find(t_.vector_dtypes.begin(), t_.vector_dtypes.end(), t) != t_.vector_dtypes.end();
    if (unit && (is_float(t) || integers)) return true;
    return fault("the vector unit does not compute this in " + dtype(t)), false;
  }
  static bool casts(DType a, DType b) {
    auto half = [](DType t) { return t == DType::f16 || t == DType::bf16; };
    auto pair = [&](DType x, DType y) { return y == DType::f32 && (half(x) || x == DType::i32); };
    return pair(a, b) || pair(b, a);
  }
  static bool same(const Expr& a, const Expr& b) { return (a - b).is(0); }
  void same_rows(const TileUse& d, const TileUse& u) {
    if (u.tile && u.tile->cols != d.tile->cols)
      fault("rows of " + u.name() + " have " + std::to_string(u.tile->cols) + " elements, those of " + d.name() + " " +
            std::to_string(d.tile->cols));
    if (u.tile && (!same(u.rows, d.rows) || !same(u.cols, d.cols))) cannot("operands of different extents");
  }
  const Tile* scratch(int id, DType type, int64_t size, std::string_view what) {
    if (id < 0) return fault(std::string(what) + " needs a tmp tile: legalise first"), nullptr;
    const Tile& t = tile(id);
    if (t.mem != Mem::ub || t.type != type) fault("tmp " + t.name + " must be a ub tile of " + dtype(type));
    if (t.size_bytes() < size) fault("tmp " + t.name + " needs " + std::to_string(size) + " bytes");
    return &t;
  }

  void map(const Map& m, const Stmt& s) {
    if (!vector_operand(m.dst)) return;
    for (const Arg& a : m.args)
      if (const Ref* r = std::get_if<Ref>(&a); r && !vector_operand(*r)) return;
    const TileUse d = result(s);
    const auto f = map_form(m, [&](const Ref& r) { return is_column(r) && !d.column(); });
    const std::string op(row(m.op).name);
    if (!f) return cannot(op + " with these operands");
    const Word w = word(l_, m.op, f->form);
    if (w.name.empty()) return cannot(op + " " + std::string(kFormName[static_cast<int>(f->form)]));
    if (f->a) same_rows(d, use(*f->a));
    if (f->b && f->form == Form::binary) same_rows(d, use(*f->b));
    if (m.op != S::cast)
      for (const Ref* r : {f->a, f->b})
        if (r && type_of(k_, *r) != d.tile->type)
          fault(print_ref(k_, *r) + " is " + dtype(type_of(k_, *r)) + " and the result " + dtype(d.tile->type));
    if (m.op == S::cast) {
      const DType from = type_of(k_, *f->a);
      if (!casts(from, d.tile->type)) cannot("a cast from " + dtype(from) + " to " + dtype(d.tile->type));
      return;
    }
    computes(d.tile->type, w.integers);
    if (f->form != Form::column) return;
    const TileUse b = use(*f->b);
    if (!same(b.rows, d.rows)) return cannot("one value for all rows");
    if (d.tile->rows > limit::column_rows)
      fault("a column of more than " + std::to_string(limit::column_rows) + " rows");
    if (l_ == NpuLanguage::ascendc) scratch(m.tmp, d.tile->type, (d.tile->rows + 7) / 8 * 8 * 32, "a column operand");
  }

  void reduce(const Reduce& r, const Stmt& s) {
    if (!vector_operand(r.dst) || !vector_operand(r.src)) return;
    if (r.axis != 1) return cannot("a reduction over rows");
    const TileUse d = result(s), u = use(r.src);
    if (!d.column() || u.column()) return cannot("a reduction that does not end in a packed column");
    if (reduction_word(l_, r.op).name.empty()) return cannot("a reduction by " + std::string(row(r.op).name));
    if (!computes(u.tile->type, false)) return;
    if (d.tile->type != u.tile->type) fault("the result is " + dtype(d.tile->type) + ", not " + dtype(u.tile->type));
    const Tile* t = scratch(r.tmp, u.tile->type, u.tile->size_bytes(), "a reduction");
    if (t && t->cols != u.tile->cols) fault("tmp " + t->name + " must have rows like " + u.name());
  }

  // ---- the cube ----
  void mma(const Mma& m, const Stmt& s) {
    for (const Ref* r : {&m.a, &m.b, &m.dst})
      if (!whole(*r) || (r != &m.dst && !known(*r))) return;
    if (m.bias && !operand(*m.bias)) return;
    auto in = [&](const Ref& r, Mem want, std::string_view what) {
      if (!r.tile || tile(r.id).mem != want)
        fault(std::string(what) + " must lie in " + std::string(kMemName[static_cast<int>(want)]));
      return r.tile && tile(r.id).mem == want;
    };
    if (!in(m.a, Mem::l0a, "the left operand") || !in(m.b, Mem::l0b, "the right operand") ||
        !in(m.dst, Mem::l0c, "the result"))
      return;
    if (m.bias && !in(*m.bias, Mem::bt, "the bias")) return;
    const DType a = type_of(k_, m.a), b = type_of(k_, m.b), c = type_of(k_, m.dst);
    if (a != b || c != DType::f32 || (a != DType::f16 && a != DType::bf16))
      return cannot("a product of " + dtype(a) + " and " + dtype(b) + " in " + dtype(c));
    if (m.bias && type_of(k_, *m.bias) != c) fault("the bias must have the dtype of the result");
    const TileUse d = result(s), u = use(m.a), v = use(m.b);
    if (!same(u.cols, v.rows))
      fault("inner sizes " + print_expr(k_, u.cols) + " and " + print_expr(k_, v.rows) + " differ");
    if (m.bias && !same(use(*m.bias).cols, v.cols)) fault("the bias has not one element a column");
    for (const Expr* x : {&d.rows, &d.cols, &u.cols})
      if (most(*x) > limit::mma_size)
        fault("a size of " + std::to_string(most(*x)) + " is over the limit of " + std::to_string(limit::mma_size));
  }
};

}  // namespace

void check_statements(const Kernel& k, const Target& t, NpuLanguage l, const Report& r) {
  Checker(k, t, l, r).kernel();
}

}  // namespace gaf::npu
