// Shared by the sources of the public C++ interface: the way from public types to the library's own and back, and the
// one place where errors cross. Public types are written v0::X here, the library's own X.
#pragma once
#ifndef GAF_IMPLEMENTATION
#define GAF_IMPLEMENTATION
#endif
#include <optional>

#include "compile.h"
#include "gaf/gaf.h"
#include "lower/lower.h"

namespace gaf {

[[noreturn]] void throw_public(const UserError& e);
[[noreturn]] void throw_public(const InternalError& e);

// Runs f; what it throws leaves as v0::Error of the class that the catalogue names.
template <class F>
auto guarded(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const UserError& e) {
    throw_public(e);
  } catch (const InternalError& e) {
    throw_public(e);
  }
}

v0::DataType public_dtype(DType t);
DType own_dtype(v0::DataType t);  // UserError GAF3107
v0::ValueInfo value_info(const std::string& name, DType t, const Dims& dims,
                         const std::function<std::string(int)>& symbol);
v0::ValueInfo value_info(const std::string& name, const Type& t, const Graph& g);
Settings settings_of(const v0::FusionConfig& c);

// Views of the caller's memory; they own nothing.
std::vector<Tensor> own_views(const std::vector<v0::ConstTensorView>& views);
std::vector<Tensor> own_views(const std::vector<v0::TensorView>& views);
v0::RunInfo public_info(const RunInfo& i);

// A part of a model that became one kernel, or not; made from the part's own small graph.
struct Analysis {
  Graph source;  // inputs, weights as constants, nodes, outputs; before any rewrite
  Target target;
  Verdict verdict;
  std::string kernel_name;  // as users know it
  double predicted_us = 0, unfused_us = 0;
  int regs = 0;  // of the target's, what fusion adds
  int64_t ub_bytes = 0;
  // If it is one kernel: where each parameter that is no temporary comes from.
  kir::Kernel kernel;
  struct Argument {
    int input = -1;  // of `source`
    int output = -1;
    Tensor weight;  // neither: as the kernel reads it
  };
  std::vector<Argument> args;
};
Analysis analyse_part(Graph source, const Target& t);  // analyse.cpp
std::variant<Graph, Verdict> part_of(const Graph& g,
                                     const std::vector<std::string>& nodes);  // part.cpp; UserError: unknown names

// Several kernels as phases of one: `graph` calls them in order. Nothing if a node of the graph is no call.
struct Chained {
  kir::Kernel kernel;
  struct Param {
    Value value;  // of the graph, also between two calls; kNoValue: a temporary of one call
    std::optional<Pack> pack;
    bool temp = false;
  };
  std::vector<Param> params;  // in order
};
std::optional<Chained> chain_kernels(const Graph& graph, const std::vector<const Lowered*>& calls);  // chain.cpp

namespace v0 {
struct Access {  // into the public classes
  static const Graph::Impl& of(const Graph& g);
  static Graph make_graph(std::shared_ptr<const gaf::Model> m, std::shared_ptr<const gaf::Planned> p);
  static const FusionPlan::Impl& of(const FusionPlan& p);
  static FusionPlan make_plan(std::shared_ptr<const gaf::Analysis> a);
  static const ExecutableKernel::Impl& of(const ExecutableKernel& k);
  static ExecutableKernel make_kernel(kir::Kernel k, const Target& t);
  static CompiledModel make_compiled(std::shared_ptr<gaf::CompiledModel> c, std::shared_ptr<const gaf::Model> m);
  static Tensor make_tensor(const gaf::Tensor& t);
};
struct Graph::Impl {
  std::shared_ptr<const gaf::Model> model;
  std::shared_ptr<const gaf::Planned> planned;  // of a fused graph
};
struct FusionPlan::Impl {
  std::shared_ptr<const gaf::Analysis> analysis;
};
}  // namespace v0

}  // namespace gaf
