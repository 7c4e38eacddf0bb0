// place: gives every tile a byte offset in its memory. A block-structured stack: a tile lives from its declaration to
// the end of its block, blocks side by side share bytes. Where pipes run side by side they do not: one block's copies
// may still be under way when the next one begins, and events order the uses of one tile only. Reuse within a block is
// by writing into the same tile, which is `lower`'s decision. Registers have no addresses; their bytes are counted
// only.
#include <algorithm>

#include "ir/kernel.h"

namespace gaf::kir {
namespace {

struct Stack {
  std::vector<Tile>& tiles;
  const Target& t;
  std::map<Mem, int64_t> top, peak;

  void body(const Body& b) {
    std::map<Mem, int64_t> saved = top;
    for (const Stmt& s : b) {
      if (const Declare* d = std::get_if<Declare>(&s.alt)) declare(tiles[static_cast<size_t>(d->tile)]);
      if (const For* f = std::get_if<For>(&s.alt)) body(f->body);
      if (const If* i = std::get_if<If>(&s.alt)) body(i->yes), body(i->no);
    }
    if (!t.pipes) top = std::move(saved);
  }
  void declare(Tile& x) {
    const MemoryRow* row = t.memory(x.mem);
    int64_t align = row ? std::max(row->align, 1) : 1;
    int64_t& p = top[x.mem];
    int64_t at = (p + align - 1) / align * align;
    p = at + slot_bytes(x, t) * x.ring;
    if (t.pipes) p -= slot_bytes(x, t) - x.size_bytes();  // to the last byte; a CPU's arenas stand on whole lines
    peak[x.mem] = std::max(peak[x.mem], p);
    x.at = x.mem == Mem::reg ? -1 : at;
  }
};

}  // namespace

std::map<Mem, int64_t> place(Kernel& k, const Target& t) {
  Stack s{k.tiles, t, {}, {}};
  s.body(k.body);
  return std::move(s.peak);
}

std::map<Mem, int64_t> peak_bytes(const Kernel& k, const Target& t) {
  std::vector<Tile> tiles = k.tiles;
  Stack s{tiles, t, {}, {}};
  s.body(k.body);
  return std::move(s.peak);
}

}  // namespace gaf::kir
