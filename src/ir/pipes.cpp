// Which pipe runs a statement, and which slot of a ring an iteration uses: what insert_sync, the race check and the
// text generators of NPUs must agree on.
#include "ir/kernel.h"

namespace gaf::kir {
namespace {

// Trips of an axis. Where they depend on loops around it, any fixed number may stand for them: a slot that comes twice
// in a row costs overlap, never order.
Expr trips_of(const Kernel& k, const Axis& a, std::span<const Range> ranges, const std::vector<int>& around) {
  Expr n = ceildiv(a.hi - a.lo, a.step);
  bool varies = false;
  for (int s : around) varies = varies || n.mentions(s);
  for (int s = 0; s <= n.max_sym(); s++)
    varies = varies || (n.mentions(s) && k.syms[static_cast<size_t>(s)].kind != SymKind::size);
  if (!varies) return n;
  constexpr int64_t kMost = int64_t{1} << 20;
  int64_t most = n.range(ranges).hi;
  return most > 0 && most < kMost ? most : 1;
}

}  // namespace

std::optional<Pipe> pipe_of(const Kernel& k, const Target& t, const Stmt& s) {
  return std::visit(Match{[&](const Copy& c) -> std::optional<Pipe> {
                            const EdgeRow* e = t.edge(mem_of(k, c.src), mem_of(k, c.dst));
                            return e ? e->pipe : Pipe::v;
                          },
                          [](const Map&) -> std::optional<Pipe> { return Pipe::v; },
                          [](const Reduce&) -> std::optional<Pipe> { return Pipe::v; },
                          [](const Iota&) -> std::optional<Pipe> { return Pipe::v; },
                          [](const Gather&) -> std::optional<Pipe> { return Pipe::v; },
                          [](const Mma&) -> std::optional<Pipe> { return Pipe::m; },
                          [](const Read&) -> std::optional<Pipe> { return Pipe::s; },
                          [](const auto&) -> std::optional<Pipe> { return std::nullopt; }},
                    s.alt);
}

Expr ring_slot(const Kernel& k, std::span<const For* const> nest, int ring) {
  if (ring <= 1) return 0;
  std::vector<Range> ranges(k.syms.size());
  for (size_t i = 0; i < k.syms.size(); i++) ranges[i] = {k.syms[i].lo, k.syms[i].hi};
  std::vector<int> around;
  Expr running = 0;
  for (const For* f : nest)
    for (const Axis& a : f->axes) {
      running = running * trips_of(k, a, ranges, around) + floordiv(Expr::sym(a.sym) - a.lo, a.step);
      ranges[static_cast<size_t>(a.sym)] = {a.lo.range(ranges).lo, a.hi.range(ranges).hi - 1};
      around.push_back(a.sym);
    }
  return mod(running, ring);
}

int64_t slot_bytes(const Tile& x, const Target& t) {
  const MemoryRow* row = t.memory(x.mem);
  int64_t align = row ? std::max(row->align, 1) : 1;
  return (x.size_bytes() + align - 1) / align * align;
}

}  // namespace gaf::kir
