// The pipeline, top to bottom: start reading here. Everything a user can ask for (command line, Python, C++) is one of
// these functions. compile.cpp holds the table of steps; this header knows no LLVM, ONNX or JSON types.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/report.h"
#include "base/target.h"
#include "ir/graph.h"
#include "ir/kernel.h"
#include "runtime/plan.h"

namespace gaf {

// A model as loaded: the graph with types, and the bytes it came from (for writing the fused file).
struct Model {
  std::string name;                         // file name, or "model"
  Graph graph;                              // read and typed (infer), operands canonical; node names are the file's
  std::string path;                         // of the file; empty if it came as bytes
  std::shared_ptr<const std::string> onnx;  // the bytes, if it came so
  std::string folder;                       // of external data
  std::vector<std::string> warnings;
  struct Gone {
    std::string name, op;
    bool folded;  // it read nothing but constants
  };
  std::vector<Gone> gone;  // nodes of the file that loading resolved: constants, Identity
};

struct LoadOptions {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;  // input -> dims, -1 stays free
  std::vector<std::pair<std::string, int64_t>> dims;                 // symbol -> number
  std::vector<std::string> overridden;  // initializers that are graph inputs too: inputs, not constants; else GAF3104
};

Model load_model(const std::string& path, const LoadOptions& o = {});  // .onnx, .gaf; "-" reads ONNX from stdin
Model load_model_bytes(std::string_view onnx, const LoadOptions& o = {});

// The planned model: graph with kernel functions and `call` nodes, and the report that says why.
struct Planned {
  Model model;
  Graph graph;
  Report report;
  Target target;
  FusionConfig config;
};
Planned plan_model(const Model& m, const Settings& s);

std::string fused_onnx(const Planned& p);                                        // CONTRACT 1.4
std::vector<std::string> save_model(const Planned& p, const std::string& path);  // .onnx, .gaf; warnings

struct Stats {
  int kernels = 0, compiled = 0, cache_hits = 0, allocations = 0, externs = 0;
  double compile_ms = 0;
};

// ---- kernels as text, for targets that this machine does not run ----
enum class NpuBackend : uint8_t { ascendc, pto };

struct EmittedKernel {
  std::string name, group;                                 // group: "" for an op on its own
  std::vector<std::pair<std::string, std::string>> files;  // name -> text; the same plan gives the same bytes
  struct Buffer {
    std::string name;  // of the value in the model
    bool output = false;
    DType dtype = DType::f16;
    std::vector<int64_t> dims;  // as the kernel sees it
  };
  std::vector<Buffer> buffers;                              // parameters in order
  int64_t blocks = 1;                                       // to launch
  std::vector<std::pair<std::string, int64_t>> peak_bytes;  // of each local memory
  int64_t gm_read_bytes = 0, gm_write_bytes = 0;            // as issued, over all blocks
  double predicted_us = 0;
};
// The kernels of a planned model, or of one group or kernel of it. Every op must be in a kernel: UserError GAF4002
// (4003 for control flow) for all others at once, GAF3105 for a free dimension, GAF1102 if the target is no NPU,
// GAF5004 if a text fails its check.
std::vector<EmittedKernel> emit_kernels(const Planned& p, NpuBackend b, const std::string& only = "");
void need_npu(const Target& t, NpuBackend b);  // that UserError GAF1102, before anything is loaded
// A kernel as `lower` wrote it, with addresses and synchronisation, checked.
kir::Kernel finish_npu_kernel(kir::Kernel k, const Target& t);

// Ready to run. Thread-safe.
class CompiledModel {
 public:
  CompiledModel(const Model& m, const Settings& s);
  ~CompiledModel();
  const Planned& planned() const;
  const Report& report() const;  // with compile times and cache hits filled in
  std::vector<std::string> input_names() const, output_names() const;
  std::vector<Type> input_types() const;
  // Inputs in order; dtype and rank are checked here (GAF3102, 3107). `out`: caller's buffers or empty tensors.
  RunInfo run(std::span<const Tensor> inputs, std::vector<Tensor>& out);
  Stats stats() const;
  const std::vector<std::pair<std::string, std::string>>& sources() const;  // kernel name -> kernel IR text
  std::vector<std::pair<std::string, double>> profile(std::span<const Tensor> inputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::unique_ptr<CompiledModel> compile_model(const Model& m, const Settings& s);

// ---- checks and measurements ----
struct OutputDifference {
  std::string name;
  DType dtype;
  double max_abs = 0, max_rel = 0, max_ulp = 0, rtol = 0, atol = 0;
  int64_t mismatches = 0, first_mismatch = -1;
  double worst_expected = 0, worst_got = 0;
};
struct CompareResult {
  std::string reference;  // interp | unfused
  bool pass = true;
  int trials = 1;
  std::vector<OutputDifference> outputs;
  std::vector<std::pair<std::string, std::vector<OutputDifference>>> kernels;  // --per-kernel
};
CompareResult compare_model(const Model& m, const Settings& s, std::span<const Tensor> inputs,
                            const std::string& reference, bool per_kernel = false, double rtol = -1, double atol = -1);
// For each output the coarsest float type that it was computed in on its way from the inputs: what a cast widens is no
// more exact than what it was.
std::vector<DType> computed_in(const Graph& g);
// Differences of got against want at the tolerance of CONTRACT 12.3 (negative: that of `computed`, else of the dtype).
OutputDifference difference(const std::string& name, const Tensor& want, const Tensor& got, double rtol = -1,
                            double atol = -1, std::optional<DType> computed = {});

struct Quantiles {
  double median = 0, p10 = 0, p90 = 0;
};
struct BenchResult {
  Quantiles unfused_us, fused_us;
  double speedup = 0, low = 0, high = 0;  // 95 % interval
  std::string verdict;                    // faster same slower
  int kernels_unfused = 0, kernels_fused = 0, cache_hits = 0, runs = 0;
  double compile_ms = 0;
};
BenchResult bench_model(const Model& m, const Settings& s, std::span<const Tensor> inputs, int runs = 50,
                        int warmup = 5, double min_time_s = 1.0);

// Deterministic inputs: float N(0,1), bool fair, integers uniform in [lo, hi) (default 0, 8); Philox counter generator,
// the same numbers on every platform. Free dims must be bound (GAF3105).
std::vector<Tensor> random_inputs(const Model& m, uint64_t seed,
                                  const std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>>& ranges = {});

// num_ops of CONTRACT: executable nodes as loaded, no views, constants, Identity.
int num_ops(const Graph& g);

}  // namespace gaf
