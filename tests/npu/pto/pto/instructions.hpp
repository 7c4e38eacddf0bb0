// Instructions of the PTO stub: destination first, over the valid region.
#pragma once
#include <cmath>

#include "tile.hpp"

namespace pto {

inline bool same(npu::Extent a, npu::Extent b) { return a.rows == b.rows && a.cols == b.cols; }
template <class... D>
bool placed(int line, const D&... d) {
  return npu::require((d.assigned && ...), "a tile used before TASSIGN", line);
}
template <class A, class B>
bool disjoint(const A& a, const B& b) {
  return a.place.hi <= b.place.lo || b.place.hi <= a.place.lo || A::Loc != B::Loc;
}

// ---- movement ----
template <class D, class G>
void TLOAD(D& d, G& g, int line = __builtin_LINE()) {
  static_assert(D::Loc == TileType::Vec || D::Loc == TileType::Mat, "TLOAD fills vector and matrix tiles");
  static_assert(std::is_same_v<typename D::DType, typename G::DType>, "TLOAD does not convert");
  static_assert(!D::boxed || (D::Loc == TileType::Mat && D::SFractalSize == 512 && !D::isRowMajor &&
                              D::box_layout == SLayout::RowMajor),
                "TLOAD: rows to rows, or rows to NZ in a matrix tile");
  static_assert(D::boxed || D::isRowMajor, "TLOAD: rows to rows");
  if (placed(line, d) & g.plain(line) &&
      npu::require(same(d.valid(), {g.rows(), g.cols()}), "TLOAD: the view is not the tile's valid region", line) &&
      npu::require(!D::boxed || (g.rows() <= 16384 && (g.rows() == 1 || g.stride.at[3] <= 65535)),
                   "TLOAD to NZ: more than 16384 rows, or rows farther apart than 65535 elements", line))
    npu::move(npu::MTE2, "TLOAD", d.place, g.place(), {.valid = d.valid(), .target = d.whole()}, line);
}
template <class D, class G, AtomicType A = AtomicType::AtomicNone, ReluPreMode Relu = ReluPreMode::NoRelu>
void TSTORE(G& g, D& d, int line = __builtin_LINE()) {
  static_assert(D::Loc == TileType::Vec || D::Loc == TileType::Acc, "TSTORE takes vector tiles and accumulators");
  static_assert(D::Loc == TileType::Acc || std::is_same_v<typename D::DType, typename G::DType>,
                "TSTORE converts accumulators only");
  static_assert(D::Loc == TileType::Acc || Relu == ReluPreMode::NoRelu, "TSTORE: relu on accumulators only");
  static_assert(D::Loc == TileType::Acc || D::isRowMajor, "TSTORE: rows to rows");
  if (!(placed(line, d) & g.plain(line) &&
        npu::require(same(d.valid(), {g.rows(), g.cols()}), "TSTORE: the view is not the tile's valid region", line)))
    return;
  if (D::Loc == TileType::Acc && !npu::require(d.GetValidCol() <= 4095 && d.GetValidRow() <= 8192,
                                               "TSTORE of an accumulator: more than 8192 x 4095", line))
    return;
  const int64_t block = 32 / int64_t(sizeof(typename D::DType));
  const npu::Extent read = D::Loc == TileType::Acc
                               ? npu::Extent{(d.GetValidRow() + 15) / 16 * 16, (d.GetValidCol() + 15) / 16 * 16}
                               : npu::Extent{d.GetValidRow(), (d.GetValidCol() + block - 1) / block * block};
  npu::move(D::Loc == TileType::Acc ? npu::FIX : npu::MTE3, "TSTORE", g.place(), d.place,
            {.valid = d.valid(), .source = read, .relu = Relu == ReluPreMode::NormalRelu}, line);
}
template <class D, class S>
void TMOV(D& d, S& s, int line = __builtin_LINE()) {
  constexpr bool to_l0 = S::Loc == TileType::Mat && (D::Loc == TileType::Left || D::Loc == TileType::Right),
                 to_bias = S::Loc == TileType::Mat && D::Loc == TileType::Bias,
                 vector = S::Loc == TileType::Vec && D::Loc == TileType::Vec;
  static_assert(to_l0 || to_bias || vector, "TMOV: matrix to left, right or bias; vector to vector");
  static_assert(to_bias ? D::Rows == 1 && S::Rows == 1 && std::is_same_v<typename D::DType, float>
                        : std::is_same_v<typename D::DType, typename S::DType>,
                "TMOV: converts into a bias tile of one float row only");
  static_assert(!to_bias || D::Cols * sizeof(typename D::DType) % 64 == 0, "TMOV: bias tiles are whole 64 B units");
  static_assert(!to_l0 || S::boxed, "TMOV: L0 takes NZ matrix tiles");
  if (placed(line, d, s) && npu::require(same(d.valid(), s.valid()), "TMOV: valid regions differ", line))
    npu::move(vector ? npu::V : npu::MTE1, "TMOV", d.place, s.place,
              {.valid = d.valid(), .source = s.whole(), .target = d.whole()}, line);
}

// ---- matrix products ----
template <class C, class A, class B>
void product(const char* what, C& c, A& a, B& b, const npu::Place* bias, npu::Start start, int line) {
  static_assert(C::Loc == TileType::Acc && A::Loc == TileType::Left && B::Loc == TileType::Right,
                "a product takes a left and a right tile into an accumulator");
  static_assert(A::Rows == C::Rows && A::Cols == B::Rows && B::Cols == C::Cols, "the sizes of a product's tiles agree");
  static_assert(std::is_same_v<typename C::DType, float> && std::is_same_v<typename A::DType, typename B::DType>,
                "half or float operands, float accumulator");
  if (placed(line, c, a, b) && npu::require(a.GetValidCol() == b.GetValidRow() && c.GetValidRow() == a.GetValidRow() &&
                                                c.GetValidCol() == b.GetValidCol(),
                                            "the valid regions of a product disagree", line))
    npu::multiply(what, c.place, a.place, b.place, bias, {a.GetValidRow(), b.GetValidCol(), a.GetValidCol(), start},
                  line);
}
template <class C, class A, class B>
void TMATMUL(C& c, A& a, B& b, int line = __builtin_LINE()) {
  product("TMATMUL", c, a, b, nullptr, npu::Start::zero, line);
}
template <class C, class A, class B>
void TMATMUL_ACC(C& to, C& from, A& a, B& b, int line = __builtin_LINE()) {
  if (npu::require(to.place.at == from.place.at, "TMATMUL_ACC: accumulates in place", line))
    product("TMATMUL_ACC", to, a, b, nullptr, npu::Start::accumulate, line);
}
template <class C, class A, class B, class D>
void TMATMUL_BIAS(C& c, A& a, B& b, D& bias, int line = __builtin_LINE()) {
  static_assert(D::Loc == TileType::Bias && D::Rows == 1 && std::is_same_v<typename D::DType, typename C::DType>,
                "a bias tile is one row of the accumulator's type");
  if (placed(line, bias) &&
      npu::require(bias.GetValidCol() == c.GetValidCol(), "TMATMUL_BIAS: the bias has other columns", line))
    product("TMATMUL_BIAS", c, a, b, &bias.place, npu::Start::bias, line);
}

// ---- vector instructions ----
template <class D, class... S>
void elementwise(const char* what, D& d, const npu::Scalar& f, int line, S&... s) {
  static_assert(D::Loc == TileType::Vec && ((S::Loc == TileType::Vec) && ...),
                "vector instructions work on vector tiles");
  static_assert(D::isRowMajor && (S::isRowMajor && ...) && !D::boxed && (!S::boxed && ...),
                "elementwise instructions work on row-major tiles");
  if (placed(line, d, s...) &&
      npu::require((same(d.valid(), s.valid()) && ...), "the valid regions of operands differ", line) &&
      npu::require(((disjoint(d, s) || (d.place.lo == s.place.lo && d.place.hi == s.place.hi)) && ...),
                   "destination and source overlap in part", line))
    npu::map(what, d.place, {s.place...}, d.valid(), d.whole(), f, line);
}
template <class D, class S>
void TCVT(D& d, S& s, RoundMode m, int line = __builtin_LINE()) {
  static_assert(!std::is_same_v<typename D::DType, typename S::DType>, "TCVT between different types");
  if (npu::require(m == RoundMode::CAST_RINT ||
                       (m == RoundMode::CAST_NONE && sizeof(typename D::DType) > sizeof(typename S::DType)),
                   "TCVT: rounds to nearest even", line))
    elementwise(
        "TCVT", d, [](const float* v) { return v[0]; }, line, s);
}
#define PTO_UNARY(NAME, VALUE)                         \
  template <class D>                                   \
  void NAME(D& d, D& s, int line = __builtin_LINE()) { \
    elementwise(                                       \
        #NAME, d,                                      \
        [](const float* v) {                           \
          const float x = v[0];                        \
          return float(VALUE);                         \
        },                                             \
        line, s);                                      \
  }
PTO_UNARY(TEXP, std::exp(x))
PTO_UNARY(TLOG, std::log(x))
PTO_UNARY(TABS, std::fabs(x))
PTO_UNARY(TSQRT, std::sqrt(x))
PTO_UNARY(TRSQRT, 1 / std::sqrt(x))
PTO_UNARY(TRECIP, 1 / x)
PTO_UNARY(TNEG, -x)
PTO_UNARY(TRELU, x > 0 ? x : 0)
#undef PTO_UNARY
#define PTO_BINARY(NAME, VALUE)                              \
  template <class D>                                         \
  void NAME(D& d, D& a, D& b, int line = __builtin_LINE()) { \
    elementwise(                                             \
        #NAME, d,                                            \
        [](const float* v) {                                 \
          const float x = v[0], y = v[1];                    \
          return float(VALUE);                               \
        },                                                   \
        line, a, b);                                         \
  }
PTO_BINARY(TADD, x + y)
PTO_BINARY(TSUB, x - y)
PTO_BINARY(TMUL, x* y)
PTO_BINARY(TDIV, x / y)
PTO_BINARY(TMAX, x > y ? x : y)
PTO_BINARY(TMIN, x < y ? x : y)
#undef PTO_BINARY
#define PTO_SCALAR(NAME, VALUE)                                                  \
  template <class D>                                                             \
  void NAME(D& d, D& s, typename D::DType number, int line = __builtin_LINE()) { \
    elementwise(                                                                 \
        #NAME, d,                                                                \
        [y = float(number)](const float* v) {                                    \
          const float x = v[0];                                                  \
          return float(VALUE);                                                   \
        },                                                                       \
        line, s);                                                                \
  }
PTO_SCALAR(TADDS, x + y)
PTO_SCALAR(TMULS, x* y)
PTO_SCALAR(TMAXS, x > y ? x : y)
PTO_SCALAR(TMINS, x < y ? x : y)
#undef PTO_SCALAR
template <class D>
void TEXPANDS(D& d, typename D::DType number, int line = __builtin_LINE()) {
  elementwise(
      "TEXPANDS", d, [y = float(number)](const float*) { return y; }, line);
}

template <class D, class S, class W>
void row_reduce(const char* what, D& d, S& s, W& scratch, float (*f)(float, float), int line) {
  static_assert(D::Loc == TileType::Vec && S::Loc == TileType::Vec && W::Loc == TileType::Vec,
                "vector instructions work on vector tiles");
  static_assert(S::isRowMajor && !S::boxed, "a row reduction reads a row-major tile");
  static_assert(!D::boxed && D::Cols == 1 && !D::isRowMajor, "a row reduction writes a column-major column");
  static_assert(
      std::is_same_v<typename D::DType, typename S::DType> && std::is_same_v<typename W::DType, typename S::DType>,
      "the tiles of a row reduction have one type");
  static_assert(W::Rows >= S::Rows && W::Cols >= S::Cols, "the scratch tile of a row reduction is like its source");
  if (placed(line, d, s, scratch) &&
      npu::require(s.GetValidRow() == d.GetValidRow(), "a row reduction of other rows", line) &&
      npu::require(disjoint(scratch, s) && disjoint(scratch, d) && disjoint(d, s),
                   "the tiles of a row reduction overlap", line))
    npu::reduce(what, d.place, s.place, s.valid(), d.whole(), npu::bytes_of(scratch.place, scratch.whole()), f, line);
}
template <class D, class S, class W>
void TROWMAX(D& d, S& s, W& w, int line = __builtin_LINE()) {
  row_reduce(
      "TROWMAX", d, s, w, [](float a, float b) { return a > b ? a : b; }, line);
}
template <class D, class S, class W>
void TROWMIN(D& d, S& s, W& w, int line = __builtin_LINE()) {
  row_reduce(
      "TROWMIN", d, s, w, [](float a, float b) { return a < b ? a : b; }, line);
}
template <class D, class S, class W>
void TROWSUM(D& d, S& s, W& w, int line = __builtin_LINE()) {
  row_reduce(
      "TROWSUM", d, s, w, [](float a, float b) { return a + b; }, line);
}

// d(i, j) = a(i, j) op column(i).
template <class D, class M>
void row_expand(const char* what, D& d, D& a, M& m, const npu::Scalar& f, int line) {
  static_assert(D::Loc == TileType::Vec && M::Loc == TileType::Vec && D::isRowMajor && !D::boxed,
                "vector instructions work on vector tiles");
  static_assert(M::Cols == 1 && !M::isRowMajor && std::is_same_v<typename M::DType, typename D::DType>,
                "the expanded operand is a column-major column of the same type");
  if (!(placed(line, d, a, m) &&
        npu::require(same(d.valid(), a.valid()) && m.GetValidRow() == d.GetValidRow(),
                     "the valid regions of operands differ", line) &&
        npu::require((disjoint(d, a) || d.place.lo == a.place.lo) && disjoint(d, m),
                     "destination and source overlap in part", line)))
    return;
  npu::Place column = m.place;
  column.block_col = 0;
  npu::map(what, d.place, {a.place, column}, d.valid(), d.whole(), f, line);
}
#define PTO_EXPAND(NAME, VALUE)                              \
  template <class D, class M>                                \
  void NAME(D& d, D& a, M& m, int line = __builtin_LINE()) { \
    row_expand(                                              \
        #NAME, d, a, m,                                      \
        [](const float* v) {                                 \
          const float x = v[0], y = v[1];                    \
          return float(VALUE);                               \
        },                                                   \
        line);                                               \
  }
PTO_EXPAND(TROWEXPANDADD, x + y)
PTO_EXPAND(TROWEXPANDSUB, x - y)
PTO_EXPAND(TROWEXPANDMUL, x* y)
PTO_EXPAND(TROWEXPANDDIV, x / y)
PTO_EXPAND(TROWEXPANDMAX, x > y ? x : y)
PTO_EXPAND(TROWEXPANDMIN, x < y ? x : y)
#undef PTO_EXPAND

}  // namespace pto
