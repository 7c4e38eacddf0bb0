// Kernel IR: the contract between `lower` and every code generator. Loops over tiles whose bodies are tile statements
// over scalar ops. Plain values; text form in kernel_print / kernel_parse. docs/kernel-ir.md is the reference.
//
// Size symbols are int64 arguments of the kernel; extents and trip counts may use them, tile capacities may not.
// Valid extents: a whole-tile copy or map gives the tile the extents of its source, `else` makes it full.
// Rectangles: the last ranged slice is the columns, all earlier ranged slices flatten to rows.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/expr.h"
#include "base/target.h"
#include "ir/scalar.h"

namespace gaf::kir {

enum class Role : uint8_t { in, out, inout, tmp, view };
inline constexpr std::string_view kRoleName[] = {"in", "out", "inout", "tmp", "view"};

struct Buf {                      // an array in gm, row-major; `view` is another shape of an earlier one
  std::string name;               // "%0"; views have names of their own
  Role role = Role::in;
  DType type = DType::f32;
  Dims shape;
  int base = -1;                  // view: of which buffer (never of a view)
  Dims strides;                   // view: in elements; 0 broadcasts, negative flips; may use sizes
  Expr offset;                    // view: first element; may use sizes
};
struct Tile {                     // a 2-D block of static capacity in a named memory
  std::string name;
  DType type = DType::f32;
  int64_t rows = 1, cols = 1;
  Mem mem = Mem::reg;
  int ring = 1;                   // slots used in turn, one step per iteration of the loop that declares it
  int64_t at = -1;                // byte offset in the memory, set by `place`
  int64_t size_bytes() const { return rows * cols * bytes(type); }
};
enum class SymKind : uint8_t { size, loop, read };
struct Symbol {
  std::string name;
  SymKind kind = SymKind::loop;
  int64_t lo = 1, hi = 1, mult = 1;  // sizes only: lo..hi inclusive, a multiple of mult
};

struct Slice {                    // one index (n absent: no dimension), or start : extent [: step]
  Expr at = 0;
  std::optional<Expr> n;
  int64_t step = 1;
};
struct Ref {                      // a rectangle of a tile or of a buffer
  bool tile = false;
  int id = -1;
  std::vector<Slice> at;          // empty: the whole tile (its valid part)
  bool transposed = false;        // ^T, in copy and mma only
};
using Arg = std::variant<Ref, double>;

struct Stmt;
using Body = std::vector<Stmt>;

struct Declare { int tile; };                                    // tile t : ...       contents undefined until written
struct View { int buf; };                                        // view v = %b : ...  a name, no code
struct Copy { Ref dst, src; std::optional<double> pad; bool relu = false; };     // copy dst = src [else c] [post relu]
struct Map { Ref dst; S op; std::vector<Arg> args; int tmp = -1; };  // d = op(a, b, c) [tmp t]  [R,1] [1,C] [1,1] broadcast
struct Reduce { Ref dst; S op; int axis; Ref src; int tmp = -1; };   // axis 1 -> [R,1], 0 -> [1,C], 2 -> [1,1]; order free for floats
struct Mma { Ref dst, a, b; std::optional<Ref> bias; bool add = true; std::vector<Ref> prefetch; };
                                                                 // d += mma(a, b) / d = mma(a, b [, bias]); K = columns of a
struct Iota { Ref dst; Expr base; int axis; };                   // d = iota(axis, base): base + row (0) or column (1) number
struct Gather { Ref dst, src, index; };                          // d[r,c] = src flat [index[r,c]]
struct Read { int sym; Ref src; Expr lo, hi; };                  // read k = %b[i] in lo..hi: an integer becomes an index symbol
struct Axis { int sym; Expr lo, hi; int64_t step = 1; };
enum class LoopKind : uint8_t { seq, par, unroll };
struct For { std::vector<Axis> axes; LoopKind kind; Body body; };  // par: a nest of axes, collapsed by the runtime; else one axis
struct Barrier {};                                               // between phases, outermost level only
enum class Cmp : uint8_t { lt, le, eq, ne };
struct If { Cmp cmp; Expr a, b; Body yes, no; };                 // on index values only
enum class SyncKind : uint8_t { set, wait, fence };
struct Sync { SyncKind kind; Pipe from, to; Expr event; };       // only written by insert_sync

struct Stmt {
  std::variant<Declare, View, Copy, Map, Reduce, Mma, Iota, Gather, Read, For, Barrier, If, Sync> alt;
  int line = 0;                   // of the text it was read from; 0 if built
};

struct Kernel {
  std::string name, target;
  std::vector<Symbol> syms;
  std::vector<Buf> bufs;          // parameters first, in call order, then views
  std::vector<Tile> tiles;
  Body body;
};

template <class... F>
struct Match : F... { using F::operator()...; };
template <class... F>
Match(F...) -> Match<F...>;

// ---- text ----
std::string print_kernel(const Kernel& k);
std::string print_stmt(const Kernel& k, const Stmt& s);                   // its first line, for messages
std::string print_expr(const Kernel& k, const Expr& x);
std::string print_number(double v);                                       // shortest exact; inf -inf nan
std::string print_ref(const Kernel& k, const Ref& r);
Kernel parse_kernel(std::string_view text, std::string_view file = "");   // UserError with line and column
Kernel strip_names(Kernel k);     // canonical names, for hashing: equal blocks of a model compile once
// Symbols numbered as the reader would: sizes first, the rest by appearance. Expressions sort their terms by symbol, so
// this is what makes the text of a kernel independent of the order in which it was built. print_kernel does it itself.
Kernel number_symbols(const Kernel& k);

// ---- checks ----
struct KernelProblem { int line; std::string text; bool warning = false; };
std::vector<KernelProblem> verify_kernel(const Kernel& k, const Target& t);   // kernel_verify.h lists the rules

// ---- passes ----
std::map<Mem, int64_t> place(Kernel& k, const Target& t);        // gives each tile an offset; peak bytes of each memory
std::map<Mem, int64_t> peak_bytes(const Kernel& k, const Target& t);  // what place would need
Kernel legalise(Kernel k, const Target& t);                      // expand ops the target lacks, f16 through f32, split mma
// Adds set, wait and fence on a target whose pipes run side by side; elsewhere the kernel comes back as it is. Statements
// of the result have the order, and par iterations the meaning, that they had: for contiguous chunks of par iterations,
// empty ones included. UserError GAF4002 where the target's events or rules do not allow it, with the tile's name.
Kernel insert_sync(Kernel k, const Target& t);

// ---- running the text: the definition of what a kernel does (slow, obvious; used as oracle) ----
// `buffers` in parameter order, `sizes` in order of the size symbols. Checks bounds, reads before writes and `read` promises.
// Throws UserError naming the line on any violation. `par` iterations run in order.
void interpret(const Kernel& k, const Target& t, std::span<void* const> buffers, std::span<const int64_t> sizes);

// The same for one worker's contiguous share of each par loop, on a target with pipes and with placed tiles: what the
// sync statements do not order, missing, twice set and mistakable events (race.h). Warnings: only an open rule of the
// target asks for it. The values of the buffers are computed as by `interpret`.
std::vector<KernelProblem> check_races(const Kernel& k, const Target& t, std::span<void* const> buffers,
                                       std::span<const int64_t> sizes, int worker = 0, int workers = 1);

// ---- what a kernel costs, counted on its own text (KERNEL_IR 12); one analysis for planner, budget and report ----
struct Work {
  double mma_flops = 0, vector_cycles = 0;           // one worker's cycles for the whole kernel
  std::map<std::pair<Mem, Mem>, double> moved;       // bytes per copy edge, as issued
  std::map<Pipe, double> busy;                       // cycles per pipe, whole kernel, one worker
  std::map<Mem, int64_t> peak;                       // bytes of each memory, from `place`
  double gm_bytes = 0;                               // traffic to memory after reuse in a cache of the target's L2
  int regs = 0;                                      // most vector registers live at once
  int regs_added = 0;                                // the same without the tiles `mma` accumulates in (budget: KERNEL_IR 12)
  int phases = 0;
  double us = 0;                                     // predicted time on all workers, launch included
  double compute_us = 0, memory_us = 0, launch_us = 0;
  double fill_us = 0;                                // pipes: one iteration's time on all but the busiest pipe
};
Work analyse(const Kernel& k, const Target& t, std::span<const int64_t> sizes, int workers = 0);  // 0: cores
int workers_of(const Kernel& k, const Target& t);  // cores of the target that run this kernel: those with `mma`, or the others

// ---- pipes and rings (pipes.cpp) ----
// The unit that runs a statement, from its operands' memories; nothing for declarations, loops, branches and sync.
std::optional<Pipe> pipe_of(const Kernel& k, const Target& t, const Stmt& s);
// Which slot of a ring a tile has that is declared inside these loops (outermost first): the running number of the
// iteration over the whole nest, modulo the ring. Address of the slot: Tile::at + ring_slot * slot_bytes.
Expr ring_slot(const Kernel& k, std::span<const For* const> nest, int ring);
int64_t slot_bytes(const Tile& x, const Target& t);               // from one slot of a ring to the next: aligned

// ---- small helpers over statements ----
void for_each_ref(const Stmt& s, const std::function<void(const Ref&, bool write)>& f);  // leaf statements only; no prefetch
DType type_of(const Kernel& k, const Ref& r);
Mem mem_of(const Kernel& k, const Ref& r);
std::pair<Expr, Expr> extents(const Kernel& k, const Ref& r);   // rows, columns as written (whole tile: capacity)
std::string_view keyword(Cmp c);                                 // "<"
std::string_view name_of(const Kernel& k, const Ref& r);         // of the tile or buffer
int parameter_of(const Kernel& k, int buf);                      // itself, or what the view is of
std::vector<int> parameters(const Kernel& k);                    // buffers that are no views, in call order
std::vector<int> size_symbols(const Kernel& k);                  // in call order
std::vector<Expr> row_major(const Dims& shape);                  // strides in elements
Kernel map_exprs(Kernel k, const std::function<Expr(const Expr&)>& f);    // every expression of a kernel
void for_each_stmt(const Body& b, const std::function<void(const Stmt&)>& f);  // outside in, first to last

// What `lower` calls to write a kernel.
struct Builder {
  Kernel k;
  std::vector<Body*> open{&k.body};
  Builder() = default;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  int size(std::string name, int64_t lo, int64_t hi, int64_t mult = 1);      // symbol id
  int buf(Role r, DType t, Dims shape);                                      // parameter; named %0, %1, ...
  int view(int base, Dims shape, Dims strides, Expr offset, DType t);        // declared in the current block, unique name v0, v1, ...
  Ref tile(std::string stem, DType t, int64_t rows, int64_t cols, Mem m = Mem::reg);  // unique name from stem
  static Ref at(int buf, std::vector<Slice> s) { return {false, buf, std::move(s), false}; }
  static Ref part(const Ref& tile, Expr r, Expr nr, Expr c, Expr nc);       // sub-rectangle of a whole tile
  void put(Stmt s) { open.back()->push_back(std::move(s)); }
  void copy(Ref dst, Ref src, std::optional<double> pad = {});
  void map(Ref dst, S op, std::vector<Arg> args);
  void reduce(Ref dst, S op, int axis, Ref src);
  void mma(Ref dst, Ref a, Ref b, std::vector<Ref> prefetch = {});          // dst += a b
  void loop(std::string stem, Expr lo, Expr hi, int64_t step, LoopKind kind, const std::function<void(Expr)>& body);
  void par(std::vector<std::pair<Expr, Expr>> ranges, const std::function<void(std::vector<Expr>)>& body);  // lo, hi of each axis, step 1
  void when(Cmp c, Expr a, Expr b, const std::function<void()>& yes, const std::function<void()>& no = {});
  Expr read(Ref src, Expr lo, Expr hi);                                      // the new symbol

 private:
  int unique_ = 0;
  std::string fresh(std::string stem);  // stem and a number; unique in the kernel as long as sizes are named otherwise
};

}  // namespace gaf::kir
