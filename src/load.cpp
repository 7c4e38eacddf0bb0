// Loading: file or bytes -> typed graph with canonical operands; shapes and symbolic dims given by the user are bound here.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "compile.h"
#include "frontend/gaf_text.h"
#include "frontend/onnx.h"
#include "ops/canonical.h"
#include "ops/op.h"
#include "rewrite/rewrite.h"

namespace gaf {
namespace {

// Prices need numbers: 1 for a free first axis, 128 for any other (CONTRACT 1.1).
void hint(Graph& g) {
  for (size_t i = 0; i < g.num_inputs(); i++) {
    const Dims& d = g.nodes[i].types[0].dims;
    for (size_t k = 0; k < d.size(); k++) {
      if (d[k].op() != ExprOp::sym) continue;
      Sym& s = g.syms[static_cast<size_t>(d[k].sym_id())];
      if (s.hint == 0) s.hint = k == 0 ? 1 : 128;
    }
  }
  for (Sym& s : g.syms)
    if (s.hint == 0) s.hint = 128;
}

// Types twice: canonical nodes may spell a size another way, and every later pass compares sizes by their form.
Model finish(Graph g, Model m) {
  m.graph = infer(canonicalise(infer(inline_kernels(g)))).graph;
  hint(m.graph);
  return m;
}

bool counts(const Node& n) {
  return n.op != "input" && n.op != "constant" && n.op != "Identity" && n.op != "Reshape" && n.op != "Squeeze" && n.op != "Unsqueeze" &&
         n.op != "Flatten" && n.op != "Extent" && n.op != "HostShape";
}

}  // namespace

Model load_model_bytes(std::string_view onnx, const LoadOptions& o) {
  Model m;
  m.name = "model";
  m.onnx = std::make_shared<const std::string>(onnx);
  Graph g = read_onnx(hold(m.onnx), "", {o.shapes, o.dims, {}}, &m.warnings);  // before m is moved from
  return finish(std::move(g), std::move(m));
}

Model load_model(const std::string& path, const LoadOptions& o) {
  Model m;
  if (path == "-") return load_model_bytes(std::string{std::istreambuf_iterator<char>(std::cin), {}}, o);
  m.name = std::filesystem::path(path).filename().string();
  m.folder = std::filesystem::path(path).parent_path().string();
  if (m.folder.empty()) m.folder = ".";  // "" would mean that there is no folder, and no external data
  m.path = path;
  ReadOptions options{o.shapes, o.dims, {}};
  Graph g = path.ends_with(".gaf") ? read_gaf_text(path, options) : read_onnx(path, options, &m.warnings);
  return finish(std::move(g), std::move(m));
}

int num_ops(const Graph& g) { return static_cast<int>(std::count_if(g.nodes.begin(), g.nodes.end(), counts)); }

}  // namespace gaf
