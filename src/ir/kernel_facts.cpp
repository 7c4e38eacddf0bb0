// Small questions about statements and rectangles that every pass asks, and the renaming and renumbering that make
// equal kernels equal texts. Knows nothing of targets.
#include <algorithm>

#include "ir/kernel.h"

namespace gaf::kir {
namespace {

// Calls f on every expression of a statement, nested ones included.
struct ExprWalk {
  const std::function<void(Expr&)>& f;

  void ref(Ref& r) const {
    for (Slice& s : r.at) {
      f(s.at);
      if (s.n) f(*s.n);
    }
  }
  void body(Body& b) const {
    for (Stmt& s : b) stmt(s);
  }
  void stmt(Stmt& s) const {
    std::visit(Match{[&](Declare&) {}, [&](View&) {}, [&](Barrier&) {}, [&](Copy& c) { ref(c.dst), ref(c.src); },
                     [&](Map& m) {
                       ref(m.dst);
                       for (Arg& a : m.args)
                         if (Ref* r = std::get_if<Ref>(&a)) ref(*r);
                     },
                     [&](Reduce& r) { ref(r.dst), ref(r.src); },
                     [&](Mma& m) {
                       ref(m.dst), ref(m.a), ref(m.b);
                       if (m.bias) ref(*m.bias);
                       for (Ref& p : m.prefetch) ref(p);
                     },
                     [&](Iota& i) { ref(i.dst), f(i.base); }, [&](Gather& g) { ref(g.dst), ref(g.src), ref(g.index); },
                     [&](Read& r) { ref(r.src), f(r.lo), f(r.hi); },
                     [&](For& l) {
                       for (Axis& a : l.axes) f(a.lo), f(a.hi);
                       body(l.body);
                     },
                     [&](If& i) { f(i.a), f(i.b), body(i.yes), body(i.no); }, [&](Sync& y) { f(y.event); }},
               s.alt);
  }
};

void for_each_body_stmt(Body& b, const std::function<void(Stmt&)>& f) {
  for (Stmt& s : b) {
    f(s);
    if (For* l = std::get_if<For>(&s.alt)) for_each_body_stmt(l->body, f);
    if (If* i = std::get_if<If>(&s.alt)) for_each_body_stmt(i->yes, f), for_each_body_stmt(i->no, f);
  }
}

}  // namespace

void for_each_stmt(const Body& b, const std::function<void(const Stmt&)>& f) {
  for (const Stmt& s : b) {
    f(s);
    if (const For* l = std::get_if<For>(&s.alt)) for_each_stmt(l->body, f);
    if (const If* i = std::get_if<If>(&s.alt)) for_each_stmt(i->yes, f), for_each_stmt(i->no, f);
  }
}

void for_each_ref(const Stmt& s, const std::function<void(const Ref&, bool write)>& f) {
  std::visit(Match{[&](const Copy& c) { f(c.src, false), f(c.dst, true); },
                   [&](const Map& m) {
                     for (const Arg& a : m.args)
                       if (const Ref* r = std::get_if<Ref>(&a)) f(*r, false);
                     f(m.dst, true);
                   },
                   [&](const Reduce& r) { f(r.src, false), f(r.dst, true); },
                   [&](const Mma& m) {
                     f(m.a, false), f(m.b, false);
                     if (m.bias) f(*m.bias, false);
                     if (m.add) f(m.dst, false);
                     f(m.dst, true);
                   },
                   [&](const Iota& i) { f(i.dst, true); },
                   [&](const Gather& g) { f(g.src, false), f(g.index, false), f(g.dst, true); },
                   [&](const Read& r) { f(r.src, false); }, [](const auto&) {}},
             s.alt);
}

DType type_of(const Kernel& k, const Ref& r) {
  return r.tile ? k.tiles[static_cast<size_t>(r.id)].type : k.bufs[static_cast<size_t>(r.id)].type;
}
Mem mem_of(const Kernel& k, const Ref& r) { return r.tile ? k.tiles[static_cast<size_t>(r.id)].mem : Mem::gm; }
int parameter_of(const Kernel& k, int buf) {
  const int base = k.bufs[static_cast<size_t>(buf)].base;
  return base < 0 ? buf : base;
}
std::string_view name_of(const Kernel& k, const Ref& r) {
  return r.tile ? k.tiles[static_cast<size_t>(r.id)].name : k.bufs[static_cast<size_t>(r.id)].name;
}

std::pair<Expr, Expr> extents(const Kernel& k, const Ref& r) {
  Expr rows = 1, cols = 1;
  if (r.tile && r.at.empty()) {
    rows = k.tiles[static_cast<size_t>(r.id)].rows;
    cols = k.tiles[static_cast<size_t>(r.id)].cols;
  }
  for (const Slice& s : r.at)
    if (s.n) rows = rows * cols, cols = *s.n;
  if (r.transposed) std::swap(rows, cols);
  return {rows, cols};
}

std::string_view keyword(Cmp c) {
  static constexpr std::string_view names[] = {"<", "<=", "==", "!="};
  return names[static_cast<int>(c)];
}

std::vector<int> parameters(const Kernel& k) {
  std::vector<int> ids;
  for (size_t i = 0; i < k.bufs.size(); i++)
    if (k.bufs[i].role != Role::view) ids.push_back(static_cast<int>(i));
  return ids;
}
std::vector<int> size_symbols(const Kernel& k) {
  std::vector<int> ids;
  for (size_t i = 0; i < k.syms.size(); i++)
    if (k.syms[i].kind == SymKind::size) ids.push_back(static_cast<int>(i));
  return ids;
}

std::vector<Expr> row_major(const Dims& shape) {
  std::vector<Expr> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Kernel map_exprs(Kernel k, const std::function<Expr(const Expr&)>& f) {
  std::function<void(Expr&)> replace = [&](Expr& x) {
    if (!x.is_num()) x = f(x);
  };
  for (Buf& b : k.bufs) {
    for (Expr& d : b.shape) replace(d);
    for (Expr& d : b.strides) replace(d);
    replace(b.offset);
  }
  ExprWalk{replace}.body(k.body);
  return k;
}

Kernel number_symbols(const Kernel& k) {
  std::vector<int> order = size_symbols(k);
  for_each_stmt(k.body, [&](const Stmt& s) {
    if (const For* f = std::get_if<For>(&s.alt))
      for (const Axis& a : f->axes) order.push_back(a.sym);
    if (const Read* r = std::get_if<Read>(&s.alt)) order.push_back(r->sym);
  });
  if (std::is_sorted(order.begin(), order.end()) && order.size() == k.syms.size()) return k;
  std::vector<int> renamed(k.syms.size(), -1);
  Kernel out = k;
  out.syms.clear();
  for (int id : order) {
    renamed[static_cast<size_t>(id)] = static_cast<int>(out.syms.size());
    out.syms.push_back(k.syms[static_cast<size_t>(id)]);
  }
  for (size_t i = 0; i < renamed.size();
       i++)  // a symbol that nothing declares any more; the verifier complains of its uses
    if (renamed[i] < 0) renamed[i] = static_cast<int>(out.syms.size()), out.syms.push_back(k.syms[i]);
  auto to = [&](int id) { return renamed[static_cast<size_t>(id)]; };
  for_each_body_stmt(out.body, [&](Stmt& s) {
    if (For* f = std::get_if<For>(&s.alt))
      for (Axis& a : f->axes) a.sym = to(a.sym);
    if (Read* r = std::get_if<Read>(&s.alt)) r->sym = to(r->sym);
  });
  return map_exprs(std::move(out),
                   [&](const Expr& x) { return x.substitute([&](int id) { return Expr::sym(to(id)); }); });
}

Kernel strip_names(Kernel k) {
  k = number_symbols(k);
  k.name = "k";
  int sizes = 0, others = 0, views = 0, tiles = 0, params = 0;
  for (Symbol& s : k.syms)
    s.name = s.kind == SymKind::size ? "n" + std::to_string(sizes++) : "i" + std::to_string(others++);
  for (Buf& b : k.bufs)
    if (b.role != Role::view) b.name = "%" + std::to_string(params++);
  for_each_body_stmt(k.body, [&](Stmt& s) {
    s.line = 0;
    if (Declare* d = std::get_if<Declare>(&s.alt))
      k.tiles[static_cast<size_t>(d->tile)].name = "t" + std::to_string(tiles++);
    if (View* v = std::get_if<View>(&s.alt)) k.bufs[static_cast<size_t>(v->buf)].name = "v" + std::to_string(views++);
  });
  return k;
}

int workers_of(const Kernel& k, const Target& t) {
  bool mma = false;
  for_each_stmt(k.body, [&](const Stmt& s) { mma = mma || std::holds_alternative<Mma>(s.alt); });
  return std::max(mma && t.cube_cores > 0 ? t.cube_cores : t.cores, 1);
}

}  // namespace gaf::kir
