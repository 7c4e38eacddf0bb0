// Graph -> graph: the passes before planning. A pass reads one graph and builds the next; the runner in compile.cpp times,
// checks and can skip each by name. What a pass did goes into the log, which the report prints.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace gaf {

struct RewriteLog {
  struct Entry {
    std::string name;                 // the rule or pass
    std::vector<std::string> nodes;   // model nodes
    std::string effect;
  };
  std::vector<Entry> entries;
};

// Nodes whose operands are all constant become constants. A result larger than `cap_bytes`, or far larger than its operands
// (an Expand of a scalar), stays as it is.
Graph fold_constants(const Graph& g, RewriteLog& log, int64_t cap_bytes = int64_t{64} << 20);
// Equal nodes become one; nodes that nothing reads go.
Graph merge_equal(const Graph& g, RewriteLog& log);
Graph drop_dead(const Graph& g, RewriteLog& log);
// Rules that make the graph smaller without changing what it computes (simplify.cpp lists them). `views`: only those on
// reshapes and transposes, which fusion level 0 keeps too.
enum class Simplify : uint8_t { views, all };
Graph simplify(const Graph& g, RewriteLog& log, Simplify what = Simplify::all);
// Decomposed LayerNorm, GELU, softmax, hard-swish, SiLU, RMSNorm, one-hot look-ups become the op they spell out.
Graph recognise_composites(const Graph& g, RewriteLog& log);
// BatchNormalization into scale and shift, and scale and shift into the weights of the convolution before them.
Graph fold_affine(const Graph& g, RewriteLog& log);
// Convolutions and pools compute on [N, spatial, C]; transposes stand around them, sink towards the outputs like any other
// transpose, and cancel where they meet.
Graph channels_last(const Graph& g, RewriteLog& log, Simplify what = Simplify::all);

// Free sizes get the least value at which no value of the graph has a negative dim.
Graph least_sizes(const Graph& g, RewriteLog& log);

// Calls of kernel functions (a saved plan) as the nodes they stand for.
Graph inline_kernels(const Graph& g);

}  // namespace gaf
