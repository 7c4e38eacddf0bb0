// Tiles, views of global memory, placement and synchronisation of the PTO stub.
#pragma once
#include <cstdint>
#include <type_traits>

#include "../../engine/engine.h"

#define AICORE
#define PTO_INST
#define __global__
#define __aicore__
#define __gm__
using half = _Float16;
#define GM_ADDR __gm__ uint8_t*

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL = 8 };
enum event_t : int { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

inline int64_t get_block_idx() { return npu::core.block; }
inline int64_t get_block_num() { return npu::core.blocks; }

inline void set_flag(pipe_t from, pipe_t to, event_t id, int line = __builtin_LINE()) {
  npu::set_flag(npu::Pipe(from), npu::Pipe(to), id, line);
}
inline void wait_flag(pipe_t from, pipe_t to, event_t id, int line = __builtin_LINE()) {
  npu::wait_flag(npu::Pipe(from), npu::Pipe(to), id, line);
}
inline void pipe_barrier(pipe_t p, int line = __builtin_LINE()) {
  npu::barrier(p == PIPE_ALL ? npu::ALL : npu::Pipe(p), line);
}

namespace pto {

enum class TileType : uint8_t { Vec, Mat, Left, Right, Acc, Bias };
enum class BLayout : uint8_t { RowMajor, ColMajor };
enum class SLayout : uint8_t { NoneBox, RowMajor, ColMajor };
enum class Layout : uint8_t { ND, DN, NZ };
enum class AtomicType : uint8_t { AtomicNone };
enum class ReluPreMode : uint8_t { NoRelu, NormalRelu };
enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC };
inline constexpr int DYNAMIC = -1;

constexpr npu::Where memory_of(TileType t) {
  constexpr npu::Where of[] = {npu::Where::ub,  npu::Where::l1,  npu::Where::l0a,
                               npu::Where::l0b, npu::Where::l0c, npu::Where::bt};
  return of[int(t)];
}
template <class T>
constexpr npu::Type type_of() {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "the emitter prints half and float only");
  return std::is_same_v<T, half> ? npu::Type::f16 : npu::Type::f32;
}

// Rows x Cols elements, of which the valid ones are the first GetValidRow() x GetValidCol(). Blocks (B) and what lies
// in them (S) are row or column major; a fractal is Fractal bytes in 16 rows, or 16 columns when S is column major.
template <TileType Loc_, class T, int Rows_, int Cols_, BLayout B = BLayout::RowMajor, int RowValid = Rows_,
          int ColValid = Cols_, SLayout S = SLayout::NoneBox, int Fractal = 512>
struct Tile {
  using DType = T;
  static constexpr TileType Loc = Loc_;
  static constexpr int Rows = Rows_, Cols = Cols_, SFractalSize = Fractal;
  static constexpr BLayout block_layout = B;
  static constexpr SLayout box_layout = S;
  static constexpr bool boxed = S != SLayout::NoneBox, isRowMajor = B == BLayout::RowMajor;
  static constexpr int box_long = Fractal / 16 / int(sizeof(T));
  static constexpr int f0 = !boxed                   ? 1
                            : S == SLayout::RowMajor ? 16
                                                     : box_long,
                       f1 = !boxed                   ? 1
                            : S == SLayout::RowMajor ? box_long
                                                     : 16;
  static_assert(boxed || (isRowMajor ? Cols : Rows) * sizeof(T) % 32 == 0,
                "the rows (columns) of a tile are whole 32 B blocks");
  static_assert(Rows % f0 == 0 && Cols % f1 == 0, "a tile is whole fractals");
  static_assert(RowValid <= Rows && ColValid <= Cols, "the valid region lies in the tile");

  npu::Place place;
  int valid_rows = RowValid, valid_cols = ColValid;
  bool assigned = false;

  Tile() {
    static_assert(RowValid != DYNAMIC && ColValid != DYNAMIC, "a dynamic valid region is given to the constructor");
  }
  explicit Tile(int64_t v, int line = __builtin_LINE()) requires(((RowValid == DYNAMIC) != (ColValid == DYNAMIC)))
      : Tile(RowValid == DYNAMIC ? v : RowValid, ColValid == DYNAMIC ? v : ColValid, line, 0) {}
  Tile(int64_t r, int64_t c, int line = __builtin_LINE()) requires(RowValid == DYNAMIC && ColValid == DYNAMIC)
      : Tile(r, c, line, 0) {}

  int GetValidRow() const { return valid_rows; }
  int GetValidCol() const { return valid_cols; }
  npu::Extent valid() const { return {valid_rows, valid_cols}; }
  npu::Extent whole() const { return {Rows, Cols}; }

 private:
  Tile(int64_t r, int64_t c, int line, int) : valid_rows(int(r)), valid_cols(int(c)) {
    if (!npu::require(r >= 1 && r <= Rows && c >= 1 && c <= Cols, "a valid region outside 1..the tile's size", line))
      valid_rows = Rows, valid_cols = Cols;
  }
};
template <class T, int R, int C, int VR = R, int VC = C>
using TileLeft = Tile<TileType::Left, T, R, C, BLayout::RowMajor, VR, VC, SLayout::RowMajor, 512>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileRight = Tile<TileType::Right, T, R, C, BLayout::RowMajor, VR, VC, SLayout::ColMajor, 512>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileAcc = Tile<TileType::Acc, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, 1024>;

// Places a tile at a byte offset of its memory.
template <class D>
void TASSIGN(D& d, uint64_t offset, int line = __builtin_LINE()) {
  using T = typename D::DType;
  npu::Place p = npu::local(memory_of(D::Loc), type_of<T>(), offset, size_t(D::Rows) * D::Cols * sizeof(T), line);
  const int64_t box = D::f0 * D::f1, down = D::Rows / D::f0, across = D::Cols / D::f1;
  p.f0 = D::f0, p.f1 = D::f1;
  p.block_row = (D::isRowMajor ? across : 1) * box, p.block_col = (D::isRowMajor ? 1 : down) * box;
  if (D::boxed)
    p.row = D::box_layout == SLayout::RowMajor ? D::f1 : 1, p.col = D::box_layout == SLayout::RowMajor ? 1 : D::f0;
  d.place = p;
  d.assigned = true;
}
template <uint64_t Offset, class D>
void TASSIGN(D& d, int line = __builtin_LINE()) {
  static_assert(Offset % npu::kMemory[int(memory_of(D::Loc))].align == 0, "TASSIGN: misaligned offset");
  static_assert(
      Offset + uint64_t(D::Rows) * D::Cols * sizeof(typename D::DType) <= npu::kMemory[int(memory_of(D::Loc))].bytes,
      "TASSIGN: beyond the end of the memory");
  TASSIGN(d, Offset, line);
}

// Five dimensions, the last two being rows and columns; dynamic ones are given to the constructor in order.
template <int64_t... N>
struct Dims {
  static_assert(sizeof...(N) == 5, "shapes and strides have five dimensions");
  static constexpr int dynamic = ((N == DYNAMIC) + ...);
  int64_t at[5] = {N...};
  Dims() { static_assert(dynamic == 0, "dynamic dimensions are given to the constructor"); }
  template <class... A>
  requires(sizeof...(A) > 0 && (std::is_integral_v<A> && ...)) explicit Dims(A... given) {
    static_assert(sizeof...(A) == dynamic, "one argument for each dynamic dimension");
    const int64_t v[] = {int64_t(given)...};
    int next = 0;
    for (int64_t& x : at)
      if (x == DYNAMIC) x = v[next++];
  }
};
template <int64_t A = DYNAMIC, int64_t B = DYNAMIC, int64_t C = DYNAMIC, int64_t D = DYNAMIC, int64_t E = DYNAMIC>
struct Shape : Dims<A, B, C, D, E> {
  using Dims<A, B, C, D, E>::Dims;
};
template <int64_t A = DYNAMIC, int64_t B = DYNAMIC, int64_t C = DYNAMIC, int64_t D = DYNAMIC, int64_t E = DYNAMIC>
struct Stride : Dims<A, B, C, D, E> {
  using Dims<A, B, C, D, E>::Dims;
};

template <class T, class Shape_, class Stride_, Layout L = Layout::ND>
struct GlobalTensor {
  static_assert(L == Layout::ND, "views are row major");
  using DType = T;
  T* first;
  Shape_ shape;
  Stride_ stride;
  GlobalTensor(T* p, const Shape_& s, const Stride_& d) : first(p), shape(s), stride(d) {}
  explicit GlobalTensor(T* p) : first(p) {}
  int64_t rows() const { return shape.at[3]; }
  int64_t cols() const { return shape.at[4]; }
  bool plain(int line) const {
    return npu::require(shape.at[0] == 1 && shape.at[1] == 1 && shape.at[2] == 1, "a view of more than two dimensions",
                        line) &
           npu::require(stride.at[4] == 1, "a view whose columns are not adjacent", line) &
           npu::require(rows() > 0 && cols() > 0, "an empty view", line) &
           npu::require(rows() == 1 || stride.at[3] >= cols(), "the rows of a view overlap", line);
  }
  npu::Place place() const { return npu::global(first, type_of<T>(), stride.at[3]); }
};

}  // namespace pto
