// Graph IR: attribute access, the builder and the reader lists. Text is graph_print.cpp and graph_parse.cpp, checks are
// graph_verify.cpp. Knows no op: what an attribute means is the op table's.
#include "ir/graph.h"

#include "base/error.h"

namespace gaf {
namespace {

constexpr std::string_view kKinds[] = {"an integer", "a float", "a string", "integers",
                                       "floats",     "strings", "a tensor", "dims"};

[[noreturn]] void wrong_kind(const Node& n, const std::string& key, std::string_view wanted, const Attr& got) {
  UserError e("GAF3101",
              "attribute '" + key + "' must be " + std::string(wanted) + ", it is " + std::string(kKinds[got.index()]));
  e.at(n.name, n.op);
  throw e;
}

const Attr* find(const Node& n, const std::string& key) {
  auto it = n.attrs.find(key);
  return it == n.attrs.end() ? nullptr : &it->second;
}

}  // namespace

size_t Graph::num_inputs() const {
  size_t n = 0;
  while (n < nodes.size() && nodes[n].op == "input") n++;
  return n;
}

int64_t attr_int(const Node& n, const std::string& key, int64_t fallback) {
  const Attr* a = find(n, key);
  if (!a) return fallback;
  if (auto* v = std::get_if<int64_t>(a)) return *v;
  wrong_kind(n, key, "an integer", *a);
}

double attr_float(const Node& n, const std::string& key, double fallback) {
  const Attr* a = find(n, key);
  if (!a) return fallback;
  if (auto* v = std::get_if<double>(a)) return *v;
  if (auto* v = std::get_if<int64_t>(a)) return static_cast<double>(*v);
  wrong_kind(n, key, "a float", *a);
}

std::string attr_str(const Node& n, const std::string& key, const std::string& fallback) {
  const Attr* a = find(n, key);
  if (!a) return fallback;
  if (auto* v = std::get_if<std::string>(a)) return *v;
  wrong_kind(n, key, "a string", *a);
}

std::vector<int64_t> attr_ints(const Node& n, const std::string& key, std::vector<int64_t> fallback) {
  const Attr* a = find(n, key);
  if (!a) return fallback;
  if (auto* v = std::get_if<std::vector<int64_t>>(a)) return *v;
  if (auto* dims = std::get_if<Dims>(a)) {
    std::vector<int64_t> numbers;
    for (const Dim& d : *dims)
      if (d.is_num()) numbers.push_back(d.num());
    if (numbers.size() == dims->size()) return numbers;
  }
  wrong_kind(n, key, "integers", *a);
}

std::vector<double> attr_floats(const Node& n, const std::string& key, std::vector<double> fallback) {
  const Attr* a = find(n, key);
  if (!a) return fallback;
  if (auto* v = std::get_if<std::vector<double>>(a)) return *v;
  if (auto* ints = std::get_if<std::vector<int64_t>>(a)) return {ints->begin(), ints->end()};
  wrong_kind(n, key, "floats", *a);
}

std::vector<std::string> attr_strs(const Node& n, const std::string& key) {
  const Attr* a = find(n, key);
  if (!a) return {};
  if (auto* v = std::get_if<std::vector<std::string>>(a)) return *v;
  wrong_kind(n, key, "strings", *a);
}

const Tensor* attr_tensor(const Node& n, const std::string& key) {
  const Attr* a = find(n, key);
  if (!a) return nullptr;
  if (auto* v = std::get_if<Tensor>(a)) return v;
  wrong_kind(n, key, "a tensor", *a);
}

const Dims* attr_dims(const Node& n, const std::string& key) {
  const Attr* a = find(n, key);
  if (!a) return nullptr;
  if (auto* v = std::get_if<Dims>(a)) return v;
  wrong_kind(n, key, "dims", *a);
}

Dims attr_exprs(const Node& n, const std::string& key) {
  const Attr* a = find(n, key);
  if (!a) return {};
  if (auto* v = std::get_if<Dims>(a)) return *v;
  if (auto* ints = std::get_if<std::vector<int64_t>>(a)) return {ints->begin(), ints->end()};
  wrong_kind(n, key, "dims", *a);
}

Value GraphBuilder::input(std::string name, Type t) {
  GAF_CHECK(g.num_inputs() == g.nodes.size()) << "input '" << name << "' added after other nodes";
  Node n;
  n.op = "input";
  n.types = {std::move(t)};
  n.name = std::move(name);
  return add(std::move(n));
}

Value GraphBuilder::constant(Tensor t, std::string name) {
  Node n;
  n.op = "constant";
  n.types = {Type{t.dtype, Dims(t.dims.begin(), t.dims.end())}};
  n.attrs["value"] = std::move(t);
  n.name = std::move(name);
  return add(std::move(n));
}

Value GraphBuilder::op(std::string op, std::vector<Value> args, Attrs attrs, Type type, std::string name) {
  Node n;
  n.op = std::move(op);
  n.args = std::move(args);
  n.attrs = std::move(attrs);
  n.types = {std::move(type)};
  n.name = std::move(name);
  return add(std::move(n));
}

std::vector<std::vector<uint32_t>> readers(const Graph& g) {
  std::vector<std::vector<uint32_t>> result(g.nodes.size());
  auto note = [&](Value v, uint32_t reader) {
    if (v == kNoValue) return;
    auto& list = result[v.node];
    if (list.empty() || list.back() != reader) list.push_back(reader);
  };
  for (uint32_t i = 0; i < g.nodes.size(); i++)
    for (Value v : g.nodes[i].args) note(v, i);
  for (const Output& o : g.outputs) note(o.value, kNoValue.node);
  return result;
}

}  // namespace gaf
