// Rules 6 to 8: where tiles lie.
#include "codegen/npu/check.h"

namespace gaf::npu {

using namespace kir;

namespace {
std::string mem_name(Mem m) { return std::string(kMemName[static_cast<int>(m)]); }

struct Checker {
  const Kernel& k;
  const Target& t;
  const Report& report;
  std::vector<int> placed;

  void body(const Body& b) {
    for (const Stmt& s : b) {
      if (const Declare* d = std::get_if<Declare>(&s.alt)) declare(s, d->tile);
      if (const For* f = std::get_if<For>(&s.alt)) body(f->body);
      if (const If* i = std::get_if<If>(&s.alt)) body(i->yes), body(i->no);
    }
  }

  void declare(const Stmt& s, int id) {
    const Tile& x = k.tiles[static_cast<size_t>(id)];
    const MemoryRow* m = t.memory(x.mem);
    auto fault = [&](std::string text) { report(s, std::move(text), false); };
    if (!m || x.mem == Mem::reg || x.mem == Mem::scratch)
      return report(s, mem_name(x.mem) + " is no memory of " + t.name, true);
    if (x.at < 0) return fault("the tile has no offset: place it first");
    if (x.at % m->align)
      fault("offset " + std::to_string(x.at) + " is no multiple of " + std::to_string(m->align) + " bytes");
    if (x.at + (x.ring - 1) * slot_bytes(x, t) + x.size_bytes() > m->bytes)
      fault("ends at byte " + std::to_string(x.at + (x.ring - 1) * slot_bytes(x, t) + x.size_bytes()) + " of " +
            mem_name(x.mem) + ", which has " + std::to_string(m->bytes));
    shape(s, x);
    for (int other : placed) {
      const Tile& o = k.tiles[static_cast<size_t>(other)];
      if (o.mem == x.mem && x.at < o.at + slot_bytes(o, t) * o.ring && o.at < x.at + slot_bytes(x, t) * x.ring)
        fault("shares bytes with tile " + o.name);
    }
    placed.push_back(id);
  }

  // Whole blocks in ub, whole fractals of 16 rows by 32 B in l1 and l0, whole units of 64 B in bt.
  void shape(const Stmt& s, const Tile& x) {
    const int64_t row = x.cols * bytes(x.type), block = 32 / bytes(x.type);
    auto fault = [&](std::string text) { report(s, std::move(text), false); };
    if (x.mem == Mem::ub) {
      if (x.cols != 1 && row % 32) fault("rows of " + std::to_string(row) + " bytes are not whole blocks of 32 bytes");
    } else if (x.mem == Mem::bt || (x.mem == Mem::l1 && x.rows == 1)) {
      if (x.rows != 1 || row % (x.mem == Mem::bt ? 64 : 32))
        fault("a bias is one row of whole units of " + std::to_string(x.mem == Mem::bt ? 64 : 32) + " bytes");
    } else {
      const int64_t cols = x.mem == Mem::l0c ? 16 : block, rows = x.mem == Mem::l0b ? block : 16;
      if (x.rows % rows || x.cols % (x.mem == Mem::l0b ? 16 : cols))
        fault("not whole fractals of " + std::to_string(rows) + " by " + std::to_string(x.mem == Mem::l0b ? 16 : cols));
    }
  }
};
}  // namespace

void check_memory(const Kernel& k, const Target& t, const Report& r) { Checker{k, t, r, {}}.body(k.body); }

}  // namespace gaf::npu
