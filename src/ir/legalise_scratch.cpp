// The last part of legalise: scratch tiles for the statements that a target's instructions cannot do without. A
// reduction wants a tile like its source, a column operand one block a row to be spread into. One tile serves all
// statements of a block that it is large enough for; it stands before the first of them. Statements that have scratch
// keep it.
#include "ir/legalise_scratch.h"

#include <algorithm>

namespace gaf::kir {
namespace {

constexpr int64_t kRowsAtATime = 8;  // rows that one instruction spreads into blocks: scratch has whole ones of them

// Rows and columns that a rectangle can have at most.
std::pair<int64_t, int64_t> capacity(const Kernel& k, const Ref& r) {
  auto [rows, cols] = extents(k, r);
  if (!r.tile) return {rows.is_num() ? rows.num() : 0, cols.is_num() ? cols.num() : 0};
  const Tile& t = k.tiles[static_cast<size_t>(r.id)];
  return {rows.is_num() ? rows.num() : t.rows, cols.is_num() ? cols.num() : t.cols};
}

int* scratch(Stmt& s) {
  if (Map* m = std::get_if<Map>(&s.alt)) return &m->tmp;
  if (Reduce* r = std::get_if<Reduce>(&s.alt)) return &r->tmp;
  return nullptr;
}

class Scratch {
 public:
  Scratch(Kernel& k, const Target& t) : k_(k), t_(t) {}
  void body(Body& b) {
    std::vector<std::pair<size_t, int>> made;  // before which statement, tile
    // Reductions first: their tile is the larger one.
    for (bool reductions : {true, false})
      for (size_t i = 0; i < b.size(); i++) {
        int* tmp = scratch(b[i]);
        std::optional<Tile> want = tmp && *tmp < 0 ? scratch_of(k_, t_, b[i]) : std::nullopt;
        if (!want || std::holds_alternative<Reduce>(b[i].alt) != reductions) continue;
        auto found = std::find_if(made.begin(), made.end(), [&](const auto& m) {
          const Tile& x = k_.tiles[static_cast<size_t>(m.second)];
          return x.type == want->type &&
                 (reductions ? x.rows >= want->rows && x.cols == want->cols : x.size_bytes() >= want->size_bytes());
        });
        if (found == made.end()) found = made.insert(made.end(), {i, declare(*want)});
        found->first = std::min(found->first, i);
        *tmp = found->second;
      }
    std::stable_sort(made.begin(), made.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
    for (const auto& [i, tile] : made) b.insert(b.begin() + static_cast<long>(i), Stmt{Declare{tile}, b[i].line});
    for (Stmt& s : b) {
      if (For* f = std::get_if<For>(&s.alt)) body(f->body);
      if (If* f = std::get_if<If>(&s.alt)) body(f->yes), body(f->no);
    }
  }

 private:
  Kernel& k_;
  const Target& t_;
  int names_ = 0;

  int declare(Tile x) {
    auto taken = [&](const auto& o) { return o.name == x.name; };
    do x.name = "s" + std::to_string(names_++);
    while (std::any_of(k_.tiles.begin(), k_.tiles.end(), taken) || std::any_of(k_.syms.begin(), k_.syms.end(), taken) ||
           std::any_of(k_.bufs.begin(), k_.bufs.end(), taken));
    k_.tiles.push_back(std::move(x));
    return static_cast<int>(k_.tiles.size()) - 1;
  }
};

}  // namespace

std::optional<Tile> scratch_of(const Kernel& k, const Target& t, const Stmt& s) {
  Tile x;
  x.mem = t.map_dst;
  if (const Reduce* r = std::get_if<Reduce>(&s.alt); r && t.tmp_reduce) {
    x.type = type_of(k, r->src);
    std::tie(x.rows, x.cols) = capacity(k, r->src);
    if (r->src.tile && r->src.at.empty()) x.cols = k.tiles[static_cast<size_t>(r->src.id)].cols;
    return x;
  }
  const Map* m = std::get_if<Map>(&s.alt);
  if (!m || t.tmp_column_bytes == 0 || extents(k, m->dst).second.is(1)) return std::nullopt;
  for (const Arg& a : m->args)
    if (const Ref* r = std::get_if<Ref>(&a); r && extents(k, *r).second.is(1)) {
      x.type = type_of(k, *r);
      x.rows = (std::max(x.rows, capacity(k, *r).first) + kRowsAtATime - 1) / kRowsAtATime * kRowsAtATime;
      x.cols = t.tmp_column_bytes / bytes(x.type);
    }
  return x.cols > 1 ? std::optional(x) : std::nullopt;
}

void add_scratch(Kernel& k, const Target& t) {
  if (t.tmp_reduce || t.tmp_column_bytes > 0) Scratch(k, t).body(k.body);
}

}  // namespace gaf::kir
