// Reads the messages of an ONNX file into structs of views; see onnx_proto.h. Field numbers are those of onnx.proto.
#include "frontend/onnx_proto.h"

#include <fmt/format.h>

#include "base/error.h"
#include "frontend/onnx_cursor.h"

namespace gaf::onnx {
namespace {

constexpr int kMaxDepth = 64;  // subgraphs in subgraphs

KeyValue read_key_value(View file, View message) {
  KeyValue kv;
  for (Cursor c(file, message); c.next();) {
    if (c.field() == 1)
      kv.key = c.view();
    else if (c.field() == 2)
      kv.value = c.view();
    else
      c.skip();
  }
  return kv;
}

Tensor read_tensor(View file, View message) {
  Tensor t;
  t.raw = message;
  for (Cursor c(file, message); c.next();) {
    switch (c.field()) {
      case 1: c.integers([&](int64_t d) { t.dims.push_back(d); }); break;
      case 2: t.data_type = static_cast<int32_t>(c.integer()); break;
      case 8: t.name = c.view(); break;
      case 9: t.raw_data = c.view(); break;
      case 13: t.external_data.push_back(read_key_value(file, c.view())); break;
      case 14: t.external = c.integer() == 1; break;
      default: c.skip();
    }
  }
  return t;
}

Dimension read_dimension(View file, View message) {
  Dimension d;
  for (Cursor c(file, message); c.next();) {
    if (c.field() == 1)
      d.value = c.integer();
    else if (c.field() == 2)
      d.param = c.view();
    else
      c.skip();
  }
  return d;
}

void read_tensor_type(View file, View message, ValueInfo& v) {
  for (Cursor c(file, message); c.next();) {
    if (c.field() == 1) {
      v.elem_type = static_cast<int32_t>(c.integer());
    } else if (c.field() == 2) {
      v.shape.emplace();
      for (Cursor s(file, c.view()); s.next();) {
        if (s.field() == 1)
          v.shape->push_back(read_dimension(file, s.view()));
        else
          s.skip();
      }
    } else {
      c.skip();
    }
  }
}

ValueInfo read_value_info(View file, View message) {
  ValueInfo v;
  for (Cursor c(file, message); c.next();) {
    if (c.field() == 1) {
      v.name = c.view();
    } else if (c.field() == 2) {
      for (Cursor t(file, c.view()); t.next();) {
        if (t.field() == 1) {
          v.is_tensor = true;
          read_tensor_type(file, t.view(), v);
        } else {
          t.skip();
        }
      }
    } else {
      c.skip();
    }
  }
  return v;
}

Graph read_graph(View file, View message, int depth);

AttrType type_by_content(const Attribute& a, uint32_t field) {
  if (a.type != AttrType::undefined) return a.type;
  switch (field) {
    case 2: return AttrType::float_;
    case 3: return AttrType::int_;
    case 4: return AttrType::string;
    case 5: return AttrType::tensor;
    case 6: return AttrType::graph;
    case 7: return AttrType::floats;
    case 8: return AttrType::ints;
    case 9: return AttrType::strings;
    default: return AttrType::undefined;
  }
}

Attribute read_attribute(View file, View message, int depth) {
  Attribute a;
  a.raw = message;
  uint32_t content = 0;
  for (Cursor c(file, message); c.next();) {
    if (c.field() >= 2 && c.field() <= 9) content = c.field();
    switch (c.field()) {
      case 1: a.name = c.view(); break;
      case 2: a.f = c.fixed32(); break;
      case 3: a.i = c.integer(); break;
      case 4: a.s = c.view(); break;
      case 5: a.t = std::make_unique<Tensor>(read_tensor(file, c.view())); break;
      case 6: a.g = std::make_unique<Graph>(read_graph(file, c.view(), depth + 1)); break;
      case 7: c.floats([&](float f) { a.floats.push_back(f); }); break;
      case 8: c.integers([&](int64_t i) { a.ints.push_back(i); }); break;
      case 9: a.strings.push_back(c.view()); break;
      case 20: a.type = static_cast<AttrType>(c.integer()); break;
      case 21: a.ref_name = c.view(); break;
      default: c.skip();
    }
  }
  a.type = type_by_content(a, content);
  bool incomplete = (a.type == AttrType::tensor && !a.t) || (a.type == AttrType::graph && !a.g);
  if (incomplete && a.ref_name.empty())
    throw UserError("GAF3001",
                    fmt::format("attribute '{}' says that it holds a tensor or a graph, and holds none", a.name));
  return a;
}

Node read_node(View file, View message, int depth) {
  Node n;
  n.raw = message;
  for (Cursor c(file, message); c.next();) {
    switch (c.field()) {
      case 1: n.inputs.push_back(c.view()); break;
      case 2: n.outputs.push_back(c.view()); break;
      case 3: n.name = c.view(); break;
      case 4: n.op_type = c.view(); break;
      case 5: n.attributes.push_back(read_attribute(file, c.view(), depth)); break;
      case 7: n.domain = c.view(); break;
      case 8: n.overload = c.view(); break;
      default: c.skip();
    }
  }
  return n;
}

Graph read_graph(View file, View message, int depth) {
  if (depth > kMaxDepth)
    throw UserError("GAF3001",
                    fmt::format("not an ONNX file that can be read: graphs nested more than {} deep at byte {}",
                                kMaxDepth, message.data() - file.data()));
  Graph g;
  g.raw = message;
  for (Cursor c(file, message); c.next();) {
    switch (c.field()) {
      case 1: g.nodes.push_back(read_node(file, c.view(), depth)); break;
      case 2: g.name = c.view(); break;
      case 5: g.initializers.push_back(read_tensor(file, c.view())); break;
      case 11: g.inputs.push_back(read_value_info(file, c.view())); break;
      case 12: g.outputs.push_back(read_value_info(file, c.view()).name); break;
      case 15:
        for (Cursor s(file, c.view()); s.next();) {
          if (s.field() == 1)
            g.sparse_initializers.push_back(read_tensor(file, s.view()).name);
          else
            s.skip();
        }
        break;
      default: c.skip();
    }
  }
  return g;
}

void read_opset(View file, View message, std::vector<View>& domains, std::vector<int64_t>& versions) {
  View domain;
  int64_t version = 0;
  for (Cursor c(file, message); c.next();) {
    if (c.field() == 1)
      domain = c.view();
    else if (c.field() == 2)
      version = c.integer();
    else
      c.skip();
  }
  domains.push_back(domain);
  versions.push_back(version);
}

Function read_function(View file, View message) {
  Function f;
  f.raw = message;
  for (Cursor c(file, message); c.next();) {
    switch (c.field()) {
      case 1: f.name = c.view(); break;
      case 4: f.inputs.push_back(c.view()); break;
      case 5: f.outputs.push_back(c.view()); break;
      case 6: f.attributes.push_back(c.view()); break;
      case 7: f.nodes.push_back(read_node(file, c.view(), 0)); break;
      case 9: read_opset(file, c.view(), f.domains, f.versions); break;
      case 10: f.domain = c.view(); break;
      case 11: f.defaults.push_back(read_attribute(file, c.view(), 0)); break;
      case 13: f.overload = c.view(); break;
      default: c.skip();
    }
  }
  return f;
}

}  // namespace

Model parse_model(View file) {
  if (file.empty()) throw UserError("GAF3001", "not an ONNX file (it is empty)");
  Model m;
  m.raw = file;
  for (Cursor c(file, file); c.next();) {
    switch (c.field()) {
      case 1: m.ir_version = c.integer(); break;
      case 7: m.graph = read_graph(file, c.view(), 0); break;
      case 8: read_opset(file, c.view(), m.domains, m.versions); break;
      case 14: m.metadata.push_back(read_key_value(file, c.view())); break;
      case 25: m.functions.push_back(read_function(file, c.view())); break;
      default: c.skip();
    }
  }
  if (!m.graph) throw UserError("GAF3001", "not an ONNX file (it holds no graph)");
  return m;
}

Tensor parse_tensor(View message) { return read_tensor(message, message); }
Node parse_node(View message) { return read_node(message, message, 0); }

std::vector<int64_t> varint_data(const Tensor& t, uint32_t field, int64_t limit) {
  std::vector<int64_t> out;
  for (Cursor c(t.raw, t.raw); c.next();) {
    if (c.field() != field) {
      c.skip();
      continue;
    }
    c.integers([&](int64_t v) { out.push_back(v); });
    if (static_cast<int64_t>(out.size()) > limit)
      throw UserError("GAF3001", fmt::format("tensor '{}' holds more elements than its shape has", t.name));
  }
  return out;
}

std::vector<View> fixed_data(const Tensor& t, uint32_t field) {
  std::vector<View> out;
  for (Cursor c(t.raw, t.raw); c.next();) {
    if (c.field() == field)
      out.push_back(c.fixed_bytes(field == 4 ? 4 : 8));
    else
      c.skip();
  }
  return out;
}

}  // namespace gaf::onnx
