// The reference run of a graph: node by node through `eval`. Binds symbolic dims from the tensors it sees and puts
// numbers in place of expressions in attributes. Regions and kernel functions run through the same code.
#include "ops/interpret.h"

#include <fmt/format.h>

#include <limits>

#include "ops/eval_util.h"

namespace gaf {

namespace {

constexpr int64_t kUnbound = std::numeric_limits<int64_t>::min();

// Learns a symbol from `dim` having the value v, where exactly one symbol of it is not yet known and it is linear in
// it.
void bind_dim(const Expr& dim, int64_t v, Ints& syms) {
  const Linear l = linear(dim);
  if (!l.rest.empty()) return;
  int64_t rest = v - l.constant, coef = 0;
  int open = -1;
  for (auto [sym, k] : l.coef) {
    const int64_t value = syms[static_cast<size_t>(sym)];
    if (value != kUnbound) {
      rest -= k * value;
    } else if (open >= 0) {
      return;
    } else {
      open = sym;
      coef = k;
    }
  }
  if (open >= 0 && rest % coef == 0) syms[static_cast<size_t>(open)] = rest / coef;
}

void bind_type(const Type& t, const Tensor& value, Ints& syms) {
  if (t.dims.size() != value.dims.size()) return;
  for (size_t i = 0; i < t.dims.size(); i++)
    if (!t.dims[i].is_num()) bind_dim(t.dims[i], value.dims[i], syms);
}

bool symbolic(const Node& n) {
  for (const auto& [key, value] : n.attrs)
    if (const auto* dims = std::get_if<Dims>(&value))
      for (const Expr& e : *dims)
        if (!e.is_num()) return true;
  return false;
}

Node with_numbers(const Node& n, const Ints& syms) {
  Node out = n;
  for (auto& [key, value] : out.attrs)
    if (auto* dims = std::get_if<Dims>(&value))
      for (Expr& e : *dims) {
        for (int s = 0; s <= e.max_sym(); s++)
          GAF_CHECK(!e.mentions(s) || syms[static_cast<size_t>(s)] != kUnbound)
              << "node '" << n.name << "': a size that attribute " << key << " uses is not known";
        e = Expr(e.eval(syms));
      }
  return out;
}

}  // namespace

std::vector<Tensor> interpret_region(const Graph& g, std::span<const Tensor> inputs, Ints syms,
                                     const std::vector<Graph>* kernels) {
  if (syms.size() < g.syms.size()) syms.resize(g.syms.size(), kUnbound);
  const auto& functions = kernels ? *kernels : g.kernels;
  std::vector<std::vector<Tensor>> values(g.nodes.size());
  std::vector<size_t> last_use(g.nodes.size(), 0);  // values are dropped behind their last reader
  for (size_t i = 0; i < g.nodes.size(); i++)
    for (Value v : g.nodes[i].args)
      if (v != kNoValue) last_use[v.node] = i;
  for (const Output& o : g.outputs) last_use[o.value.node] = g.nodes.size();
  std::vector<std::vector<uint32_t>> dead(g.nodes.size() + 1);
  for (size_t i = 0; i < g.nodes.size(); i++) dead[std::max(last_use[i], i)].push_back(static_cast<uint32_t>(i));

  size_t next_input = 0;
  for (size_t i = 0; i < g.nodes.size(); i++) {
    const Node& n = g.nodes[i];
    if (n.op == "input") {
      if (next_input >= inputs.size()) throw UserError("GAF3103", fmt::format("input '{}' missing", n.name));
      values[i] = {inputs[next_input++]};
    } else if (n.op == "constant") {
      values[i] = {*attr_tensor(n, "value")};
    } else {
      std::vector<const Tensor*> args;
      for (Value v : n.args) args.push_back(v == kNoValue ? nullptr : &values[v.node][v.result]);
      if (n.op == "call") {
        std::vector<Tensor> in;
        for (const Tensor* t : args) in.push_back(*t);
        values[i] = interpret_region(functions[static_cast<size_t>(n.callee)], in, syms, &functions);
      } else {
        const OpRow& r = op_row(n);
        const bool dynamic = symbolic(n);
        const Node fixed = dynamic ? with_numbers(n, syms) : Node{};
        EvalContext c{dynamic ? fixed : n, args, n.types, {}, g.opset, syms};
        try {
          r.eval(c);
        } catch (const std::bad_alloc&) {
          throw UserError("GAF6003", "out of memory").at(n.name, n.op);
        } catch (const std::length_error&) {
          throw UserError("GAF6003", "out of memory").at(n.name, n.op);
        } catch (UserError& e) {
          if (e.info().node.empty()) throw UserError(e).at(n.name, n.op);
          throw;
        }
        values[i] = std::move(c.results);
        if (values[i].size() < n.types.size())
          throw UserError("GAF3101",
                          fmt::format("{} results are named, there are {}", n.types.size(), values[i].size()))
              .at(n.name, n.op);
      }
    }
    for (size_t k = 0; k < values[i].size() && k < n.types.size(); k++) bind_type(n.types[k], values[i][k], syms);
    for (uint32_t d : dead[i]) values[d].clear();
  }
  std::vector<Tensor> out;
  for (const Output& o : g.outputs) out.push_back(values[o.value.node].at(o.value.result));
  return out;
}

std::vector<Tensor> interpret_graph(const Graph& g, std::span<const Tensor> inputs) {
  return interpret_region(g, inputs, {}, nullptr);
}

Tensor eval_node_single(const Node& n, std::span<const Tensor> args) {
  std::vector<const Tensor*> operands;
  size_t next = 0;
  for (size_t i = 0; i < std::max(n.args.size(), args.size()); i++) {
    const bool absent = i < n.args.size() && n.args[i] == kNoValue;
    operands.push_back(absent || next >= args.size() ? nullptr : &args[next++]);
  }
  EvalContext c{n, operands, n.types, {}};
  op_row(n).eval(c);
  return c.results.at(0);
}

}  // namespace gaf
