// From the messages of an ONNX file to a Graph; see read_onnx in frontend/onnx.h for what comes out.
#pragma once
#include <unordered_map>

#include "frontend/onnx.h"
#include "frontend/onnx_order.h"
#include "frontend/onnx_proto.h"
#include "frontend/onnx_tensor.h"

namespace gaf::onnx {

// Values that names stand for while the nodes of one graph, or of one function body, are read.
struct Scope {
  gaf::Graph& g;
  std::unordered_map<View, Value> values;
  std::unordered_map<View, gaf::Tensor> constants;       // not yet nodes: they become one when first read
  std::unordered_map<View, const Tensor*> initializers;  // the same, not yet loaded
  std::unordered_map<View, std::string> unusable;        // why reading this name is an error
  Attrs function_attrs;                                  // in a function body: what its caller gave
  std::string prefix;                                    // of node names, in a function body
};

class Importer {
 public:
  Importer(const Model& m, FileBytes file, std::string folder, const ReadOptions& o,
           std::vector<std::string>& warnings);
  gaf::Graph run();

 private:
  void check_versions();
  void index_functions();
  void bind_graph(const Graph& g, Scope& s);  // its initializers
  void nodes(const std::vector<Node>& list, Scope& s);
  void node(const Node& n, const std::string& name, Scope& s);
  void constant_node(const Node& n, const std::string& name, Scope& s);
  void call(const Function& f, const Node& n, const std::string& name, Scope& s);
  void subgraphs(const Node& n, gaf::Node& out, Scope& s);
  std::shared_ptr<const gaf::Graph> region(const Graph& g, std::string name, const std::vector<View>& captured,
                                           const std::vector<View>& copied, Scope& outer);
  Attrs attributes(const Node& n, const std::string& name, const Scope& s);
  std::optional<Attr> attribute(const Attribute& a, const Scope& s);
  void outputs(const std::vector<View>& names, Scope& s);

  Value resolve(View name, Scope& s, const std::string& node, View op);
  const gaf::Tensor* constant_value(View name, Scope& s);  // null unless the name is known to be a constant
  void define(View name, Value v, Scope& s, const std::string& node, View op);
  std::string op_name(const Node& n) const;

  const Model& m_;
  FileBytes file_;
  ExternalData outside_;
  const ReadOptions& options_;
  std::vector<std::string>& warnings_;
  Uses uses_;
  std::unordered_map<std::string, const Function*> functions_;
  std::vector<Sym> syms_;
  int opset_ = 0;
  int depth_ = 0;        // of regions and function calls
  int64_t inlined_ = 0;  // nodes that function bodies brought
};

}  // namespace gaf::onnx
