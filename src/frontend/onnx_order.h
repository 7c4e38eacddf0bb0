// What nodes of an ONNX graph use, in which order they can run, and what they are called. Reader and writer must agree
// on all three, so both ask here.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/onnx_proto.h"

namespace gaf::onnx {

inline constexpr View kFusedDomain = "gaf.fused";  // of the functions that we write

// Names of values that a node reads, its own inputs first, then what its subgraphs take from outside. No duplicates.
class Uses {
 public:
  std::vector<View> of(const Node& n);
  const std::vector<View>& free_names(const Graph& g);  // read inside, defined outside

 private:
  std::unordered_map<const Graph*, std::vector<View>> memo_;
};

// One name a node, unique within the list: the file's own; `<OpType>_<index>` where empty; `_2` ... behind one that is
// taken.
std::vector<std::string> node_names(const std::vector<const Node*>& nodes);

// An order in which each node stands behind those it reads; the given order if that is one, else the earliest first.
// UserError GAF3003 naming the nodes of a cycle, GAF3002 for a value that two nodes define.
std::vector<size_t> run_order(const std::vector<const Node*>& nodes, const std::vector<std::string>& names, Uses& uses);

std::vector<const Node*> pointers(const std::vector<Node>& nodes);

}  // namespace gaf::onnx
