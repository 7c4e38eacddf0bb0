// The kernel being written: its parameters, views and size symbols, and where each graph value lies in memory. Knows
// the graph function and the kernel text, nothing of loops, tiles or targets.
#include "lower/lowering.h"

#include <algorithm>

namespace gaf {

Graph expand_composites(Graph g) {
  for (int round = 0; round < 8; round++) {
    std::vector<bool> second(g.nodes.size(), false);  // a result other than the first is used
    auto use = [&](Value v) {
      if (v != kNoValue && v.result > 0) second[v.node] = true;
    };
    for (const Node& n : g.nodes)
      for (Value a : n.args) use(a);
    for (const Output& o : g.outputs) use(o.value);
    GraphBuilder gb;
    gb.g.name = g.name, gb.g.syms = g.syms, gb.g.opset = g.opset;
    std::vector<std::vector<Value>> now(g.nodes.size());
    auto to = [&](Value v) { return v == kNoValue ? v : now[v.node][v.result]; };
    bool changed = false;
    for (size_t i = 0; i < g.nodes.size(); i++) {
      Node n = g.nodes[i];
      for (Value& a : n.args) a = to(a);
      Value first = kNoValue;
      if (is_kind(n, OpKind::composite) && op_row(n).expand && !second[i]) first = op_row(n).expand(gb, n, n.args);
      if (first != kNoValue) {
        now[i] = {first};
        changed = true;
        continue;
      }
      const size_t results = n.types.size();
      const Value v = gb.add(std::move(n));
      for (uint32_t r = 0; r < results; r++) now[i].push_back({v.node, r});
    }
    for (const Output& o : g.outputs) gb.g.outputs.push_back({to(o.value), o.name});
    g = std::move(gb.g);
    if (!changed) break;
  }
  return g;
}

namespace {

bool is_one_to_one_view(const Node& n) {
  if (!is_kind(n, OpKind::view) || n.op == "Expand" || n.op == "Slice" || n.args.empty()) return false;
  return n.types.size() == 1;
}

}  // namespace

Dims Space::merged() const {
  const Dims& d = fine.empty() ? dims : fine;
  Dims out;
  size_t at = 0;
  for (size_t m : merge) {
    Expr p = 1;
    for (size_t i = 0; i < m; i++) p = p * d[at++];
    out.push_back(p);
  }
  if (merge.empty()) out = d;
  if (order.empty()) return out;
  Dims turned;
  for (int64_t i : order) turned.push_back(out[static_cast<size_t>(i)]);
  return turned;
}

Lowering::Lowering(const Graph& fn, const Target& t) : fn_(expand_composites(fn)), t_(t) {
  for (const Sym& s : fn_.syms) b.size(s.name, s.lo, s.hi);  // symbol i of the graph is symbol i of the kernel
  readers_.resize(fn_.nodes.size());
  for (size_t i = 0; i < fn_.nodes.size(); i++) readers_[i].resize(fn_.nodes[i].types.size());
  auto use = [&](Value v) {
    if (v != kNoValue) readers_[v.node][v.result]++;
  };
  for (const Node& n : fn_.nodes)
    for (Value a : n.args) use(a);
  for (const Output& o : fn_.outputs) use(o.value);

  for (uint32_t i = 0; i < fn_.nodes.size(); i++) {
    const Node& n = fn_.nodes[i];
    if (n.op == "input") {
      const int id = b.buf(kir::Role::in, n.types[0].dtype, n.types[0].dims);
      param_[id] = {KernelArg::input, static_cast<uint32_t>(input_buf_.size())};
      input_buf_.push_back(id);
      access_[{i, 0}] = dense(id, n.types[0].dims);
    } else if (is_kind(n, OpKind::view) || n.op == "Split") {
      const Access* a = n.args.empty() ? nullptr : access(n.args[0]);
      for (uint32_t r = 0; a && r < n.types.size(); r++)
        if (std::optional<Access> v = apply_view(fn_, n, *a, r)) access_[{i, r}] = std::move(*v);
    }
  }
  for (size_t o = 0; o < fn_.outputs.size(); o++) {
    Value v = fn_.outputs[o].value;
    const Type& type = fn_.type(v);
    const int id = b.buf(kir::Role::out, type.dtype, type.dims);
    param_[id] = {KernelArg::output, static_cast<uint32_t>(o)};
    output_buf_.push_back(id);
    Access a = dense(id, type.dims);
    while (!access(v) && is_one_to_one_view(fn_.node(v))) {  // undo the views at the end
      const Node& n = fn_.node(v);
      const Dims& from = fn_.type(n.args[0]).dims;
      std::optional<Access> back;
      if (n.op == "Transpose") {
        std::vector<int64_t> perm = attr_ints(n, "perm"), inverse(from.size());
        if (perm.empty())
          for (size_t d = from.size(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
        for (size_t d = 0; d < perm.size(); d++) inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
        back = transpose(a, inverse);
      } else if (product(n.types[0].dims) == product(from) && n.op != "DepthToSpace" && n.op != "SpaceToDepth") {
        back = reshape(a, from);
      }
      if (!back) break;
      a = std::move(*back);
      v = n.args[0];
    }
    output_sink_.push_back({v, std::move(a)});
  }
}

int64_t Lowering::expect(const Expr& graph_dim) const {
  if (graph_dim.is_num()) return graph_dim.num();
  std::vector<int64_t> at;
  for (const Sym& s : fn_.syms) at.push_back(s.hint ? s.hint : std::clamp<int64_t>(64, s.lo, s.hi));
  return graph_dim.eval(at);
}

const Access* Lowering::access(Value v) const {
  auto it = access_.find(v);
  return it == access_.end() ? nullptr : &it->second;
}

int Lowering::pack_input(Value input, Pack p) {
  uint32_t index = 0;
  for (uint32_t i = 0; i < input.node; i++) index += fn_.nodes[i].op == "input";
  for (auto& [id, arg] : param_)
    if (arg.kind == KernelArg::input && arg.index == index && arg.pack == p) return id;
  Dims shape(p.dst_dims.begin(), p.dst_dims.end());
  const int id = b.buf(kir::Role::in, fn_.type(input).dtype, std::move(shape));
  param_[id] = {KernelArg::input, index, std::move(p)};
  return id;
}

int Lowering::temp(DType t, Dims dims) {
  const int id = b.buf(kir::Role::tmp, t, dims);
  param_[id] = {KernelArg::temp, 0, {}, t, std::move(dims)};
  return id;
}

int Lowering::view(int buf, const Dims& shape, const std::vector<Expr>& strides, const Expr& offset) {
  for (size_t i = 0; i < b.k.bufs.size(); i++) {
    const kir::Buf& v = b.k.bufs[i];
    if (v.role == kir::Role::view && v.base == buf && v.shape == shape && v.strides == strides && v.offset == offset)
      return static_cast<int>(i);
  }
  b.open.push_back(&views_);  // declared before everything else; see finish
  const int id = b.view(buf, shape, strides, offset, b.k.bufs[static_cast<size_t>(buf)].type);
  b.open.pop_back();
  return id;
}

Expr Lowering::read_index(const Indirect& i, std::span<const kir::Slice> at) {
  kir::Ref r = ref(*i.index, at);
  for (kir::Slice& s : r.at) s.n.reset();
  const Expr k = b.read(std::move(r), -i.extent, i.extent);
  // negative indices count from the end; what is outside is clamped, so that memory stays safe
  const Expr wrapped = k + i.extent * max(Expr(0), min(Expr(1), -k));
  return min(max(wrapped, Expr(0)), i.extent - 1);
}

kir::Ref Lowering::ref(const Access& a, std::span<const kir::Slice> at, std::span<const Expr> indices) {
  int col = -1;
  for (size_t i = 0; i < at.size(); i++)
    if (at[i].n) col = static_cast<int>(i);
  const size_t drop = a.dims.size() > at.size() ? a.dims.size() - at.size() : 0;  // leading dims of 1
  const size_t lead = at.size() + drop - a.dims.size();
  auto moves = [&](size_t d) { return !a.strides[d].is(0) && !a.dims[d].is(1); };
  bool rows_stay = false;  // a row range remains
  for (size_t d = drop; d < a.dims.size(); d++)
    if (const size_t i = d - drop + lead; at[i].n && static_cast<int>(i) != col && moves(d)) rows_stay = true;

  Dims shape;
  std::vector<Expr> strides;
  std::vector<kir::Slice> slices;
  for (size_t k = 0; k < a.indirect.size(); k++) {
    shape.push_back(a.indirect[k].extent);
    strides.push_back(a.indirect[k].stride);
    slices.push_back({k < indices.size() ? indices[k] : read_index(a.indirect[k], at)});
  }
  bool col_dim = false;
  for (size_t d = drop; d < a.dims.size(); d++) {
    const size_t i = d - drop + lead;
    const bool is_col = static_cast<int>(i) == col;
    if (!moves(d)) {
      // a column of one, or a row dim that repeats beside one that does not, keeps its range
      if (at[i].n && rows_stay) {
        shape.push_back(is_col ? Expr(1) : at[i].at + *at[i].n);
        strides.push_back(0);
        slices.push_back(is_col ? kir::Slice{0, Expr(1)} : at[i]);
        col_dim = col_dim || is_col;
      }
      continue;
    }
    col_dim = col_dim || is_col;
    kir::Slice s = at[i];
    if (!a.window.empty()) s.at = s.at - a.window[d].start;
    shape.push_back(a.window.empty() ? a.dims[d] : a.window[d].extent);
    strides.push_back(a.strides[d]);
    slices.push_back(std::move(s));
  }
  if (rows_stay && !col_dim) {
    shape.push_back(1);
    strides.push_back(0);
    slices.push_back({0, Expr(1)});
  }

  // the buffer itself, where the rectangle is one of its own; its dims of 1 are indexed by 0
  const kir::Buf& buf = b.k.bufs[static_cast<size_t>(a.buf)];
  if (a.offset.is(0)) {
    const std::vector<Expr> own = dense_strides(buf.shape);
    std::vector<kir::Slice> direct;
    size_t next = 0;
    bool fits = true;
    for (size_t d = 0; d < buf.shape.size() && fits; d++) {
      const bool same =
          next < shape.size() && shape[next] == buf.shape[d] && (strides[next] == own[d] || shape[next].is(1));
      if (same)
        direct.push_back(slices[next++]);
      else if (buf.shape[d].is(1))
        direct.push_back({0});
      else
        fits = false;
    }
    if (fits && next == shape.size()) return kir::Builder::at(a.buf, std::move(direct));
  }
  if (shape.empty()) {
    shape = {1};
    strides = {0};
    slices = {{0}};
  }
  return kir::Builder::at(view(a.buf, shape, strides, a.offset), std::move(slices));
}

namespace {

// Calls f on every statement and every block of a body.
template <class F>
void each_stmt(kir::Body& body, F& f) {
  for (kir::Stmt& s : body) {
    f(s);
    if (auto* l = std::get_if<kir::For>(&s.alt)) each_stmt(l->body, f);
    if (auto* i = std::get_if<kir::If>(&s.alt)) each_stmt(i->yes, f), each_stmt(i->no, f);
  }
}

template <class F>
void each_ref(kir::Stmt& s, F f) {
  std::visit(kir::Match{[&](kir::Copy& c) { f(c.dst), f(c.src); },
                        [&](kir::Map& m) {
                          f(m.dst);
                          for (kir::Arg& a : m.args)
                            if (auto* r = std::get_if<kir::Ref>(&a)) f(*r);
                        },
                        [&](kir::Reduce& r) { f(r.dst), f(r.src); },
                        [&](kir::Mma& m) {
                          f(m.dst), f(m.a), f(m.b);
                          if (m.bias) f(*m.bias);
                          for (kir::Ref& p : m.prefetch) f(p);
                        },
                        [&](kir::Iota& i) { f(i.dst); }, [&](kir::Gather& g) { f(g.dst), f(g.src), f(g.index); },
                        [&](kir::Read& r) { f(r.src); }, [](auto&) {}},
             s.alt);
}

}  // namespace

Lowered Lowering::finish(std::string_view template_name) {
  kir::Kernel& k = b.k;
  k.name = fn_.name;
  k.target = t_.name;
  k.body.insert(k.body.begin(), std::make_move_iterator(views_.begin()), std::make_move_iterator(views_.end()));
  views_.clear();

  // parameters that are used stand first, views behind them
  std::vector<bool> used(k.bufs.size(), false);
  auto note_stmt = [&](kir::Stmt& s) {
    each_ref(s, [&](kir::Ref& r) {
      if (!r.tile) used[static_cast<size_t>(r.id)] = true;
    });
  };
  each_stmt(k.body, note_stmt);
  for (size_t i = 0; i < k.bufs.size(); i++) {
    if (k.bufs[i].role == kir::Role::view && used[i]) used[static_cast<size_t>(k.bufs[i].base)] = true;
    if (k.bufs[i].role == kir::Role::out) used[i] = true;
  }
  std::erase_if(k.body, [&](const kir::Stmt& s) {
    const auto* v = std::get_if<kir::View>(&s.alt);
    return v && !used[static_cast<size_t>(v->buf)];
  });
  Lowered out;
  std::vector<int> to(k.bufs.size(), -1);
  std::vector<kir::Buf> bufs;
  for (const bool views : {false, true})
    for (size_t i = 0; i < k.bufs.size(); i++) {
      if (!used[i] || (k.bufs[i].role == kir::Role::view) != views) continue;
      to[i] = static_cast<int>(bufs.size());
      bufs.push_back(k.bufs[i]);
      if (views) {
        bufs.back().base = to[static_cast<size_t>(bufs.back().base)];
      } else {
        bufs.back().name = "%" + std::to_string(to[i]);
        out.args.push_back(param_.at(static_cast<int>(i)));
      }
    }
  k.bufs = std::move(bufs);
  auto renumber = [&](kir::Stmt& s) {
    each_ref(s, [&](kir::Ref& r) {
      if (!r.tile) r.id = to[static_cast<size_t>(r.id)];
    });
    if (auto* v = std::get_if<kir::View>(&s.alt)) v->buf = to[static_cast<size_t>(v->buf)];
  };
  each_stmt(k.body, renumber);

  // sizes that nothing mentions are no parameters
  std::vector<bool> mentioned(k.syms.size(), false);
  auto note = [&](const Expr& e) {
    e.substitute([&](int id) {
      mentioned[static_cast<size_t>(id)] = true;
      return Expr::sym(id);
    });
    return e;
  };
  kir::map_exprs(k, note);
  std::vector<int> sym_to(k.syms.size(), -1);
  std::vector<kir::Symbol> syms;
  for (size_t i = 0; i < k.syms.size(); i++) {
    const bool size = k.syms[i].kind == kir::SymKind::size;
    if (size && !mentioned[i]) continue;
    sym_to[i] = static_cast<int>(syms.size());
    syms.push_back(k.syms[i]);
    if (size) out.sizes.push_back(static_cast<int>(i));
  }
  k.syms = std::move(syms);
  auto rename = [&](int id) { return sym_to[static_cast<size_t>(id)]; };
  auto rename_stmt = [&](kir::Stmt& s) {
    if (auto* f = std::get_if<kir::For>(&s.alt))
      for (kir::Axis& a : f->axes) a.sym = rename(a.sym);
    if (auto* r = std::get_if<kir::Read>(&s.alt)) r->sym = rename(r->sym);
  };
  each_stmt(k.body, rename_stmt);
  out.kernel = kir::map_exprs(
      std::move(k), [&](const Expr& e) { return e.substitute([&](int id) { return Expr::sym(rename(id)); }); });
  out.template_name = template_name;
  return out;
}

}  // namespace gaf
