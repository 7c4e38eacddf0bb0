// Tensors, positions, blocks and synchronisation of the Ascend C stub.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "../engine/engine.h"

#define __global__
#define __aicore__
#define __gm__
using half = _Float16;
#define GM_ADDR __gm__ uint8_t*

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL = 8 };

namespace AscendC {
using npu::Place;
using std::max;
using std::min;

inline int64_t GetBlockIdx() { return npu::core.block; }
inline int64_t GetBlockNum() { return npu::core.blocks; }

enum class TPosition : uint8_t { GM, VECIN, VECOUT, VECCALC, A1, B1, C1, A2, B2, C2, CO1 };
inline npu::Where memory_of(TPosition p) {
  switch (p) {
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1: return npu::Where::l1;
    case TPosition::A2: return npu::Where::l0a;
    case TPosition::B2: return npu::Where::l0b;
    case TPosition::C2: return npu::Where::bt;
    case TPosition::CO1: return npu::Where::l0c;
    default: return npu::Where::ub;
  }
}

template <class T>
constexpr npu::Type type_of() {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "the emitter prints half and float only");
  return std::is_same_v<T, half> ? npu::Type::f16 : npu::Type::f32;
}

// A tensor at a byte offset of its memory: the static form, for which the program owns placement and event ids (no
// TPipe).
template <class T>
struct LocalTensor {
  Place place;
  TPosition position{};
  LocalTensor() = default;
  LocalTensor(TPosition p, uint32_t offset, uint32_t count, int line = __builtin_LINE())
      : place(npu::local(memory_of(p), type_of<T>(), offset, size_t(count) * sizeof(T), line)), position(p) {
    npu::require(p != TPosition::GM, "a local tensor in global memory", line);
  }
  LocalTensor operator[](uint32_t element) const {
    LocalTensor r = *this;
    r.place.at += size_t(element) * sizeof(T);
    return r;
  }
  // Offset of the first element in its memory: what alignment rules of instructions speak of.
  size_t offset() const { return place.at - npu::core.base[int(place.where)]; }
};

template <class T>
struct GlobalTensor {
  T* first = nullptr;
  void SetGlobalBuffer(T* p) { first = p; }
  void SetGlobalBuffer(T* p, uint64_t) { first = p; }
  GlobalTensor operator[](uint64_t element) const {
    GlobalTensor r;
    r.first = first + element;
    return r;
  }
};

// Every pair that the documents list for separate cube and vector cores and that a kernel of ours may need.
enum class HardEvent : uint8_t {
  MTE2_MTE1,
  MTE1_MTE2,
  MTE1_M,
  M_MTE1,
  MTE2_V,
  V_MTE2,
  MTE3_V,
  V_MTE3,
  M_FIX,
  FIX_M,
  V_S,
  S_V,
  MTE2_S,
  S_MTE2,
  S_MTE3,
  MTE3_S,
  MTE3_MTE2,
  MTE2_MTE3
};
constexpr std::pair<npu::Pipe, npu::Pipe> ends(HardEvent e) {
  using namespace npu;
  constexpr std::pair<Pipe, Pipe> of[] = {{MTE2, MTE1}, {MTE1, MTE2}, {MTE1, M}, {M, MTE1}, {MTE2, V},    {V, MTE2},
                                          {MTE3, V},    {V, MTE3},    {M, FIX},  {FIX, M},  {V, S},       {S, V},
                                          {MTE2, S},    {S, MTE2},    {S, MTE3}, {MTE3, S}, {MTE3, MTE2}, {MTE2, MTE3}};
  return of[int(e)];
}
template <HardEvent E>
void SetFlag(int32_t id, int line = __builtin_LINE()) {
  npu::set_flag(ends(E).first, ends(E).second, id, line);
}
template <HardEvent E>
void WaitFlag(int32_t id, int line = __builtin_LINE()) {
  npu::wait_flag(ends(E).first, ends(E).second, id, line);
}
template <pipe_t P>
void PipeBarrier(int line = __builtin_LINE()) {
  static_assert(P != PIPE_S, "PipeBarrier<PIPE_S> is a hardware error");
  npu::barrier(P == PIPE_ALL ? npu::ALL : npu::Pipe(P), line);
}

// ---- shared checks ----
template <class T>
bool in_memory(const LocalTensor<T>& t, npu::Where w, const char* rule, int line) {
  return npu::require(t.place.where == w, rule, line);
}
template <class T>
bool aligned(const LocalTensor<T>& t, size_t bytes, const char* rule, int line) {
  return npu::require(t.offset() % bytes == 0, rule, line);
}

}  // namespace AscendC
