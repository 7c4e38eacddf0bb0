// Reads the nodes of an ONNX graph: operands, attributes, subgraphs, Constant nodes, calls of model-local functions.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "frontend/onnx_import.h"
#include "ops/op.h"

namespace gaf::onnx {
namespace {

constexpr int kMaxDepth = 64;             // of subgraphs and function calls in one another
constexpr int64_t kMaxInlined = 1 << 20;  // nodes from function bodies; more is a file made to blow up

bool default_domain(View d) { return d.empty() || d == "ai.onnx"; }

std::string function_key(const Node& n, View overload) {
  return fmt::format("{}\n{}\n{}", default_domain(n.domain) ? "" : n.domain, n.op_type, overload);
}

gaf::Tensor floats_tensor(const std::vector<float>& v, std::vector<int64_t> dims) {
  gaf::Tensor t = gaf::Tensor::make(DType::f32, std::move(dims));
  std::copy(v.begin(), v.end(), t.mut<float>());
  return t;
}

gaf::Tensor ints_tensor(const std::vector<int64_t>& v, std::vector<int64_t> dims) {
  gaf::Tensor t = gaf::Tensor::make(DType::i64, std::move(dims));
  std::copy(v.begin(), v.end(), t.mut<int64_t>());
  return t;
}

}  // namespace

void Importer::nodes(const std::vector<Node>& list, Scope& s) {
  std::vector<const Node*> nodes = pointers(list);
  std::vector<std::string> names = node_names(nodes);
  for (size_t i : run_order(nodes, names, uses_)) node(list[i], s.prefix + names[i], s);
}

// `Type` of the default domain and of rows that the op table has for another domain; else `domain::Type`, which errors
// show.
std::string Importer::op_name(const Node& n) const {
  std::string type(n.op_type);
  bool reserved = type.empty() || type == "input" || type == "constant" || type == "call";
  if (default_domain(n.domain)) return reserved ? "ai.onnx::" + type : type;
  const OpRow* row = find_op(fmt::format("{}.{}", n.domain, type));
  return row ? std::string(row->name) : fmt::format("{}::{}", n.domain, type);
}

void Importer::node(const Node& n, const std::string& name, Scope& s) {
  auto f = functions_.find(function_key(n, n.overload));
  if (f != functions_.end()) return call(*f->second, n, name, s);
  if (default_domain(n.domain)) {
    if (!opset_)
      throw UserError("GAF3006", "the model imports no opset of the default domain").at(name, std::string(n.op_type));
    if (n.op_type == "Constant") return constant_node(n, name, s);
    // Another name for a constant: what reads it has the constant itself, and the node stays for the account of nodes
    // alone.
    if (n.op_type == "Identity" && n.inputs.size() == 1 && n.outputs.size() == 1 && constant_value(n.inputs[0], s)) {
      const Value v = resolve(n.inputs[0], s, name, n.op_type);
      gaf::Node same;
      same.op = "Identity", same.name = name, same.args = {v}, same.types.resize(1);
      s.g.nodes.push_back(std::move(same));
      return define(n.outputs[0], v, s, name, n.op_type);
    }
  }
  gaf::Node out;
  out.op = op_name(n);
  out.name = name;
  for (View v : n.inputs) out.args.push_back(v.empty() ? kNoValue : resolve(v, s, name, n.op_type));
  bool control =
      std::any_of(n.attributes.begin(), n.attributes.end(), [](const Attribute& a) { return a.g != nullptr; });
  while (!control && !out.args.empty() && out.args.back() == kNoValue) out.args.pop_back();
  out.attrs = attributes(n, name, s);
  if (control) subgraphs(n, out, s);
  size_t results = n.outputs.size();
  while (results > 1 && n.outputs[results - 1].empty()) results--;
  out.types.resize(results);
  s.g.nodes.push_back(std::move(out));
  auto id = static_cast<uint32_t>(s.g.nodes.size() - 1);
  for (uint32_t r = 0; r < results; r++) define(n.outputs[r], {id, r}, s, name, n.op_type);
}

void Importer::constant_node(const Node& n, const std::string& name, Scope& s) {
  if (n.outputs.size() != 1 || n.attributes.empty())
    throw UserError("GAF3001", "a Constant has one attribute and one output").at(name, "Constant");
  const Attribute& a = n.attributes[0];
  View output = n.outputs[0];
  gaf::Tensor value;
  if (!a.ref_name.empty()) {
    auto it = s.function_attrs.find(std::string(a.ref_name));
    const gaf::Tensor* t = it == s.function_attrs.end() ? nullptr : std::get_if<gaf::Tensor>(&it->second);
    if (t)
      value = *t;
    else if (it == s.function_attrs.end())
      throw UserError("GAF3001", fmt::format("attribute '{}' has no value", a.ref_name)).at(name, "Constant");
    else if (auto* i = std::get_if<int64_t>(&it->second))
      value = ints_tensor({*i}, {});
    else if (auto* d = std::get_if<double>(&it->second))
      value = floats_tensor({static_cast<float>(*d)}, {});
    else if (auto* is = std::get_if<std::vector<int64_t>>(&it->second))
      value = ints_tensor(*is, {static_cast<int64_t>(is->size())});
    else if (auto* ds = std::get_if<std::vector<double>>(&it->second))
      value = floats_tensor({ds->begin(), ds->end()}, {static_cast<int64_t>(ds->size())});
  } else if (a.type == AttrType::tensor && dtype_of(a.t->data_type)) {
    value = load_tensor(*a.t, file_, outside_);
  } else if (a.type == AttrType::float_) {
    value = floats_tensor({a.f}, {});
  } else if (a.type == AttrType::int_) {
    value = ints_tensor({a.i}, {});
  } else if (a.type == AttrType::floats) {
    value = floats_tensor(a.floats, {static_cast<int64_t>(a.floats.size())});
  } else if (a.type == AttrType::ints) {
    value = ints_tensor(a.ints, {static_cast<int64_t>(a.ints.size())});
  }
  if (!value.data && !(a.type == AttrType::tensor && value.numel() == 0)) {
    std::string what = a.type == AttrType::tensor && a.t ? data_type_name(a.t->data_type) : std::string(a.name);
    s.unusable.emplace(output, fmt::format("Constant '{}' holds {}, which is not supported", name, what));
    return;
  }
  bool taken = s.values.contains(output) || s.initializers.contains(output) || s.unusable.contains(output);
  if (taken || !s.constants.emplace(output, std::move(value)).second)
    throw UserError("GAF3002", fmt::format("value '{}' is defined twice", output)).at(name, "Constant");
}

void Importer::call(const Function& f, const Node& n, const std::string& name, Scope& s) {
  auto fail = [&](std::string message) {
    return UserError("GAF3001", std::move(message)).at(name, std::string(n.op_type));
  };
  if (++depth_ > kMaxDepth) throw fail("functions and subgraphs are nested more than 64 deep");
  if ((inlined_ += static_cast<int64_t>(f.nodes.size())) > kMaxInlined)
    throw fail("the functions expand to more than a million nodes");
  if (n.inputs.size() > f.inputs.size() || n.outputs.size() > f.outputs.size())
    throw fail(fmt::format("the function has {} inputs and {} outputs, its call {} and {}", f.inputs.size(),
                           f.outputs.size(), n.inputs.size(), n.outputs.size()));
  bool ours = n.domain == kFusedDomain;  // bodies that we wrote hold the model's own nodes, under their names
  Scope body{s.g, {}, {}, {}, {}, {}, ours ? s.prefix : name + "/"};
  body.function_attrs = attributes(n, name, s);
  for (const Attribute& a : f.defaults)
    if (std::optional<Attr> v = attribute(a, s)) body.function_attrs.emplace(a.name, std::move(*v));
  for (size_t i = 0; i < f.inputs.size(); i++) {
    View actual = i < n.inputs.size() ? n.inputs[i] : View();
    if (!actual.empty() && s.unusable.contains(actual)) {
      body.unusable.emplace(f.inputs[i], s.unusable.at(actual));
    } else {
      body.values.emplace(f.inputs[i], actual.empty() ? kNoValue : resolve(actual, s, name, n.op_type));
    }
  }
  nodes(f.nodes, body);
  for (size_t i = 0; i < n.outputs.size(); i++) {
    if (n.outputs[i].empty()) continue;
    define(n.outputs[i], resolve(f.outputs[i], body, name, n.op_type), s, name, n.op_type);
  }
  depth_--;
}

// ---- attributes ----

Attrs Importer::attributes(const Node& n, const std::string& name, const Scope& s) {
  Attrs out;
  for (const Attribute& a : n.attributes) {
    if (a.g) continue;
    try {
      if (std::optional<Attr> v = attribute(a, s)) out[std::string(a.name)] = std::move(*v);
    } catch (UserError& e) {
      throw e.at(name, std::string(n.op_type));
    }
  }
  return out;
}

std::optional<Attr> Importer::attribute(const Attribute& a, const Scope& s) {
  if (!a.ref_name.empty()) {
    auto it = s.function_attrs.find(std::string(a.ref_name));
    if (it == s.function_attrs.end()) return std::nullopt;
    return it->second;
  }
  switch (a.type) {
    case AttrType::float_: return static_cast<double>(a.f);
    case AttrType::int_: return a.i;
    case AttrType::string: return std::string(a.s);
    case AttrType::tensor: return load_tensor(*a.t, file_, outside_);
    case AttrType::floats: return std::vector<double>(a.floats.begin(), a.floats.end());
    case AttrType::ints: return a.ints;
    case AttrType::strings: return std::vector<std::string>(a.strings.begin(), a.strings.end());
    default: return std::nullopt;  // lists of tensors or graphs, sparse tensors, types: no op of the table takes one
  }
}

// ---- subgraphs ----

void Importer::subgraphs(const Node& n, gaf::Node& out, Scope& s) {
  std::vector<const Attribute*> graphs;
  for (const Attribute& a : n.attributes)
    if (a.g) graphs.push_back(&a);
  // If: then before else; any others by name
  auto rank = [](const Attribute* a) { return std::pair(a->name != "then_branch", a->name); };
  std::sort(graphs.begin(), graphs.end(), [&](auto* a, auto* b) { return rank(a) < rank(b); });
  std::vector<View> captured, copied;
  std::unordered_set<View> seen;
  for (const Attribute* a : graphs)
    for (View v : uses_.free_names(*a->g)) {
      if (!seen.insert(v).second) continue;
      auto it = s.values.find(v);
      bool absent = it != s.values.end() && it->second == kNoValue;  // an optional input of a function
      bool copy = absent || s.unusable.contains(v) || constant_value(v, s);
      (copy ? copied : captured).push_back(v);
    }
  for (View v : captured) out.args.push_back(resolve(v, s, out.name, n.op_type));
  out.attrs["captures"] = static_cast<int64_t>(captured.size());
  if (++depth_ > kMaxDepth)
    throw UserError("GAF3001", "functions and subgraphs are nested more than 64 deep")
        .at(out.name, std::string(n.op_type));
  for (const Attribute* a : graphs) out.regions.push_back(region(*a->g, std::string(a->name), captured, copied, s));
  depth_--;
}

std::shared_ptr<const gaf::Graph> Importer::region(const Graph& g, std::string name, const std::vector<View>& captured,
                                                   const std::vector<View>& copied, Scope& outer) {
  GraphBuilder b;
  b.g.name = std::move(name);
  b.g.syms = syms_;
  b.g.opset = opset_;
  Scope s{b.g, {}, {}, {}, {}, outer.function_attrs, ""};
  bind_graph(g, s);
  for (const ValueInfo& v : g.inputs) {
    s.initializers.erase(v.name);  // an initializer of a body input is a default that the node's operand replaces
    Type t;
    t.dtype = dtype_of(v.elem_type).value_or(DType::f32);
    if (!s.values.emplace(v.name, b.input(std::string(v.name), t)).second)
      throw UserError("GAF3002", fmt::format("input '{}' of a subgraph is defined twice", v.name));
  }
  for (View v : captured) {
    Value from = outer.values.at(v);
    s.values.emplace(v, b.input(std::string(v), outer.g.type(from)));
  }
  for (View v : copied) {
    if (auto it = outer.unusable.find(v); it != outer.unusable.end())
      s.unusable.emplace(v, it->second);
    else if (const gaf::Tensor* t = constant_value(v, outer))
      s.constants.emplace(v, *t);
    else
      s.values.emplace(v, kNoValue);
  }
  nodes(g.nodes, s);
  outputs(g.outputs, s);
  return std::make_shared<const gaf::Graph>(std::move(b.g));
}

}  // namespace gaf::onnx
