// The vector unit of the Ascend C stub. An instruction repeats up to 255 times over `mask` elements of at most 256 B;
// strides count 32 B blocks. The forms with a count work on that many consecutive elements.
#pragma once
#include <cmath>

#include "tensor.h"

namespace AscendC {

struct UnaryRepeatParams {
  uint16_t dstBlkStride = 1, srcBlkStride = 1;
  uint8_t dstRepStride = 8, srcRepStride = 8;
};
struct BinaryRepeatParams {
  uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8,
          src1RepStride = 8;
};
struct CopyRepeatParams {
  uint16_t dstStride = 1, srcStride = 1, dstRepeatSize = 8, srcRepeatSize = 8;
};
struct BrcbRepeatParams {
  uint16_t dstBlkStride = 1, dstRepStride = 8;
};
enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE };

// ---- operands ----
template <class T>
Place lanes(const LocalTensor<T>& t, int64_t block, int64_t repeat) {
  constexpr int64_t n = 32 / sizeof(T);
  Place p = t.place;
  p.f1 = n, p.block_row = repeat * n, p.block_col = block * n, p.col = 1;
  return p;
}
template <class T>
bool vector_operand(const LocalTensor<T>& t, int line) {
  return in_memory(t, npu::Where::ub, "a vector operand outside UB", line) &&
         aligned(t, 32, "a vector operand not at a multiple of 32 B", line);
}
inline bool check_repeat(int64_t mask, int64_t repeat, int64_t widest, int line) {
  return npu::require(repeat >= 1 && repeat <= 255, "repeat outside 1..255", line) &
         npu::require(mask >= 1 && mask <= 256 / widest, "mask outside one repeat of 256 B", line);
}
// An operand may be the destination itself; else it must not share bytes with it (documented for all repeats beyond the
// first).
inline bool apart(const Place& to, const Place& from, npu::Extent e, int line) {
  if (to.at == from.at && to.type == from.type && to.block_row == from.block_row && to.block_col == from.block_col)
    return true;
  const npu::Ranges a = npu::bytes_of(to, e), b = npu::bytes_of(from, e);
  size_t before = 0, after = 0;
  for (const npu::Range& r : a) before += r.bytes;
  for (const npu::Range& r : npu::without(a, b)) after += r.bytes;
  return npu::require(before == after, "destination and source overlap in part", line);
}
inline void apply(const char* what, const Place& to, const std::vector<Place>& from, npu::Extent e,
                  const npu::Scalar& f, int line) {
  bool ok = true;
  for (const Place& p : from) ok = apart(to, p, e, line) && ok;
  if (ok) npu::map(what, to, from, e, {}, f, line);
}

// ---- one source ----
template <class T, class U>
void unary(const char* what, const LocalTensor<T>& d, const LocalTensor<U>& s, int64_t mask, int64_t repeat,
           const UnaryRepeatParams& r, const npu::Scalar& f, int line) {
  if (vector_operand(d, line) & vector_operand(s, line) &
      check_repeat(mask, repeat, int64_t(std::max(sizeof(T), sizeof(U))), line))
    apply(what, lanes(d, r.dstBlkStride, r.dstRepStride), {lanes(s, r.srcBlkStride, r.srcRepStride)}, {repeat, mask}, f,
          line);
}
template <class T, class U>
void unary(const char* what, const LocalTensor<T>& d, const LocalTensor<U>& s, int64_t count, const npu::Scalar& f,
           int line) {
  if (vector_operand(d, line) & vector_operand(s, line) & npu::require(count >= 1, "a count below 1", line))
    apply(what, d.place, {s.place}, {1, count}, f, line);
}
#define NPU_UNARY(NAME, VALUE)                                                                              \
  template <class T>                                                                                        \
  void NAME(const LocalTensor<T>& d, const LocalTensor<T>& s, int32_t count, int line = __builtin_LINE()) { \
    unary(                                                                                                  \
        #NAME, d, s, count,                                                                                 \
        [](const float* v) {                                                                                \
          const float x = v[0];                                                                             \
          return float(VALUE);                                                                              \
        },                                                                                                  \
        line);                                                                                              \
  }                                                                                                         \
  template <class T>                                                                                        \
  void NAME(const LocalTensor<T>& d, const LocalTensor<T>& s, uint64_t mask, int64_t repeat,                \
            const UnaryRepeatParams& r, int line = __builtin_LINE()) {                                      \
    unary(                                                                                                  \
        #NAME, d, s, int64_t(mask), repeat, r,                                                              \
        [](const float* v) {                                                                                \
          const float x = v[0];                                                                             \
          return float(VALUE);                                                                              \
        },                                                                                                  \
        line);                                                                                              \
  }
NPU_UNARY(Exp, std::exp(x))
NPU_UNARY(Ln, std::log(x))
NPU_UNARY(Abs, std::fabs(x))
NPU_UNARY(Sqrt, std::sqrt(x))
NPU_UNARY(Rsqrt, 1 / std::sqrt(x))
NPU_UNARY(Reciprocal, 1 / x)
NPU_UNARY(Relu, x > 0 ? x : 0)
#undef NPU_UNARY

template <class T, class U>
bool cast_mode(RoundMode m, int line) {
  static_assert(!std::is_same_v<T, U>, "Cast between different types");
  // Widening is exact and takes CAST_NONE alone; narrowing must say how it rounds, and ours rounds to nearest even.
  return npu::require(m == (sizeof(T) > sizeof(U) ? RoundMode::CAST_NONE : RoundMode::CAST_RINT),
                      "Cast: CAST_NONE to float, CAST_RINT to half", line);
}
template <class T, class U>
void Cast(const LocalTensor<T>& d, const LocalTensor<U>& s, RoundMode m, uint32_t count, int line = __builtin_LINE()) {
  if (cast_mode<T, U>(m, line))
    unary(
        "Cast", d, s, count, [](const float* v) { return v[0]; }, line);
}
template <class T, class U>
void Cast(const LocalTensor<T>& d, const LocalTensor<U>& s, RoundMode m, uint64_t mask, int64_t repeat,
          const UnaryRepeatParams& r, int line = __builtin_LINE()) {
  if (cast_mode<T, U>(m, line))
    unary(
        "Cast", d, s, int64_t(mask), repeat, r, [](const float* v) { return v[0]; }, line);
}
template <class T>
void Copy(const LocalTensor<T>& d, const LocalTensor<T>& s, uint64_t mask, int64_t repeat, const CopyRepeatParams& r,
          int line = __builtin_LINE()) {
  if (vector_operand(d, line) & vector_operand(s, line) & check_repeat(int64_t(mask), repeat, sizeof(T), line))
    apply(
        "Copy", lanes(d, r.dstStride, r.dstRepeatSize), {lanes(s, r.srcStride, r.srcRepeatSize)},
        {repeat, int64_t(mask)}, [](const float* v) { return v[0]; }, line);
}

// ---- two sources ----
template <class T>
void binary(const char* what, const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, int64_t mask,
            int64_t repeat, const BinaryRepeatParams& r, const npu::Scalar& f, int line) {
  if (vector_operand(d, line) & vector_operand(a, line) & vector_operand(b, line) &
      check_repeat(mask, repeat, sizeof(T), line))
    apply(what, lanes(d, r.dstBlkStride, r.dstRepStride),
          {lanes(a, r.src0BlkStride, r.src0RepStride), lanes(b, r.src1BlkStride, r.src1RepStride)}, {repeat, mask}, f,
          line);
}
template <class T>
void binary(const char* what, const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, int64_t count,
            const npu::Scalar& f, int line) {
  if (vector_operand(d, line) & vector_operand(a, line) & vector_operand(b, line) &
      npu::require(count >= 1, "a count below 1", line))
    apply(what, d.place, {a.place, b.place}, {1, count}, f, line);
}
#define NPU_BINARY(NAME, VALUE)                                                                                       \
  template <class T>                                                                                                  \
  void NAME(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, int32_t count,                 \
            int line = __builtin_LINE()) {                                                                            \
    binary(                                                                                                           \
        #NAME, d, a, b, count,                                                                                        \
        [](const float* v) {                                                                                          \
          const float x = v[0], y = v[1];                                                                             \
          return float(VALUE);                                                                                        \
        },                                                                                                            \
        line);                                                                                                        \
  }                                                                                                                   \
  template <class T>                                                                                                  \
  void NAME(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, uint64_t mask, int64_t repeat, \
            const BinaryRepeatParams& r, int line = __builtin_LINE()) {                                               \
    binary(                                                                                                           \
        #NAME, d, a, b, int64_t(mask), repeat, r,                                                                     \
        [](const float* v) {                                                                                          \
          const float x = v[0], y = v[1];                                                                             \
          return float(VALUE);                                                                                        \
        },                                                                                                            \
        line);                                                                                                        \
  }
NPU_BINARY(Add, x + y)
NPU_BINARY(Sub, x - y)
NPU_BINARY(Mul, x* y)
NPU_BINARY(Div, x / y)
NPU_BINARY(Max, x > y ? x : y)
NPU_BINARY(Min, x < y ? x : y)
#undef NPU_BINARY

// ---- a source and a number ----
#define NPU_SCALAR(NAME, VALUE)                                                                              \
  template <class T>                                                                                         \
  void NAME(const LocalTensor<T>& d, const LocalTensor<T>& s, std::type_identity_t<T> number, int32_t count, \
            int line = __builtin_LINE()) {                                                                   \
    unary(                                                                                                   \
        #NAME, d, s, count,                                                                                  \
        [y = float(number)](const float* v) {                                                                \
          const float x = v[0];                                                                              \
          return float(VALUE);                                                                               \
        },                                                                                                   \
        line);                                                                                               \
  }                                                                                                          \
  template <class T>                                                                                         \
  void NAME(const LocalTensor<T>& d, const LocalTensor<T>& s, std::type_identity_t<T> number, uint64_t mask, \
            int64_t repeat, const UnaryRepeatParams& r, int line = __builtin_LINE()) {                       \
    unary(                                                                                                   \
        #NAME, d, s, int64_t(mask), repeat, r,                                                               \
        [y = float(number)](const float* v) {                                                                \
          const float x = v[0];                                                                              \
          return float(VALUE);                                                                               \
        },                                                                                                   \
        line);                                                                                               \
  }
NPU_SCALAR(Adds, x + y)
NPU_SCALAR(Muls, x* y)
NPU_SCALAR(Maxs, x > y ? x : y)
NPU_SCALAR(Mins, x < y ? x : y)
#undef NPU_SCALAR

template <class T>
void Duplicate(const LocalTensor<T>& d, std::type_identity_t<T> number, int32_t count, int line = __builtin_LINE()) {
  if (vector_operand(d, line) & npu::require(count >= 1, "a count below 1", line))
    npu::map(
        "Duplicate", d.place, {}, {1, count}, {}, [y = float(number)](const float*) { return y; }, line);
}
template <class T>
void Duplicate(const LocalTensor<T>& d, std::type_identity_t<T> number, uint64_t mask, int64_t repeat, uint16_t block,
               uint8_t stride, int line = __builtin_LINE()) {
  if (vector_operand(d, line) & check_repeat(int64_t(mask), repeat, sizeof(T), line))
    npu::map(
        "Duplicate", lanes(d, block, stride), {}, {repeat, int64_t(mask)}, {},
        [y = float(number)](const float*) { return y; }, line);
}

// ---- across lanes ----
// Each repeat takes 8 elements and fills a 32 B block with each. It moves: elements that hold nothing give blocks that
// do not.
template <class T>
void Brcb(const LocalTensor<T>& d, const LocalTensor<T>& s, int64_t repeat, const BrcbRepeatParams& r,
          int line = __builtin_LINE()) {
  constexpr int64_t n = 32 / sizeof(T);
  if (!(vector_operand(d, line) & vector_operand(s, line) & check_repeat(1, repeat, sizeof(T), line))) return;
  Place from = s.place, to = d.place;
  from.block_row = 1, from.block_col = 0;
  to.f0 = 8, to.block_row = r.dstRepStride * n, to.row = r.dstBlkStride * n;
  const npu::Extent e{repeat * 8, n};
  const npu::Ranges target = npu::bytes_of(to, e);
  if (npu::require(npu::without(target, npu::bytes_of(from, e)) == target, "Brcb in place", line))
    npu::move(npu::V, "Brcb", to, from, {.valid = e, .carry = true}, line);
}

template <class T>
void whole_reduce(const char* what, const LocalTensor<T>& d, const LocalTensor<T>& s, int64_t mask, int64_t repeat,
                  int64_t to_stride, int64_t block, int64_t from_stride, float (*f)(float, float), int line) {
  if (!(in_memory(d, npu::Where::ub, "a vector operand outside UB", line) &
        aligned(d, sizeof(T), "a reduction's result not at a multiple of its type", line) & vector_operand(s, line) &
        check_repeat(mask, repeat, sizeof(T), line) &
        npu::require(to_stride >= 1 || repeat == 1, "a reduction writes all results to one place", line)))
    return;
  Place to = d.place;
  to.block_row = to_stride;
  npu::reduce(what, to, lanes(s, block, from_stride), {repeat, mask}, {}, {}, f, line);
}
template <class T>
void WholeReduceMax(const LocalTensor<T>& d, const LocalTensor<T>& s, int32_t mask, int32_t repeat, int32_t to_stride,
                    int32_t block, int32_t from_stride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,
                    int line = __builtin_LINE()) {
  if (npu::require(order == ReduceOrder::ORDER_ONLY_VALUE,
                   "WholeReduceMax: pairs of value and index are not in the list", line))
    whole_reduce(
        "WholeReduceMax", d, s, mask, repeat, to_stride, block, from_stride,
        [](float a, float b) { return a > b ? a : b; }, line);
}
template <class T>
void WholeReduceMin(const LocalTensor<T>& d, const LocalTensor<T>& s, int32_t mask, int32_t repeat, int32_t to_stride,
                    int32_t block, int32_t from_stride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,
                    int line = __builtin_LINE()) {
  if (npu::require(order == ReduceOrder::ORDER_ONLY_VALUE,
                   "WholeReduceMin: pairs of value and index are not in the list", line))
    whole_reduce(
        "WholeReduceMin", d, s, mask, repeat, to_stride, block, from_stride,
        [](float a, float b) { return a < b ? a : b; }, line);
}
template <class T>
void WholeReduceSum(const LocalTensor<T>& d, const LocalTensor<T>& s, int32_t mask, int32_t repeat, int32_t to_stride,
                    int32_t block, int32_t from_stride, int line = __builtin_LINE()) {
  whole_reduce(
      "WholeReduceSum", d, s, mask, repeat, to_stride, block, from_stride, [](float a, float b) { return a + b; },
      line);
}

}  // namespace AscendC
