// Kernel IR -> LLVM IR, one function per phase. One case per statement kind; the register kernel of contractions is the
// `mma` case. Final SSA form is written at once: register tiles are values (never memory), loops are do-while with phis
// for the tiles written in them, addresses are base + what each open loop adds + a displacement.
//   emit_flow.cpp    phases, par, for, if            emit_window.cpp  rectangles in memory, loads and stores, masks
//   emit_tiles.cpp   register tiles                  emit_map.cpp     map, iota, gather, read
//   emit_reduce.cpp  reduce                          emit_copy.cpp    copy, transposes
//   emit_mma.cpp     mma, prefetch                   emit_scalar.cpp  one scalar op on values, conversions
//   emit_ahead.cpp   rows fetched ahead
#pragma once
#include <array>
#include <map>
#include <set>

#include "codegen/cpu/ir.h"
#include "codegen/cpu/symbols.h"
#include "ir/kernel.h"

namespace gaf::cpu {

// A stride in bytes: a number, or a value if sizes of the kernel are in it.
struct Stride {
  int64_t n = 0;
  Val v = nullptr;
};
// Positions [lo, hi) of an axis that exist; absent: no limit inside the capacity.
struct Bound {
  std::optional<Expr> lo, hi;
};
// Lanes [lo, hi) of a vector that exist; null: no limit.
struct Lanes {
  Val lo = nullptr, hi = nullptr;
  bool all() const { return !lo && !hi; }
};

// A rectangle in memory, ready to be addressed. Element (r, c) lies at base + rest + row_offset(r) + c * col.
struct Window {
  DType type = DType::f32;
  Val base = nullptr;
  int64_t rest = 0;            // bytes
  int64_t rows = 1, cols = 1;  // capacity
  Expr nrows = 1, ncols = 1;   // extents as written (rows: of all ranged slices but the last)
  Expr nouter = 1;             // extent of the outer rows, if there are two strides
  int64_t inner = 0;           // rows with two strides: row r = q * inner + i; 0: one stride
  Stride row, outer, col;
  Bound row_bound, outer_bound, col_bound;
  Val columns_left = nullptr;  // of a window moved along a row of run-time length: takes the place of col_bound
  Val exists = nullptr;        // with `else`: false if an index without extent lies outside
  bool padded = false;         // bounds are those of `else`: nothing outside them may be touched
  int64_t align = 1;           // of base + rest and of each row
};

// A rectangle of a register tile.
struct Part {
  int tile = -1;
  int64_t r = 0, c = 0, rows = 1, cols = 1;
  std::optional<Expr> nrows, ncols;  // valid extents if fewer
};

inline constexpr int64_t kLine = 64;  // bytes a prefetch fetches

class Emitter {
 public:
  // shared: positions of parameters that may have the address of another one
  Emitter(const kir::Kernel& k, const Target& t, Ir& ir, std::span<const int> shared);
  void run();
  int phases() const { return phases_; }

 private:
  // ---- emit_flow.cpp ----
  void phase(int number, std::span<const kir::Stmt* const> stmts);
  void trips_function(int number, std::span<const kir::Stmt* const> stmts);
  Expr trips(const kir::Axis& a) const;
  void par(const kir::For& f, Val lo, Val hi);
  void body(const kir::Body& b);
  void emit(const kir::Stmt& s);
  void emit(const kir::For& f);
  void emit(const kir::If& f);
  std::vector<int> carried(std::span<const kir::Body* const> bodies) const;
  Vals values(const std::vector<int>& tiles) const;
  void assign(const std::vector<int>& tiles, const Vals& v);
  // `if (c) yes else no`; the values that the sides return are merged
  Vals branch(Val c, const std::function<Vals()>& yes, const std::function<Vals()>& no);
  void when(Val c, const std::function<void()>& yes);
  // do { } while (i < hi), i from lo by step; at least one trip
  using LoopBody = std::function<Vals(Val i, const Vals& carried)>;
  Vals loop(Val lo, Val hi, int64_t step, const Vals& init, const LoopBody& f);
  Vals loop_if_any(Val lo, Val hi, int64_t step, const Vals& init, const LoopBody& f);
  // f(i, constant) for i in 0..n: unrolled up to `unroll` trips (i known, n a number), else a loop (n may be a value)
  void repeat(const Expr& n, int64_t step, int64_t unroll,
              const std::function<void(Val i, std::optional<int64_t> known)>& f);

  // ---- emit_ahead.cpp ----
  // A rectangle that a sweep over a row reads first, and the bytes from there to the same place of the next row.
  struct Ahead {
    const kir::Ref* row = nullptr;
    int64_t next = 0;
  };
  void find_rows_ahead(const kir::For& outer);
  void fetch_ahead(const kir::For& sweep);

  // ---- emit_window.cpp ----
  Window window(const kir::Ref& r, bool padded = false);
  int64_t capacity(const Expr& n) const;
  Bound bound(const Expr& at, const Expr& n, int64_t cap, const Expr& dim, int64_t step, bool padded) const;
  Stride stride(const Expr& elements, int64_t step, DType t);
  Val times(Val i, const Stride& s) const;
  Val address(const Window& w, int64_t r, int64_t c);
  Window moved(const Window& w, Val rows, Val cols) const;  // rows along the one stride
  Val row_exists(const Window& w, int64_t r);               // null: always
  Lanes lanes(const Window& w, int64_t c, int64_t n);       // columns c..c+n that exist
  Val clamped_row(const Window& w, int64_t r);              // byte offset of row r, or of the last one that exists
  Val load(const Window& w, int64_t r, int64_t c, int64_t n, double pad = 0);
  void store(const Window& w, int64_t r, int64_t c, int64_t n, Val v, Lanes more = {});
  Val load_lanes(Type t, Val p, int64_t align, const Stride& step, const Lanes& l, Val other);
  void store_lanes(Val v, Val p, int64_t align, const Stride& step, const Lanes& l);
  Val lane_mask(int64_t n, const Lanes& l, Elem like);
  Lanes both(const Lanes& a, const Lanes& b);
  bool native_mask(Elem e) const;
  static int64_t element_align(DType t) { return gaf::bytes(t); }

  // ---- emit_tiles.cpp ----
  struct RegTile {
    int64_t lanes = 1, chunks = 1;  // a row is `chunks` values of `lanes` lanes; lanes behind the capacity are padding
    Vals v;
    std::optional<Expr> rows, cols;  // valid extents if fewer than the capacity
  };
  std::vector<RegTile> snapshot(const std::vector<int>& tiles) const;
  void merge_extents(const std::vector<int>& tiles, const std::vector<RegTile>& before);
  void declare(int tile);
  int64_t tile_lanes(int tile) const;
  int64_t chunk(int64_t cols) const;  // lanes of the values in which `cols` columns are handled
  Part part(const kir::Ref& r);
  Val get(int tile, int64_t r, int64_t c, int64_t n);
  void set(int tile, int64_t r, int64_t c, int64_t n, Val v);
  void for_chunks(int64_t c, int64_t cols, int64_t lanes, int64_t capacity,
                  const std::function<void(int64_t c, int64_t n)>& f) const;
  void for_chunks(const Part& p,
                  const std::function<void(int64_t c, int64_t n)>& f) const;          // c from the part's first column
  void set_valid(const Part& p, bool whole, int64_t r, int64_t c, int64_t n, Val v);  // keeps lanes outside p's extents
  Val slice(Val v, int64_t from, int64_t n);  // lanes from..from+n; those behind the end are undefined
  bool in_reg(const kir::Ref& r) const { return r.tile && tile(r.id).mem == Mem::reg; }
  const kir::Tile& tile(int id) const { return k_.tiles[static_cast<size_t>(id)]; }

  // ---- emit_map.cpp ----
  // An operand of a map as lanes (row, column, count), broadcast to the shape asked for.
  struct Operand {
    std::optional<double> number;
    DType type = DType::f32;
    bool reg = false;
    Part part;
    Window window;
    int64_t rows = 1, cols = 1;
    std::optional<Expr> nrows, ncols;
    std::map<std::array<int64_t, 3>, Val> loaded;
  };
  Operand operand(const kir::Arg& a, DType like);
  Val fetch(Operand& o, int64_t r, int64_t c, int64_t n);
  void emit(const kir::Map& m);
  Val apply(const kir::Map& m, DType like, std::vector<Operand>& args, int64_t r, int64_t c, int64_t n);
  void map_to_memory(const kir::Map& m, DType like, std::vector<Operand>& args);
  void emit(const kir::Iota& m);
  void emit(const kir::Gather& m);
  void emit(const kir::Read& m);
  DType operand_type(const kir::Map& m) const;

  // ---- emit_reduce.cpp ----
  void emit(const kir::Reduce& m);
  Val reduce_chunk(const kir::Reduce& m, Operand& src, int64_t r, int64_t c, int64_t n);
  Val reduce_row(const kir::Reduce& m, Operand& src, int64_t r);
  Val combine(const kir::Reduce& m, DType t, Val a, Val b);
  Val lanes_together(const kir::Reduce& m, DType t, Val v);
  void put(const kir::Ref& dst, int64_t r, int64_t c, int64_t n, Val v);

  // ---- emit_copy.cpp: one side is a register tile; emit_move.cpp: memory to memory ----
  void emit(const kir::Copy& c);
  void copy_to_reg(const kir::Copy& c);
  void copy_from_reg(const kir::Copy& c);
  bool transpose_to_reg(const kir::Copy& c, const Part& d, const Window& s);
  bool transpose_from_reg(const Part& s, const Window& d);
  void transpose8(Vals& v);
  void fit(Window& w, int64_t rows, int64_t cols) const;
  static Window flipped(Window w);  // rows and columns swapped
  static bool unit(const Stride& s, DType t) { return !s.v && s.n == gaf::bytes(t); }
  void copy_memory(const kir::Copy& c);
  void copy_rows(const Window& dst, const Window& src, double pad);
  void copy_row(const Window& dst, const Window& src, double pad);
  void copy_run(const Window& dst, const Window& src, Val from, Val to);  // elements from..to of one row, all exist
  void fill_run(const Window& dst, Val from, Val to, double v);
  void transpose_memory(const Window& dst, const Window& src, std::optional<double> pad);
  void copy_elements(const Window& dst, const Window& src, const Expr& nrows, const Expr& ncols);
  Val in_bound(Val i, const Bound& b);  // null: always

  // ---- emit_mma.cpp ----
  void emit(const kir::Mma& m);
  struct MmaPlan;
  Vals mma_steps(const MmaPlan& p, Val k, int64_t unroll, Vals acc);
  int64_t mma_unroll(const MmaPlan& p, const kir::Mma& m, std::optional<int64_t> k) const;
  Val widen_operand(Val v, DType from, DType acc);

  // ---- emit_scalar.cpp ----
  Elem elem(DType t) const;  // in registers: f16 and bf16 are their bits, b1 is a lane of i1
  Elem memory_elem(DType t) const { return t == DType::b1 ? Elem::i8 : elem(t); }
  Type vec(DType t, int64_t n) const { return {elem(t), static_cast<int>(n)}; }
  Val constant(DType t, double v, int64_t n);
  Val scalar(kir::S op, DType t, Vals a);        // operands of dtype t (select: of the second and third)
  Val float_op(kir::S op, Val a, Val b, Val c);  // f32 or f64 values
  Val int_op(kir::S op, DType t, Val a, Val b, Val c);
  Val divide_ints(DType t, Val a, Val b);
  Val convert(Val v, DType from, DType to);
  Val reinterpret(Val v, DType from, DType to);
  Val to_f32(Val bits, DType from);  // f16, bf16
  Val from_f32(Val v, DType to);

  const kir::Kernel& k_;
  const Target& t_;
  Ir& ir_;
  Symbols syms_;
  int phases_ = 0;
  std::set<int> shared_;        // parameters that may have the address of another one
  std::set<int> accumulators_;  // register tiles some mma accumulates in
  std::map<const kir::For*, std::vector<Ahead>> ahead_;
  std::map<int, RegTile> tiles_;
  Vals buffers_;  // pointer of each parameter, by buffer id
  Val scratch_ = nullptr;
};

}  // namespace gaf::cpu
