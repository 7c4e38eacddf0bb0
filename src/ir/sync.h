// Parts of insert_sync: which events order the pipes (sync_channels.cpp), where a pipe must finish before it goes on
// (sync_fences.cpp). insert_sync.cpp numbers the events and writes the statements.
#pragma once
#include <functional>
#include <set>
#include <vector>

#include "ir/kernel.h"

namespace gaf::kir {

struct Access {
  int tile;
  bool write;
  const Ref* ref;  // null: the whole tile, valid or not (scratch of a statement)
};
// The statement and what stands in it.
void for_each_inside(const Stmt& s, const std::function<void(const Stmt&)>& f);
// Tiles that a leaf statement touches, scratch included.
void for_each_access(const Stmt& s, const std::function<void(const Access&)>& f);

// Statements of one block, first to last, that use a group of tiles on one pipe.
struct Run {
  Pipe pipe;
  size_t first, last;
};
// Tiles of one block that travel together: the same pipes one after the other, the same ring. One event stands for all.
struct Group {
  const Body* block;
  std::vector<int> tiles;
  std::vector<Run> runs;
  std::vector<const For*> nest;  // loops around the block, outermost first
  const Body* root = nullptr;    // where the outermost of them stands
  size_t root_at = 0;
  int ring = 1;
};
// `to` may go on with run `to_run` of a group when `from` has finished the run before it; the first run follows the
// last one of an earlier iteration, ring iterations back.
struct Channel {
  Pipe from, to;
  const Group* group;
  size_t to_run;
  bool needed = true;  // false: other channels imply it
  int base = 0;        // first of `ring` event ids
  bool backward() const { return to_run == 0; }
  size_t set_after() const { return group->runs[backward() ? group->runs.size() - 1 : to_run - 1].last; }
  size_t wait_before() const { return group->runs[to_run].first; }
};

// loose: also group tiles of which one is free earlier than the others, which saves events and costs overlap.
std::vector<Group> sync_groups(const Kernel& k, const Target& t, bool loose);
std::vector<Channel> sync_channels(const Kernel& k, const std::vector<Group>& groups);

// Statements that must wait until their own pipe has finished what stands before them. Fewest that do.
std::set<const Stmt*> sync_fences(const Kernel& k, const Target& t, const std::vector<Channel>& channels);

}  // namespace gaf::kir
