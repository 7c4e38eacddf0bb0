// Loads and stores of one element by dtype, and the evaluation of rectangles.
#include "ir/interp_memory.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/tensor.h"

namespace gaf::kir {
namespace {
template <class T>
T read_as(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void write_as(uint8_t* p, T v) {
  std::memcpy(p, &v, sizeof v);
}
}  // namespace

Element Array::load(int64_t i) const {
  const uint8_t* p = data + i * bytes(type);
  switch (type) {
    case DType::f32: return {read_as<float>(p), 0};
    case DType::f64: return {read_as<double>(p), 0};
    case DType::f16: return {f16_to_f32(read_as<uint16_t>(p)), 0};
    case DType::bf16: return {bf16_to_f32(read_as<uint16_t>(p)), 0};
    case DType::i8: return {0, read_as<int8_t>(p)};
    case DType::u8: return {0, read_as<uint8_t>(p)};
    case DType::i16: return {0, read_as<int16_t>(p)};
    case DType::u16: return {0, read_as<uint16_t>(p)};
    case DType::i32: return {0, read_as<int32_t>(p)};
    case DType::u32: return {0, read_as<uint32_t>(p)};
    case DType::i64:
    case DType::u64: return {0, read_as<int64_t>(p)};
    case DType::b1: return {0, read_as<uint8_t>(p) != 0};
  }
  return {};
}

void Array::store(int64_t i, Element x) {
  uint8_t* p = data + i * bytes(type);
  switch (type) {
    case DType::f32: return write_as(p, static_cast<float>(x.f));
    case DType::f64: return write_as(p, x.f);
    case DType::f16: return write_as(p, f32_to_f16(static_cast<float>(round_float(type, x.f))));
    case DType::bf16: return write_as(p, f32_to_bf16(static_cast<float>(round_float(type, x.f))));
    case DType::i8:
    case DType::u8: return write_as(p, static_cast<uint8_t>(x.i));
    case DType::b1: return write_as(p, static_cast<uint8_t>(x.i != 0));
    case DType::i16:
    case DType::u16: return write_as(p, static_cast<uint16_t>(x.i));
    case DType::i32:
    case DType::u32: return write_as(p, static_cast<uint32_t>(x.i));
    case DType::i64:
    case DType::u64: return write_as(p, x.i);
  }
}

void Window::transpose() {
  std::swap(row, col);
  std::swap(row_inside, col_inside);
  std::swap(one_row, one_col);
}

void Window::clip(int64_t rows, int64_t cols) {
  row.resize(static_cast<size_t>(rows)), row_inside.resize(static_cast<size_t>(rows));
  col.resize(static_cast<size_t>(cols)), col_inside.resize(static_cast<size_t>(cols));
}

Window make_window(std::span<const Slice> slices, std::span<const int64_t> shape, std::span<const int64_t> strides,
                   int64_t offset, std::span<const int64_t> values) {
  GAF_CHECK(slices.size() == shape.size())
      << "a reference with " << slices.size() << " indices to " << shape.size() << " dims";
  Window w;
  w.row = {offset}, w.row_inside = {1};
  w.col = {0}, w.col_inside = {1};
  for (size_t d = 0; d < slices.size(); d++) {
    const Slice& s = slices[d];
    int64_t first = s.at.eval(values);
    auto inside = [&](int64_t x) { return static_cast<uint8_t>(x >= 0 && x < shape[d]); };
    if (!s.n) {
      for (int64_t& r : w.row) r += first * strides[d];
      for (uint8_t& in : w.row_inside) in &= inside(first);
      continue;
    }
    int64_t n = s.n->eval(values);
    GAF_CHECK(n >= 0) << "extent " << n;
    // what were the columns become rows
    std::vector<int64_t> rows;
    std::vector<uint8_t> rows_inside;
    for (size_t i = 0; i < w.row.size(); i++)
      for (size_t j = 0; j < w.col.size(); j++) {
        rows.push_back(w.row[i] + w.col[j]);
        rows_inside.push_back(w.row_inside[i] & w.col_inside[j]);
      }
    w.row = std::move(rows), w.row_inside = std::move(rows_inside);
    w.one_row = w.one_row && w.one_col;
    w.one_col = s.n->is(1);
    w.col.clear(), w.col_inside.clear();
    for (int64_t j = 0; j < n; j++) {
      int64_t x = first + j * s.step;
      w.col.push_back(x * strides[d]);
      w.col_inside.push_back(inside(x));
    }
  }
  return w;
}

}  // namespace gaf::kir
