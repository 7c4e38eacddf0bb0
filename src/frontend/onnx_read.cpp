// Reads an ONNX model: versions, inputs, initializers, names, functions. Nodes and their attributes are
// onnx_nodes.cpp's.
#include <fmt/format.h>

#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "frontend/onnx_import.h"
#include "frontend/onnx_inputs.h"

namespace gaf {
namespace onnx {
namespace {

constexpr int kNewestIr = 14, kOldestIr = 3;
constexpr int kOldestOpset = 7, kNewestOpset = 28;

bool default_domain(View d) { return d.empty() || d == "ai.onnx"; }

std::string function_key(View domain, View name, View overload) {
  return fmt::format("{}\n{}\n{}", default_domain(domain) ? "" : domain, name, overload);
}

}  // namespace

Importer::Importer(const Model& m, FileBytes file, std::string folder, const ReadOptions& o,
                   std::vector<std::string>& warnings)
    : m_(m), file_(std::move(file)), outside_(folder, !folder.empty()), options_(o), warnings_(warnings) {}

void Importer::check_versions() {
  if (m_.ir_version < kOldestIr)
    throw UserError("GAF3001",
                    fmt::format("IR version {} is older than supported (oldest: {})", m_.ir_version, kOldestIr));
  if (m_.ir_version > kNewestIr)
    warnings_.push_back(fmt::format("IR version {} is newer than known (newest: {})", m_.ir_version, kNewestIr));
  for (size_t i = 0; i < m_.domains.size(); i++) {
    bool ours = default_domain(m_.domains[i]);
    for (size_t k = 0; k < i; k++) {
      bool same = m_.domains[k] == m_.domains[i] || (ours && default_domain(m_.domains[k]));
      if (same && m_.versions[k] != m_.versions[i])
        throw UserError("GAF3007", fmt::format("two opset versions for domain '{}'", m_.domains[i]));
    }
    if (!ours) continue;
    if (m_.versions[i] > kNewestOpset)
      throw UserError("GAF3006",
                      fmt::format("opset {} is newer than supported (newest: {})", m_.versions[i], kNewestOpset));
    if (m_.versions[i] < kOldestOpset)
      throw UserError("GAF3006",
                      fmt::format("opset {} is older than supported (oldest: {})", m_.versions[i], kOldestOpset));
    opset_ = static_cast<int>(m_.versions[i]);
  }
}

void Importer::index_functions() {
  for (const Function& f : m_.functions) {
    if (!functions_.emplace(function_key(f.domain, f.name, f.overload), &f).second)
      throw UserError("GAF3002", fmt::format("function '{}' of domain '{}' is defined twice", f.name, f.domain));
    for (size_t i = 0; i < f.domains.size(); i++)
      if (default_domain(f.domains[i]) && opset_ && f.versions[i] != opset_)
        warnings_.push_back(fmt::format("function '{}' is written for opset {}, its body is read as opset {}", f.name,
                                        f.versions[i], opset_));
  }
}

void Importer::bind_graph(const Graph& g, Scope& s) {
  for (const Tensor& t : g.initializers)
    if (!s.initializers.emplace(t.name, &t).second)
      throw UserError("GAF3002", fmt::format("initializer '{}' is defined twice", t.name));
  for (View name : g.sparse_initializers) s.unusable.emplace(name, "it is a sparse tensor, which is not supported");
}

gaf::Graph Importer::run() {
  check_versions();
  index_functions();
  const Graph& source = *m_.graph;
  GraphBuilder b;
  b.g.name = source.name.empty() ? "model" : std::string(source.name);
  Scope s{b.g, {}, {}, {}, {}, {}, {}};
  bind_graph(source, s);
  std::vector<const ValueInfo*> inputs;
  for (const ValueInfo& v : source.inputs) {
    bool given = false;
    for (const std::string& name : options_.overridden) given = given || name == v.name;
    bool initializer = s.initializers.contains(v.name) || s.unusable.contains(v.name);
    if (initializer && !given) continue;
    s.initializers.erase(v.name);
    s.unusable.erase(v.name);
    inputs.push_back(&v);
  }
  InputTypes types(inputs, options_);
  syms_ = types.syms();
  for (size_t i = 0; i < inputs.size(); i++) {
    Value v = b.input(std::string(inputs[i]->name), types.types()[i]);
    if (inputs[i]->name.empty()) throw UserError("GAF3002", "an input of the graph has no name");
    if (!s.values.emplace(inputs[i]->name, v).second)
      throw UserError("GAF3002", fmt::format("input '{}' is defined twice", inputs[i]->name));
  }
  b.g.syms = syms_;
  nodes(source.nodes, s);
  outputs(source.outputs, s);
  for (const KeyValue& kv : m_.metadata) b.g.metadata[std::string(kv.key)] = kv.value;
  if (opset_) b.g.opset = opset_;
  return std::move(b.g);
}

void Importer::outputs(const std::vector<View>& names, Scope& s) {
  std::unordered_set<View> seen;
  for (View name : names) {
    if (!seen.insert(name).second) throw UserError("GAF3002", fmt::format("output '{}' is listed twice", name));
    if (!s.values.contains(name) && !s.constants.contains(name) && !s.initializers.contains(name) &&
        !s.unusable.contains(name))
      throw UserError("GAF3002", fmt::format("output '{}' is defined nowhere", name));
    Value v = resolve(name, s, "", "");
    if (v == kNoValue) throw UserError("GAF3002", fmt::format("output '{}' is an operand that was left out", name));
    s.g.outputs.push_back({v, std::string(name)});
  }
}

const gaf::Tensor* Importer::constant_value(View name, Scope& s) {
  if (auto it = s.values.find(name); it != s.values.end()) return gaf::constant(s.g, it->second);
  if (auto it = s.initializers.find(name); it != s.initializers.end()) {
    s.constants.emplace(name, load_tensor(*it->second, file_, outside_));
    s.initializers.erase(it);
  }
  auto it = s.constants.find(name);
  return it == s.constants.end() ? nullptr : &it->second;
}

Value Importer::resolve(View name, Scope& s, const std::string& node, View op) {
  if (auto it = s.values.find(name); it != s.values.end()) return it->second;
  auto fail = [&](std::string code, std::string message) {
    UserError e(std::move(code), std::move(message));
    if (!node.empty()) e.at(node, std::string(op));
    return e;
  };
  if (auto it = s.unusable.find(name); it != s.unusable.end())
    throw fail("GAF4002", fmt::format("input '{}' cannot be used: {}", name, it->second));
  const gaf::Tensor* t = constant_value(name, s);
  if (!t) throw fail("GAF3002", fmt::format("input '{}' is defined nowhere", name));
  gaf::Node n;
  n.op = "constant";
  n.types = {Type{t->dtype, Dims(t->dims.begin(), t->dims.end())}};
  n.attrs["value"] = *t;
  n.name = name;
  s.g.nodes.push_back(std::move(n));
  Value v{static_cast<uint32_t>(s.g.nodes.size() - 1), 0};
  s.values.emplace(name, v);
  return v;
}

void Importer::define(View name, Value v, Scope& s, const std::string& node, View op) {
  if (name.empty()) return;
  bool taken = s.initializers.contains(name) || s.constants.contains(name) || s.unusable.contains(name);
  if (taken || !s.values.emplace(name, v).second)
    throw UserError("GAF3002", fmt::format("value '{}' is defined twice", name)).at(node, std::string(op));
}

}  // namespace onnx

Graph read_onnx(const FileBytes& file, const std::string& folder, const ReadOptions& o,
                std::vector<std::string>* warnings) {
  std::vector<std::string> unheard;
  onnx::Model m = onnx::parse_model(file.bytes);
  return onnx::Importer(m, file, folder, o, warnings ? *warnings : unheard).run();
}

Graph read_onnx(const std::string& path, const ReadOptions& o, std::vector<std::string>* warnings) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  try {
    return read_onnx(map_file(path), folder.empty() ? "." : folder, o, warnings);
  } catch (const UserError& e) {
    if (!e.info().file.empty() || e.info().code.starts_with("GAF8")) throw;
    std::vector<ErrorInfo> all = e.all();
    for (ErrorInfo& info : all) info.file = path;
    throw UserError(std::move(all));
  }
}

}  // namespace gaf
