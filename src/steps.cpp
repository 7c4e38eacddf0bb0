// The table of rewrites, and the runner that checks each of them.
#include "steps.h"

#include "base/error.h"

namespace gaf {
namespace {

Graph fold(const Graph& g, RewriteLog& log) { return fold_constants(g, log); }
Graph layout_only(const Graph& g, RewriteLog& log) { return channels_last(g, log, Simplify::views); }
Graph layout(const Graph& g, RewriteLog& log) { return channels_last(g, log, Simplify::all); }
Graph simplify_all(const Graph& g, RewriteLog& log) { return simplify(g, log, Simplify::all); }

constexpr Step kSteps[] = {
    {"least-sizes", 0, least_sizes},
    {"fold-constants", 0, fold},
    {"merge-equal", 1, merge_equal},
    {"simplify", 2, simplify_all},
    {"fold-affine", 1, fold_affine},
    {"recognise-composites", 2, recognise_composites},
    {"channels-last", 1, layout, true},   // after fold-affine: scales and shifts are constants of the channel axis there
};
constexpr Step kUnfused[] = {             // level 0 keeps one node per node as loaded
    {"least-sizes", 0, least_sizes},
    {"fold-constants", 0, fold},
    {"channels-last", 0, layout_only, true},
};

}  // namespace

std::span<const Step> steps() { return kSteps; }

Graph run_steps(Graph g, int level, RewriteLog& log, const Target& t) {
  auto run = [&](const Step& s) {
    if (s.registers && t.map_dst != Mem::reg) return;
    g = s.run(g, log);
    std::vector<Problem> bad = verify_graph(g);
    GAF_CHECK(bad.empty()) << "after step " << s.name << ": node " << bad[0].node << ": " << bad[0].text << "\n" << print_graph(g);
  };
  if (level == 0) {
    for (const Step& s : kUnfused) run(s);
  } else {
    for (const Step& s : kSteps)
      if (s.level <= level) run(s);
  }
  return g;
}

}  // namespace gaf
