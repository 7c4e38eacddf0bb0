// Prices and sizes of tiles. See npu_tiles.h.
#include "lower/npu_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace gaf {

std::vector<int64_t> tile_sizes(int64_t n, int64_t unit, int64_t most) {
  std::set<int64_t> sizes;
  const int64_t all = round_up(n, unit);
  for (const int64_t base : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}) {
    const int64_t size = std::min(base * unit, all);
    if (size > most) break;
    sizes.insert(size);
    const int64_t tiles = (n + size - 1) / size;
    sizes.insert(round_up((n + tiles - 1) / tiles, unit));
  }
  return {sizes.begin(), sizes.end()};
}

namespace {

// A copy between global and local memory takes no less than one of this size (TARGETS.md: "copies want >= 16 KiB
// each").
constexpr double kCopyBytes = 16 << 10;

// Cycles that short copies lose on each pipe, over the whole kernel.
void short_copies(const kir::Kernel& k, const Target& t, const kir::Body& body, double times,
                  std::map<Pipe, double>& lost) {
  for (const kir::Stmt& s : body) {
    if (const auto* f = std::get_if<kir::For>(&s.alt)) {
      double trips = times;
      for (const kir::Axis& a : f->axes)
        trips *= static_cast<double>((a.hi - a.lo).num() + a.step - 1) / static_cast<double>(a.step);
      short_copies(k, t, f->body, trips, lost);
    }
    const auto* c = std::get_if<kir::Copy>(&s.alt);
    if (!c || (c->src.tile && c->dst.tile)) continue;
    const kir::Tile& tile = k.tiles[static_cast<size_t>(c->src.tile ? c->src.id : c->dst.id)];
    const double bytes_moved =
        static_cast<double>(tile.rows * tile.cols) * bytes(kir::type_of(k, c->src.tile ? c->dst : c->src));
    const EdgeRow* edge = t.edge(kir::mem_of(k, c->src), kir::mem_of(k, c->dst));
    if (edge && bytes_moved < kCopyBytes)
      lost[edge->pipe] += times * (kCopyBytes - bytes_moved) / edge->bytes_per_cycle;
  }
}

}  // namespace

Candidate price_candidate(kir::Kernel k, const Target& t, const Overlap& o) {
  const kir::Kernel legal = kir::legalise(k, t);
  const int workers = kir::workers_of(legal, t);
  const kir::Work w = kir::analyse(legal, t, {}, workers);
  double iterations = 1;
  for (const kir::Stmt& s : legal.body)
    if (const auto* f = std::get_if<kir::For>(&s.alt); f && f->kind == kir::LoopKind::par)
      for (const kir::Axis& a : f->axes) iterations *= static_cast<double>(a.hi.num());
  double most = 0;  // cycles of the busiest pipe
  std::map<Pipe, double> cycles = w.busy;
  short_copies(legal, t, legal.body, 1, cycles);
  for (const auto& [pipe, n] : cycles) most = std::max(most, n);
  auto busy = [&](Pipe p) { return cycles.contains(p) ? cycles.at(p) : 0.0; };
  if (t.clock_mhz <= 0) return {std::move(k), w.compute_us, w.peak};
  const double share = std::ceil(iterations / workers) / iterations;  // of the iterations, the busiest core's
  // Computing waits for the first load and the last store for computing; with a single slot, every store is waited for.
  const double load = busy(Pipe::mte2) + busy(Pipe::mte1), store = busy(Pipe::fix) + busy(Pipe::mte3);
  const double compute = o.stores_wait ? std::max(most, busy(Pipe::m) + busy(Pipe::v) + store) : most;
  const double ends = load / (iterations * o.steps) + store / iterations;
  const double us = (compute * share + ends) / t.clock_mhz;
  return {std::move(k), std::max(us, w.memory_us), w.peak};
}

bool fits(const Candidate& c, const Target& t, double share) {
  return std::all_of(c.peak.begin(), c.peak.end(), [&](const auto& p) {
    const MemoryRow* row = t.memory(p.first);
    const bool fused = p.first == Mem::ub || p.first == Mem::l1;
    return row && static_cast<double>(p.second) <= static_cast<double>(row->bytes) * (fused ? share : 1);
  });
}

std::string overfill(const Candidate& c, const Target& t) {
  const MemoryRow* worst = nullptr;
  double most = 0;
  int64_t need = 0;
  for (const auto& [mem, bytes] : c.peak)
    if (const MemoryRow* row = t.memory(mem))
      if (const double part = static_cast<double>(bytes) / static_cast<double>(row->bytes); part > most)
        worst = row, most = part, need = bytes;
  if (!worst) return "";
  return fmt::format("needs {:.1f} KiB of {}, there are {:.1f} KiB", static_cast<double>(need) / 1024,
                     kMemName[static_cast<int>(worst->mem)], static_cast<double>(worst->bytes) / 1024);
}

Expr tile_extent(const Expr& i, int64_t tile, int64_t n) {
  if (n <= tile) return n;
  return n % tile == 0 ? Expr(tile) : min(Expr(tile), Expr(n) - i * Expr(tile));
}

std::optional<std::vector<int64_t>> static_dims(const Dims& d) {
  std::vector<int64_t> n;
  for (const Expr& e : d) {
    if (!e.is_num()) return std::nullopt;
    n.push_back(e.num());
  }
  return n;
}

}  // namespace gaf
