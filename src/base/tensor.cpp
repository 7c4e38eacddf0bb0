// Host tensors: element access by value, half conversions, comparison. Slow paths only: kernels never come here.
#include "base/tensor.h"

#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/memory.h"

namespace gaf {

Tensor Tensor::make(DType t, std::vector<int64_t> dims) {
  Tensor x{t, std::move(dims), nullptr};
  int64_t n = 1;
  for (int64_t d : x.dims) {
    if (d < 0 || (d != 0 && n > (int64_t{1} << 46) / d)) throw UserError("GAF3106", "a tensor would have too many elements");
    n *= d;
  }
  const int64_t size = align_up(n * bytes(t)) + kBlockAlign;
  std::shared_ptr<void> block = allocate_block(size);
  std::memset(block.get(), 0, static_cast<size_t>(size));
  x.data = std::move(block);
  return x;
}

float f16_to_f32(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 1023;
  if (e == 31) return std::bit_cast<float>(sign | 0x7f800000 | m << 13);
  if (e == 0) return std::copysign(static_cast<float>(m) * 0x1p-24f, std::bit_cast<float>(sign | 0x3f800000));
  return std::bit_cast<float>(sign | (e + 112) << 23 | m << 13);
}
uint16_t f32_to_f16(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f), sign = (x >> 16) & 0x8000;
  x &= 0x7fffffff;
  if (x > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | ((x >> 13) & 1023));
  if (x >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  if (x < 0x38800000) {                                               // subnormal: let float addition round
    float v = std::bit_cast<float>(x) + 0.5f;                         // ulp of 0.5 is 2^-24, that of f16 subnormals
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(v) - 0x3f000000));
  }
  x += 0xc8000fff + ((x >> 13) & 1);
  return static_cast<uint16_t>(sign | x >> 13);
}
float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }
uint16_t f32_to_bf16(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  if (f != f) return static_cast<uint16_t>((x >> 16) | 0x40);
  return static_cast<uint16_t>((x + 0x7fff + ((x >> 16) & 1)) >> 16);
}

double Tensor::get(int64_t i) const {
  auto n = static_cast<size_t>(i);
  switch (dtype) {
    case DType::f32: return as<float>()[n];
    case DType::f16: return f16_to_f32(as<uint16_t>()[n]);
    case DType::bf16: return bf16_to_f32(as<uint16_t>()[n]);
    case DType::f64: return as<double>()[n];
    case DType::u64: return static_cast<double>(as<uint64_t>()[n]);
    default: return static_cast<double>(get_int(i));
  }
}

int64_t Tensor::get_int(int64_t i) const {
  auto n = static_cast<size_t>(i);
  switch (dtype) {
    case DType::i8: return as<int8_t>()[n];
    case DType::u8: return as<uint8_t>()[n];
    case DType::i16: return as<int16_t>()[n];
    case DType::u16: return as<uint16_t>()[n];
    case DType::i32: return as<int32_t>()[n];
    case DType::u32: return as<uint32_t>()[n];
    case DType::i64: return as<int64_t>()[n];
    case DType::u64: return static_cast<int64_t>(as<uint64_t>()[n]);
    case DType::b1: return as<uint8_t>()[n] != 0;
    default: return static_cast<int64_t>(get(i));
  }
}

namespace {
template <class T>
T saturate(double v) {  // half to even; NaN gives 0
  if (v != v) return 0;
  v = std::nearbyint(v);
  if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}
}  // namespace

void Tensor::set(int64_t i, double v) {
  auto n = static_cast<size_t>(i);
  switch (dtype) {
    case DType::f32: mut<float>()[n] = static_cast<float>(v); break;
    case DType::f16: mut<uint16_t>()[n] = f32_to_f16(static_cast<float>(v)); break;
    case DType::bf16: mut<uint16_t>()[n] = f32_to_bf16(static_cast<float>(v)); break;
    case DType::f64: mut<double>()[n] = v; break;
    case DType::i8: mut<int8_t>()[n] = saturate<int8_t>(v); break;
    case DType::u8: mut<uint8_t>()[n] = saturate<uint8_t>(v); break;
    case DType::i16: mut<int16_t>()[n] = saturate<int16_t>(v); break;
    case DType::u16: mut<uint16_t>()[n] = saturate<uint16_t>(v); break;
    case DType::i32: mut<int32_t>()[n] = saturate<int32_t>(v); break;
    case DType::u32: mut<uint32_t>()[n] = saturate<uint32_t>(v); break;
    case DType::i64: mut<int64_t>()[n] = saturate<int64_t>(v); break;
    case DType::u64: mut<uint64_t>()[n] = saturate<uint64_t>(v); break;
    case DType::b1: mut<uint8_t>()[n] = v != 0; break;
  }
}

void Tensor::set_int(int64_t i, int64_t v) {
  auto n = static_cast<size_t>(i);
  switch (bytes(dtype)) {
    case 1: mut<uint8_t>()[n] = dtype == DType::b1 ? v != 0 : static_cast<uint8_t>(v); break;
    case 2:
      if (is_float(dtype)) return set(i, static_cast<double>(v));
      mut<uint16_t>()[n] = static_cast<uint16_t>(v);
      break;
    case 4:
      if (is_float(dtype)) return set(i, static_cast<double>(v));
      mut<uint32_t>()[n] = static_cast<uint32_t>(v);
      break;
    default:
      if (is_float(dtype)) return set(i, static_cast<double>(v));
      mut<uint64_t>()[n] = static_cast<uint64_t>(v);
  }
}

bool Tensor::equal(const Tensor& o) const {
  return dtype == o.dtype && dims == o.dims &&
         (data == o.data || std::memcmp(data.get(), o.data.get(), static_cast<size_t>(size_bytes())) == 0);
}
uint64_t Tensor::hash() const {
  XXH64_hash_t h = XXH3_64bits(data.get(), static_cast<size_t>(size_bytes()));
  for (int64_t d : dims) h = h * 0x100000001b3u + static_cast<uint64_t>(d);
  return h * 0x100000001b3u + static_cast<uint64_t>(dtype);
}

Tensor tensor_i64(std::vector<int64_t> values) {
  Tensor t = Tensor::make(DType::i64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); i++) t.mut<int64_t>()[i] = values[i];
  return t;
}
Tensor scalar_tensor(DType d, double v) {
  Tensor t = Tensor::make(d, {});
  t.set(0, v);
  return t;
}

}  // namespace gaf
