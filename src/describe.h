// A graph as data for users: one record per op with shapes, kind, flops and bytes; what Python's Graph shows and the command
// line prints. Works on a loaded graph (one op a node) and on a planned one (one op a kernel).
#pragma once
#include "base/json.h"
#include "ir/graph.h"

namespace gaf {

// [{name, type, domain, dtype, attrs, inputs, outputs, original_names, shape, input_shapes, output_shapes, problem,
//   compute_kind, flops, bytes_read, bytes_written, view}]; a free dim is the text of its expression.
Json describe_ops(const Graph& g);
Json describe_values(const Graph& g, bool outputs);  // [{name, dtype, shape}] of inputs or outputs

}  // namespace gaf
