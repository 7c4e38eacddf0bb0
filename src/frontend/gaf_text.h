// Graph text files (.gaf): the text of a graph, and behind it the data of its large constants, so that a saved graph is
// whole.
//
//   graph @g(...) ... {
//   }
//   ---- constants
//   #01f3a9... 256000        <- hash in the text, bytes; blanks up to a multiple of 64; then the bytes and a line end
//
// Text alone is a valid file: its large constants are then made up (ir/graph.h).
#pragma once
#include <string>

#include "frontend/onnx.h"
#include "ir/graph.h"

namespace gaf {

void write_gaf_text(const Graph& g, const std::string& path);  // UserError GAF8001, GAF8002
// UserError GAF8001; GAF3001 with line and column; GAF3102, GAF3104 for shapes and dims that do not fit. Sizes that the
// options fix are numbers in the graph.
Graph read_gaf_text(const std::string& path, const ReadOptions& o = {});
Graph read_gaf_text(const FileBytes& file, const std::string& name, const ReadOptions& o = {});  // name: for messages

// The graph with sizes replaced by numbers as options.shapes and options.dims say.
Graph bind_sizes(Graph g, const ReadOptions& o);

}  // namespace gaf
