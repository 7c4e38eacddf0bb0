// Loading: file or bytes -> typed graph with canonical operands; shapes and symbolic dims given by the user are bound
// here.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <set>

#include "base/catalogue.h"
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

std::vector<Model::Gone> gone(const Graph& file, const Graph& loaded) {
  std::set<std::string> there;
  for (const Node& n : loaded.nodes) {
    if (n.op == "constant" || n.op == "input") continue;
    there.insert(n.name);
    there.insert(n.origins.begin(), n.origins.end());
  }
  std::vector<Model::Gone> all;
  std::vector<bool> fixed(file.nodes.size());
  for (size_t i = 0; i < file.nodes.size(); i++) {
    const Node& n = file.nodes[i];
    fixed[i] = n.op == "constant" ||
               (n.op != "input" && !n.args.empty() &&
                std::all_of(n.args.begin(), n.args.end(), [&](Value v) { return v == kNoValue || fixed[v.node]; }));
    if (n.op != "constant" && n.op != "input" && !n.name.empty() && there.insert(n.name).second)
      all.push_back({n.name, n.op, fixed[i]});
  }
  return all;
}

// Types twice: canonical nodes may spell a size another way, and every later pass compares sizes by their form.
Model finish(Graph g, Model m) {
  const Graph file = inline_kernels(g);
  m.graph = infer(canonicalise(infer(file))).graph;
  m.gone = gone(file, m.graph);
  hint(m.graph);
  return m;
}

// A name that is to be an input must have become one.
void check_given(const Graph& g, const LoadOptions& o) {
  std::vector<std::string> names;
  for (size_t i = 0; i < g.num_inputs(); i++) names.push_back(g.nodes[i].name);
  for (const std::string& name : o.overridden)
    if (std::ranges::find(names, name) == names.end())
      throw UserError(
          "GAF3104", "unknown input '" + name + "'" + did_you_mean(name, names),
          "name an input of the model; a weight can be given only where the model lists it among its inputs");
}

bool counts(const Node& n) {
  return n.op != "input" && n.op != "constant" && n.op != "Identity" && n.op != "Reshape" && n.op != "Squeeze" &&
         n.op != "Unsqueeze" && n.op != "Flatten" && n.op != "Extent" && n.op != "HostShape";
}

}  // namespace

Model load_model_bytes(std::string_view onnx, const LoadOptions& o) {
  Model m;
  m.name = "model";
  m.onnx = std::make_shared<const std::string>(onnx);
  Graph g = read_onnx(hold(m.onnx), "", {o.shapes, o.dims, o.overridden}, &m.warnings);  // before m is moved from
  check_given(g, o);
  return finish(std::move(g), std::move(m));
}

Model load_model(const std::string& path, const LoadOptions& o) {
  Model m;
  if (path == "-") return load_model_bytes(std::string{std::istreambuf_iterator<char>(std::cin), {}}, o);
  m.name = std::filesystem::path(path).filename().string();
  m.folder = std::filesystem::path(path).parent_path().string();
  if (m.folder.empty()) m.folder = ".";  // "" would mean that there is no folder, and no external data
  m.path = path;
  ReadOptions options{o.shapes, o.dims, o.overridden};
  Graph g = path.ends_with(".gaf") ? read_gaf_text(path, options) : read_onnx(path, options, &m.warnings);
  check_given(g, o);
  return finish(std::move(g), std::move(m));
}

int num_ops(const Graph& g) { return static_cast<int>(std::count_if(g.nodes.begin(), g.nodes.end(), counts)); }

}  // namespace gaf
