// What can be said of a plan before any size is known: whose memory each buffer uses, from which step to which it
// lives, and into which segments data-dependent sizes cut the run. Made once per executor. Must not know numbers of
// bytes.
#pragma once
#include <utility>
#include <vector>

#include "runtime/plan.h"

namespace gaf {

// Where the bytes of a buffer (that is no alias) are.
struct Place {
  enum Kind : uint8_t {
    unused,    // no step or output mentions it
    input,     // the caller's, read only
    constant,  // the plan's
    output,    // the memory of output `index`, which is itself or (lent) what is computed in its place
    arena,     // a piece of its segment's arena
    held,      // the tensor that a host step returned
  } kind = unused;
  int index = -1;             // input, output: position
  bool by_host = false;       // a host step's result
  bool lent = false;          // output: by the value that is computed in this one's place
  int first = -1, last = -1;  // steps; last = number of steps if it is copied out at the end
  int in_place_of = -1;       // arena: the buffer whose memory it may take over
};

struct Segment {
  int begin = 0, end = 0;  // steps
  std::vector<int>
      buffers;  // those first mentioned here (aliases too), ascending: their dims can be computed when it begins
};

struct Schedule {
  explicit Schedule(const RunPlan& plan);  // InternalError if the plan is malformed; UserError GAF3105

  std::vector<int> root;                    // per buffer: itself, or what it is an alias of in the end
  std::vector<Place> place;                 // per buffer; of roots only
  std::vector<Segment> segments;            // at least one
  std::vector<std::vector<int>> released;   // per step: held roots that nobody reads after it
  std::vector<std::pair<int, int>> copies;  // (output position, buffer): outputs that are copied at the end
  int64_t max_args = 0;

 private:
  void resolve_aliases(const RunPlan& plan);
  void cut_segments(const RunPlan& plan);
  void set_lifetimes(const RunPlan& plan);
  void place_outputs(const RunPlan& plan);
  void allow_in_place(const RunPlan& plan);
};

}  // namespace gaf
