// Helper templates for Ascend C, written from the public documentation of the basic API. $Op stands for an instruction
// and $op for its name in small letters.
#include "codegen/npu/ascendc_prelude.h"

#include "base/error.h"

namespace gaf::npu {
namespace {

struct Helper {
  std::string_view name, after, text;  // after: another helper that its text calls
};

constexpr Helper kHelpers[] = {
    {"least", "", R"(
__aicore__ inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
)"},
    {"most", "", R"(
__aicore__ inline int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
)"},
    {"gm_to_ub", "", R"(
// rows of cols elements, `stride` apart in global memory and `ld` apart in UB (rows start at whole blocks of 32 bytes)
template <typename T>
__aicore__ inline void gm_to_ub(const LocalTensor<T>& d, int64_t ld, const GlobalTensor<T>& s, int64_t rows, int64_t cols,
                                int64_t stride) {
  const uint32_t length = cols * sizeof(T), gap = ld * sizeof(T) / 32 - (length + 31) / 32;
  const uint32_t skip = (stride - cols) * sizeof(T);
  DataCopyPad(d, s, DataCopyExtParams{uint16_t(rows), length, skip, gap, 0}, DataCopyPadExtParams<T>{false, 0, 0, T(0)});
}
)"},
    {"ub_to_gm", "", R"(
template <typename T>
__aicore__ inline void ub_to_gm(const GlobalTensor<T>& d, int64_t rows, int64_t cols, int64_t stride,
                                const LocalTensor<T>& s, int64_t ld) {
  const uint32_t length = cols * sizeof(T), gap = ld * sizeof(T) / 32 - (length + 31) / 32;
  const uint32_t skip = (stride - cols) * sizeof(T);
  DataCopyPad(d, s, DataCopyExtParams{uint16_t(rows), length, gap, skip, 0});
}
)"},
    {"rows_cast", "least", R"(
// d = cast(s) on rows x cols of tiles whose rows are ld elements; a repeat takes 64 elements, as the wider type is 4 bytes
template <RoundMode mode, typename D, typename S>
__aicore__ inline void rows_cast(const LocalTensor<D>& d, const LocalTensor<S>& s, int64_t rows, int64_t cols, int64_t ld) {
  constexpr int64_t lanes = 256 / (sizeof(D) > sizeof(S) ? sizeof(D) : sizeof(S));
  const uint8_t to = ld * sizeof(D) / 32, from = ld * sizeof(S) / 32;
  for (int64_t r = 0; r < rows; r += 255)
    for (int64_t c = 0; c < cols; c += lanes)
      Cast(d[r * ld + c], s[r * ld + c], mode, uint64_t(least(lanes, cols - c)), uint8_t(least(255, rows - r)),
           UnaryRepeatParams{1, 1, to, from});
}
)"},
    {"long_cast", "", R"(
template <RoundMode mode, typename D, typename S>
__aicore__ inline void long_cast(const LocalTensor<D>& d, const LocalTensor<S>& s, int64_t rows, int64_t cols, int64_t ld) {
  for (int64_t r = 0; r < rows; r++) Cast(d[r * ld], s[r * ld], mode, uint32_t(cols));
}
)"},
    {"rows_unary", "least", R"(
// d = $op(s) on rows x cols of tiles whose rows are ld elements (at most 255 blocks of 32 bytes)
template <typename T>
__aicore__ inline void rows_$op(const LocalTensor<T>& d, const LocalTensor<T>& s, int64_t rows, int64_t cols, int64_t ld) {
  constexpr int64_t lanes = 256 / sizeof(T);
  const uint8_t step = ld * sizeof(T) / 32;
  for (int64_t r = 0; r < rows; r += 255)
    for (int64_t c = 0; c < cols; c += lanes)
      $Op(d[r * ld + c], s[r * ld + c], uint64_t(least(lanes, cols - c)), uint8_t(least(255, rows - r)),
          UnaryRepeatParams{1, 1, step, step});
}
)"},
    {"long_unary", "", R"(
// d = $op(s), one row after the other
template <typename T>
__aicore__ inline void long_$op(const LocalTensor<T>& d, const LocalTensor<T>& s, int64_t rows, int64_t cols, int64_t ld) {
  for (int64_t r = 0; r < rows; r++) $Op(d[r * ld], s[r * ld], int32_t(cols));
}
)"},
    {"rows_scalar", "least", R"(
// d = $op(s, v) on rows x cols of tiles whose rows are ld elements (at most 255 blocks of 32 bytes)
template <typename T>
__aicore__ inline void rows_$op(const LocalTensor<T>& d, const LocalTensor<T>& s, T v, int64_t rows, int64_t cols,
                                int64_t ld) {
  constexpr int64_t lanes = 256 / sizeof(T);
  const uint8_t step = ld * sizeof(T) / 32;
  for (int64_t r = 0; r < rows; r += 255)
    for (int64_t c = 0; c < cols; c += lanes)
      $Op(d[r * ld + c], s[r * ld + c], v, uint64_t(least(lanes, cols - c)), uint8_t(least(255, rows - r)),
          UnaryRepeatParams{1, 1, step, step});
}
)"},
    {"long_scalar", "", R"(
// d = $op(s, v), one row after the other
template <typename T>
__aicore__ inline void long_$op(const LocalTensor<T>& d, const LocalTensor<T>& s, T v, int64_t rows, int64_t cols,
                                int64_t ld) {
  for (int64_t r = 0; r < rows; r++) $Op(d[r * ld], s[r * ld], v, int32_t(cols));
}
)"},
    {"rows_binary", "least", R"(
// d = $op(a, b) on rows x cols of tiles whose rows are ld elements (at most 255 blocks of 32 bytes)
template <typename T>
__aicore__ inline void rows_$op(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, int64_t rows,
                                int64_t cols, int64_t ld) {
  constexpr int64_t lanes = 256 / sizeof(T);
  const uint8_t step = ld * sizeof(T) / 32;
  for (int64_t r = 0; r < rows; r += 255)
    for (int64_t c = 0; c < cols; c += lanes)
      $Op(d[r * ld + c], a[r * ld + c], b[r * ld + c], uint64_t(least(lanes, cols - c)), uint8_t(least(255, rows - r)),
          BinaryRepeatParams{1, 1, 1, step, step, step});
}
)"},
    {"long_binary", "", R"(
// d = $op(a, b), one row after the other
template <typename T>
__aicore__ inline void long_$op(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b, int64_t rows,
                                int64_t cols, int64_t ld) {
  for (int64_t r = 0; r < rows; r++) $Op(d[r * ld], a[r * ld], b[r * ld], int32_t(cols));
}
)"},
    {"fill_rows", "", R"(
template <typename T>
__aicore__ inline void fill_rows(const LocalTensor<T>& d, T v, int64_t rows, int64_t cols, int64_t ld) {
  for (int64_t r = 0; r < rows; r++) Duplicate(d[r * ld], v, int32_t(cols));
}
)"},
    {"column", "least", R"(
// d = $op(s, m) with one value of m a row. t: a block of 32 bytes for each row, rounded up to 8 rows
template <typename T>
__aicore__ inline void column_$op(const LocalTensor<T>& d, const LocalTensor<T>& s, const LocalTensor<T>& m,
                                  const LocalTensor<T>& t, int64_t rows, int64_t cols, int64_t ld) {
  constexpr int64_t lanes = 256 / sizeof(T), block = 32 / sizeof(T);
  const uint8_t step = ld * sizeof(T) / 32;
  Brcb(t, m, uint8_t((rows + 7) / 8), BrcbRepeatParams{1, 8});
  PipeBarrier<PIPE_V>();
  for (int64_t r = 0; r < rows; r += 255)
    for (int64_t c = 0; c < cols; c += lanes)
      $Op(d[r * ld + c], s[r * ld + c], t[r * block], uint64_t(least(lanes, cols - c)), uint8_t(least(255, rows - r)),
          BinaryRepeatParams{1, 1, 0, step, step, 1});
}
)"},
    {"long_column", "least", R"(
// d = $op(s, m) with one value of m a row, one row after the other. t: a block of 32 bytes for each row
template <typename T>
__aicore__ inline void long_column_$op(const LocalTensor<T>& d, const LocalTensor<T>& s, const LocalTensor<T>& m,
                                       const LocalTensor<T>& t, int64_t rows, int64_t cols, int64_t ld) {
  constexpr int64_t lanes = 256 / sizeof(T), block = 32 / sizeof(T);
  const int64_t full = cols / lanes, rest = cols % lanes;
  Brcb(t, m, uint8_t((rows + 7) / 8), BrcbRepeatParams{1, 8});
  PipeBarrier<PIPE_V>();
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = 0; i < full; i += 255)
      $Op(d[r * ld + i * lanes], s[r * ld + i * lanes], t[r * block], uint64_t(lanes), uint8_t(least(255, full - i)),
          BinaryRepeatParams{1, 1, 0, 8, 8, 0});
    if (rest > 0)
      $Op(d[r * ld + full * lanes], s[r * ld + full * lanes], t[r * block], uint64_t(rest), uint8_t(1),
          BinaryRepeatParams{1, 1, 0, 8, 8, 0});
  }
}
)"},
    {"reduce", "least", R"(
// d[r] = $op over the first cols elements of row r of s (rows of ld elements, at most 255 blocks). t: scratch like s
template <typename T>
__aicore__ inline void reduce_$op(const LocalTensor<T>& d, const LocalTensor<T>& s, const LocalTensor<T>& t, int64_t rows,
                                  int64_t cols, int64_t ld) {
  constexpr int64_t lanes = 256 / sizeof(T);
  const uint8_t step = ld * sizeof(T) / 32;
  for (int64_t r = 0; r < rows; r += 248) {  // d[r] starts at a whole block
    const uint8_t n = least(248, rows - r);
    const LocalTensor<T> row = s[r * ld], sum = t[r * ld];
    if (cols <= lanes) {
      $Whole(d[r], row, int32_t(cols), int32_t(n), 1, 1, int32_t(step)$Order);
      continue;
    }
    int64_t c = 2 * lanes;
    if (cols >= c) {
      $Op(sum, row, row[lanes], uint64_t(lanes), n, BinaryRepeatParams{1, 1, 1, step, step, step});
    } else {
      Copy(sum, row, uint64_t(lanes), n, CopyRepeatParams{1, 1, step, step});
      c = lanes;
    }
    for (; c < cols; c += lanes) {
      PipeBarrier<PIPE_V>();
      $Op(sum, sum, row[c], uint64_t(least(lanes, cols - c)), n, BinaryRepeatParams{1, 1, 1, step, step, step});
    }
    PipeBarrier<PIPE_V>();
    $Whole(d[r], sum, int32_t(lanes), int32_t(n), 1, 1, int32_t(step)$Order);
  }
}
)"},
    {"long_reduce", "reduce", R"(
// The same for rows of any length: every repeat of a row becomes one value, then those are reduced.
template <typename T>
__aicore__ inline void long_reduce_$op(const LocalTensor<T>& d, const LocalTensor<T>& s, const LocalTensor<T>& t,
                                       int64_t rows, int64_t cols, int64_t ld) {
  constexpr int64_t lanes = 256 / sizeof(T);
  const int64_t full = cols / lanes, rest = cols % lanes, part = (full + 15) / 16 * 16;
  if (full == 0) {
    $Whole(d, s, int32_t(cols), int32_t(rows), 1, 1, int32_t(ld * sizeof(T) / 32)$Order);
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < full; i += 248)
      $Whole(t[r * part + i], s[r * ld + i * lanes], int32_t(lanes), int32_t(least(248, full - i)), 1, 1, 8$Order);
  const LocalTensor<T> tail = t[2 * rows * part];
  if (rest > 0)
    $Whole(tail, s[full * lanes], int32_t(rest), int32_t(rows), 1, 1, int32_t(ld * sizeof(T) / 32)$Order);
  PipeBarrier<PIPE_V>();
  reduce_$op(d, t, t[rows * part], rows, full, part);
  if (rest > 0) {
    PipeBarrier<PIPE_V>();
    $Op(d, d, tail, int32_t(rows));
  }
}
)"},
    {"gm_to_l1", "", R"(
// rows of cols elements, `stride` apart in global memory, into fractals: columns of 32 bytes, each `height` rows high
template <typename T>
__aicore__ inline void gm_to_l1(const LocalTensor<T>& d, int64_t height, const GlobalTensor<T>& s, int64_t rows,
                                int64_t cols, int64_t stride) {
  Nd2NzParams p;
  p.ndNum = 1, p.nValue = rows, p.dValue = cols, p.srcNdMatrixStride = 0, p.srcDValue = stride;
  p.dstNzC0Stride = height, p.dstNzNStride = 1, p.dstNzMatrixStride = 0;
  DataCopy(d, s, p);
}
)"},
    {"long_gm_to_l1", "gm_to_l1", R"(
// The same where the rows are farther apart than 65535 elements: one row after the other.
template <typename T>
__aicore__ inline void long_gm_to_l1(const LocalTensor<T>& d, int64_t height, const GlobalTensor<T>& s, int64_t rows,
                                     int64_t cols, int64_t stride) {
  for (int64_t r = 0; r < rows; r++) gm_to_l1(d[r * 32 / sizeof(T)], height, s[r * stride], 1, cols, cols);
}
)"},
    {"left_height", "", R"(
// Height of the fractal columns of a left operand: Mmad with m = 1 is a matrix-vector product and takes its row as it is.
__aicore__ inline int64_t left_height(int64_t rows, int64_t height) { return rows == 1 ? 1 : height; }
)"},
    {"l1_to_l0a", "", R"(
// m x k of a tile with fractal columns `height` rows high: rows of fractals
template <typename T>
__aicore__ inline void l1_to_l0a(const LocalTensor<T>& d, const LocalTensor<T>& s, int64_t height, int64_t m, int64_t k) {
  constexpr int64_t fractal = 512 / sizeof(T), width = 32 / sizeof(T);
  LoadData2DParams p;
  p.ifTranspose = false, p.dstGap = 0;
  if (m == 1) {  // one row, as it is
    p.startIndex = 0, p.repeatTimes = (k + fractal - 1) / fractal, p.srcStride = 1;
    LoadData(d, s, p);
    return;
  }
  const int64_t across = (k + width - 1) / width;
  p.repeatTimes = across, p.srcStride = height / 16;
  for (int64_t i = 0; i < (m + 15) / 16; i++) {
    p.startIndex = i;
    LoadData(d[i * across * fractal], s, p);
  }
}
)"},
    {"l1_to_l0b", "", R"(
// k x n of a tile of 2-byte elements: rows of fractals, each turned
template <typename T>
__aicore__ inline void l1_to_l0b(const LocalTensor<T>& d, const LocalTensor<T>& s, int64_t height, int64_t k, int64_t n) {
  const int64_t across = (n + 15) / 16;
  LoadData2DParams p;
  p.ifTranspose = true, p.dstGap = 0, p.repeatTimes = across, p.srcStride = height / 16;
  for (int64_t i = 0; i < (k + 15) / 16; i++) {
    p.startIndex = i;
    LoadData(d[i * across * 256], s, p);
  }
}
)"},
    {"l1_to_bt", "", R"(
// n elements of a row, in units of 64 bytes of the bias table
template <typename D, typename S>
__aicore__ inline void l1_to_bt(const LocalTensor<D>& d, const LocalTensor<S>& s, int64_t n) {
  DataCopy(d, s, DataCopyParams{1, uint16_t((n * sizeof(D) + 63) / 64), 0, 0});
}
)"},
    {"mmad", "", R"(
// c = a * b, or c += a * b
template <bool add, typename C, typename A>
__aicore__ inline void mmad(const LocalTensor<C>& c, const LocalTensor<A>& a, const LocalTensor<A>& b, int64_t m, int64_t k,
                            int64_t n) {
  MmadParams p;
  p.m = m, p.n = n, p.k = k, p.cmatrixInitVal = !add, p.cmatrixSource = false;
  Mmad(c, a, b, p);
}
)"},
    {"mmad_bias", "", R"(
// c = a * b + a row of the bias table
template <typename C, typename A>
__aicore__ inline void mmad_bias(const LocalTensor<C>& c, const LocalTensor<A>& a, const LocalTensor<A>& b,
                                 const LocalTensor<C>& bias, int64_t m, int64_t k, int64_t n) {
  MmadParams p;
  p.m = m, p.n = n, p.k = k, p.cmatrixInitVal = false, p.cmatrixSource = true;
  Mmad(c, a, b, bias, p);
}
)"},
    {"l0c_to_gm", "", R"(
// m x n results to rows `stride` apart, cast and rectified on the way
template <QuantMode_t cast, bool relu, typename T, typename C>
__aicore__ inline void l0c_to_gm(const GlobalTensor<T>& d, int64_t stride, const LocalTensor<C>& s, int64_t m, int64_t n) {
  FixpipeParamsV220 p;
  p.nSize = n, p.mSize = m, p.srcStride = (m + 15) / 16 * 16, p.dstStride = stride;
  p.quantPre = cast, p.reluEn = relu, p.ndNum = 1;
  Fixpipe(d, s, p);
}
)"},
};

std::string lower_case(std::string s) {
  for (char& c : s) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return s;
}
void replace(std::string& s, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
}

}  // namespace

std::string AscendcPrelude::need(const std::string& helper, const std::string& word) {
  for (size_t i = 0; i < std::size(kHelpers); i++) {
    const Helper& h = kHelpers[i];
    if (h.name != helper) continue;
    if (!h.after.empty()) need(std::string(h.after), h.after == "reduce" ? word : "");
    const std::string op = lower_case(word);
    std::string text(h.text);
    if (helper.ends_with("reduce")) {
      replace(text, "$Whole", word == "Add" ? "WholeReduceSum" : "WholeReduce" + word);
      replace(text, "$Order", word == "Add" ? "" : ", ReduceOrder::ORDER_ONLY_VALUE");
    }
    replace(text, "$Op", word), replace(text, "$op", op);
    texts_[{static_cast<int>(i), word}] = std::move(text);
    if (helper == "column" || helper == "long_column" || helper == "reduce" || helper == "long_reduce")
      return helper + "_" + op;
    return word.empty() ? helper : helper.substr(0, 5) + op;  // rows_exp, long_exp
  }
  GAF_CHECK(false) << "no helper " << helper;
  return "";
}

std::string AscendcPrelude::text() const {
  std::string s;
  for (const auto& [key, text] : texts_) s += text;
  return s;
}

}  // namespace gaf::npu
