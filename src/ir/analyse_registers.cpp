// Live vector registers of a kernel on a target that has them: a register tile lives from its first to its last mention
// in the block that declares it, and a statement needs a few of its own.
#include <algorithm>
#include <set>

#include "ir/analyse.h"

namespace gaf::kir {
namespace {

class Pressure {
 public:
  Pressure(const Kernel& k, const Target& t, bool without_mma) : k_(k), t_(t) {
    if (!without_mma) return;
    for_each_stmt(k.body, [&](const Stmt& s) {
      if (const Mma* m = std::get_if<Mma>(&s.alt); m && m->dst.tile) free_.insert(m->dst.id);
    });
    count_mma_ = false;
  }
  int block(const Body& b, int outer) {
    struct Life {
      int tile;
      size_t first, last;
    };
    std::vector<Life> lives;
    for (const Stmt& s : b)
      if (const Declare* d = std::get_if<Declare>(&s.alt)) lives.push_back({d->tile, SIZE_MAX, 0});
    std::vector<size_t> slot(k_.tiles.size(), SIZE_MAX);
    for (size_t i = 0; i < lives.size(); i++) slot[static_cast<size_t>(lives[i].tile)] = i;
    for (size_t i = 0; i < b.size(); i++)
      mentions(b[i], [&](int tile) {
        size_t n = slot[static_cast<size_t>(tile)];
        if (n == SIZE_MAX) return;
        lives[n].first = std::min(lives[n].first, i), lives[n].last = i;
      });
    int most = outer;
    for (size_t i = 0; i < b.size(); i++) {
      int live = outer;
      for (const Life& l : lives)
        if (l.first <= i && i <= l.last) live += registers(l.tile);
      if (const For* f = std::get_if<For>(&b[i].alt)) most = std::max(most, block(f->body, live));
      if (const If* f = std::get_if<If>(&b[i].alt)) most = std::max({most, block(f->yes, live), block(f->no, live)});
      most = std::max(most, live + own(b[i]));
    }
    return most;
  }

 private:
  const Kernel& k_;
  const Target& t_;
  std::set<int> free_;
  bool count_mma_ = true;

  template <class F>
  void mentions(const Stmt& s, const F& f) const {
    for_each_ref(s, [&](const Ref& r, bool) {
      if (r.tile) f(r.id);
    });
    if (const For* l = std::get_if<For>(&s.alt))
      for (const Stmt& x : l->body) mentions(x, f);
    if (const If* i = std::get_if<If>(&s.alt)) {
      for (const Stmt& x : i->yes) mentions(x, f);
      for (const Stmt& x : i->no) mentions(x, f);
    }
  }
  int vectors(int64_t cols, DType t) const {
    int64_t bytes_of = std::max<int64_t>(bytes(t), is_float(t) ? 4 : 1);  // half precision is computed in f32
    return static_cast<int>((cols * bytes_of + t_.vector_bytes() - 1) / t_.vector_bytes());
  }
  int registers(int tile) const {
    const Tile& x = k_.tiles[static_cast<size_t>(tile)];
    if (x.mem != Mem::reg || free_.count(tile)) return 0;
    return static_cast<int>(x.rows) * vectors(x.cols, x.type);
  }
  // mma: one row of b and the broadcast element of a; a map: its memory operand, unless it folds into the instruction
  int own(const Stmt& s) const {
    if (const Mma* m = std::get_if<Mma>(&s.alt)) {
      if (!count_mma_ || !m->dst.tile) return 0;
      Expr cols = extents(k_, m->dst).second;
      const Tile& x = k_.tiles[static_cast<size_t>(m->dst.id)];
      return 1 + vectors(cols.is_num() ? cols.num() : x.cols, x.type);
    }
    if (const Map* m = std::get_if<Map>(&s.alt))
      for (const Arg& a : m->args)
        if (const Ref* r = std::get_if<Ref>(&a); r && mem_of(k_, *r) != Mem::reg) return 1;
    return 0;
  }
};

}  // namespace

LiveRegisters live_registers(const Kernel& k, const Target& t) {
  if (t.pipes || t.max_regs == 0) return {};
  return {Pressure(k, t, false).block(k.body, 0), Pressure(k, t, true).block(k.body, 0)};
}

}  // namespace gaf::kir
