// What all templates of `lower` share: the kernel being written, where each graph value lies in memory, and the emission of
// pointwise nodes on one tile. Templates own loops and tiles; this owns views, operands and scalar programs.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "ir/kernel.h"
#include "lower/lower.h"
#include "ops/op.h"

namespace gaf {

struct Access;

// An address term read from an index tensor (Gather): wrap(index[i...]) * stride, where wrap maps -extent..extent-1 to
// 0..extent-1 and clamps what is outside. `index` has the dims of the access it belongs to.
struct Indirect {
  std::shared_ptr<const Access> index;
  Expr extent, stride;
};

// How the elements of a value lie in a kernel buffer: element [i0, i1, ...] at
// offset + sum of (i_d - window_d.start) * strides_d + indirect terms.
struct Access {
  int buf = -1;                 // kernel parameter
  Dims dims;                    // of the value as the graph sees it
  std::vector<Expr> strides;    // 0 where the dim is broadcast
  Expr offset = 0;
  // A piece of a Concat or Pad lies in its source from `start` on and only for `extent` elements. Empty: 0 and dims.
  struct Window { Expr start, extent; };
  std::vector<Window> window;
  std::vector<Indirect> indirect;
};

// View algebra. Each returns nothing where the result is no strided view of the same buffer.
std::vector<Expr> dense_strides(const Dims& dims);
Access dense(int buf, const Dims& dims);
std::optional<Access> transpose(const Access& a, std::span<const int64_t> perm);
std::optional<Access> reshape(const Access& a, const Dims& dims);                 // splits and merges where strides allow
std::optional<Access> broadcast(const Access& a, const Dims& dims);               // numpy: aligned right, 1 -> n has stride 0
// The dim of `a` holds the operand's elements within the window only. A window that covers the dim becomes an offset.
void set_window(Access& a, size_t axis, const Access::Window& w);
std::optional<Access> slice(const Access& a, size_t axis, const Expr& start, int64_t step, const Expr& extent);
// The access to result `result` of a view-like node (OpKind::view, Split) given the access to its first operand.
std::optional<Access> apply_view(const Graph& g, const Node& n, const Access& a, uint32_t result = 0);
bool same_place(const Access& a, const Access& b);                                // the same elements in the same order

// How often Tile repeats each dim, or a nearest-neighbour Resize by whole factors each element of it.
std::optional<std::vector<int64_t>> repeats_of(const Graph& g, const Node& n);
std::optional<Dims> pads_before(const Graph& g, const Node& pad);                  // elements put before each dim, if known

// The box of iterations a template walks, as TileBody sees it. Values are broadcast to `dims`, then adjacent dims merge:
// `merge[k]` of them become dim k of the rectangles.
struct Space {
  Dims dims;
  Dims fine;                                    // a finer factorisation of dims (Tile, DepthToSpace need one); empty: dims
  std::vector<size_t> merge;                    // empty: no dims merged
  std::vector<int64_t> order;                   // of the merged dims in rectangles; empty: as they are
  std::map<uint32_t, int> piece;                // Concat, Pad: which piece of the node this box lies in
  Dims merged() const;
};

// How a value is reached from the iteration space: through which view-like nodes, innermost first. Interned by Lowering;
// null is the space itself.
struct Path {
  Value step;                                   // result of a view-like node
  const Path* next = nullptr;                   // what is applied behind it
  friend auto operator<=>(const Path&, const Path&) = default;
};

// Composites become the primitive nodes they stand for, until none is left that says how.
Graph expand_composites(Graph g);

class Lowering {
 public:
  Lowering(const Graph& fn, const Target& t);   // expands composites; makes one kernel parameter per input and output
  const Graph& fn() const { return fn_; }       // with composites expanded
  const Target& target() const { return t_; }
  kir::Builder b;

  // Dims of the function over the kernel's size symbols. Both have the same numbers here (sizes that the kernel does not
  // use are dropped by `finish`), so this only says what is meant.
  Expr size(const Expr& graph_dim) const { return graph_dim; }
  Dims sizes(const Dims& d) const { return d; }
  // Elements expected of a dim when choosing blocks: the number, or the value at the symbols' hints.
  int64_t expect(const Expr& graph_dim) const;

  // Memory side of a value: inputs, outputs, and views of them through view nodes; null if it lives in no buffer.
  // Its dims are over kernel symbols.
  const Access* access(Value v) const;
  void set_access(Value v, Access a) { access_[v] = std::move(a); }
  void forget_access(Value v) { access_.erase(v); }
  int input_buffer(size_t input) const { return input_buf_[input]; }
  int output_buffer(size_t output) const { return output_buf_[output]; }
  // Where an output is written: the value below the invertible views that end at the output, and where its elements go.
  struct Sink { Value value; Access access; };
  const Sink& output_sink(size_t output) const { return output_sink_[output]; }
  void set_output_sink(size_t output, Sink s) { output_sink_[output] = std::move(s); }
  int pack_input(Value input, Pack p);          // a constant input re-laid: the new parameter (same one for the same pack)
  int temp(DType t, Dims dims);                 // a gm temporary parameter (dims over kernel symbols)
  size_t readers(Value v) const { return readers_[v.node].size() <= v.result ? 0 : readers_[v.node][v.result]; }

  // A view of a parameter, declared at the outermost block; the same one for the same shape.
  int view(int buf, const Dims& shape, const std::vector<Expr>& strides, const Expr& offset);
  // Rectangle of an access: `at` has one slice per iteration dim (aligned right against a's dims); broadcast dims lose
  // their range, except that a column range beside a row range becomes 0:1. Declares a view when the access is not dense;
  // emits the `read` of an indirect term in the current block.
  kir::Ref ref(const Access& a, std::span<const kir::Slice> at, std::span<const Expr> indices = {});
  // The wrapped index of an indirect term at a rectangle along which it does not vary: `read` in the current block.
  Expr read_index(const Indirect& i, std::span<const kir::Slice> at);

  void promise_nonpositive(Value exp) { nonpositive_.insert(exp); }  // the operand of this Exp is never above 0
  bool nonpositive(Value exp) const { return nonpositive_.contains(exp); }

  // ---- values behind view-like nodes ----
  const Path* path(Value step, const Path* next) { return &*paths_.insert({step, next}).first; }
  // The access at the rectangle's dims of something whose access at the inner end of the path is `a`.
  std::optional<Access> through(const Access& a, const Path* p, const Space* space) const;
  // Steps over a view-like node (view, Split, Gather*, and the chosen piece of Concat, Pad): the operand it reads there.
  std::optional<Value> step_source(Value v, const Space* space) const;
  // What a pad piece outside the source holds, if v is a Pad whose chosen piece lies there.
  std::optional<double> piece_fill(Value v, const Space* space) const;

  Lowered finish(std::string_view template_name);  // names, parameter list, size list

 private:
  std::optional<Access> step_access(const Access& a, Value step, const Space* space, const Dims& to) const;

  Graph fn_;
  const Target& t_;
  std::map<Value, Access> access_;
  std::vector<int> input_buf_, output_buf_;
  std::vector<Sink> output_sink_;
  std::map<int, KernelArg> param_;              // by buffer id
  std::vector<std::vector<size_t>> readers_;    // [node][result]: reading operands and outputs
  std::set<Path> paths_;
  std::set<Value> nonpositive_;
  kir::Body views_;
};

// Emits pointwise nodes on one tile: asked for a value, it emits what that value needs at the rectangle `at` and keeps it.
// f16 and bf16 values are computed in f32: loads cast up, `store` casts down. Where an extent of `at` is not the tile's
// capacity (ragged) operands that vary are loaded with `else`, tiles are full, and only stores are cut to the extent.
class TileBody {
 public:
  // `at`: one slice per dim of the space (Space::merged; without a space: of the widest value); the tile has `rows` x
  // `cols` capacity in registers.
  TileBody(Lowering& l, std::vector<kir::Slice> at, int64_t rows, int64_t cols, const Space* space = nullptr);
  // v is already here: an accumulator, a reduction's [R,1] or [1,1] result. `reuse`: its tile may be overwritten by the
  // value's only reader (never for a tile that lives across iterations).
  void bind(Value v, kir::Ref tile, bool reuse = false);
  void assume(Value v) { bound_[v]; }           // for `refuse`: v will be bound
  void keep(Value v) { keep_.insert(v); }       // its tile is not overwritten by its reader: the template uses it too
  kir::Arg get(Value v);                        // a tile, a memory rectangle, or a number
  kir::Ref tile(Value v);                       // forced into a register tile, with all rows and columns
  void store(Value v, kir::Ref dst);            // writes v to a rectangle in memory
  void store_output(size_t output);             // writes the function's output at `at`
  void accumulate(kir::S op, kir::Ref acc, Value v);  // acc = op(acc, v), lane by lane
  // The same body at another rectangle, for a block inside: what is here so far is read there, and not overwritten.
  TileBody moved(std::vector<kir::Slice> at, int64_t rows, int64_t cols) const;
  std::vector<Access> leaf_accesses() const;    // of all leaves that `refuse` met
  bool ragged() const { return ragged_rows_ || ragged_cols_; }
  kir::Ref cut(const kir::Ref& tile) const;     // the part of a full tile within the extents of `at`

  // Nothing if `v` can be emitted here (every leaf lies in memory as a rectangle), else why not. Emits nothing.
  std::optional<Verdict> refuse(Value v);
  // What `v` needs and does not vary inside this body is emitted by `outer`, now, in the current block. Call it before the
  // loop that this body stands in is opened.
  void hoist(TileBody& outer, Value v) { hoist(outer, v, nullptr); }

 private:
  struct Key {
    Value v;
    const Path* path;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Operand {                              // a value at the rectangle
    kir::Arg arg = 0.0;
    bool rows = false, cols = false;            // varies along rows, columns
    bool reuse = false;                         // a tile that the next statement may overwrite
    DType type = DType::f32;                    // computed in
    std::optional<kir::Arg> times;              // a product not yet written: becomes `fma` when its reader adds to it
    bool times_reuse = false;
    const double* number() const { return times ? nullptr : std::get_if<double>(&arg); }
  };
  Operand eval(Value v, const Path* p);
  Operand node_program(Value v, const Path* p);
  Operand emit(kir::S op, DType out, std::vector<Operand> args);
  Operand emit_step(const kir::ScalarStep& s, DType out, std::vector<Operand> args, bool may_wait);
  Operand settle(Operand o);                    // writes a pending product
  Operand converted(Operand o, DType to);
  // The rectangle of an access; ^T where its rows, not its columns, lie side by side in memory.
  kir::Ref rectangle(const Access& a, std::span<const Expr> indices = {});
  Operand load(const Access& a, DType t, std::span<const Expr> indices);
  Operand load_gathered(const Access& a, DType t);
  Operand expr_tile(const Expr& e, DType t = DType::i32);  // an index value as a [1,1]
  bool bound_at(Value v, const Path* p) const;  // v is bound, and through p its elements stand where they stand here
  kir::Ref fresh(DType t, bool rows, bool cols);
  std::optional<Verdict> refuse(Value v, const Path* p);
  void hoist(TileBody& outer, Value v, const Path* p);
  bool varies(Value v, const Path* p, const TileBody& outer);
  bool varies(const Access& a, const std::vector<bool>& dims) const;
  void set_rectangle(std::vector<kir::Slice> at, int64_t rows, int64_t cols);
  std::vector<bool> ranged() const;             // dims of `at` with a range
  std::vector<bool> inner_dims(const TileBody& outer) const;
  const Access* leaf(Value v, const Path* p);   // its access at the rectangle's dims, if v lies in memory

  Lowering& l_;
  std::vector<kir::Slice> at_;
  int64_t rows_ = 1, cols_ = 1;
  const Space* space_;
  int col_dim_ = -1;                            // the last ranged dim of `at`
  Expr n_rows_ = 1, n_cols_ = 1;                // extents of `at`
  bool ragged_rows_ = false, ragged_cols_ = false;
  std::map<Key, Operand> have_;
  std::map<Value, Operand> bound_;
  std::map<Key, std::optional<Access>> leaves_;
  std::map<Key, std::vector<Expr>> indices_;    // of indirect terms, read outside
  std::map<Key, Operand> recips_;               // of divisors that do not vary inside
  std::map<Key, bool> varies_;
  std::set<Key> settled_;                       // refuse: already found fine
  std::set<Value> keep_;
};

// DType that values of t are computed in: f16 and bf16 in f32.
inline DType compute_type(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

// ---- templates: each returns nothing if the function is not of its kind, a Verdict if it is but cannot be written ----
using Attempt = std::optional<std::variant<Lowered, Verdict>>;
Attempt lower_attention(const Graph& fn, const Target& t);
Attempt lower_contraction(const Graph& fn, const Target& t);
Attempt lower_conv(const Graph& fn, const Target& t);
Attempt lower_depthwise(const Graph& fn, const Target& t);
Attempt lower_pool(const Graph& fn, const Target& t);
Attempt lower_row(const Graph& fn, const Target& t);
Attempt lower_move(const Graph& fn, const Target& t);       // Concat, Gather, Pad, Split, Tile with pointwise neighbours
Attempt lower_pointwise(const Graph& fn, const Target& t);

}  // namespace gaf
