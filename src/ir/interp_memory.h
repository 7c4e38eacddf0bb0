// Memory of the kernel interpreter: typed arrays that know which elements were written and by which parallel iteration,
// and windows, the evaluated rectangles of references. Knows nothing of statements.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/kernel.h"

namespace gaf::kir {

struct Array {
  DType type = DType::f32;
  uint8_t* data = nullptr;
  int64_t size = 0;              // elements
  std::vector<uint8_t> own;      // storage of a tile; empty where the caller owns the bytes
  std::vector<uint8_t> written;  // empty: everything counts as written
  // Iterations of par loops that touched the element in this phase: 0 none, -1 (readers only) several.
  std::vector<int32_t> writer, reader;

  Element load(int64_t i) const;
  void store(int64_t i, Element x);
};

// Rows and columns of a rectangle in elements of its array: element (r, c) lies at row[r] + col[c]. An index outside
// the dimension is marked, not refused: `copy ... else` may leave the buffer.
struct Window {
  std::vector<int64_t> row, col;
  std::vector<uint8_t> row_inside, col_inside;
  bool one_row = true, one_col = true;  // extent 1 by the text, for every size: it broadcasts

  int64_t rows() const { return static_cast<int64_t>(row.size()); }
  int64_t cols() const { return static_cast<int64_t>(col.size()); }
  int64_t at(int64_t r, int64_t c) const {  // -1: outside
    auto i = static_cast<size_t>(r), j = static_cast<size_t>(c);
    return row_inside[i] && col_inside[j] ? row[i] + col[j] : -1;
  }
  void transpose();
  void clip(int64_t rows, int64_t cols);
};

// slices over an array of the given shape and strides; values: of the symbols
Window make_window(std::span<const Slice> slices, std::span<const int64_t> shape, std::span<const int64_t> strides,
                   int64_t offset, std::span<const int64_t> values);

// Throws UserError GAF5001 with the statement's line and text.
[[noreturn]] void fail_at(const Kernel& k, const Stmt* s, const std::string& what);
// Arguments of a call: values of the size symbols, arrays of the buffers.
void bind_sizes(const Kernel& k, std::span<const int64_t> sizes, std::span<int64_t> values);
void bind_buffers(const Kernel& k, std::span<void* const> buffers, std::span<const int64_t> values,
                  std::span<Array> bufs);

// out [rows, cols] += a [rows, inner] * b [inner, cols], all row by row; rounded or wrapped to t at the end.
void multiply_add(DType t, std::span<const Element> a, std::span<const Element> b, int64_t cols,
                  std::vector<Element>& out);

}  // namespace gaf::kir
