// The matrix unit of the Ascend C stub: Mmad on ZZ x ZN -> NZ fractals, Fixpipe to rows of global memory.
#pragma once
#include "tensor.h"

namespace AscendC {

struct MmadParams {
  uint16_t m = 0, n = 0, k = 0;
  bool cmatrixInitVal = true;  // start from 0
  bool cmatrixSource = false;  // else from C: false CO1, true the bias table
  uint8_t unitFlag = 0;
};

template <class A>
Place left_operand(const LocalTensor<A>& a, const MmadParams& p) {
  constexpr int64_t K0 = 32 / sizeof(A);
  Place r = a.place;
  if (p.m == 1) return r;  // GEMV: one plain row
  const int64_t across = (p.k + K0 - 1) / K0;
  r.f0 = 16, r.f1 = K0, r.block_row = across * 16 * K0, r.block_col = 16 * K0, r.row = K0, r.col = 1;
  return r;
}
template <class B>
Place right_operand(const LocalTensor<B>& b, const MmadParams& p) {
  constexpr int64_t K0 = 32 / sizeof(B);
  Place r = b.place;
  r.f0 = K0, r.f1 = 16, r.block_row = (p.n + 15) / 16 * 16 * K0, r.block_col = 16 * K0, r.row = 1, r.col = K0;
  return r;
}
inline Place accumulator(const Place& c, int64_t column_stride) {  // stride between column blocks, in rows of 16
  Place r = c;
  r.f1 = 16, r.block_row = 16, r.block_col = column_stride * 16, r.col = 1;
  return r;
}

template <class C, class A, class B>
void multiply(const LocalTensor<C>& c, const LocalTensor<A>& a, const LocalTensor<B>& b, const LocalTensor<C>* bias,
              const MmadParams& p, int line) {
  static_assert(
      std::is_same_v<C, float> && std::is_same_v<A, B> && (std::is_same_v<A, half> || std::is_same_v<A, float>),
      "Mmad: half or float operands, float accumulator");
  if (!(in_memory(c, npu::Where::l0c, "Mmad: result outside CO1", line) &
        in_memory(a, npu::Where::l0a, "Mmad: left operand outside A2", line) &
        in_memory(b, npu::Where::l0b, "Mmad: right operand outside B2", line) &
        aligned(a, 512, "Mmad: A2 address not a multiple of 512 B", line) &
        aligned(b, 512, "Mmad: B2 address not a multiple of 512 B", line) &
        aligned(c, 256 * sizeof(C), "Mmad: CO1 address not a multiple of 256 elements", line) &
        npu::require(p.unitFlag == 0, "Mmad: unitFlag is not in the list", line)))
    return;
  Place t;
  if (bias) {
    if (!(in_memory(*bias, npu::Where::bt, "Mmad: bias outside C2", line) &
          aligned(*bias, 64, "Mmad: bias address not a multiple of 64 B", line) &
          npu::require(!p.cmatrixInitVal && p.cmatrixSource,
                       "Mmad with a bias: cmatrixInitVal false, cmatrixSource true", line)))
      return;
    t = bias->place;
  } else if (!npu::require(!p.cmatrixSource, "Mmad: cmatrixSource without a bias", line)) {
    return;
  }
  const npu::Start start = bias ? npu::Start::bias : p.cmatrixInitVal ? npu::Start::zero : npu::Start::accumulate;
  npu::multiply("Mmad", accumulator(c.place, (p.m + 15) / 16 * 16), left_operand(a, p), right_operand(b, p),
                bias ? &t : nullptr, {p.m, p.n, p.k, start}, line);
}
template <class C, class A, class B>
void Mmad(const LocalTensor<C>& c, const LocalTensor<A>& a, const LocalTensor<B>& b, const MmadParams& p,
          int line = __builtin_LINE()) {
  multiply(c, a, b, static_cast<const LocalTensor<C>*>(nullptr), p, line);
}
template <class C, class A, class B>
void Mmad(const LocalTensor<C>& c, const LocalTensor<A>& a, const LocalTensor<B>& b, const LocalTensor<C>& bias,
          const MmadParams& p, int line = __builtin_LINE()) {
  multiply(c, a, b, &bias, p, line);
}

enum QuantMode_t { NoQuant, F322F16 };
// Row-major result (the default configuration, NZ to ND); dstStride in elements of the destination.
struct FixpipeParamsV220 {
  uint16_t nSize = 0, mSize = 0, srcStride = 0;
  uint32_t dstStride = 0;
  QuantMode_t quantPre = NoQuant;
  bool reluEn = false;
  uint16_t ndNum = 1;
};
template <class T, class U>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& p,
             int line = __builtin_LINE()) {
  static_assert(std::is_same_v<U, float>, "Fixpipe: float accumulators only");
  if (!(in_memory(src, npu::Where::l0c, "Fixpipe: source outside CO1", line) &
        aligned(src, 64, "Fixpipe: CO1 address not a multiple of 64 B", line) &
        npu::require(p.nSize >= 1 && p.nSize <= 4095, "Fixpipe: nSize outside 1..4095", line) &
        npu::require(p.mSize >= 1 && p.mSize <= 8192, "Fixpipe to rows: mSize outside 1..8192", line) &
        npu::require(p.srcStride % 16 == 0 && p.srcStride >= p.mSize,
                     "Fixpipe: srcStride is no multiple of 16 or less than mSize", line) &
        npu::require(p.ndNum == 1, "Fixpipe: one matrix at a time", line) &
        npu::require(p.dstStride >= p.nSize, "Fixpipe: rows overlap in the destination", line) &
        npu::require((p.quantPre == F322F16) == std::is_same_v<T, half>, "Fixpipe: F322F16 exactly for half results",
                     line)))
    return;
  const npu::Extent read{(p.mSize + 15) / 16 * 16,
                         (p.nSize + 15) / 16 * 16};  // whole fractals; the rest is thrown away
  npu::move(npu::FIX, "Fixpipe", npu::global(dst.first, type_of<T>(), p.dstStride), accumulator(src.place, p.srcStride),
            {.valid = {p.mSize, p.nSize}, .source = read, .relu = p.reluEn}, line);
}

}  // namespace AscendC
