// Arena planning: whatever lives at the same time never overlaps, in-place requests are granted where legal.
#include "runtime/arena.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace gaf {
namespace {

bool share_bytes(const ArenaLayout& l, const std::vector<ArenaItem>& items, size_t a, size_t b) {
  return items[a].bytes > 0 && items[b].bytes > 0 && l.offset[a] < l.offset[b] + items[b].bytes &&
         l.offset[b] < l.offset[a] + items[a].bytes;
}

TEST(Arena, ChainNeedsTwoBuffers) {
  std::vector<ArenaItem> items;
  for (int i = 0; i < 6; i++) items.push_back({1000, i, i + 1});
  const ArenaLayout l = plan_arena(items);
  EXPECT_EQ(l.bytes, 2048);  // two of 1024
  EXPECT_EQ(l.regions, 2);
}

TEST(Arena, InPlaceChainNeedsOne) {
  std::vector<ArenaItem> items;
  for (int i = 0; i < 6; i++) items.push_back({1000, i, i + 1, i - 1});
  const ArenaLayout l = plan_arena(items);
  EXPECT_EQ(l.bytes, 1024);
  EXPECT_EQ(l.regions, 1);
}

TEST(Arena, InPlaceIsRefusedWhileTheOldOneIsStillRead) {
  const std::vector<ArenaItem> items{{64, 0, 2}, {64, 1, 3, 0}};  // item 0 is read again at step 2
  const ArenaLayout l = plan_arena(items);
  EXPECT_NE(l.offset[0], l.offset[1]);
}

TEST(Arena, OnlyOneItemTakesOver) {
  const std::vector<ArenaItem> items{{64, 0, 1}, {64, 1, 2, 0}, {64, 1, 2, 0}};
  const ArenaLayout l = plan_arena(items);
  EXPECT_EQ(l.offset[0], l.offset[1]);
  EXPECT_NE(l.offset[1], l.offset[2]);
}

TEST(Arena, InPlaceMayGrow) {
  const std::vector<ArenaItem> items{{64, 0, 1}, {640, 1, 2, 0}, {64, 0, 2}};
  const ArenaLayout l = plan_arena(items);
  EXPECT_EQ(l.offset[0], l.offset[1]);
  EXPECT_FALSE(share_bytes(l, items, 1, 2));
}

TEST(Arena, SmallestGapIsTaken) {
  // At step 2, what is free are 128 bytes (of item 1) and 64 bytes (of item 3).
  const std::vector<ArenaItem> items{{1024, 0, 5}, {128, 0, 1}, {1024, 0, 5}, {64, 0, 1}, {64, 2, 3}};
  const ArenaLayout l = plan_arena(items);
  for (size_t a = 0; a < items.size(); a++)
    for (size_t b = 0; b < a; b++)
      if (items[a].first <= items[b].last && items[b].first <= items[a].last) {
        EXPECT_FALSE(share_bytes(l, items, a, b));
      }
  EXPECT_EQ(l.bytes, 1024 + 1024 + 128 + 64);
}

TEST(Arena, EmptyAndZeroBytes) {
  EXPECT_EQ(plan_arena({}).bytes, 0);
  const std::vector<ArenaItem> items{{0, 0, 3}, {64, 1, 2}};
  EXPECT_EQ(plan_arena(items).bytes, 64);
}

TEST(Arena, TooLargeIsAnError) {
  std::vector<ArenaItem> items(5, ArenaItem{int64_t{1} << 60, 0, 1});
  EXPECT_THROW(plan_arena(items), UserError);
}

TEST(Arena, RandomLifetimesNeverOverlap) {
  for (unsigned seed = 0; seed < 300; seed++) {
    std::mt19937 rng(seed);
    auto pick = [&](int lo, int hi) { return lo + static_cast<int>(rng() % static_cast<unsigned>(hi - lo + 1)); };
    std::vector<ArenaItem> items;
    int64_t total = 0;
    for (int i = 0, n = pick(1, 40); i < n; i++) {
      const int first = i / 2, last = first + pick(0, 6);
      items.push_back({pick(0, 5000), first, last, i > 0 && pick(0, 2) == 0 ? pick(0, i - 1) : -1});
      total += (items.back().bytes + 63) / 64 * 64;
    }
    const ArenaLayout l = plan_arena(items);
    EXPECT_LE(l.bytes, total) << "seed " << seed;
    std::vector<ArenaItem> apart = items;
    for (ArenaItem& x : apart) x.in_place_of = -1;
    EXPECT_LE(l.bytes, plan_arena(apart).bytes) << "seed " << seed << ": sharing costs memory";
    for (size_t a = 0; a < items.size(); a++) {
      EXPECT_EQ(l.offset[a] % 64, 0);
      EXPECT_LE(l.offset[a] + items[a].bytes, l.bytes);
      for (size_t b = 0; b < a; b++) {
        const bool together = items[a].first <= items[b].last && items[b].first <= items[a].last;
        const bool in_place = items[a].in_place_of == static_cast<int>(b) && items[b].last == items[a].first;
        if (together && !in_place) {
          EXPECT_FALSE(share_bytes(l, items, a, b)) << "seed " << seed << ": items " << b << " and " << a;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gaf
