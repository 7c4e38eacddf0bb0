// What the runtime runs: buffers and steps, nothing of fusion or graphs. Made by compile.cpp. Sizes are expressions over
// the model's symbolic dims; they are bound from the shapes of the inputs at each call.
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
  Tensor data;              // constant
  int index = -1;           // input / output: position; alias: the buffer whose bytes these are
  std::string name;
};

struct KernelStep {
  std::string name;         // matmul_bias_relu_fused
  LoadedKernel kernel;
  std::vector<int> args;    // PlanBuffer of each kernel parameter
  std::vector<Expr> sizes;  // value of each size parameter
};
struct HostStep {           // an extern op, or a host shape program: runs outside generated code
  std::string name;
  std::vector<int> args, results;                                             // PlanBuffers
  std::function<std::vector<Tensor>(std::span<const Tensor>)> run;
  std::vector<std::tuple<int, int, int64_t>> binds;                           // (symbol, argument position, element): sets sizes
};
struct PlanStep {
  std::optional<KernelStep> kernel;
  std::optional<HostStep> host;
};

struct RunPlan {
  std::vector<std::string> symbols;               // names of symbolic dims
  std::vector<PlanBuffer> buffers;
  std::vector<int> inputs, outputs;               // PlanBuffers
  std::vector<PlanStep> steps;
};

struct RunInfo {
  double latency_us = 0;
  int copies = 0, kernels = 0, fallbacks = 0;
};

// A plan ready to run; calls from several threads are serialised per executor only where they share the arena.
class Executor {
 public:
  Executor(RunPlan plan, int threads);            // threads 0: all that affinity and the container allow
  ~Executor();
  // Inputs in order, dense row-major, checked by the caller for dtype; shapes are bound and checked here (UserError
  // GAF3102, 3105). `out`: caller's buffers per output or null data; results are allocated where null.
  RunInfo run(std::span<const Tensor> inputs, std::vector<Tensor>& out);
  int64_t arena_bytes() const;                    // of the last run
  int allocations() const;                        // distinct intermediate buffers in the arena plan
  const RunPlan& plan() const;
  // per-step times of one run, for bench and profiles
  std::vector<double> profile(std::span<const Tensor> inputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

int default_threads();

}  // namespace gaf
