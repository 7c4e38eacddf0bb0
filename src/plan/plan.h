// Which ops become one kernel. Groups grow from single ops along edges while the checks of legal.cpp say yes and the price of
// the union is below the sum of the parts. What the planner must know of lowering reaches it as one function (`price`), so
// it includes no lowering and no back end. Deterministic: the same graph, target and settings give the same plan.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/report.h"
#include "base/target.h"
#include "ir/graph.h"
#include "ops/op.h"

namespace gaf {

// Predicted cost of a kernel function on the target, from the analysis of its lowered text; every term is kept.
struct Price {
  double us = 0, compute_us = 0, memory_us = 0, launch_us = 0;
  double bytes = 0;                       // traffic of outer values
  double activation_bytes = 0;            // outer values that are no constants, each once: what fusion can save
  double reg = 0, ub = 0;                 // what fusion adds, as fractions of the full resource
  int64_t ub_bytes = 0;
  std::string template_name;
};

// Of a function that has no kernel on a simulated target: a launch and its bytes at the memory's speed. Nothing on a CPU,
// where such ops run through their definitions.
std::optional<Price> launch_price(const Graph& fn, const Target& t);

struct PlanServices {
  // Lowers the function and reads its analysis, or says why it cannot be one kernel.
  std::function<std::variant<Price, Verdict>(const Graph& fn)> price;
};

struct Plan {
  Graph graph;        // kernel functions and calls; alias views, extern ops and constants stay as nodes
  std::vector<GroupReport> groups;      // of two ops and more
  std::vector<EdgeReport> not_fused;
  std::vector<std::pair<std::string, NodeReport>> nodes;  // by name of the graph's own nodes and their origins
  Totals totals;
};

Plan plan_kernels(const Graph& g, const Target& t, const FusionConfig& config, const PlanServices& services);

}  // namespace gaf
