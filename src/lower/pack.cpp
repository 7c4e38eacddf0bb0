// Re-lays a constant for a kernel, at load time. Knows tensors only.
#include <algorithm>

#include "lower/lower.h"

namespace gaf {

namespace {

// Winograd's F(2x2, 3x3): each 3x3 square g of [out, in, 3, 3] becomes G g G^T, 4x4. In double, rounded once.
Tensor squares_of_four(const Tensor& src) {
  GAF_CHECK(src.dtype == DType::f32 && src.dims.size() == 4 && src.dims[2] == 3 && src.dims[3] == 3)
      << "no 3x3 weights";
  Tensor out = Tensor::make(src.dtype, {src.dims[0], src.dims[1], 4, 4});
  // a, (a + b + c) / 2, (a - b + c) / 2, c
  auto four = [](double a, double b, double c, double* to, int64_t step) {
    to[0] = a, to[step] = (a + b + c) / 2, to[2 * step] = (a - b + c) / 2, to[3 * step] = c;
  };
  for (int64_t s = 0; s < src.dims[0] * src.dims[1]; s++) {
    const float* g = src.as<float>() + s * 9;
    double rows[12], all[16];
    for (int64_t j = 0; j < 3; j++) four(g[j], g[3 + j], g[6 + j], rows + j, 3);
    for (int64_t i = 0; i < 4; i++) four(rows[3 * i], rows[3 * i + 1], rows[3 * i + 2], all + 4 * i, 1);
    for (int64_t i = 0; i < 16; i++) out.mut<float>()[s * 16 + i] = static_cast<float>(all[i]);
  }
  return out;
}

}  // namespace

Tensor apply(const Pack& p, const Tensor& weights) {
  const Tensor src = p.winograd ? squares_of_four(weights) : weights;
  Tensor out = Tensor::make(src.dtype, p.dst_dims);
  const size_t from = src.dims.size(), to = p.dst_dims.size();
  GAF_CHECK(p.coef.size() == from && p.offset.size() == from) << "pack of a tensor of another rank";
  const int64_t total = out.numel();
  if (total == 0) return out;
  const size_t width = static_cast<size_t>(bytes(src.dtype));
  const char* in = src.as<char>();
  char* dst = out.mut<char>();
  std::vector<int64_t> stride(from, 1), index(to, 0), at = p.offset;
  for (size_t d = from; d-- > 1;) stride[d - 1] = stride[d] * src.dims[d];
  // the innermost dim runs as a line: how far each source coordinate moves along it says which elements lie inside
  const size_t last = to ? to - 1 : 0;
  const int64_t line = to ? p.dst_dims[last] : 1;
  for (int64_t done = 0; done < total; done += line) {
    int64_t begin = 0, end = line, base = 0, move = 0;
    for (size_t c = 0; c < from; c++) {
      const int64_t k = to ? p.coef[c][last] : 0, a = at[c], n = src.dims[c];
      base += a * stride[c];
      move += k * stride[c];
      if (k == 0) {
        if (a < 0 || a >= n) end = 0;
      } else if (k > 0) {
        begin = std::max(begin, a >= 0 ? 0 : (-a + k - 1) / k);
        end = std::min(end, a >= n ? 0 : (n - a + k - 1) / k);
      } else {
        begin = std::max(begin, a < n ? 0 : (a - n) / -k + 1);
        end = std::min(end, a < 0 ? 0 : a / -k + 1);
      }
    }
    if (begin < end && move == 1) {
      std::memcpy(dst + static_cast<size_t>(done + begin) * width, in + static_cast<size_t>(base + begin) * width,
                  static_cast<size_t>(end - begin) * width);
    } else {
      for (int64_t i = begin; i < end; i++)
        std::memcpy(dst + static_cast<size_t>(done + i) * width, in + static_cast<size_t>(base + i * move) * width,
                    width);
    }
    for (size_t d = last; d-- > 0;) {
      for (size_t c = 0; c < from; c++) at[c] += p.coef[c][d];
      if (++index[d] < p.dst_dims[d]) break;
      for (size_t c = 0; c < from; c++) at[c] -= p.coef[c][d] * p.dst_dims[d];
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace gaf
