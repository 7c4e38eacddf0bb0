// Graph text, reading. The form is described in ir/graph.h; graph_print.cpp writes it. Every fault is a UserError
// GAF3001 with file, line and column. Checks text only: whether the graph makes sense is graph_verify.cpp's.
#include <unordered_map>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/graph_parse_values.h"

namespace gaf {
namespace graph_text {
namespace {

constexpr int kMaxDepth = 64;  // regions in regions, as for models

class Parser : ValueParser {
 public:
  using ValueParser::ValueParser;

  Graph file() {
    Graph head;
    for (;;) {
      if (s_.accept("opset")) {
        head.opset = static_cast<int>(s_.integer());
      } else if (s_.accept("metadata")) {
        std::string key = s_.quoted();
        s_.expect("=");
        head.metadata[key] = s_.quoted();
      } else {
        break;
      }
    }
    find_sizes();
    while (s_.accept("kernel")) {
      Graph kernel = graph(nullptr);
      kernel.opset = head.opset;
      if (!kernel_ids_.emplace(kernel.name, head.kernels.size()).second)
        s_.fail("kernel @" + kernel.name + " stands twice");
      head.kernels.push_back(std::move(kernel));
    }
    if (!s_.accept("graph")) s_.expected("'graph'");
    Graph g = graph(&head.kernels);
    if (!s_.at_end()) s_.expected("the end of the text");
    g.kernels = std::move(head.kernels);
    g.metadata = std::move(head.metadata);
    g.opset = head.opset;
    return g;
  }

 private:
  // Kernels stand before the graph but use its sizes: reads the sizes at the head of the graph first.
  void find_sizes() {
    size_t begin = s_.pos();
    std::string_view text = s_.text();
    for (size_t at = 0; (at = text.find("graph", at)) != text.npos; at++) {
      if (at > 0 && text[at - 1] != '\n') continue;
      s_.pos() = at;
      if (!s_.accept("graph")) continue;
      s_.expect("@");
      s_.word_or_quoted("a name", ".-");
      s_.expect("(");
      sizes();
      break;
    }
    s_.pos() = begin;
  }

  void sizes() {
    syms_.clear();
    while (s_.accept("size")) {
      Sym sym;
      sym.name = s_.word("the name of a size");
      for (const Sym& other : syms_)
        if (other.name == sym.name) s_.fail("size " + sym.name + " stands twice");
      if (s_.accept("in")) {
        sym.lo = s_.integer();
        s_.expect("..");
        sym.hi = s_.integer();
        if (sym.lo < 0 || sym.hi < sym.lo) s_.fail("the range of size " + sym.name + " is empty or negative");
      }
      if (s_.accept("hint")) sym.hint = s_.integer();
      syms_.push_back(std::move(sym));
      if (!s_.accept(",")) break;
    }
  }

  struct Scope {
    Graph g;
    std::unordered_map<int64_t, Value> values;
  };

  Graph graph(const std::vector<Graph>* kernels) {
    if (++depth_ > kMaxDepth) s_.fail("regions nest deeper than 64");
    Scope scope;
    s_.expect("@");
    scope.g.name = s_.word_or_quoted("a name", ".-");
    s_.expect("(");
    if (depth_ == 1 && s_.peek("size")) sizes();
    scope.g.syms = syms_;
    if (!s_.peek(")")) do
        input(scope);
      while (s_.accept(","));
    s_.expect(")");
    s_.expect("->");
    s_.expect("(");
    std::vector<std::pair<int64_t, size_t>> outputs;
    if (!s_.peek(")")) do {
        s_.skip();
        outputs.emplace_back(value_number(), s_.start());
        scope.g.outputs.push_back({kNoValue, s_.peek_char("\"") ? s_.quoted() : ""});
      } while (s_.accept(","));
    s_.expect(")");
    s_.expect("{");
    while (!s_.accept("}")) node(scope, kernels);
    for (size_t i = 0; i < outputs.size(); i++) {
      auto it = scope.values.find(outputs[i].first);
      if (it == scope.values.end())
        s_.fail_at(outputs[i].second, "output %" + std::to_string(outputs[i].first) + " is not defined");
      scope.g.outputs[i].value = it->second;
    }
    depth_--;
    return std::move(scope.g);
  }

  void input(Scope& scope) {
    Node n;
    n.op = "input";
    s_.skip();
    size_t at = s_.start();
    int64_t number = value_number();
    if (s_.peek_char("\"")) n.name = s_.quoted();
    s_.expect(":");
    n.types = {type()};
    if (s_.accept("const")) n.attrs["const"] = int64_t{1};
    if (s_.peek("{")) n.attrs.merge(attrs(nullptr));
    define(scope, number, 0, at);
    scope.g.nodes.push_back(std::move(n));
  }

  void node(Scope& scope, const std::vector<Graph>* kernels) {
    Node n;
    std::vector<std::pair<int64_t, size_t>> results;
    s_.skip();
    size_t first = s_.start();
    if (s_.peek("%")) {
      do {
        s_.skip();
        size_t at = s_.start();
        results.emplace_back(value_number(), at);
      } while (s_.accept(","));
      s_.expect("=");
    }
    n.op = s_.word_or_quoted("an op", ".:");
    if (n.op == "input") s_.fail("inputs stand in the head of their graph");
    uint64_t hash = 0;
    bool by_hash = false;
    RawValue raw;
    if (n.op == "constant") {
      while (s_.pos() < s_.text().size() && s_.text()[s_.pos()] == ' ') s_.pos()++;
      if (s_.pos() + 1 < s_.text().size() && s_.text()[s_.pos()] == '#' && s_.text()[s_.pos() + 1] != ' ') {
        s_.pos()++;
        hash = s_.hex("the hash of a constant");
        by_hash = true;
      }
    } else {
      if (n.op == "call") callee(n, kernels);
      args(scope, n);
    }
    if (s_.peek("{")) n.attrs = attrs(n.op == "constant" ? &raw : nullptr);
    if (!results.empty()) {
      s_.expect(":");
      do n.types.push_back(type());
      while (s_.accept(","));
    }
    s_.name_comment(n.name, n.origins);
    if (n.types.size() != results.size()) s_.fail_at(first, "one type for each result");
    if (n.op == "constant") constant(n, raw, by_hash, hash, first);
    while (s_.accept("region")) n.regions.push_back(std::make_shared<const Graph>(graph(nullptr)));
    for (size_t r = 0; r < results.size(); r++) define(scope, results[r].first, r, results[r].second);
    scope.g.nodes.push_back(std::move(n));
  }

  void callee(Node& n, const std::vector<Graph>* kernels) {
    s_.expect("@");
    std::string name = s_.word_or_quoted("the name of a kernel", ".-");
    auto it = kernel_ids_.find(name);
    if (!kernels || it == kernel_ids_.end()) s_.fail("kernel @" + name + " is not defined");
    n.callee = static_cast<int>(it->second);
  }

  void args(const Scope& scope, Node& n) {
    s_.expect("(");
    if (!s_.peek(")")) do {
        if (s_.accept("_")) {
          n.args.push_back(kNoValue);
          continue;
        }
        s_.skip();
        size_t at = s_.start();
        int64_t number = value_number();
        auto it = scope.values.find(number);
        if (it == scope.values.end()) s_.fail_at(at, "%" + std::to_string(number) + " is not defined before this line");
        n.args.push_back(it->second);
      } while (s_.accept(","));
    s_.expect(")");
  }

  void define(Scope& scope, int64_t number, size_t result, size_t at) {
    Value v{static_cast<uint32_t>(scope.g.nodes.size()), static_cast<uint32_t>(result)};
    if (!scope.values.emplace(number, v).second) s_.fail_at(at, "%" + std::to_string(number) + " is defined twice");
  }

  int64_t value_number() {
    s_.expect("%");
    return s_.integer();
  }

  std::unordered_map<std::string, size_t> kernel_ids_;
  int depth_ = 0;
};

}  // namespace
}  // namespace graph_text

Graph parse_graph(std::string_view text, std::string_view file) { return parse_graph(text, file, ConstantSource()); }

Graph parse_graph(std::string_view text, std::string_view file, const ConstantSource& source) {
  return graph_text::Parser(text, file, source).file();
}

}  // namespace gaf
