// Arena planning, see arena.h. The order (by size) and the gap rule (best fit) follow "Efficient Memory Management for
// Deep Neural Net Inference" (Pisarchyk, Lee 2020), greedy by size for offset calculation. Must not know what a step
// does.
#include "runtime/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/memory.h"

namespace gaf {
namespace {

// Items that share memory by taking over from each other, seen as one.
struct Region {
  int64_t bytes = 0, offset = 0;
  int first = 0, last = 0;
};

bool overlap_in_time(const Region& a, const Region& b) { return a.first <= b.last && b.first <= a.last; }

// Which region each item belongs to.
std::vector<int> merge_in_place(std::span<const ArenaItem> items, std::vector<Region>& regions) {
  std::vector<int> region(items.size());
  std::vector<char> taken(items.size(), 0);
  for (size_t i = 0; i < items.size(); i++) {
    const ArenaItem& x = items[i];
    GAF_CHECK(x.bytes >= 0 && x.first <= x.last)
        << "item " << i << ": " << x.bytes << " bytes, " << x.first << ".." << x.last;
    GAF_CHECK(x.bytes < std::numeric_limits<int64_t>::max() / 4) << "item " << i << " of " << x.bytes << " bytes";
    const auto from = static_cast<size_t>(x.in_place_of);
    if (x.in_place_of >= 0 && from < i && !taken[from] && items[from].last == x.first) {
      taken[from] = 1;
      Region& r = regions[static_cast<size_t>(region[i] = region[from])];
      r.bytes = std::max(r.bytes, align_up(x.bytes));
      r.last = std::max(r.last, x.last);
    } else {
      region[i] = static_cast<int>(regions.size());
      regions.push_back({align_up(x.bytes), 0, x.first, x.last});
    }
  }
  return region;
}

// The smallest free gap between placed regions (ascending by offset) that holds `bytes`, else behind them all.
int64_t best_gap(const std::vector<const Region*>& placed, int64_t bytes) {
  int64_t best = -1, best_bytes = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Region* p : placed) {
    const int64_t gap = p->offset - end;
    if (gap >= bytes && gap < best_bytes) best = end, best_bytes = gap;
    end = std::max(end, p->offset + p->bytes);
  }
  return best >= 0 ? best : end;
}

ArenaLayout lay_out(std::span<const ArenaItem> items) {
  std::vector<Region> regions;
  regions.reserve(items.size());
  const std::vector<int> region_of = merge_in_place(items, regions);

  std::vector<size_t> order(regions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return regions[a].bytes > regions[b].bytes; });

  ArenaLayout layout;
  std::vector<const Region*> by_offset, conflicts;  // by_offset: all placed ones, ascending
  for (size_t r : order) {
    Region& x = regions[r];
    if (x.bytes == 0) continue;
    conflicts.clear();
    for (const Region* p : by_offset)
      if (overlap_in_time(x, *p)) conflicts.push_back(p);
    x.offset = best_gap(conflicts, x.bytes);
    if (x.bytes > std::numeric_limits<int64_t>::max() / 4 - x.offset)
      throw UserError("GAF6003", "the intermediate tensors need more memory than there are addresses",
                      "use smaller shapes");
    layout.bytes = std::max(layout.bytes, x.offset + x.bytes);
    by_offset.insert(std::upper_bound(by_offset.begin(), by_offset.end(), &x,
                                      [](const Region* a, const Region* b) { return a->offset < b->offset; }),
                     &x);
  }
  for (size_t i = 0; i < by_offset.size(); i++)
    if (i == 0 || by_offset[i]->offset != by_offset[i - 1]->offset) layout.regions++;

  layout.offset.reserve(items.size());
  for (int r : region_of) layout.offset.push_back(regions[static_cast<size_t>(r)].offset);
  return layout;
}

}  // namespace

ArenaLayout plan_arena(std::span<const ArenaItem> items) {
  ArenaLayout layout = lay_out(items);
  if (std::none_of(items.begin(), items.end(), [](const ArenaItem& x) { return x.in_place_of >= 0; })) return layout;
  std::vector<ArenaItem> apart(items.begin(), items.end());
  for (ArenaItem& x : apart) x.in_place_of = -1;
  ArenaLayout other = lay_out(apart);
  return other.bytes < layout.bytes ? other : layout;
}

}  // namespace gaf
