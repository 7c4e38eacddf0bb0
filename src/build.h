// From a planned graph to something that runs: lowering each kernel function, pricing it, generating or fetching its code,
// packing weights, and the runtime's plan. Used by compile.cpp only.
#pragma once
#include <map>
#include <mutex>

#include "base/report.h"
#include "compile.h"
#include "lower/lower.h"
#include "plan/plan.h"

namespace gaf {

// lower() remembered by the function's text, so that the plan's price and the final code come from one lowering.
class Lowerings {
 public:
  explicit Lowerings(Target t) : t_(std::move(t)) {}
  const std::variant<Lowered, Verdict>& get(const Graph& fn);
  std::variant<Price, Verdict> price(const Graph& fn, int workers);  // 0: all cores of the target
  const Target& target() const { return t_; }

 private:
  Target t_;
  std::map<std::string, std::variant<Lowered, Verdict>> made_;
};

struct Built {
  RunPlan plan;
  Stats stats;
  std::vector<std::pair<std::string, std::string>> sources;  // kernel name -> text
};

// Compiles what the cache does not have, in parallel; fills compile times and cache hits into the report.
Built build(const Planned& p, Lowerings& lowerings, Report& report);

// The same graph op by op through the reference evaluation, no generated code.
Built build_reference(const Graph& g);

}  // namespace gaf
