// Kernels that run one after the other as phases of one kernel: values between them become temporary buffers. Used
// where a layout change stands at the border of a kernel. Knows kernels as data, not what they compute.
#include <map>
#include <set>

#include "api/internal.h"

namespace gaf {
namespace {

using namespace kir;  // NOLINT: this file is about kernels

// Gives everything of one kernel its number in another.
struct Renumber {
  const std::vector<int>&bufs, &tiles, &syms;

  static int at(const std::vector<int>& table, int id) { return id < 0 ? id : table[static_cast<size_t>(id)]; }
  void ref(Ref& r) const { r.id = at(r.tile ? tiles : bufs, r.id); }
  void body(Body& b) const {
    for (Stmt& s : b) stmt(s);
  }
  void stmt(Stmt& s) const {
    s.line = 0;
    std::visit(Match{[&](Declare& d) { d.tile = at(tiles, d.tile); }, [&](View& v) { v.buf = at(bufs, v.buf); },
                     [&](Copy& c) { ref(c.dst), ref(c.src); },
                     [&](Map& m) {
                       ref(m.dst), m.tmp = at(tiles, m.tmp);
                       for (Arg& a : m.args)
                         if (Ref* r = std::get_if<Ref>(&a)) ref(*r);
                     },
                     [&](Reduce& r) { ref(r.dst), ref(r.src), r.tmp = at(tiles, r.tmp); },
                     [&](Mma& m) {
                       ref(m.dst), ref(m.a), ref(m.b);
                       if (m.bias) ref(*m.bias);
                       for (auto& p : m.prefetch) ref(p);
                     },
                     [&](Iota& i) { ref(i.dst); }, [&](Gather& g) { ref(g.dst), ref(g.src), ref(g.index); },
                     [&](Read& r) { r.sym = at(syms, r.sym), ref(r.src); },
                     [&](For& l) {
                       for (Axis& a : l.axes) a.sym = at(syms, a.sym);
                       body(l.body);
                     },
                     [&](If& i) { body(i.yes), body(i.no); }, [](Barrier&) {}, [](Sync&) {}},
               s.alt);
  }
};

class Chain {
 public:
  explicit Chain(const Graph& g) : g_(g) {}
  Chained out;

  // Parameters of all kernels come first, in the order in which they are met.
  bool parameters_of(uint32_t call, const Lowered& l) {
    std::vector<int>& bufs = bufs_[call];
    bufs.assign(l.kernel.bufs.size(), -1);
    const std::vector<int> own = kir::parameters(l.kernel);
    for (size_t p = 0; p < own.size(); p++) {
      const KernelArg& a = l.args[p];
      const Buf& buf = l.kernel.bufs[static_cast<size_t>(own[p])];
      int id = -1;
      if (a.kind == KernelArg::temp) {
        id = add(kNoValue, {}, Role::tmp, buf);
      } else {
        const Value v = a.kind == KernelArg::output ? Value{call, a.index} : g_.nodes[call].args[a.index];
        id = find(v, a.pack);
        const bool is_output = output(v);
        if (a.kind == KernelArg::input && is_output && id >= 0) return false;  // an `out` parameter is not read
        if (id < 0) id = add(v, a.pack, a.kind == KernelArg::input ? Role::in : is_output ? Role::out : Role::tmp, buf);
      }
      bufs[static_cast<size_t>(own[p])] = id;
    }
    return true;
  }

  void phase(uint32_t call, const Lowered& l) {
    Kernel& k = out.kernel;
    std::vector<int> syms, tiles;
    for (const Symbol& s : l.kernel.syms) syms.push_back(symbol(s));
    Kernel part = map_exprs(l.kernel, [&](const Expr& e) {
      return e.substitute([&](int id) { return Expr::sym(syms[static_cast<size_t>(id)]); });
    });
    std::vector<int>& bufs = bufs_[call];
    for (size_t i = 0; i < part.bufs.size(); i++) {
      Buf& b = part.bufs[i];
      if (b.role != Role::view) {
        k.bufs[static_cast<size_t>(bufs[i])].shape = b.shape;  // now over the common sizes
        continue;
      }
      b.name = fresh(b.name), b.base = bufs[static_cast<size_t>(b.base)];
      bufs[i] = static_cast<int>(k.bufs.size());
      k.bufs.push_back(std::move(b));
    }
    for (Tile& t : part.tiles) {
      t.name = fresh(t.name);
      tiles.push_back(static_cast<int>(k.tiles.size()));
      k.tiles.push_back(std::move(t));
    }
    Renumber{bufs, tiles, syms}.body(part.body);
    if (!k.body.empty()) k.body.push_back({Barrier{}});
    k.body.insert(k.body.end(), std::make_move_iterator(part.body.begin()), std::make_move_iterator(part.body.end()));
  }

 private:
  const Graph& g_;
  std::map<uint32_t, std::vector<int>> bufs_;  // per call: buffer of its kernel -> of ours
  std::set<std::string> names_;

  bool output(Value v) const {
    for (const Output& o : g_.outputs)
      if (o.value == v) return true;
    return false;
  }
  int find(Value v, const std::optional<Pack>& pack) const {
    for (size_t i = 0; i < out.params.size(); i++)
      if (out.params[i].value == v && out.params[i].pack == pack) return static_cast<int>(i);
    return -1;
  }
  int add(Value v, std::optional<Pack> pack, Role role, Buf buf) {
    buf.name = "%" + std::to_string(out.params.size()), buf.role = role;
    out.kernel.bufs.push_back(std::move(buf));
    out.params.push_back({v, std::move(pack), role == Role::tmp});
    return static_cast<int>(out.params.size()) - 1;
  }
  // Sizes of one name are one; loops have names of their own.
  int symbol(Symbol s) {
    Kernel& k = out.kernel;
    if (s.kind == SymKind::size) {
      for (size_t i = 0; i < k.syms.size(); i++)
        if (k.syms[i].kind == SymKind::size && k.syms[i].name == s.name) {
          k.syms[i].lo = std::max(k.syms[i].lo, s.lo), k.syms[i].hi = std::min(k.syms[i].hi, s.hi);
          return static_cast<int>(i);
        }
      names_.insert(s.name);
    } else {
      s.name = fresh(s.name);
    }
    k.syms.push_back(std::move(s));
    return static_cast<int>(k.syms.size()) - 1;
  }
  std::string fresh(const std::string& name) {
    std::string s = name;
    for (int i = 2; !names_.insert(s).second; i++) s = name + "_" + std::to_string(i);
    return s;
  }
};

}  // namespace

std::optional<Chained> chain_kernels(const Graph& graph, const std::vector<const Lowered*>& calls) {
  Chain chain(graph);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < graph.nodes.size(); i++) {
    if (graph.nodes[i].op == "input" || graph.nodes[i].op == "constant") continue;
    if (graph.nodes[i].op != "call") return std::nullopt;
    order.push_back(i);
  }
  GAF_CHECK(order.size() == calls.size());
  for (size_t i = 0; i < order.size(); i++)
    if (!chain.parameters_of(order[i], *calls[i])) return std::nullopt;
  for (size_t i = 0; i < order.size(); i++) chain.phase(order[i], *calls[i]);
  chain.out.kernel.target = calls.front()->kernel.target;
  chain.out.kernel = number_symbols(chain.out.kernel);
  return std::move(chain.out);
}

}  // namespace gaf
