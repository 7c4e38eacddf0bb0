// Sets of nodes that can become functions, and the order that results; see onnx_group.h.
#include "frontend/onnx_group.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "base/error.h"

namespace gaf::onnx {
namespace {
constexpr size_t kNone = SIZE_MAX;
}

Grouping::Grouping(std::vector<std::vector<size_t>> reads, std::vector<bool> fixed)
    : reads_(std::move(reads)),
      readers_(reads_.size()),
      fixed_(std::move(fixed)),
      wanted_(reads_.size()),
      piece_(reads_.size(), kNone) {
  for (size_t i = 0; i < reads_.size(); i++)
    for (size_t r : reads_[i]) {
      GAF_CHECK(r < i) << "node " << i << " reads " << r;
      readers_[r].push_back(i);
    }
}

// Nodes outside of `from` that a walk along `edges` meets, within the numbers low..high. Meeting a node of a piece is
// meeting all of it.
std::vector<size_t> Grouping::reachable(const std::vector<size_t>& from, const std::vector<std::vector<size_t>>& edges,
                                        size_t low, size_t high) const {
  std::vector<bool> seen(high - low + 1);
  for (size_t m : from) seen[m - low] = true;
  std::vector<size_t> out, stack = from;
  while (!stack.empty()) {
    size_t at = stack.back();
    stack.pop_back();
    auto meet = [&](size_t n) {
      if (n < low || n > high || seen[n - low]) return;
      seen[n - low] = true;
      out.push_back(n);
      stack.push_back(n);
    };
    for (size_t n : edges[at]) {
      meet(n);
      if (piece_[n] != kNone)
        for (size_t other : pieces_[piece_[n]]) meet(other);
    }
  }
  return out;
}

bool Grouping::close(std::vector<size_t>& members) const {
  // A way that leaves the numbers of the members can come back only through a piece that reaches over their border.
  size_t low = members.front(), high = members.back();
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& p : pieces_) {
      bool across = (p.front() < low && p.back() >= low) || (p.back() > high && p.front() <= high);
      if (!across) continue;
      low = std::min(low, p.front());
      high = std::max(high, p.back());
      grown = true;
    }
  }
  std::vector<size_t> after = reachable(members, readers_, low, high), before = reachable(members, reads_, low, high);
  std::sort(after.begin(), after.end());
  std::sort(before.begin(), before.end());
  std::vector<size_t> between;
  std::set_intersection(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(between));
  for (size_t n : between)
    if (fixed_[n] || wanted_[n] || piece_[n] != kNone) return false;
  members.insert(members.end(), between.begin(), between.end());
  std::sort(members.begin(), members.end());
  return true;
}

void Grouping::take(const std::vector<size_t>& members) {
  for (size_t m : members) piece_[m] = pieces_.size();
  pieces_.push_back(members);
}

Pieces Grouping::split(const std::vector<std::vector<size_t>>& groups) {
  Pieces out;
  for (const auto& g : groups)
    for (size_t n : g) wanted_[n] = true;
  for (size_t k = 0; k < groups.size(); k++) {
    std::vector<size_t> members;
    for (size_t n : groups[k])
      if (!fixed_[n] && piece_[n] == kNone) members.push_back(n);
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.empty()) continue;
    auto finish = [&](const std::vector<size_t>& piece) {
      take(piece);
      out.group.push_back(k);
    };
    std::vector<size_t> whole = members;
    if (close(whole)) {
      finish(whole);
      continue;
    }
    std::vector<size_t> piece;
    for (size_t m : members) {
      std::vector<size_t> larger = piece;
      larger.insert(std::upper_bound(larger.begin(), larger.end(), m), m);
      if (close(larger)) {
        piece = std::move(larger);
        continue;
      }
      finish(piece);
      piece = {m};
    }
    finish(piece);
  }
  out.nodes = pieces_;
  return out;
}

std::vector<size_t> Grouping::order(const Pieces& pieces) const {
  size_t n = reads_.size(), total = n + pieces.nodes.size();
  auto unit = [&](size_t node) { return piece_[node] == kNone ? node : n + piece_[node]; };
  auto first = [&](size_t u) { return u < n ? u : pieces.nodes[u - n].front(); };
  std::vector<std::vector<size_t>> readers(total);
  std::vector<size_t> waits(total);
  for (size_t i = 0; i < n; i++)
    for (size_t r : reads_[i])
      if (unit(r) != unit(i)) {
        readers[unit(r)].push_back(unit(i));
        waits[unit(i)]++;
      }
  using Entry = std::pair<size_t, size_t>;  // first node, unit
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  size_t units = 0;
  for (size_t u = 0; u < total; u++) {
    if (u < n && piece_[u] != kNone) continue;
    units++;
    if (waits[u] == 0) ready.emplace(first(u), u);
  }
  std::vector<size_t> out;
  while (!ready.empty()) {
    size_t u = ready.top().second;
    ready.pop();
    out.push_back(u);
    for (size_t r : readers[u])
      if (--waits[r] == 0) ready.emplace(first(r), r);
  }
  GAF_CHECK(out.size() == units) << "groups of nodes depend on each other in a circle";
  return out;
}

}  // namespace gaf::onnx
