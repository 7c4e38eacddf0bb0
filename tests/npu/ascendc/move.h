// Data movement of the Ascend C stub.
#pragma once
#include "tensor.h"

namespace AscendC {

// Block strides in global memory count the bytes between blocks, in UB the 32 B units between them.
struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
};
template <class T>
struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  T paddingValue = T(0);
};

inline bool check_pad(const DataCopyExtParams& c, size_t size, int line) {
  return npu::require(c.blockCount >= 1 && c.blockCount <= 4095, "DataCopyPad: blockCount outside 1..4095", line) &
         npu::require(c.blockLen >= 1 && c.blockLen < (1u << 21), "DataCopyPad: blockLen outside 1..2^21-1", line) &
         npu::require(c.blockLen % size == 0, "DataCopyPad: blockLen is no whole number of elements", line);
}
// Rows of a padded copy in UB: each starts at a 32 B block.
template <class T>
Place rows_in_ub(const LocalTensor<T>& t, uint32_t bytes, uint32_t gap) {
  Place p = t.place;
  p.block_row = int64_t(((bytes + 31) / 32 + gap) * 32 / sizeof(T));
  return p;
}
inline int64_t whole_blocks(uint32_t bytes, size_t size) { return int64_t((bytes + 31) / 32 * 32 / size); }

template <class T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& c,
                 const DataCopyPadExtParams<T>& pad, int line = __builtin_LINE()) {
  if (!(check_pad(c, sizeof(T), line) & in_memory(dst, npu::Where::ub, "DataCopyPad: tensor outside UB", line) &
        aligned(dst, 32, "DataCopyPad: UB address not a multiple of 32 B", line) &
        npu::require(c.srcStride % sizeof(T) == 0, "DataCopyPad: stride is no whole number of elements", line) &
        npu::require(!pad.isPad && !pad.leftPadding && !pad.rightPadding,
                     "DataCopyPad: padding values are not in the list", line)))
    return;
  const int64_t cols = int64_t(c.blockLen / sizeof(T));
  npu::move(npu::MTE2, "DataCopyPad", rows_in_ub(dst, c.blockLen, c.dstStride),
            npu::global(src.first, type_of<T>(), cols + int64_t(c.srcStride / sizeof(T))),
            {.valid = {c.blockCount, cols}, .target = {c.blockCount, whole_blocks(c.blockLen, sizeof(T))}}, line);
}
template <class T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& c,
                 int line = __builtin_LINE()) {
  if (!(check_pad(c, sizeof(T), line) & in_memory(src, npu::Where::ub, "DataCopyPad: tensor outside UB", line) &
        aligned(src, 32, "DataCopyPad: UB address not a multiple of 32 B", line) &
        npu::require(c.dstStride % sizeof(T) == 0, "DataCopyPad: stride is no whole number of elements", line)))
    return;
  const int64_t cols = int64_t(c.blockLen / sizeof(T));
  npu::move(npu::MTE3, "DataCopyPad", npu::global(dst.first, type_of<T>(), cols + int64_t(c.dstStride / sizeof(T))),
            rows_in_ub(src, c.blockLen, c.srcStride),
            {.valid = {c.blockCount, cols}, .source = {c.blockCount, whole_blocks(c.blockLen, sizeof(T))}}, line);
}

// Rows of global memory to the NZ layout of L1: columns of 32 B (C0), each column block holding all rows.
struct Nd2NzParams {
  uint16_t ndNum = 0, nValue = 0, dValue = 0, srcNdMatrixStride = 0, srcDValue = 0, dstNzC0Stride = 0, dstNzNStride = 0,
           dstNzMatrixStride = 0;
};
template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& c,
              int line = __builtin_LINE()) {
  constexpr int64_t C0 = 32 / sizeof(T);
  if (!(in_memory(dst, npu::Where::l1, "DataCopy ND to NZ: tensor outside L1", line) &
        aligned(dst, 32, "DataCopy ND to NZ: L1 address not a multiple of 32 B", line) &
        npu::require(c.ndNum == 1, "DataCopy ND to NZ: one matrix at a time", line) &
        npu::require(c.nValue >= 1 && c.nValue <= 16384, "DataCopy ND to NZ: nValue outside 1..16384", line) &
        npu::require(c.dValue >= 1, "DataCopy ND to NZ: dValue outside 1..65535", line) &
        npu::require(c.srcDValue >= 1, "DataCopy ND to NZ: srcDValue outside 1..65535", line) &
        npu::require(c.dstNzC0Stride >= 1 && c.dstNzC0Stride <= 16384,
                     "DataCopy ND to NZ: dstNzC0Stride outside 1..16384", line) &
        npu::require(c.dstNzNStride >= 1 && c.dstNzNStride <= 16384, "DataCopy ND to NZ: dstNzNStride outside 1..16384",
                     line) &
        npu::require(c.nValue == 1 || c.srcDValue >= c.dValue, "DataCopy ND to NZ: rows overlap in the source", line) &
        npu::require(c.dValue <= C0 || c.dstNzC0Stride >= (c.nValue - 1) * c.dstNzNStride + 1,
                     "DataCopy ND to NZ: column blocks overlap in L1", line)))
    return;
  Place to = dst.place;
  to.block_row = c.dstNzNStride * C0;
  to.f1 = C0, to.block_col = c.dstNzC0Stride * C0, to.col = 1;
  const int64_t padded =
      (c.dValue + C0 - 1) / C0 * C0;  // documented: the tail of a row's last 32 B becomes zero; rows are not padded
  npu::move(npu::MTE2, "DataCopy ND to NZ", to, npu::global(src.first, type_of<T>(), c.srcDValue),
            {.valid = {c.nValue, c.dValue}, .target = {c.nValue, padded}, .zero_cols = true}, line);
}

// L1 to the bias table; f16 becomes f32 on the way. Units of 64 B, counted in the destination.
struct DataCopyParams {
  uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
};
template <class T, class U>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyParams& c,
              int line = __builtin_LINE()) {
  static_assert(std::is_same_v<T, float> && (std::is_same_v<U, half> || std::is_same_v<U, float>),
                "bias table: half or float to float");
  if (!(in_memory(dst, npu::Where::bt, "DataCopy: this form writes the bias table only", line) &
        in_memory(src, npu::Where::l1, "DataCopy to the bias table: source outside L1", line) &
        aligned(dst, 64, "DataCopy: bias table address not a multiple of 64 B", line) &
        aligned(src, 32, "DataCopy: L1 address not a multiple of 32 B", line) &
        npu::require(c.blockCount == 1 && c.srcStride == 0 && c.dstStride == 0,
                     "DataCopy to the bias table: one block at a time", line) &
        npu::require(c.blockLen >= 1, "DataCopy to the bias table: nothing to copy", line)))
    return;
  npu::move(npu::MTE1, "DataCopy to BT", dst.place, src.place,
            {.valid = {1, c.blockLen * 64 / int64_t(sizeof(T))}, .carry = true}, line);
}

// Fractals of 512 B from L1 to L0A or L0B, each transposed on request.
struct LoadData2DParams {
  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0;  // between the starts of fractals
  uint8_t sid = 0;
  uint16_t dstGap = 0;  // between the end of one and the start of the next
  bool ifTranspose = false;
  uint8_t addrMode = 0;
};
template <class T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& c,
              int line = __builtin_LINE()) {
  constexpr int64_t fractal = 512 / sizeof(T), width = 32 / sizeof(T);
  const bool left = dst.position == TPosition::A2;
  if (!(npu::require(left || dst.position == TPosition::B2, "LoadData: destination is neither A2 nor B2", line) &
        in_memory(src, npu::Where::l1, "LoadData: source outside L1", line) &
        aligned(dst, 512, "LoadData: L0 address not a multiple of 512 B", line) &
        aligned(src, 32, "LoadData: L1 address not a multiple of 32 B", line) &
        npu::require(c.repeatTimes >= 1, "LoadData: repeatTimes outside 1..255", line) &
        npu::require(c.sid == 0 && c.addrMode == 0, "LoadData: reserved fields are 0", line) &
        npu::require(!c.ifTranspose || sizeof(T) == 2, "LoadData: transposes 16 bit elements only", line)))
    return;
  Place from = src.place, to = dst.place;
  from.at += size_t(c.startIndex) * 512;
  from.block_row = c.srcStride * fractal;
  to.block_row = (c.dstGap + 1) * fractal;
  if (c.ifTranspose) to.f1 = width, to.block_col = 1, to.col = 16;  // element (r, k) of a fractal goes to (k, r)
  npu::move(npu::MTE1, "LoadData", to, from, {.valid = {c.repeatTimes, fractal}, .carry = true}, line);
}

}  // namespace AscendC
