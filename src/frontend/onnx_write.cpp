// Writes fused ONNX: the original file with groups of its nodes moved into functions; see write_fused_onnx in onnx.h.
// All that is not moved is copied as it stands, so the file means what it meant. The form is CONTRACT 1.4's.
#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "frontend/onnx.h"
#include "frontend/onnx_cursor.h"
#include "frontend/onnx_group.h"
#include "frontend/onnx_order.h"
#include "frontend/onnx_rewrite.h"
#include "frontend/onnx_tensor.h"

namespace gaf {
namespace onnx {
namespace {

constexpr int64_t kDataAlign = 64;  // of tensors in the data file

View plain_domain(View d) { return d == "ai.onnx" ? View() : d; }

bool has_subgraph(const Node& n) {
  return std::any_of(n.attributes.begin(), n.attributes.end(), [](const Attribute& a) { return a.g != nullptr; });
}

// Calls f for every node of a list and of its subgraphs.
template <class F>
void each_node(const std::vector<Node>& nodes, bool top, const F& f) {
  for (const Node& n : nodes) {
    f(n, top);
    for (const Attribute& a : n.attributes)
      if (a.g) each_node(a.g->nodes, false, f);
  }
}

bool any_external(const Graph& g) {
  for (const Tensor& t : g.initializers)
    if (t.external) return true;
  for (const Node& n : g.nodes)
    for (const Attribute& a : n.attributes)
      if ((a.t && a.t->external) || (a.g && any_external(*a.g))) return true;
  return false;
}

class Writer {
 public:
  Writer(const Model& m, const std::string& folder) : m_(m), outside_(folder, !folder.empty()) {}

  void place_external(const std::string& data_file, int64_t limit);
  void group(std::span<const FusedGroup> groups);
  std::string model(const std::map<std::string, std::string>& metadata);

  std::vector<FileBytes> data;
  std::vector<std::string> warnings;
  std::vector<std::vector<std::string>> group_nodes;  // of each group: its nodes once each, in the order of the file

 private:
  void flatten();
  std::vector<std::vector<size_t>> members(std::span<const FusedGroup> groups);
  std::string function(const std::vector<size_t>& nodes, const std::string& name, std::string& call);
  std::string node(size_t i);
  std::string placed(View message, Message kind);
  std::string unique(const std::string& stem, std::unordered_set<std::string>& taken);
  std::string graph();

  const Model& m_;
  ExternalData outside_;
  Place place_;  // null: the model has no data outside
  Uses uses_;
  std::unordered_map<View, const Function*> apart_;  // functions that we wrote earlier, to be taken apart
  std::vector<const Node*> nodes_;                   // of the top level, in an order in which they can run
  std::vector<std::string> names_;
  std::unordered_map<View, std::vector<size_t>> readers_;
  std::unordered_set<View> outputs_;  // of the graph
  std::vector<std::string> emitted_;  // nodes of the new top level
  std::vector<std::string> functions_;
};

void Writer::place_external(const std::string& data_file, int64_t limit) {
  if (!any_external(*m_.graph)) return;
  auto bytes = [this](const Tensor& t) {
    auto dtype = dtype_of(t.data_type);
    return outside_.bytes(t, dtype ? element_count(t) * gaf::bytes(*dtype) : -1);
  };
  auto total = static_cast<int64_t>(m_.raw.size());
  place_tensors(m_.graph->raw, Message::graph, [&](const Tensor& t) {
    total += static_cast<int64_t>(bytes(t).bytes.size());
    return Placed{};
  });
  if (total <= limit) {
    place_ = [bytes](const Tensor& t) { return Placed{bytes(t).bytes, {}}; };
    return;
  }
  place_ = [this, bytes, data_file, end = int64_t{0}](const Tensor& t) mutable {
    FileBytes piece = bytes(t);
    auto size = static_cast<int64_t>(piece.bytes.size());
    int64_t offset = end, pad = (kDataAlign - size % kDataAlign) % kDataAlign;
    data.push_back(piece);
    auto zeros = std::make_shared<const std::string>(pad, '\0');
    data.push_back(hold(zeros));
    end += size + pad;
    return Placed{
        std::nullopt,
        {{"location", data_file}, {"offset", fmt::format("{}", offset)}, {"length", fmt::format("{}", size)}}};
  };
}

// The nodes of the top level, with functions of an earlier writing replaced by their bodies.
void Writer::flatten() {
  std::unordered_map<View, const Function*> ours;
  for (const Function& f : m_.functions) {
    bool plain = std::none_of(f.nodes.begin(), f.nodes.end(), has_subgraph);
    if (f.domain == kFusedDomain && plain) ours.emplace(f.name, &f);
  }
  auto keep_nested = [&](const Node& n, bool top) {
    if (n.domain != kFusedDomain) return;
    auto it = ours.find(n.op_type);
    bool same = it != ours.end() && top && it->second->inputs == n.inputs && it->second->outputs == n.outputs;
    if (!same) ours.erase(n.op_type);  // someone else has changed the file: a function as any other
  };
  each_node(m_.graph->nodes, true, keep_nested);
  for (const Function& f : m_.functions) each_node(f.nodes, false, keep_nested);
  apart_ = ours;
  std::vector<const Node*> flat;
  for (const Node& n : m_.graph->nodes) {
    auto it = n.domain == kFusedDomain ? apart_.find(n.op_type) : apart_.end();
    if (it == apart_.end()) {
      flat.push_back(&n);
    } else {
      for (const Node& inner : it->second->nodes) flat.push_back(&inner);
    }
  }
  std::vector<std::string> names = node_names(flat);
  for (size_t i : run_order(flat, names, uses_)) {
    nodes_.push_back(flat[i]);
    names_.push_back(names[i]);
  }
  for (size_t i = 0; i < nodes_.size(); i++)
    for (View v : uses_.of(*nodes_[i])) readers_[v].push_back(i);
  outputs_.insert(m_.graph->outputs.begin(), m_.graph->outputs.end());
}

// Node numbers of each group.
std::vector<std::vector<size_t>> Writer::members(std::span<const FusedGroup> groups) {
  std::unordered_map<View, size_t> index;
  for (size_t i = 0; i < names_.size(); i++) index.emplace(names_[i], i);
  std::vector<std::vector<size_t>> out;
  for (const FusedGroup& g : groups) {
    std::vector<size_t> members;
    for (const std::string& name : g.nodes) {
      if (auto it = index.find(name); it != index.end()) {
        if (std::find(members.begin(), members.end(), it->second) != members.end()) continue;
        members.push_back(it->second);
        if (has_subgraph(*nodes_[it->second]))
          warnings.push_back(
              fmt::format("kernel '{}': node '{}' holds a subgraph and stays outside its function", g.name, name));
      } else if (auto slash = name.find('/'); slash != name.npos && index.contains(View(name).substr(0, slash))) {
        warnings.push_back(
            fmt::format("kernel '{}': node '{}' lies in a function of the model and stays there", g.name, name));
      }
    }
    std::sort(members.begin(), members.end());
    std::vector<std::string>& listed = group_nodes.emplace_back();
    for (size_t i : members) listed.push_back(names_[i]);
    for (const std::string& name : g.nodes)  // nodes of functions of the model
      if (!index.contains(name) && std::find(listed.begin(), listed.end(), name) == listed.end())
        listed.push_back(name);
    out.push_back(std::move(members));
  }
  return out;
}

std::string Writer::unique(const std::string& stem, std::unordered_set<std::string>& taken) {
  std::string name = stem;
  for (int k = 2; !taken.insert(name).second; k++) name = fmt::format("{}_{}", stem, k);
  return name;
}

void Writer::group(std::span<const FusedGroup> groups) {
  flatten();
  std::unordered_map<View, size_t> maker;
  for (size_t i = 0; i < nodes_.size(); i++)
    for (View v : nodes_[i]->outputs) maker.emplace(v, i);
  std::vector<std::vector<size_t>> reads(nodes_.size());
  std::vector<bool> fixed(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); i++) {
    for (View v : uses_.of(*nodes_[i]))
      if (auto it = maker.find(v); it != maker.end()) reads[i].push_back(it->second);
    bool constant = plain_domain(nodes_[i]->domain).empty() && nodes_[i]->op_type == "Constant";
    bool call = std::any_of(m_.functions.begin(), m_.functions.end(), [&](const Function& f) {
      return f.name == nodes_[i]->op_type && plain_domain(f.domain) == plain_domain(nodes_[i]->domain);
    });
    fixed[i] = constant || call || has_subgraph(*nodes_[i]);
  }
  Grouping grouping(std::move(reads), std::move(fixed));
  Pieces pieces = grouping.split(members(groups));
  std::unordered_set<std::string> function_names, node_names(names_.begin(), names_.end());
  for (const Function& f : m_.functions)
    if (!apart_.contains(f.name)) function_names.emplace(f.name);
  std::vector<int> count(groups.size());
  for (size_t k : pieces.group) count[k]++;
  for (size_t k = 0; k < groups.size(); k++)
    if (count[k] > 1)
      warnings.push_back(fmt::format("kernel '{}' is written as {} functions: nodes outside it lie between its nodes",
                                     groups[k].name, count[k]));
  for (size_t unit : grouping.order(pieces)) {
    if (unit < nodes_.size()) {
      emitted_.push_back(node(unit));
      continue;
    }
    size_t p = unit - nodes_.size();
    std::string name = unique(groups[pieces.group[p]].name, function_names), call;
    functions_.push_back(function(pieces.nodes[p], name, call));
    protozero::pbf_writer w(call);
    w.add_string(3, unique(name, node_names));
    w.add_string(4, name);
    w.add_string(7, kFusedDomain.data(), kFusedDomain.size());
    emitted_.push_back(std::move(call));
  }
}

// The function of a set of nodes, and the start of the node that calls it.
std::string Writer::function(const std::vector<size_t>& nodes, const std::string& name, std::string& call) {
  std::unordered_set<View> made, seen, domains;
  std::vector<View> inputs, outputs;
  for (size_t i : nodes)
    for (View v : nodes_[i]->outputs) made.insert(v);
  for (size_t i : nodes)
    for (View v : uses_.of(*nodes_[i]))
      if (!made.contains(v) && seen.insert(v).second) inputs.push_back(v);
  auto is_outside = [&](size_t reader) { return !std::binary_search(nodes.begin(), nodes.end(), reader); };
  for (size_t i : nodes)
    for (View v : nodes_[i]->outputs) {
      auto it = readers_.find(v);
      bool read = it != readers_.end() && std::any_of(it->second.begin(), it->second.end(), is_outside);
      if (!v.empty() && (read || outputs_.contains(v))) outputs.push_back(v);
    }
  if (outputs.empty()) {  // nothing reads it: a call needs an output all the same
    for (View v : nodes_[nodes.back()]->outputs)
      if (!v.empty()) outputs.push_back(v);
  }
  std::string out;
  protozero::pbf_writer w(out), c(call);
  w.add_string(1, name);
  for (View v : inputs) {
    w.add_string(4, v.data(), v.size());
    c.add_string(1, v.data(), v.size());
  }
  for (View v : outputs) {
    w.add_string(5, v.data(), v.size());
    c.add_string(2, v.data(), v.size());
  }
  for (size_t i : nodes) {
    w.add_message(7, node(i));
    domains.insert(plain_domain(nodes_[i]->domain));
  }
  for (size_t k = 0; k < m_.domains.size(); k++) {
    if (!domains.contains(plain_domain(m_.domains[k]))) continue;
    protozero::pbf_writer import(w, 9);
    import.add_string(1, m_.domains[k].data(), m_.domains[k].size());
    import.add_int64(2, m_.versions[k]);
  }
  w.add_string(10, kFusedDomain.data(), kFusedDomain.size());
  return out;
}

std::string Writer::placed(View message, Message kind) {
  if (place_)
    if (auto fresh = place_tensors(message, kind, place_)) return *fresh;
  return std::string(message);
}

std::string Writer::node(size_t i) {
  std::string raw = placed(nodes_[i]->raw, Message::node);
  return names_[i] == nodes_[i]->name ? raw : renamed_node(raw, names_[i]);
}

std::string Writer::graph() {
  std::string out;
  for (const std::string& n : emitted_) protozero::pbf_writer(out).add_message(1, n);
  for (Cursor c(m_.graph->raw, m_.graph->raw); c.next();) {
    if (c.field() == 1) {
      c.skip();
    } else if (place_ && c.field() == 5) {
      protozero::pbf_writer(out).add_message(5, placed(c.view(), Message::tensor));
    } else {
      out += c.skip_raw();
    }
  }
  return out;
}

std::string Writer::model(const std::map<std::string, std::string>& metadata) {
  std::string out;
  protozero::pbf_writer w(out);
  for (Cursor c(m_.raw, m_.raw); c.next();) {
    uint32_t field = c.field();
    View raw = c.skip_raw(), content;
    Cursor again(raw, raw);
    again.next();
    if (field == 1) {
      w.add_int64(1, std::max<int64_t>(m_.ir_version, 8));
      continue;
    }
    if (field == 7 || field == 8 || field == 14 || field == 25) content = again.view();
    bool drop = false;
    if (field == 7) {
      w.add_message(7, graph());
      drop = true;
    }
    if (field == 8 || field == 14 || field == 25) {  // an opset import, a metadata entry, a function
      uint32_t key_field = field == 25 ? 10 : 1;
      View key, name;
      for (Cursor k(content, content); k.next();) {
        if (k.field() == key_field)
          key = k.view();
        else if (field == 25 && k.field() == 1)
          name = k.view();
        else
          k.skip();
      }
      if (field == 8) drop = key == kFusedDomain;
      if (field == 14) drop = key.starts_with("gaf.");
      if (field == 25) drop = key == kFusedDomain && apart_.contains(name);
    }
    if (!drop) out += raw;
  }
  bool fused = !functions_.empty();
  for (const Function& f : m_.functions) fused = fused || (f.domain == kFusedDomain && !apart_.contains(f.name));
  if (fused) {
    protozero::pbf_writer import(w, 8);
    import.add_string(1, kFusedDomain.data(), kFusedDomain.size());
    import.add_int64(2, 1);
  }
  for (const auto& [key, value] : metadata) {
    protozero::pbf_writer entry(w, 14);
    entry.add_string(1, key);
    entry.add_string(2, value);
  }
  for (const std::string& f : functions_) w.add_message(25, f);
  return out;
}

}  // namespace
}  // namespace onnx

FusedOnnx write_fused_onnx(const FileBytes& original, const std::string& folder, std::span<const FusedGroup> groups,
                           const std::map<std::string, std::string>& metadata, const std::string& data_file,
                           int64_t limit) {
  onnx::Model m = onnx::parse_model(original.bytes);
  onnx::Writer writer(m, folder);
  writer.place_external(data_file, limit);
  writer.group(groups);
  std::map<std::string, std::string> all = metadata;
  Json table = Json::object();
  for (size_t k = 0; k < groups.size(); k++)
    table.set(groups[k].name, Json::object({{"nodes", Json::array_of(writer.group_nodes[k])},
                                            {"gain_us", groups[k].gain_us},
                                            {"reason", groups[k].reason}}));
  all["gaf.groups"] = table.dump();
  FusedOnnx out;
  out.bytes = writer.model(all);
  out.data = std::move(writer.data);
  out.warnings = std::move(writer.warnings);
  return out;
}

}  // namespace gaf
