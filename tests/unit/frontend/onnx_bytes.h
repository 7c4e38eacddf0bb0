// Writes small ONNX files by hand for tests: messages as strings, fields in the order of the calls.
#pragma once
#include <initializer_list>
#include <memory>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx.h"

namespace gaf::test {

struct Msg {
  std::string bytes;
  Msg& str(uint32_t field, std::string_view s) {
    return protozero::pbf_writer(bytes).add_string(field, s.data(), s.size()), *this;
  }
  Msg& msg(uint32_t field, const Msg& m) { return str(field, m.bytes); }
  Msg& num(uint32_t field, int64_t v) { return protozero::pbf_writer(bytes).add_int64(field, v), *this; }
  Msg& flt(uint32_t field, float v) { return protozero::pbf_writer(bytes).add_float(field, v), *this; }
};

inline Msg attr(const std::string& name, int type, const Msg& content) {
  Msg a;
  a.str(1, name);
  a.bytes += content.bytes;
  return a.num(20, type);
}
inline Msg attr_i(const std::string& name, int64_t v) { return attr(name, 2, Msg().num(3, v)); }
inline Msg attr_f(const std::string& name, float v) { return attr(name, 1, Msg().flt(2, v)); }
inline Msg attr_s(const std::string& name, const std::string& v) { return attr(name, 3, Msg().str(4, v)); }
inline Msg attr_t(const std::string& name, const Msg& tensor) { return attr(name, 4, Msg().msg(5, tensor)); }
inline Msg attr_g(const std::string& name, const Msg& graph) { return attr(name, 5, Msg().msg(6, graph)); }
inline Msg attr_ref(const std::string& name, const std::string& ref, int type) {
  return Msg().str(1, name).str(21, ref).num(20, type);
}

using Names = std::vector<std::string>;

inline Msg node(const std::string& op, const Names& in, const Names& out, const std::string& name = "",
                const std::vector<Msg>& attrs = {}, const std::string& domain = "") {
  Msg n;
  for (const auto& s : in) n.str(1, s);
  for (const auto& s : out) n.str(2, s);
  if (!name.empty()) n.str(3, name);
  n.str(4, op);
  for (const Msg& a : attrs) n.msg(5, a);
  if (!domain.empty()) n.str(7, domain);
  return n;
}

template <class T>
Msg tensor(const std::string& name, int type, const std::vector<int64_t>& dims, const std::vector<T>& values) {
  Msg t;
  for (int64_t d : dims) t.num(1, d);
  t.num(2, type).str(8, name);
  return t.str(9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}
inline Msg floats(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& v) {
  return tensor(name, 1, dims, v);
}
inline Msg ints(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& v) {
  return tensor(name, 7, dims, v);
}

// dims: numbers, or names where they do not start with a digit or '-'; "" is a dim without anything
inline Msg value(const std::string& name, const Names& dims, int type = 1) {
  Msg shape;
  for (const auto& d : dims) {
    Msg dim;
    if (!d.empty() && (std::isdigit(static_cast<unsigned char>(d[0])) || d[0] == '-'))
      dim.num(1, std::stoll(d));
    else if (!d.empty())
      dim.str(2, d);
    shape.msg(1, dim);
  }
  return Msg().str(1, name).msg(2, Msg().msg(1, Msg().num(1, type).msg(2, shape)));
}

struct GraphParts {
  std::vector<Msg> nodes, inputs, outputs, initializers;
  std::string name = "g";
  Msg build() const {
    Msg g;
    for (const Msg& n : nodes) g.msg(1, n);
    g.str(2, name);
    for (const Msg& t : initializers) g.msg(5, t);
    for (const Msg& v : inputs) g.msg(11, v);
    for (const Msg& v : outputs) g.msg(12, v);
    return g;
  }
};

inline Msg opset(int version, const std::string& domain = "") { return Msg().str(1, domain).num(2, version); }

struct ModelParts {
  Msg graph;
  int ir = 8;
  std::vector<Msg> opsets = {opset(17)};
  std::vector<Msg> functions, metadata;
  std::string build() const {
    Msg m;
    m.num(1, ir).msg(7, graph);
    for (const Msg& o : opsets) m.msg(8, o);
    for (const Msg& kv : metadata) m.msg(14, kv);
    for (const Msg& f : functions) m.msg(25, f);
    return m.bytes;
  }
};

inline FileBytes bytes(std::string s) { return hold(std::make_shared<const std::string>(std::move(s))); }
inline Graph read(const std::string& s, const ReadOptions& o = {}, std::vector<std::string>* warnings = nullptr) {
  return read_onnx(bytes(s), "", o, warnings);
}
inline Graph read(const GraphParts& g, const ReadOptions& o = {}) { return read(ModelParts{g.build()}.build(), o); }

}  // namespace gaf::test
