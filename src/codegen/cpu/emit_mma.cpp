// mma, the register kernel of every contraction: load one row of b, broadcast an element of each row of a, multiply and
// add into the accumulators; K in a loop with a few steps a block. Blocks stay near a hundred multiply-adds: longer
// ones spill.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

namespace {
constexpr int64_t kBlockFmas = 112;  // most multiply-adds in one basic block (ISA.md: 14x32, four steps)
// K steps between fetching a row of b to L1 and using it; 4 to 16 measure alike. A row that arrives late costs more
// than its wait: multiply-adds issued in hope of it are issued again (8x48, b in L2: 92 % of peak without, 95 % with).
constexpr int64_t kRowsAhead = 8;
}  // namespace

struct Emitter::MmaPlan {
  Window a, b;
  DType acc = DType::f32;
  int64_t rows = 0, lanes = 0, chunks = 0;
  std::vector<Val> row_base;  // of a, where rows are clamped or their stride is not a number: one a row, or one of four
  bool groups = false;        // row_base has one of four rows; the others are 1..3 strides behind
  Val stride[4] = {};         // 0..3 strides in bytes
  std::vector<Val> masks;     // columns of b that exist; null: all
  bool mask_is_wide = false;  // kept as 32-bit lanes: a vector of bits does not live well across blocks before AVX-512
  bool b_ahead = false;       // rows of b are fetched ahead of their use
  Val prefetch = nullptr;
  int64_t prefetch_lines = 0;  // of the whole rectangle
  std::optional<int64_t> k;    // steps, if known
};

Val Emitter::widen_operand(Val v, DType from, DType acc) { return from == acc ? v : convert(v, from, acc); }

int64_t Emitter::mma_unroll(const MmaPlan& p, const Mma& m, std::optional<int64_t> k) const {
  const int64_t registers = (p.chunks * p.lanes * gaf::bytes(p.acc) + t_.vector_bytes() - 1) / t_.vector_bytes();
  const int64_t fmas = std::max<int64_t>(1, p.rows * registers);
  if (k && *k <= 8 && fmas * *k <= kBlockFmas) return *k;
  int64_t most = std::clamp<int64_t>((kBlockFmas + 8) / fmas, 1, std::max(1, t_.k_unroll));
  // Rows of the tile that this mma leaves alone stay in registers too; without one for the next row of b, no unrolling.
  const int64_t tile_rows = tile(m.dst.id).rows;
  if (p.rows < tile_rows && (tile_rows + 2) * registers + 1 > t_.max_regs) most = 1;
  if (k)
    for (int64_t u = most; u > 1; u--)
      if (*k % u == 0) return u;
  return k ? std::min(most, *k) : most;
}

Vals Emitter::mma_steps(const MmaPlan& p, Val k, int64_t unroll, Vals acc) {
  const int64_t as = gaf::bytes(p.a.type), bs = gaf::bytes(p.b.type);
  const Type one{memory_elem(p.a.type), 1}, row{memory_elem(p.b.type), static_cast<int>(p.lanes)};
  Val at_k = times(k, p.a.col), b_row = ir_.offset(p.b.base, times(k, p.b.row));
  if (p.prefetch && p.k) {
    // Evenly over all steps, a line twice rather than two at once: what is on its way takes the places of b's rows.
    const int64_t share = (p.prefetch_lines * unroll + *p.k - 1) / *p.k;  // lines that a block touches
    Val line = ir_.offset(p.prefetch, ir_.mul(k, ir_.i64((p.prefetch_lines * kLine + *p.k - 1) / *p.k)));
    for (int64_t i = 0; i < share; i++) ir_.prefetch(ir_.offset(line, i * kLine), Cache::l2);
  }
  Vals base;
  for (Val q : p.row_base) base.push_back(ir_.offset(q, at_k));
  if (base.empty()) base.push_back(ir_.offset(p.a.base, at_k));
  auto element = [&](int64_t r, int64_t u) {
    const int64_t step = p.a.col.v ? 0 : u * p.a.col.n;
    if (p.row_base.empty()) {
      const int64_t i = p.a.inner ? r % p.a.inner : r, q = p.a.inner ? r / p.a.inner : 0;
      return ir_.offset(base[0], p.a.rest + i * p.a.row.n + q * p.a.outer.n + step);
    }
    if (!p.groups) return ir_.offset(base[static_cast<size_t>(r)], p.a.rest + step);
    return ir_.offset(ir_.offset(base[static_cast<size_t>(r / 4)], p.stride[r % 4]), p.a.rest + step);
  };
  // In front of all loads: LLVM keeps their order, and loads held back by a prefetch would all need registers at once.
  for (int64_t at = 0; p.b_ahead && at < unroll; at++)
    for (int64_t line = 0; line < p.chunks * p.lanes * bs; line += kLine)
      ir_.prefetch(ir_.offset(b_row, p.b.rest + (kRowsAhead + at) * p.b.row.n + line), Cache::l1);
  for (int64_t u = 0; u < unroll; u++) {
    Val bp = p.b.row.v ? ir_.offset(b_row, ir_.mul(p.b.row.v, ir_.i64(u))) : b_row;
    const int64_t b_rest = p.b.rest + (p.b.row.v ? 0 : u * p.b.row.n);
    Vals bv;
    for (int64_t j = 0; j < p.chunks; j++) {
      const int64_t bytes = j * p.lanes * p.b.col.n;
      const int64_t align = std::max(bs, std::gcd(p.b.align, bytes));
      Val q = ir_.offset(bp, b_rest + bytes), mask = p.masks[static_cast<size_t>(j)], v;
      if (!unit(p.b.col, p.b.type)) {
        if (p.b.col.v) q = ir_.offset(ir_.offset(bp, b_rest), times(ir_.i64(j * p.lanes), p.b.col));
        v = load_lanes(row, q, bs, p.b.col, lanes(p.b, j * p.lanes, p.lanes), constant(p.b.type, 0, p.lanes));
      } else if (mask) {
        if (p.mask_is_wide) mask = ir_.icmp(Pred::lt, mask, ir_.inum(ir_.type(mask), 0));
        v = ir_.masked_load(row, q, align, mask, constant(p.b.type, 0, p.lanes));
      } else {
        v = load_lanes(row, q, align, p.b.col, lanes(p.b, j * p.lanes, p.lanes), constant(p.b.type, 0, p.lanes));
      }
      bv.push_back(widen_operand(v, p.b.type, p.acc));
    }
    for (int64_t r = 0; r < p.rows; r++) {
      Val q = element(r, u);
      if (p.a.col.v && u) q = ir_.offset(q, times(ir_.i64(u), p.a.col));
      Val x = ir_.splat(widen_operand(ir_.load(one, q, as), p.a.type, p.acc), static_cast<int>(p.lanes));
      for (int64_t j = 0; j < p.chunks; j++) {
        Val& d = acc[static_cast<size_t>(r * p.chunks + j)];
        d = is_float(p.acc) ? ir_.fma(x, bv[static_cast<size_t>(j)], d)
                            : ir_.add(ir_.mul(x, bv[static_cast<size_t>(j)]), d);
      }
    }
  }
  return acc;
}

void Emitter::emit(const Mma& m) {
  GAF_CHECK(in_reg(m.dst) && !in_reg(m.a) && !in_reg(m.b)) << "mma accumulates in a register tile and reads memory";
  const Part d = part(m.dst);
  MmaPlan p;
  p.a = window(m.a), p.b = window(m.b);
  p.acc = tile(m.dst.id).type;
  p.rows = d.rows, p.lanes = tiles_.at(m.dst.id).lanes;
  p.chunks = (d.cols + p.lanes - 1) / p.lanes;
  GAF_CHECK(d.c % p.lanes == 0) << "mma into columns that begin between registers";
  const bool ragged = !syms_.number(p.a.nrows) || d.nrows;
  GAF_CHECK(!p.b.inner && (ragged || p.a.rows == p.rows)) << "mma operands of " << print_ref(k_, m.dst);
  p.rows = std::min(p.rows, p.a.rows);  // rows that never exist are not computed
  const Expr k = p.a.ncols;
  p.k = syms_.number(k);

  // rows of a
  if (p.a.row_bound.hi || p.a.outer_bound.hi) {
    for (int64_t r = 0; r < p.rows; r++) p.row_base.push_back(ir_.offset(p.a.base, clamped_row(p.a, r)));
  } else if (p.a.outer.v) {
    Window rows = p.a;
    rows.rest = 0;
    for (int64_t r = 0; r < p.rows; r++) p.row_base.push_back(address(rows, r, 0));
  } else if (p.a.row.v) {
    GAF_CHECK(!p.a.inner) << "mma rows of two strides, one of them not a number";
    p.groups = true;
    for (int64_t r = 0; r < p.rows; r += 4) p.row_base.push_back(ir_.offset(p.a.base, times(ir_.i64(r), p.a.row)));
    for (int64_t i = 0; i < 4; i++) p.stride[i] = times(ir_.i64(i), p.a.row);
  }
  // columns of b
  p.mask_is_wide = t_.vector_bytes() < 64;
  for (int64_t j = 0; j < p.chunks; j++) {
    const Lanes l = lanes(p.b, j * p.lanes, p.lanes);
    Val mask = nullptr;
    if (!l.all() && unit(p.b.col, p.b.type) && native_mask(memory_elem(p.b.type)) && p.lanes > 1) {
      mask = lane_mask(p.lanes, l, memory_elem(p.b.type));
      if (p.mask_is_wide) mask = ir_.sext(mask, gaf::bytes(p.b.type) == 8 ? Elem::i64 : Elem::i32);
    }
    p.masks.push_back(mask);
  }
  // With a few rows the reads of b are all there is to do, and they follow one another anyway.
  p.b_ahead = t_.prefetch_panel && p.rows >= 4 && mem_of(k_, m.b) == Mem::gm && !p.b.row.v && unit(p.b.col, p.b.type);
  for (const Ref& r : m.prefetch) {
    if (!t_.prefetch_panel || !p.k) continue;
    const Window q = window(r);
    if (k_.bufs[static_cast<size_t>(parameter_of(k_, r.id))].role == Role::in) {
      p.prefetch = address(q, 0, 0);
      p.prefetch_lines = (q.rows * q.cols * gaf::bytes(q.type) + kLine - 1) / kLine;
      continue;
    }
    // What will be written: its lines are few, and the sums take longer than all of them.
    for (int64_t row = 0; row < q.rows; row++)
      for (int64_t at = 0; at < q.cols * gaf::bytes(q.type); at += kLine)
        ir_.prefetch(ir_.offset(address(q, row, 0), at), Cache::l2);
  }

  Vals acc(static_cast<size_t>(p.rows * p.chunks), constant(p.acc, 0, p.lanes));
  if (m.bias) {
    Operand bias = operand(Arg{*m.bias}, p.acc);
    for (int64_t j = 0; j < p.chunks; j++) {
      Val v = convert(fetch(bias, 0, j * p.lanes, p.lanes), bias.type, p.acc);
      for (int64_t r = 0; r < p.rows; r++) acc[static_cast<size_t>(r * p.chunks + j)] = v;
    }
  }
  auto each = [&](auto f) {
    for (int64_t r = 0; r < p.rows; r++)
      for (int64_t j = 0; j < p.chunks; j++) f(acc[static_cast<size_t>(r * p.chunks + j)], d.r + r, d.c + j * p.lanes);
  };
  if (m.add)
    each([&](Val& v, int64_t r, int64_t c) {
      Val old = get(m.dst.id, r, c, p.lanes);
      v = !m.bias ? old : is_float(p.acc) ? ir_.fadd(old, v) : ir_.add(old, v);
    });

  const int64_t unroll = mma_unroll(p, m, p.k);
  const LoopBody block = [&](Val i, const Vals& v) { return mma_steps(p, i, unroll, v); };
  const LoopBody single = [&](Val i, const Vals& v) { return mma_steps(p, i, 1, v); };
  if (p.k) {
    const int64_t blocks = *p.k / unroll * unroll;
    if (blocks == unroll)
      acc = mma_steps(p, ir_.i64(0), unroll, acc);
    else if (blocks > 0)
      acc = loop(ir_.i64(0), ir_.i64(blocks), unroll, acc, block);
    if (blocks < *p.k) acc = loop(ir_.i64(blocks), ir_.i64(*p.k), 1, acc, single);
  } else {
    Val n = syms_.value(k), full = syms_.value(k - mod(k, Expr(unroll)));
    acc = loop_if_any(ir_.i64(0), full, unroll, acc, block);
    if (unroll > 1) acc = loop_if_any(full, n, 1, acc, single);
  }
  const bool whole = m.dst.at.empty();
  each([&](Val& v, int64_t r, int64_t c) {
    const int64_t n = std::min(p.lanes, whole ? p.lanes : d.c + d.cols - c);
    set_valid(d, whole, r - d.r, c - d.c, n, slice(v, 0, n));
  });
}

}  // namespace gaf::cpu
