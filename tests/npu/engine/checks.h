// What is checked on a recorded trace: values in program order with reads of bytes that hold none, races and flag
// misuse by vector clocks, values and hangs under random schedules, and whether dropping a sync operation is noticed.
//
// The model of order (public documentation, with the strictest reading where it is open):
//   * A flag orders everything that its source pipe issued before `set` with everything that its destination pipe
//   issues after
//     `wait`. Flags are checked under both readings of their identity: (source, destination, id), and (source, id)
//     alone.
//   * Two operations of one pipe that touch the same bytes, one of them writing, need a barrier of that pipe between
//   them.
//     Two cases are open on hardware and make a class of their own: matrix products that accumulate into the same block
//     without a PIPE_M barrier, and a vector write over what an earlier vector operation read. They are counted, never
//     a failure.
//   * The scalar pipe runs in order.
#pragma once
#include "engine.h"

namespace npu {

struct Findings {  // text -> how often
  std::map<std::string, int> faults, open;
  bool worse_than(const Findings& base) const;  // has something that `base` has less often
};

// Runs the trace in program order. Reading a byte that nothing wrote is a fault. keep_outputs: they hold what other
// blocks left.
std::map<std::string, int> run_in_order(const std::vector<Op>& trace, bool keep_outputs = false);

// The bytes of a trace cut where any range begins or ends, so that one cell stands for all bytes that are always used
// together.
struct Cells {
  struct Span {
    uint32_t first, last;
  };
  std::vector<std::vector<Span>> reads, writes;  // of each operation
  uint32_t count = 0;
  explicit Cells(const std::vector<Op>& trace);
};

// Skips operation `skip`, or every sync operation of text line `skip_line`.
struct Without {
  int op = -1, line = -1;
};
Findings find_races(const std::vector<Op>& trace, const Cells& cells, Without w = {});

// Each pipe is a queue; pipes advance by random priorities that change now and then. by_source: a flag is (source, id).
// "" if all operations ran and no flag was set while up; else what happened. `values` false: order only.
std::string run_scheduled(const std::vector<Op>& trace, uint32_t seed, bool by_source, bool values, Without w = {});

struct Mutation {
  int removed = 0, noticed = 0, open = 0;  // open: noticed by the open rules only
  int idle =
      0;  // not noticed: a barrier's first run, whose statement stands in a loop and orders later iterations only
  std::vector<std::string> missed;
};
// Removes each sync operation of the trace alone, then each sync statement of the text with all its operations.
Mutation drop_each_operation(const std::vector<Op>& trace);
Mutation drop_each_statement(const std::vector<Op>& trace);

}  // namespace npu
