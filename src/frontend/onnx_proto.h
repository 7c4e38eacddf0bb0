// The messages of an ONNX file as structs of views into its bytes: nothing is copied, nothing is judged beyond the wire
// format. `raw` is a message's own bytes, for whoever writes it out again. Field numbers: onnx.proto.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gaf::onnx {

using View = std::string_view;

struct KeyValue {
  View key, value;
};

struct Tensor {
  View raw;
  View name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  std::optional<View> raw_data;
  bool external = false;
  std::vector<KeyValue> external_data;
};

struct Graph;

enum class AttrType : int32_t {
  undefined = 0,
  float_ = 1,
  int_ = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

struct Attribute {
  View raw;
  View name, ref_name;  // ref_name: take the attribute of that name of the function's caller
  AttrType type = AttrType::undefined;
  float f = 0;
  int64_t i = 0;
  View s;
  std::unique_ptr<Tensor> t;
  std::unique_ptr<Graph> g;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<View> strings;
};

struct Node {
  View raw;
  std::vector<View> inputs, outputs;
  View name, op_type, domain, overload;
  std::vector<Attribute> attributes;
};

struct Dimension {
  std::optional<int64_t> value;
  View param;
};

struct ValueInfo {
  View name;
  bool is_tensor = false;  // else a sequence, map, optional, sparse tensor or nothing
  int32_t elem_type = 0;
  std::optional<std::vector<Dimension>> shape;  // absent: not even the rank is declared
};

struct Graph {
  View raw;
  View name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<View> sparse_initializers;  // names
  std::vector<ValueInfo> inputs;
  std::vector<View> outputs;  // names: their declared types are not trusted
};

struct Function {
  View raw;
  View name, domain, overload;
  std::vector<View> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::vector<View> domains;      // of its opset imports,
  std::vector<int64_t> versions;  // and their versions
};

struct Model {
  View raw;
  int64_t ir_version = 0;
  std::vector<View> domains;      // of the opset imports,
  std::vector<int64_t> versions;  // and their versions
  std::optional<Graph> graph;
  std::vector<KeyValue> metadata;
  std::vector<Function> functions;
};

// UserError GAF3001 with the byte where the file is damaged: lengths beyond the file, wrong wire types, graphs nested
// more than 64 deep.
Model parse_model(View bytes);
Tensor parse_tensor(View message);
Node parse_node(View message);

// Data of a tensor that is not in raw_data. Field numbers: 4 float_data, 5 int32_data, 7 int64_data, 10 double_data, 11
// uint64_data. More than `limit` elements is GAF3001.
std::vector<int64_t> varint_data(const Tensor& t, uint32_t field, int64_t limit);
std::vector<View> fixed_data(const Tensor& t, uint32_t field);  // pieces whose bytes, joined, are the elements

}  // namespace gaf::onnx
