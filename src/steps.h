// The steps between a loaded model and a plan, as one table: what runs, in which order, at which level. Used by compile.cpp
// (which times and checks them) and by the text tests (which run one step by name).
#pragma once
#include <span>
#include <string_view>

#include "rewrite/rewrite.h"

namespace gaf {

struct Step {
  std::string_view name;
  int level;                                  // runs at this fusion level and above; 0: a correctness rewrite, always
  Graph (*run)(const Graph&, RewriteLog&);
};
std::span<const Step> steps();                // top to bottom

// All steps of a level, each verified.
Graph run_steps(Graph g, int level, RewriteLog& log);

}  // namespace gaf
