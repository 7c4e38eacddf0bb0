// Static arena planning: given what lives from which step to which and how large it is, where each thing goes so that
// nothing that lives at the same time overlaps. Sizes are numbers here: symbols are bound before. Knows nothing of
// plans.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace gaf {

// One buffer: bytes, and the first and last step (inclusive) at which its contents matter.
struct ArenaItem {
  int64_t bytes = 0;
  int first = 0, last = 0;
  int in_place_of = -1;  // earlier item whose memory it takes over, if that one's last step is this one's first
};

struct ArenaLayout {
  std::vector<int64_t> offset;  // per item, a multiple of kBlockAlign
  int64_t bytes = 0;            // of the whole arena
  int regions = 0;              // distinct offsets in use: "intermediate buffers" as users count them
};

// Greedy by size: the largest first, each into the smallest gap that its time leaves free (best fit). In-place requests
// are granted first: the new item and the old one become one, as long and as large as both. An item that is taken over
// by two others goes to the first. Long items can be in each other's way: where the arena is smaller with none granted,
// none is. Deterministic. UserError GAF6003 if the sum leaves 64 bits.
ArenaLayout plan_arena(std::span<const ArenaItem> items);

}  // namespace gaf
