// Replaces sizes of a graph by the numbers that a user gives for shapes and dims; for graph text (models that come as
// ONNX are bound while they are read, onnx_inputs.cpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/catalogue.h"
#include "base/error.h"
#include "frontend/gaf_text.h"

namespace gaf {
namespace {

using Bound = std::vector<std::optional<int64_t>>;  // per symbol

void fix(Bound& bound, const Graph& g, int sym, int64_t value, const std::string& why) {
  if (value < 0) throw UserError("GAF3102", fmt::format("{}: a dimension cannot be {}", why, value));
  auto& b = bound[static_cast<size_t>(sym)];
  if (b && *b != value)
    throw UserError("GAF3102", fmt::format("{} makes dimension '{}' {}, but it is {} elsewhere", why,
                                           g.syms[static_cast<size_t>(sym)].name, value, *b));
  b = value;
}

void bind_shape(Bound& bound, const Graph& g, const Node& input, const std::vector<int64_t>& shape) {
  const Type& t = input.types[0];
  bool fits = shape.size() == t.dims.size();
  for (size_t i = 0; fits && i < shape.size(); i++) {
    if (shape[i] < 0) continue;
    if (t.dims[i].op() == ExprOp::sym)
      fix(bound, g, t.dims[i].sym_id(), shape[i], fmt::format("input '{}'", input.name));
    else
      fits = !t.dims[i].is_num() || t.dims[i].is(shape[i]);
  }
  if (!fits)
    throw UserError("GAF3102", fmt::format("input '{}': expected {}, got [{}]", input.name, print_type(t, g),
                                           fmt::join(shape, ",")));
}

using Replace = std::function<Expr(int)>;

void substitute(Dims& dims, const Replace& by) {
  for (Dim& d : dims) d = d.substitute(by);
}

void substitute(Graph& g, const std::vector<Sym>& syms, const Replace& by) {
  g.syms = syms;
  for (Node& n : g.nodes) {
    for (Type& t : n.types) substitute(t.dims, by);
    for (auto& [key, attr] : n.attrs)
      if (Dims* dims = std::get_if<Dims>(&attr)) substitute(*dims, by);
    for (auto& region : n.regions) {
      Graph copy = *region;
      substitute(copy, syms, by);
      region = std::make_shared<const Graph>(std::move(copy));
    }
  }
  for (Graph& k : g.kernels) substitute(k, syms, by);
}

}  // namespace

Graph bind_sizes(Graph g, const ReadOptions& o) {
  Bound bound(g.syms.size());
  std::vector<std::string> inputs, sizes;
  for (size_t i = 0; i < g.num_inputs(); i++) inputs.push_back(g.nodes[i].name);
  for (const Sym& s : g.syms) sizes.push_back(s.name);
  for (const auto& [name, value] : o.dims) {
    auto it = std::find(sizes.begin(), sizes.end(), name);
    if (it == sizes.end())
      throw UserError("GAF3104", fmt::format("unknown dimension '{}'{}; the model's are: {}", name,
                                             did_you_mean(name, sizes), fmt::join(sizes, ", ")),
                      "name one of the model's free dimensions");
    fix(bound, g, static_cast<int>(it - sizes.begin()), value, fmt::format("dimension '{}'", name));
  }
  for (const auto& [name, shape] : o.shapes) {
    auto it = std::find(inputs.begin(), inputs.end(), name);
    if (it == inputs.end())
      throw UserError("GAF3104", fmt::format("unknown input '{}'{}", name, did_you_mean(name, inputs)));
    bind_shape(bound, g, g.nodes[static_cast<size_t>(it - inputs.begin())], shape);
  }
  if (std::none_of(bound.begin(), bound.end(), [](const auto& b) { return b.has_value(); })) return g;
  std::vector<Sym> left;
  std::vector<Expr> now;  // symbol -> number, or symbol of the shorter table
  for (size_t i = 0; i < bound.size(); i++) {
    if (bound[i]) {
      now.emplace_back(*bound[i]);
    } else {
      now.push_back(Expr::sym(static_cast<int>(left.size())));
      left.push_back(g.syms[i]);
    }
  }
  substitute(g, left, [&](int id) { return now.at(static_cast<size_t>(id)); });
  return g;
}

}  // namespace gaf
