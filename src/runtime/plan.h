// What the runtime runs: buffers and steps, nothing of fusion or graphs. Made by compile.cpp. Sizes are expressions
// over the model's symbolic dims; they are bound from the shapes of the inputs at each call.
#pragma once
#include <functional>
#include <optional>
#include <span>

#include "base/expr.h"
#include "base/tensor.h"
#include "runtime/artifact.h"

namespace gaf {

struct PlanBuffer {
  enum Kind : uint8_t { input, output, constant, arena, alias } kind = arena;
  DType dtype = DType::f32;
  Dims dims;
  Tensor data;     // constant
  int index = -1;  // input / output: position; alias: the buffer whose bytes these are
  std::string name;
};

struct KernelStep {
  std::string name;  // matmul_bias_relu_fused
  LoadedKernel kernel;
  std::vector<int> args;     // PlanBuffer of each kernel parameter
  std::vector<Expr> sizes;   // value of each size parameter
  double us = 0;             // expected time, 0 = unknown: a long kernel is spread over threads without timing it first
  std::vector<int> results;  // PlanBuffers among args that it writes: where all are empty there is nothing to run
};
// An extern op, or a host shape program: runs outside generated code. `run` gets views that are valid during the call;
// what it returns may share their bytes. A result's dims that are symbols without a value so far take the size that
// came out.
struct HostStep {
  std::string name;
  std::vector<int> args, results;  // PlanBuffers
  // Given the arguments and the values of the plan's symbols so far (kUnbound where not known yet).
  std::function<std::vector<Tensor>(std::span<const Tensor>, std::span<const int64_t>)> run;
  // (symbol, position, element): the symbol's value is that element of the argument tensor; positions from args.size()
  // on mean results. Set after the step ran.
  std::vector<std::tuple<int, int, int64_t>> binds;
  bool fallback = true;  // an op without a kernel (counted in RunInfo); false: a shape program
};
struct PlanStep {
  std::optional<KernelStep> kernel;
  std::optional<HostStep> host;
};

struct RunPlan {
  std::vector<std::string> symbols;  // names of symbolic dims
  std::vector<int64_t> least, most;  // smallest and largest value of each that the model allows; empty: any. GAF3102
  std::vector<PlanBuffer> buffers;
  std::vector<int> inputs, outputs;  // PlanBuffers
  std::vector<PlanStep> steps;       // in order of execution
  int64_t memory_limit = 0;          // bytes for constants, arena, outputs and scratch; 0 = none. GAF6003
};

struct RunInfo {
  double latency_us = 0;
  int copies = 0, kernels = 0, fallbacks = 0;
};

// A plan ready to run, from any number of threads at once: each call has an arena and scratch memory of its own, kept
// for the next call. A call with sizes that were seen lately plans and allocates nothing (if `out` brings the buffers).
class Executor {
 public:
  Executor(RunPlan plan, int threads);  // threads 0: all that affinity and the container allow
  ~Executor();
  // Inputs in order, dense row-major, checked by the caller for count and dtype; shapes are bound and checked here
  // (UserError GAF3102, 3105). `out`: caller's buffers per output, may overlap inputs and each other; results are
  // allocated where data is null, or all of them if `out` is empty.
  RunInfo run(std::span<const Tensor> inputs, std::vector<Tensor>& out);
  int64_t arena_bytes() const;  // of the last run
  int allocations() const;      // distinct intermediate buffers in the arena plan
  const RunPlan& plan() const;
  // per-step times of one run, for bench and profiles
  std::vector<double> profile(std::span<const Tensor> inputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

int default_threads();

// Called between steps of every run; what it throws ends the run (Ctrl-C in Python). Null: none.
void set_interrupt_check(void (*check)());

}  // namespace gaf
