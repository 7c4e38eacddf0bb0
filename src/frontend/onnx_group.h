// Which sets of nodes can become functions without making a cycle, and in which order everything then runs. Knows nodes
// by number only; the ONNX side is onnx_write.cpp's.
#pragma once
#include <cstddef>
#include <vector>

namespace gaf::onnx {

struct Pieces {
  std::vector<std::vector<size_t>> nodes;  // sets of nodes, each in the given order; no node is in two
  std::vector<size_t> group;               // piece -> group that it is of
};

class Grouping {
 public:
  // `reads[i]`: nodes whose results node i uses; the numbering is an order in which they can run. `fixed[i]`: never
  // grouped.
  Grouping(std::vector<std::vector<size_t>> reads, std::vector<bool> fixed);
  // Groups in order of importance. A node goes to the first group that has it. Nodes of no group that lie between nodes
  // of one are taken into it; where that is not enough, the group is split into pieces.
  Pieces split(const std::vector<std::vector<size_t>>& groups);
  // Order of pieces and left-over nodes: entry < number of nodes is a node, else piece (entry - number of nodes).
  std::vector<size_t> order(const Pieces& pieces) const;

 private:
  // Nodes outside that lie on a way from one member to another, counting the pieces so far as one node each; false if
  // one of them cannot be taken in.
  bool close(std::vector<size_t>& members) const;
  void take(const std::vector<size_t>& members);
  std::vector<size_t> reachable(const std::vector<size_t>& from, const std::vector<std::vector<size_t>>& edges,
                                size_t low, size_t high) const;

  std::vector<std::vector<size_t>> reads_, readers_;
  std::vector<bool> fixed_, wanted_;  // wanted_: some group has the node
  std::vector<size_t> piece_;         // of a node, or kNone
  std::vector<std::vector<size_t>> pieces_;
};

}  // namespace gaf::onnx
