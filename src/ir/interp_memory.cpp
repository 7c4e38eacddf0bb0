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

void fail_at(const Kernel& k, const Stmt* s, const std::string& what) {
  ErrorInfo e;
  e.code = "GAF5001";
  e.message = "kernel @" + k.name + ": " + what;
  if (s) {
    e.line = s->line;
    e.message += ", line " + std::to_string(s->line) + ": " + print_stmt(k, *s);
  }
  throw UserError(std::move(e));
}

void bind_sizes(const Kernel& k, std::span<const int64_t> sizes, std::span<int64_t> values) {
  std::vector<int> ids = size_symbols(k);
  if (ids.size() != sizes.size()) fail_at(k, nullptr, "takes " + std::to_string(ids.size()) + " sizes");
  for (size_t i = 0; i < ids.size(); i++) {
    const Symbol& s = k.syms[static_cast<size_t>(ids[i])];
    if (sizes[i] < s.lo || sizes[i] > s.hi || sizes[i] % s.mult != 0)
      fail_at(k, nullptr, "size " + s.name + " = " + std::to_string(sizes[i]) + " is outside its class");
    values[static_cast<size_t>(ids[i])] = sizes[i];
  }
}

void bind_buffers(const Kernel& k, std::span<void* const> buffers, std::span<const int64_t> values,
                  std::span<Array> bufs) {
  std::vector<int> ids = parameters(k);
  if (ids.size() != buffers.size()) fail_at(k, nullptr, "takes " + std::to_string(ids.size()) + " buffers");
  for (size_t i = 0; i < ids.size(); i++) {
    const Buf& b = k.bufs[static_cast<size_t>(ids[i])];
    Array& a = bufs[static_cast<size_t>(ids[i])];
    a.type = b.type;
    a.data = static_cast<uint8_t*>(buffers[i]);
    a.size = product(b.shape).eval(values);
    auto n = static_cast<size_t>(a.size);
    if (b.role == Role::out || b.role == Role::tmp) a.written.assign(n, 0);
    if (b.role != Role::in) a.writer.assign(n, 0), a.reader.assign(n, 0);
  }
}

void multiply_add(DType t, std::span<const Element> a, std::span<const Element> b, int64_t cols,
                  std::vector<Element>& out) {
  auto width = static_cast<size_t>(cols), inner = width ? b.size() / width : 0;
  for (size_t r = 0; inner && r < a.size() / inner; r++)
    for (size_t q = 0; q < inner; q++) {
      const Element& x = a[r * inner + q];
      for (size_t c = 0; c < width; c++) {
        const Element& y = b[q * width + c];
        Element& sum = out[r * width + c];
        sum.f += x.f * y.f;
        sum.i = static_cast<int64_t>(static_cast<uint64_t>(sum.i) +
                                     static_cast<uint64_t>(x.i) * static_cast<uint64_t>(y.i));
      }
    }
  for (Element& x : out) x = is_float(t) ? Element{round_float(t, x.f), 0} : Element{0, wrap_int(t, x.i)};
}

}  // namespace gaf::kir
