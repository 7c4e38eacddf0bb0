// The account of a plan in terms of the model: what became of each of its nodes, and where each of its edges went. The
// planner records its decisions about the rewritten graph; users ask about the file. Must not know how a decision was
// taken.
#pragma once
#include "compile.h"
#include "plan/plan.h"

namespace gaf {

// A node that stands for some op of the file, and is no leaf.
inline bool in_file(const Node& n) { return n.op != "input" && n.op != "constant"; }

// Fills Report::nodes: a planned node speaks for itself, a node without one belongs to the first group that carries its
// name, else it is part of the kernel that stands for it, else it went on the way. Nodes that rewriting added follow.
// Afterwards a group lists exactly the model's nodes whose fate it is. `planned`: the rewritten graph that was planned.
void account_for_nodes(const Model& m, const Graph& planned, const Plan& plan, Report& r);

// Completes Report::not_fused: every edge between two ops of the model, looked at through what is gone between them, is
// inside one group or kernel, or among the edges of exactly one line; an edge that a rewrite removed gets a line of its
// own.
void account_for_edges(const Model& m, const Graph& planned, Report& r);

}  // namespace gaf
