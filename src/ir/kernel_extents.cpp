// The transfer function of valid extents through statements.
#include "ir/kernel_extents.h"

namespace gaf::kir {
namespace {

Shape capacity(const Kernel& k, const Ref& r) {
  auto [rows, cols] = extents(k, r);
  return {rows, cols, true};
}

// Joins the extents of operands; what none gives stays as it was.
struct Broadcast {
  Shape s;
  bool rows_given = false, cols_given = false;

  void add(const Shape& operand) {
    s.known = s.known && operand.known;
    if (!operand.rows.is(1) && !rows_given) s.rows = operand.rows, rows_given = true;
    if (!operand.cols.is(1) && !cols_given) s.cols = operand.cols, cols_given = true;
  }
};

const Ref* destination(const Stmt& s) {
  const Ref* d = nullptr;
  std::visit(Match{[&](const Copy& c) { d = &c.dst; }, [&](const Map& m) { d = &m.dst; },
                   [&](const Reduce& r) { d = &r.dst; }, [&](const Mma& m) { d = &m.dst; },
                   [&](const Iota& i) { d = &i.dst; }, [&](const Gather& g) { d = &g.dst; }, [](const auto&) {}},
             s.alt);
  return d;
}

}  // namespace

Shape shape_of(const Kernel& k, std::span<const TileState> tiles, const Ref& r) {
  if (!r.tile || !r.at.empty()) return capacity(k, r);
  Shape s = tiles[static_cast<size_t>(r.id)].valid;
  if (r.transposed) std::swap(s.rows, s.cols);
  return s;
}

Shape result_shape(const Kernel& k, std::span<const TileState> tiles, const Stmt& s) {
  auto of = [&](const Ref& r) { return shape_of(k, tiles, r); };
  return std::visit(
      Match{[&](const Copy& c) -> Shape {
              Shape d = capacity(k, c.dst), q = of(c.src);
              if (c.pad || !c.dst.tile || !c.dst.at.empty()) return d;
              bool stands_up = q.rows.is(1) && !q.cols.is(1) && d.cols.is(1) && !d.rows.is(1);
              bool lies_down = q.cols.is(1) && !q.rows.is(1) && d.rows.is(1) && !d.cols.is(1);
              if (stands_up || lies_down) std::swap(q.rows, q.cols);
              return q;
            },
            [&](const Map& m) -> Shape {
              Broadcast b{capacity(k, m.dst)};
              for (const Arg& a : m.args)
                if (const Ref* r = std::get_if<Ref>(&a)) b.add(of(*r));
              return b.s;
            },
            [&](const Reduce& r) -> Shape {
              Shape q = of(r.src);
              return {r.axis == 1 ? q.rows : Expr(1), r.axis == 0 ? q.cols : Expr(1), q.known};
            },
            [&](const Mma& m) -> Shape {
              Shape a = of(m.a), b = of(m.b);
              return {a.rows, b.cols, a.known && b.known};
            },
            [&](const Iota& i) -> Shape { return capacity(k, i.dst); },
            [&](const Gather& g) -> Shape { return of(g.index); }, [](const auto&) -> Shape { return {}; }},
      s.alt);
}

void apply(const Kernel& k, const Stmt& s, std::vector<TileState>& tiles) {
  if (const Declare* d = std::get_if<Declare>(&s.alt)) {
    const Tile& t = k.tiles[static_cast<size_t>(d->tile)];
    tiles[static_cast<size_t>(d->tile)] = {true, false, {t.rows, t.cols, true}, 0};
  } else if (const For* f = std::get_if<For>(&s.alt)) {
    std::vector<TileState> before = tiles;
    for (const Stmt& x : f->body) apply(k, x, tiles);
    drop_symbols(*f, tiles);
    merge(tiles, before);
  } else if (const If* i = std::get_if<If>(&s.alt)) {
    std::vector<TileState> no = tiles;
    for (const Stmt& x : i->yes) apply(k, x, tiles);
    for (const Stmt& x : i->no) apply(k, x, no);
    merge(tiles, no);
  } else if (const Ref* d = destination(s); d && d->tile) {
    TileState& t = tiles[static_cast<size_t>(d->id)];
    if (d->at.empty()) {
      t.valid = result_shape(k, tiles, s);
      const Tile& x = k.tiles[static_cast<size_t>(d->id)];
      if (x.rows == 1) t.valid.rows = 1;  // whatever the text says, there is one row to take
      if (x.cols == 1) t.valid.cols = 1;
    }
    t.written = true;
  }
}

void enter_loop(const Kernel& k, const For& f, std::vector<TileState>& tiles) {
  std::vector<TileState> later = tiles;
  for (const Stmt& s : f.body) apply(k, s, later);
  drop_symbols(f, later);
  merge(tiles, later);
}

void merge(std::vector<TileState>& tiles, const std::vector<TileState>& other) {
  for (size_t i = 0; i < tiles.size(); i++) {
    TileState& t = tiles[i];
    const TileState& o = other[i];
    if (t.written != o.written) {  // the other path leaves nothing that could be read
      if (o.written) t.valid = o.valid;
      t.written = true;
      continue;
    }
    t.valid.known = t.valid.known && o.valid.known && t.valid.rows == o.valid.rows && t.valid.cols == o.valid.cols;
  }
}

void drop_symbols(const For& f, std::vector<TileState>& tiles) {
  auto gone = [&](int sym) {
    for (TileState& t : tiles)
      if (t.valid.rows.mentions(sym) || t.valid.cols.mentions(sym)) t.valid.known = false;
  };
  for (const Axis& a : f.axes) gone(a.sym);
  for_each_stmt(f.body, [&](const Stmt& s) {
    if (const Read* r = std::get_if<Read>(&s.alt)) gone(r->sym);
    if (const For* inner = std::get_if<For>(&s.alt))
      for (const Axis& a : inner->axes) gone(a.sym);
  });
}

}  // namespace gaf::kir
