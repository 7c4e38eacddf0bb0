// The steps between a loaded model and a plan, as one table: what runs, in which order, at which level. Used by compile.cpp
// (which times and checks them) and by the text tests (which run one step by name).
#pragma once
#include <span>
#include <string_view>

#include "base/target.h"
#include "rewrite/rewrite.h"

namespace gaf {

struct Step {
  std::string_view name;
  int level;                                  // runs at this fusion level and above; 0: a correctness rewrite, always
  Graph (*run)(const Graph&, RewriteLog&);
  bool registers = false;                     // a layout for kernels that compute in registers: not for other targets
};
std::span<const Step> steps();                // top to bottom

// All steps of a level that suit the target, each verified.
Graph run_steps(Graph g, int level, RewriteLog& log, const Target& t);

}  // namespace gaf
