// Graph-Autofusion, the C++ interface: load a model, fuse it, compile it, run it; or step by step, take some nodes as
// one kernel, look at it, compile its text and launch it.
//
//   gaf::Graph model = gaf::load_model("model.onnx");
//   gaf::CompiledModel compiled = gaf::compile(model);
//   std::vector<gaf::Tensor> y = compiled.run({{x.data(), {1, 256}}});
//
// All functions may be called from several threads at once. Objects are cheap to copy, share what they hold and do not
// change, except FusionPlan::specialize. Everything that goes wrong is an Error (types.h). Times are predictions in
// microseconds, sizes are bytes, where nothing else is said.
#pragma once
#include <map>
#include <optional>
#include <span>

#include "gaf/types.h"

GAF_NAMESPACE_BEGIN

// An input or output of a model or plan.
struct ValueInfo {
  std::string name;
  DataType dtype = DT_FLOAT;
  Shape shape;                         // -1: free
  std::vector<std::string> dim_names;  // one a dimension: the expression of a free one ("batch", "2*seq"), else ""
};

// A node of a graph, or a kernel of a fused one.
struct Op {
  std::string name, type;
  std::vector<std::string> original_names;  // nodes of the model that it stands for
};

// A model as loaded, or as fused.
class GAF_API Graph {
 public:
  Graph();  // empty; load_model makes others
  std::string name() const;
  std::vector<ValueInfo> inputs() const, outputs() const;
  std::vector<Op> ops() const;
  int num_ops() const;      // executable nodes; a kernel is one; views, constants and Identity do not count
  int num_kernels() const;  // kernel launches of one run; of a graph that was only loaded, num_ops()
  std::string str() const;  // the graph as text
  // What was decided and why, for each node and edge: for readers, and as JSON (schema gaf.report/1). "" for a graph
  // that was only loaded.
  std::string report_text() const, report_json() const;

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Settings of fuse and compile. A field that is not set takes its value from the environment (AUTOFUSION_*), else the
// default given here. Values that cannot be are a ConfigError when the settings are used.
struct FusionConfig {
  std::optional<bool> enable_superkernel;  // true; false: plan and rewrite, but run op by op without generated code
  std::optional<bool> enable_autofuse;     // true; false: no automatic discovery
  std::optional<int> max_fusion_depth;     // longest data path in a group, in ops; by strategy: 4, 16, 64
  std::optional<double> cost_threshold;    // least gain, a fraction of the group's unfused time; 0.10, 0.01, 0.0
  std::optional<std::string> strategy;     // conservative, balanced (default), aggressive
  std::optional<int> level;                // 0 off, 1 basic, 2 all (default)
  std::optional<std::string> target;       // host (default), a shipped name, or the path of a target file
  std::optional<std::vector<std::string>> extern_ops;  // op types or node names that no kernel touches
  std::optional<int> max_fusion_size;                  // 64 nodes per group
  std::optional<double> resource_budget;               // 0.8: share of registers and local memory; (0, 1]
  std::optional<bool> strict;                          // false; true: no silent fallback
  std::optional<int> threads;                          // 0: all that affinity and the container allow
  std::optional<std::string> cache_dir;  // of generated code; "": memory only; default: the user's cache folder
};

struct RunInfo {
  double latency_us = 0;  // measured
  int copies = 0, kernels = 0, fallbacks = 0;
};
struct Stats {
  int kernels = 0, compiled = 0, cache_hits = 0;  // kernel launches of a run; code made, and found made, since loading
  int allocations = 0;                            // distinct intermediate buffers
  int externs = 0;                                // nodes that run without generated code
};

// A model ready to run.
class GAF_API CompiledModel {
 public:
  Graph graph() const;  // fused
  std::vector<std::string> input_names() const, output_names() const;
  // Inputs in the model's order. Results are allocated, or written to the memory given, which may overlap the inputs
  // and has as many bytes as the result. ModelError for a wrong number of inputs, ShapeError, DTypeError,
  // ExecutionError.
  std::vector<Tensor> run(const std::vector<ConstTensorView>& inputs) const;
  RunInfo run(const std::vector<ConstTensorView>& inputs, const std::vector<TensorView>& outputs) const;
  // By name; ModelError names what is unknown or missing.
  std::map<std::string, Tensor> run_named(const std::map<std::string, ConstTensorView>& inputs) const;
  Stats stats() const;
  std::map<std::string, std::string> sources() const;  // kernel name -> kernel IR text
  std::string report_text() const, report_json() const;

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// .onnx or .gaf (graph text); "-" reads ONNX from standard input. `shapes`: input name -> dimensions, -1 keeps one
// free; `dims`: free dimension -> number. ModelError, ShapeError, CacheError (no such file).
GAF_API Graph load_model(const std::string& path, const std::map<std::string, Shape>& shapes = {},
                         const std::map<std::string, int64_t>& dims = {});
GAF_API Graph fuse(const Graph& graph, const FusionConfig& config = {});  // the argument is not changed
// .onnx (a standard file that any runtime reads: kernels are model-local functions) or .gaf, atomically. Returns
// warnings.
GAF_API std::vector<std::string> save(const Graph& graph, const std::string& path);
// The graph's model with these settings; settings of an earlier fuse() hold only if they are given again.
GAF_API CompiledModel compile(const Graph& graph, const FusionConfig& config = {});

// ---- step by step: some nodes as one kernel ----

// Nodes of a loaded graph, by name.
struct Subgraph {
  Graph graph;
  std::vector<std::string> nodes;  // in any order
};

// The nodes as one kernel for one target, or the reason why that cannot be.
class GAF_API FusionPlan {
 public:
  bool can_be_one_kernel() const;
  std::string reason() const;       // an id of the report's reasons ("not-fusable-op"); "" if it can
  std::string explanation() const;  // the sentence behind it
  std::vector<std::string> nodes() const;
  std::string kernel_name() const;  // "matmul_bias_relu_fused"
  // Values that cross the border; the model's weights are not among them.
  std::vector<ValueInfo> inputs() const, outputs() const;
  double predicted_us() const, unfused_us() const;  // as one kernel; one kernel a node. Free dimensions at their hint

  // Fixes the shapes of the plan's inputs: -1 stays free, a fixed dimension must agree. The dtype must be the input's
  // own. Changes this plan and returns it; on ShapeError it is as before. With one shape the plan must have one input.
  FusionPlan& specialize(const Shape& shape, DataType dtype);
  FusionPlan& specialize(std::span<const Shape> shapes, std::span<const DataType> dtypes);

  // What `launch` takes as inputs: the caller's tensors, one for each of inputs(), and the model's weights as the
  // kernel reads them (re-laid for the target), in the kernel's order. The weights live as long as a copy of this plan.
  std::vector<ConstTensorView> arguments(const std::vector<ConstTensorView>& inputs) const;

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// UsageError names a node that does not exist. Nodes that depend on each other through a node which is not among them
// are no kernel (reason "cycle"). `target` as in FusionConfig.
GAF_API FusionPlan analyze_fusion_opportunity(const Subgraph& subgraph, const std::string& target = "host");

struct HWResource {
  size_t max_regs = 0;  // vector registers
  size_t max_ub = 0;    // bytes of local memory (L2 of a core on a CPU)
};
GAF_API HWResource hw_resource(const std::string& target = "host");
// What fusing takes: vector registers live at once beside those a matrix product accumulates in, and bytes of local
// memory. CompileError if the plan is no kernel.
GAF_API size_t estimate_reg_usage(const FusionPlan& plan);
GAF_API size_t estimate_ub_usage(const FusionPlan& plan);
// One kernel, and at most 80 % of each resource; exactly 80 % passes.
GAF_API bool can_fuse(const FusionPlan& plan, const HWResource& resource);

// The kernel as kernel IR text, or as Ascend C if the plan is for an NPU; always the same for the same plan.
// CompileError with the reason if the plan is no kernel.
GAF_API std::string codegen_jit(const FusionPlan& plan);

// Machine code of one kernel.
class GAF_API ExecutableKernel {
 public:
  std::string name() const;
  std::vector<ValueInfo> inputs() const;   // parameters `in`, in order
  std::vector<ValueInfo> outputs() const;  // parameters `out` and `inout`, in order

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Checks the text, generates code for the target that it names and loads it. CompileError with line and column for text
// that does not parse or breaks a rule of kernel IR, UnsupportedError or ExecutionError for a target that this machine
// does not run.
GAF_API ExecutableKernel compile_kernel(const std::string& kernel_ir);

// Runs a kernel on the process's thread pool and returns when it is done. Sizes are taken from the shapes of the
// inputs; all shapes are checked. What is in the outputs' memory is overwritten (`inout`: read first, must not overlap
// other tensors).
GAF_API RunInfo launch(const ExecutableKernel& kernel, const std::vector<ConstTensorView>& inputs,
                       const std::vector<TensorView>& outputs);

// The kernel of a plan for an NPU as PTO tile instructions in their C++ form. CompileError with the reason if the plan is
// no kernel, UsageError if it is not for an NPU.
GAF_API std::string compile_to_pto(const FusionPlan& plan);

GAF_NAMESPACE_END
