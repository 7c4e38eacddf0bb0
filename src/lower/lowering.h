// What all templates of `lower` share: the kernel being written, where each graph value lies in memory, and the emission of
// pointwise nodes on one tile. Templates own loops and tiles; this owns views, operands and scalar programs.
#pragma once
#include <map>
#include <optional>

#include "ir/kernel.h"
#include "lower/lower.h"
#include "ops/op.h"

namespace gaf {

// How the elements of a value lie in a kernel buffer: element [i0, i1, ...] at offset + sum of i_d * strides_d. A dim that
// comes from a gathered index (Gather on axis 0) has no stride of its own: its slice is a `read` symbol made by the template.
struct Access {
  int buf = -1;                 // kernel parameter
  Dims dims;                    // of the value as the graph sees it
  std::vector<Expr> strides;    // 0 where the dim is broadcast
  Expr offset = 0;
};

// View algebra. Each returns nothing where the result is no strided view of the same buffer.
Access dense(int buf, const Dims& dims);
std::optional<Access> transpose(const Access& a, std::span<const int64_t> perm);
std::optional<Access> reshape(const Access& a, const Dims& dims);                 // splits and merges where strides allow
std::optional<Access> broadcast(const Access& a, const Dims& dims);               // numpy: aligned right, 1 -> n has stride 0
std::optional<Access> slice(const Access& a, size_t axis, const Expr& start, int64_t step, const Expr& extent);
std::optional<Access> apply_view(const Graph& g, const Node& n, const Access& a); // any node of OpKind::view

class Lowering {
 public:
  Lowering(const Graph& fn, const Target& t);   // expands composites; makes one kernel parameter per input and output
  const Graph& fn() const { return fn_; }       // with composites expanded
  const Target& target() const { return t_; }
  kir::Builder b;

  Expr size(const Expr& graph_dim);             // the dim over the kernel's size symbols (adds the parameter at first use)
  Dims sizes(const Dims& d);
  bool same(const Expr& a, const Expr& b) { return a == b; }

  // Memory side of a value: inputs, outputs, and views of them through view nodes; null if it lives in no buffer.
  const Access* access(Value v) const;
  void set_access(Value v, Access a) { access_[v] = std::move(a); }
  int output_buffer(size_t output) const;
  int pack_input(Value input, Pack p);          // a constant input re-laid: the new parameter (same one for the same pack)
  int temp(DType t, Dims dims);                 // a gm temporary parameter
  // Rectangle of an access: `at` has one slice per dim of `iteration` dims (numpy-aligned right against a's dims);
  // broadcast dims lose their range. Declares a kernel view at the outermost block when the access is not dense.
  kir::Ref ref(const Access& a, std::span<const kir::Slice> at);

  Lowered finish(std::string_view template_name);  // names, parameter list, size list

 private:
  Graph fn_;
  const Target& t_;
  std::map<Value, Access> access_;
  std::vector<KernelArg> args_;
  std::map<int, int> size_of_sym_;
  std::vector<int> size_list_;
};

// Emits pointwise nodes on one tile: asked for a value, it emits what that value needs at the rectangle `at` and keeps it.
// f16 and bf16 values are computed in f32: loads cast up, `store` casts down.
class TileBody {
 public:
  // `at`: one slice per iteration dim; the tile has `rows` x `cols` capacity in registers.
  TileBody(Lowering& l, std::vector<kir::Slice> at, int64_t rows, int64_t cols);
  void bind(Value v, kir::Ref tile);            // v is already here: an accumulator, a reduction's [R,1] or [1,1] result
  kir::Arg get(Value v);                        // a tile, a memory rectangle, or a number
  kir::Ref tile(Value v);                       // forced into a register tile
  void store(Value v, kir::Ref dst);            // writes v to a rectangle in memory
  void store_output(size_t output);             // writes the function's output at `at`

 private:
  Lowering& l_;
  std::vector<kir::Slice> at_;
  int64_t rows_, cols_;
  std::map<Value, kir::Arg> have_;
};

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
