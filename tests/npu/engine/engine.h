// A model of one AI core that runs NPU text on a CPU. The stub headers of a language (ascendc/, pto/) turn every
// intrinsic into an operation of this engine: the pipe it runs on, the bytes it reads and writes, and a closure that
// computes it. Nothing runs while the kernel's text runs; the recorded trace is executed and checked afterwards
// (engine/checks.h). The engine knows pipes, memories and byte ranges; it must not know a language, a kernel or our
// emitter.
//
// Sizes, alignments and limits are those of public documentation for the 910B family; each check says which.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace npu {

enum Pipe : uint8_t { S, V, M, MTE1, MTE2, MTE3, FIX, kPipes, ALL };
inline constexpr const char* kPipeName[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};

enum class Where : uint8_t { ub, l1, l0a, l0b, l0c, bt, gm };
inline constexpr int kMemories = 6;  // on chip, the first of Where
struct MemoryFacts {
  const char* name;
  size_t bytes;
  size_t align;  // of the first byte of anything placed in it
};
// UB is 192 KiB; its last 8 KiB are left to the vendor's own calls (ND to NZ copies take them), so text must stay
// below.
inline constexpr MemoryFacts kMemory[] = {{"UB", 184 * 1024, 32},  {"L1", 512 * 1024, 32},  {"L0A", 64 * 1024, 512},
                                          {"L0B", 64 * 1024, 512}, {"L0C", 128 * 1024, 64}, {"BT", 1024, 64}};

enum class Type : uint8_t { f16, f32 };
inline constexpr int size_of(Type t) { return t == Type::f16 ? 2 : 4; }

struct Range {  // bytes, as offsets in the engine's address space
  size_t at = 0, bytes = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
using Ranges = std::vector<Range>;

// Where element (row, column) of an operand lies. Rows and columns split into blocks of f0 x f1 elements (fractals, or
// the 32 B blocks of a vector operand); strides are in elements. `lo`, `hi`: the bytes that the tensor or tile owns.
struct Place {
  Where where = Where::ub;
  Type type = Type::f32;
  size_t at = 0;                                           // of element (0, 0)
  int64_t f0 = 1, f1 = 1;                                  // block shape, powers of two
  int64_t block_row = 0, block_col = 1, row = 0, col = 0;  // strides of i / f0, j / f1, i % f0, j % f1
  size_t lo = 0, hi = 0;
  size_t of(int64_t i, int64_t j) const {
    const int r = __builtin_ctzll(uint64_t(f0)),
              c = __builtin_ctzll(uint64_t(f1));  // divisions would take most of a run
    const int64_t e = (i >> r) * block_row + (i & (f0 - 1)) * row + (j >> c) * block_col + (j & (f1 - 1)) * col;
    return at + size_t(e * size_of(type));
  }
};
struct Extent {
  int64_t rows = 0, cols = 0;
};

enum class Kind : uint8_t { run, set, wait, barrier };
struct Op {
  Kind kind = Kind::run;
  Pipe pipe = S;   // that executes it; a wait runs on the waiting pipe
  Pipe other = S;  // set: the pipe released; wait: the pipe that releases
  int event = 0;
  int line = 0;  // of the generated text
  const char* what = "";
  Ranges reads, writes;  // all bytes the hardware touches, padding included
  Ranges needs;          // of the reads: those whose values count, so they must have been written
  Ranges defines;        // of the writes: those that hold a value afterwards; the rest is unspecified
  bool carries = false;  // moves padding along as it is: `run` says itself what is defined
  std::function<void()> run;
};

struct Traffic {  // bytes between global memory and the chip
  size_t read = 0, written = 0;
};

// The core's state while a kernel's text runs. One at a time.
struct Core {
  std::vector<uint8_t> bytes;    // the address space: on-chip memories with gaps between them, then global buffers
  std::vector<uint8_t> defined;  // per byte: holds a value; kept up in program order only
  bool in_order = true;          // the trace runs in program order
  size_t base[kMemories] = {};
  struct Buffer {
    Range range;
    bool output;
  };
  std::vector<Buffer> gm;
  std::vector<Op> trace;
  std::map<std::string, int> misuse;  // broken rules of single calls, with how often
  size_t peak[kMemories] = {};        // highest byte that a tensor or tile was given
  Traffic traffic;
  int64_t block = 0, blocks = 1;  // what GetBlockIdx and GetBlockNum answer

  // Forgets trace, findings and contents; makes room for the global buffers, of these sizes.
  void reset(const std::vector<std::pair<size_t, bool>>& buffers);
  // On-chip memories, and outputs unless they are kept, hold NaN and count as undefined; inputs stay.
  void fill_undefined(bool keep_outputs = false);
  void start(int64_t block_index, int64_t block_count);  // a new trace on the same buffers

  uint8_t* pointer(size_t at) { return bytes.data() + at; }
  size_t offset(const void* p) const { return size_t(static_cast<const uint8_t*>(p) - bytes.data()); }
};
extern Core core;

// Records that a rule was broken; the operation is then left out of the trace.
void misuse(const std::string& what, int line);
inline bool require(bool held, const char* rule, int line) {
  if (!held) misuse(rule, line);
  return held;
}

// ---- operands ----
// `bytes` bytes at `offset` of an on-chip memory, as a tensor or tile is placed; checks size and alignment.
Place local(Where w, Type t, size_t offset, size_t bytes, int line);
// Global memory at an address; rows of `stride` elements.
Place global(const void* p, Type t, int64_t stride);

// ---- operations, recorded ----
void set_flag(Pipe from, Pipe to, int64_t event, int line);
void wait_flag(Pipe from, Pipe to, int64_t event, int line);
void barrier(Pipe p, int line);

struct Move {
  Extent valid;           // elements moved
  Extent source, target;  // elements touched; 0 = as valid
  bool relu = false;
  bool carry = false;      // source padding moves along, defined or not
  bool zero_cols = false;  // columns of the target beyond `valid` become 0 (ND to NZ copies)
};
void move(Pipe p, const char* what, const Place& to, const Place& from, const Move& m, int line);

using Scalar = std::function<float(const float*)>;
// to(i, j) = f(from[0](i, j), from[1](i, j), ...), rounded to the target's type.
void map(const char* what, const Place& to, const std::vector<Place>& from, Extent valid, Extent target, Scalar f,
         int line);
// to(i, 0) = f over the columns of row i; `scratch`, if given, is overwritten with nothing of use.
void reduce(const char* what, const Place& to, const Place& from, Extent valid, Extent target, const Ranges& scratch,
            float (*f)(float, float), int line);
enum class Start : uint8_t { zero, accumulate, bias };
struct Product {
  int64_t m, n, k;
  Start start;
};
// c = start + a b, accumulated in the type of c; whole fractals are touched, m x k and k x n elements count.
void multiply(const char* what, const Place& c, const Place& a, const Place& b, const Place* bias, Product p, int line);

// ---- bytes of operands ----
Ranges merged(Ranges r);                                // sorted, neighbours joined
Ranges without(const Ranges& all, const Ranges& part);  // bytes of `all` that are not in `part`
Ranges bytes_of(const Place& p, Extent e);
Ranges joined(Ranges a, const Ranges& b);
// Misuse unless all of it lies in what the operand owns (on chip) or in one global buffer.
bool inside(const Place& p, const Ranges& r, const char* what, int line);
float load(const uint8_t* p, Type t);
void store(uint8_t* p, Type t, float v);

}  // namespace npu
