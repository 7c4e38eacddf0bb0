// Regions of control-flow nodes (If: then, else; Loop and Scan: body). A region is a graph whose inputs are its formal
// ones, then the captured values, which are the node's last `captures` operands (attribute; all after the condition for
// If). A region's symbols are those of the graph around it.
#pragma once
#include "ops/op.h"

namespace gaf {

// infer() of nodes in place; `syms` and `known` grow.
void infer_nodes(Graph& g, std::vector<Sym>& syms, std::vector<std::vector<std::optional<std::vector<Expr>>>>& known);
// Types the regions of a node from the types of its operands.
void infer_regions(Node& n, std::span<const Type> args, std::span<const std::optional<std::vector<Expr>>> known,
                   std::vector<Sym>& syms);
size_t captures(const Node& n);

}  // namespace gaf
