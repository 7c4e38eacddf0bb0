// Loading: file or bytes -> typed graph with canonical operands; shapes and symbolic dims given by the user are bound here.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "base/catalogue.h"
#include "base/file.h"
#include "compile.h"
#include "frontend/gaf_text.h"
#include "frontend/onnx.h"
#include "ops/canonical.h"
#include "ops/op.h"

namespace gaf {
namespace {

std::vector<std::string> input_names(const Graph& g) {
  std::vector<std::string> names;
  for (size_t i = 0; i < g.num_inputs(); i++) names.push_back(g.nodes[i].name);
  return names;
}

// `--shape` and `--dim`: numbers in place of symbols, in every type that mentions them.
void bind(Graph& g, const LoadOptions& o) {
  std::vector<Expr> value;
  for (size_t s = 0; s < g.syms.size(); s++) value.push_back(Expr::sym(static_cast<int>(s)));
  for (const auto& [name, n] : o.dims) {
    auto it = std::find_if(g.syms.begin(), g.syms.end(), [&](const Sym& s) { return s.name == name; });
    std::vector<std::string> names;
    for (const Sym& s : g.syms) names.push_back(s.name);
    if (it == g.syms.end()) throw UserError("GAF3105", "the model has no dimension '" + name + "'" + did_you_mean(name, names));
    if (n < 0) throw UserError("GAF3105", "dimension '" + name + "' cannot be " + std::to_string(n));
    value[static_cast<size_t>(it - g.syms.begin())] = n;
  }
  auto substitute = [&](int s) { return value[static_cast<size_t>(s)]; };
  for (const auto& [name, dims] : o.shapes) {
    std::vector<std::string> names = input_names(g);
    auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) throw UserError("GAF3104", "unknown input '" + name + "'" + did_you_mean(name, names));
    Type& t = g.nodes[static_cast<size_t>(it - names.begin())].types[0];
    if (t.dims.size() != dims.size())
      throw UserError("GAF3102", "input '" + name + "': expected " + std::to_string(t.dims.size()) + " dimensions, got " + std::to_string(dims.size()));
    for (size_t i = 0; i < dims.size(); i++) {
      if (dims[i] < 0) continue;
      Expr have = t.dims[i].substitute(substitute);
      if (have.op() == ExprOp::sym) value[static_cast<size_t>(have.sym_id())] = dims[i];
      else if (!have.is(dims[i])) throw UserError("GAF3102", "input '" + name + "': expected " + print_type(t, g) + ", got " + std::to_string(dims[i]) + " as dimension " + std::to_string(i));
    }
  }
  for (size_t i = 0; i < g.num_inputs(); i++)
    for (Expr& e : g.nodes[i].types[0].dims) e = e.substitute(substitute);
}

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

Model finish(Graph g, const LoadOptions& o, Model m) {
  bind(g, o);
  Graph typed = canonicalise(infer(std::move(g)));
  hint(typed);
  m.graph = std::move(typed);
  return m;
}

}  // namespace

Model load_model_bytes(std::string_view onnx, const LoadOptions& o) {
  Model m;
  m.name = "model";
  m.onnx = std::make_shared<const std::string>(onnx);
  return finish(read_onnx(std::string_view(*m.onnx), ""), o, std::move(m));
}

Model load_model(const std::string& path, const LoadOptions& o) {
  Model m;
  if (path == "-") {
    std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
    return load_model_bytes(bytes, o);
  }
  m.name = std::filesystem::path(path).filename().string();
  m.folder = std::filesystem::path(path).parent_path().string();
  m.path = path;
  if (path.ends_with(".gaf")) {
    Graph g = read_gaf_text(path);
    return finish(std::move(g), o, std::move(m));
  }
  return finish(read_onnx(path), o, std::move(m));
}

namespace {
bool counts(const Node& n) {
  return n.op != "input" && n.op != "constant" && n.op != "Identity" && n.op != "Reshape" && n.op != "Squeeze" && n.op != "Unsqueeze" &&
         n.op != "Flatten" && n.op != "Extent" && n.op != "HostShape";
}
}  // namespace

int num_ops(const Graph& g) { return static_cast<int>(std::count_if(g.nodes.begin(), g.nodes.end(), counts)); }

}  // namespace gaf
