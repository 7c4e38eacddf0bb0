// Graph text files (.gaf): the text of a graph, and behind it the data of its large constants, so that a saved graph is whole.
//
//   graph @g(...) ... {
//   }
//   ---- constants
//   #01f3a9... 256000        <- hash in the text, bytes; blanks up to a multiple of 64; then the bytes and a line end
//
// Text alone is a valid file: its large constants are then made up (ir/graph.h).
#pragma once
#include <string>

#include "frontend/mapped_file.h"
#include "ir/graph.h"

namespace gaf {

void save_graph(const Graph& g, const std::string& path);   // UserError GAF8001, GAF8002
Graph load_graph(const std::string& path);                  // UserError GAF8001, GAF3001 with line and column
Graph load_graph(const FileBytes& file, const std::string& name);  // name: for messages; constants share the bytes

}  // namespace gaf
