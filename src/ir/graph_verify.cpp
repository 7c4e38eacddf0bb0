// What is checked of a graph, whatever its ops mean:
//   1. inputs stand first, take nothing, have one result; constants hold a tensor that agrees with their type
//   2. operands are results of earlier nodes (topological order); outputs are results of nodes
//   3. dims use only sizes of the graph, and are not negative where they are numbers
//   4. names of inputs, of outputs, of sizes and of kernels are unique
//   5. a call names a kernel that exists, with as many operands and results as that has, of the same types
//   6. the regions of an If take its operands without the condition, that of a Loop all of them; captured values last
//   7. all of it again in every kernel and region
// Op-specific checks (arity, attributes, shapes) are the op table's. Every problem names its node.
#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "ir/graph.h"

namespace gaf {
namespace {

class Verifier {
 public:
  Verifier(const Graph& g, size_t syms, std::vector<Problem>& out) : g_(g), syms_(syms), out_(out) {}

  void run(bool top) {
    size_t inputs = g_.num_inputs();
    std::set<std::string> names;
    for (at_ = 0; at_ < g_.nodes.size(); at_++) {
      const Node& n = g_.nodes[at_];
      for (Value v : n.args) operand(v);
      for (const Type& t : n.types) type(t);
      if (n.op == "input") {
        input(n, inputs, names);
      } else if (n.op == "constant") {
        constant(n);
      } else if (n.op == "call") {
        call(n);
      } else if (n.callee >= 0) {
        problem("only a call has a callee");
      }
      for (const auto& region : n.regions) this->region(n, *region);
    }
    at_ = kNoValue.node;
    names.clear();
    for (const Output& o : g_.outputs) {
      if (!exists(o.value)) problem(fmt::format("output '{}' is no value of the graph", o.name));
      if (!o.name.empty() && !names.insert(o.name).second) problem(fmt::format("two outputs are named '{}'", o.name));
    }
    if (top) table();
  }

 private:
  void problem(const std::string& text) { out_.push_back({at_, text}); }

  bool exists(Value v) const { return v.node < g_.nodes.size() && v.result < g_.nodes[v.node].types.size(); }

  void operand(Value v) {
    if (v == kNoValue) return;
    if (!exists(v)) return problem("an operand is no value of the graph");
    if (v.node >= at_) problem("an operand is computed by this node or a later one");
  }

  void type(const Type& t) {
    for (const Dim& d : t.dims) {
      if (d.is_num() && d.num() < 0) problem(fmt::format("a dim is {}", d.num()));
      if (d.max_sym() >= static_cast<int>(syms_))
        problem(fmt::format("a dim uses size {}, the graph has {}", d.max_sym(), syms_));
    }
  }

  void input(const Node& n, size_t inputs, std::set<std::string>& names) {
    if (at_ >= inputs) problem("an input stands behind other nodes");
    if (!n.args.empty() || n.types.size() != 1) problem("an input takes nothing and has one result");
    if (!n.name.empty() && !names.insert(n.name).second) problem(fmt::format("two inputs are named '{}'", n.name));
  }

  void constant(const Node& n) {
    auto it = n.attrs.find("value");
    const Tensor* t = it == n.attrs.end() ? nullptr : std::get_if<Tensor>(&it->second);
    if (!t || n.types.size() != 1 || !n.args.empty())
      return problem("a constant has one tensor, `value`, and one result");
    bool same = t->dtype == n.types[0].dtype && n.types[0].dims == Dims(t->dims.begin(), t->dims.end());
    if (!same) problem("the type of the constant is not that of its value");
    if (!t->data && t->numel() > 0) problem("the constant has no data");
  }

  void call(const Node& n) {
    if (n.callee < 0 || static_cast<size_t>(n.callee) >= g_.kernels.size()) return problem("the call names no kernel");
    const Graph& k = g_.kernels[n.callee];
    if (n.args.size() != k.num_inputs())
      return problem(
          fmt::format("kernel @{} takes {} operands, the call has {}", k.name, k.num_inputs(), n.args.size()));
    if (n.types.size() != k.outputs.size())
      return problem(fmt::format("kernel @{} has {} results, the call {}", k.name, k.outputs.size(), n.types.size()));
    for (size_t i = 0; i < n.args.size(); i++)
      if (exists(n.args[i]) && k.nodes[i].types.size() == 1 && g_.type(n.args[i]) != k.nodes[i].types[0])
        problem(fmt::format("operand {} of the call is not of the type that kernel @{} takes", i, k.name));
    for (size_t i = 0; i < n.types.size(); i++) {
      Value v = k.outputs[i].value;
      bool there = v.node < k.nodes.size() && v.result < k.nodes[v.node].types.size();
      if (there && k.type(v) != n.types[i])
        problem(fmt::format("result {} of the call is not of the type that kernel @{} gives", i, k.name));
    }
  }

  void region(const Node& n, const Graph& r) {
    size_t passed = n.args.size() - (n.op == "If" && !n.args.empty() ? 1 : 0);
    if ((n.op == "If" || n.op == "Loop") && r.num_inputs() != passed)
      problem(fmt::format("region @{} takes {} values, its node passes {}", r.name, r.num_inputs(), passed));
    nested(r, fmt::format("region @{}: ", r.name));
  }

  void nested(const Graph& g, const std::string& where) {
    std::vector<Problem> inner;
    Verifier(g, syms_, inner).run(false);
    for (const Problem& p : inner) {
      const std::string& name = p.node < g.nodes.size() ? g.nodes[p.node].name : "";
      problem(where + (p.node < g.nodes.size() ? fmt::format("node {} '{}': ", p.node, name) : "") + p.text);
    }
  }

  void table() {
    std::set<std::string> names;
    for (const Sym& s : g_.syms)
      if (!names.insert(s.name).second) problem(fmt::format("two sizes are named '{}'", s.name));
    names.clear();
    for (const Graph& k : g_.kernels) {
      if (!names.insert(k.name).second) problem(fmt::format("two kernels are named @{}", k.name));
      nested(k, fmt::format("kernel @{}: ", k.name));
    }
  }

  const Graph& g_;
  size_t syms_;
  std::vector<Problem>& out_;
  uint32_t at_ = 0;
};

}  // namespace

std::vector<Problem> verify_graph(const Graph& g) {
  std::vector<Problem> out;
  Verifier(g, g.syms.size(), out).run(true);
  return out;
}

}  // namespace gaf
