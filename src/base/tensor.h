// A dense tensor in host memory: dtype, dims, and shared bytes in row-major order. Constants of a model point into the
// mapped file; results of folding and of the reference evaluation own their bytes.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace gaf {

struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
  std::shared_ptr<const void> data;

  static Tensor make(DType t, std::vector<int64_t> dims);  // owned, 64-byte aligned, zeroed
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  int64_t size_bytes() const { return numel() * bytes(dtype); }
  template <class T>
  const T* as() const { return static_cast<const T*>(data.get()); }
  template <class T>
  T* mut() { return static_cast<T*>(const_cast<void*>(data.get())); }  // only of a tensor just made

  double get(int64_t i) const;     // element i as double (i64 above 2^53 rounds: use get_int)
  int64_t get_int(int64_t i) const;
  void set(int64_t i, double v);   // converts: saturating to integers, half to even, b1: v != 0
  void set_int(int64_t i, int64_t v);  // wraps to the dtype
  bool equal(const Tensor& o) const;   // dtype, dims and bytes
  uint64_t hash() const;
};

// float <-> half conversions, round to nearest even
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float f);

Tensor tensor_i64(std::vector<int64_t> values);                       // 1-D
Tensor scalar_tensor(DType t, double v);                              // 0-D

}  // namespace gaf
