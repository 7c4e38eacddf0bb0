// Group -> kernel IR. A group is a kernel function of the graph (Graph::kernels): inputs, pointwise / reduction /
// contraction ... nodes, outputs. `lower` picks the template that fits, writes the text for one target, and says how each
// buffer of the kernel is fed. It never runs or compiles anything.
#pragma once
#include <optional>
#include <variant>

#include "base/error.h"
#include "base/target.h"
#include "ir/graph.h"
#include "ir/kernel.h"

namespace gaf {

// A constant re-laid for the kernel at load time: dst[i...] = src[c...] where c_d = sum of coef[d][j] * i_j + offset[d],
// and 0 where some c_d is outside the source. E.g. GEMM weights [K,N] -> [N/NR][K][NR].
struct Pack {
  std::vector<int64_t> dst_dims;
  std::vector<std::vector<int64_t>> coef;  // [source dim][dst dim]
  std::vector<int64_t> offset;             // [source dim]
  bool winograd = false;                   // the source's 3x3 squares first become 4x4 (lower/winograd.h)
  friend bool operator==(const Pack&, const Pack&) = default;
};
Tensor apply(const Pack& p, const Tensor& src);

struct KernelArg {
  enum Kind : uint8_t { input, output, temp } kind;
  uint32_t index = 0;                      // of the function's inputs or outputs
  std::optional<Pack> pack;                // constant inputs only
  DType dtype = DType::f32;                // temp: a buffer in gm that lives during the kernel
  Dims dims;                               // temp
};

struct Lowered {
  kir::Kernel kernel;                      // size symbols = those of the function's syms that it uses, named alike; legal
                                           // on a target whose statements work on tiles
  std::vector<KernelArg> args;             // one per kernel parameter
  std::vector<int> sizes;                  // graph symbol of each size parameter, in order
  std::string_view template_name;          // "pointwise" "row" "contraction" "conv" "winograd" "depthwise" "pool" "attention" "copy"
};

// `fn`: a kernel function with types; inputs bound to constants of the model carry attr const=1 (may be packed); scalar
// constants stand inside as `constant` nodes. Refusal: reason not-fusable-op, layout, iteration-mismatch, backend-limit, ...
std::variant<Lowered, Verdict> lower(const Graph& fn, const Target& t);

}  // namespace gaf
