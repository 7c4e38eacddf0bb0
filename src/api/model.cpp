// Models in the public interface: graphs as loaded and as fused, settings, compiled models. Each function is one of
// compile.h behind types that outlive versions.
#include <fmt/format.h>

#include <algorithm>

#include "api/internal.h"
#include "base/catalogue.h"
#include "ops/op.h"

namespace gaf {

Settings settings_of(const v0::FusionConfig& c) {
  SettingLayer layer;
  auto put = [&](const char* name, const auto& field) {
    if (field) layer[name] = fmt::format("{}", *field);
  };
  put("enable_superkernel", c.enable_superkernel);
  put("enable_autofuse", c.enable_autofuse);
  put("max_fusion_depth", c.max_fusion_depth);
  put("cost_threshold", c.cost_threshold);
  put("strategy", c.strategy);
  put("level", c.level);
  put("target", c.target);
  put("max_fusion_size", c.max_fusion_size);
  put("resource_budget", c.resource_budget);
  put("strict", c.strict);
  put("threads", c.threads);
  put("cache_dir", c.cache_dir);
  if (c.extern_ops) {
    std::string& list = layer["extern_ops"];
    for (const std::string& s : *c.extern_ops) list += (list.empty() ? "" : ",") + s;
  }
  try {
    return resolve_settings({}, layer, {});
  } catch (const UserError& e) {
    // A value of the environment or of a file says so itself; one given here is the configuration's fault, not a
    // command line's.
    if (e.info().code != "GAF1102") throw;
    std::vector<v0::Error::Fault> faults;
    for (const ErrorInfo& i : e.all()) faults.push_back({i.code, i.message, "", "", "", 0, 0, i.cause, i.remedy});
    throw v0::ConfigError(e.what(), std::move(faults));
  }
}

namespace {

std::vector<v0::ValueInfo> infos(const Graph& g, bool outputs) {
  std::vector<v0::ValueInfo> all;
  if (outputs)
    for (const Output& o : g.outputs) all.push_back(value_info(o.name, g.type(o.value), g));
  else
    for (size_t i = 0; i < g.num_inputs(); i++) all.push_back(value_info(g.nodes[i].name, g.nodes[i].types[0], g));
  return all;
}

std::shared_ptr<const Planned> planned(const v0::Graph& g, const Settings& s) {
  return std::make_shared<const Planned>(plan_model(*v0::Access::of(g).model, s));
}

}  // namespace

namespace v0 {

const Graph::Impl& Access::of(const Graph& g) { return *g.impl_; }
Graph Access::make_graph(std::shared_ptr<const gaf::Model> m, std::shared_ptr<const gaf::Planned> p) {
  Graph g;
  g.impl_ = std::make_shared<const Graph::Impl>(Graph::Impl{std::move(m), std::move(p)});
  return g;
}

Graph::Graph() : impl_(std::make_shared<const Impl>(Impl{std::make_shared<const gaf::Model>(), nullptr})) {}
std::string Graph::name() const { return impl_->model->name; }
std::vector<ValueInfo> Graph::inputs() const {
  return guarded([&] { return infos(impl_->model->graph, false); });
}
std::vector<ValueInfo> Graph::outputs() const {
  return guarded([&] { return infos(impl_->model->graph, true); });
}
std::vector<Op> Graph::ops() const {
  std::vector<Op> all;
  for (const Node& n : (impl_->planned ? impl_->planned->graph : impl_->model->graph).nodes) {
    if (n.op == "input" || n.op == "constant") continue;
    all.push_back(
        {n.name, n.op == "call" ? n.name : n.op, n.origins.empty() ? std::vector<std::string>{n.name} : n.origins});
  }
  return all;
}
int Graph::num_ops() const { return gaf::num_ops(impl_->planned ? impl_->planned->graph : impl_->model->graph); }
int Graph::num_kernels() const { return impl_->planned ? impl_->planned->report.totals.kernels_after : num_ops(); }
std::string Graph::str() const {
  return guarded([&] { return print_graph(impl_->planned ? impl_->planned->graph : impl_->model->graph); });
}
std::string Graph::report_text() const {
  return guarded([&] { return impl_->planned ? impl_->planned->report.text() : std::string(); });
}
std::string Graph::report_json() const {
  return guarded([&] { return impl_->planned ? impl_->planned->report.json().dump() : std::string(); });
}

Graph load_model(const std::string& path, const std::map<std::string, Shape>& shapes,
                 const std::map<std::string, int64_t>& dims) {
  return guarded([&] {
    const LoadOptions options{{shapes.begin(), shapes.end()}, {dims.begin(), dims.end()}};
    return Access::make_graph(std::make_shared<const gaf::Model>(gaf::load_model(path, options)), nullptr);
  });
}

Graph fuse(const Graph& graph, const FusionConfig& config) {
  return guarded([&] { return Access::make_graph(Access::of(graph).model, planned(graph, settings_of(config))); });
}

std::vector<std::string> save(const Graph& graph, const std::string& path) {
  return guarded([&] {
    FusionConfig as_loaded;
    as_loaded.level = 0;
    const auto& fused = Access::of(graph).planned;
    return save_model(fused ? *fused : *planned(graph, settings_of(as_loaded)), path);
  });
}

struct CompiledModel::Impl {
  std::shared_ptr<gaf::CompiledModel> compiled;
  std::shared_ptr<const gaf::Model> model;
};
CompiledModel Access::make_compiled(std::shared_ptr<gaf::CompiledModel> c, std::shared_ptr<const gaf::Model> m) {
  CompiledModel out;
  out.impl_ = std::make_shared<CompiledModel::Impl>(CompiledModel::Impl{std::move(c), std::move(m)});
  return out;
}

CompiledModel compile(const Graph& graph, const FusionConfig& config) {
  return guarded([&] {
    const auto& model = Access::of(graph).model;
    return Access::make_compiled(compile_model(*model, settings_of(config)), model);
  });
}

Graph CompiledModel::graph() const {
  const std::shared_ptr<gaf::CompiledModel>& c = impl_->compiled;
  return Access::make_graph(impl_->model, std::shared_ptr<const gaf::Planned>(c, &c->planned()));
}
std::vector<std::string> CompiledModel::input_names() const { return impl_->compiled->input_names(); }
std::vector<std::string> CompiledModel::output_names() const { return impl_->compiled->output_names(); }

std::vector<Tensor> CompiledModel::run(const std::vector<ConstTensorView>& inputs) const {
  return guarded([&] {
    std::vector<gaf::Tensor> results;
    impl_->compiled->run(own_views(inputs), results);
    std::vector<Tensor> out;
    for (const gaf::Tensor& t : results) out.push_back(Access::make_tensor(t));
    return out;
  });
}

RunInfo CompiledModel::run(const std::vector<ConstTensorView>& inputs, const std::vector<TensorView>& outputs) const {
  return guarded([&] {
    const gaf::Graph& g = impl_->compiled->planned().graph;
    if (outputs.size() != g.outputs.size())
      throw UserError("GAF1102",
                      fmt::format("the model has {} outputs, memory for {} given", g.outputs.size(), outputs.size()));
    std::vector<gaf::Tensor> results = own_views(outputs);
    for (size_t i = 0; i < results.size(); i++)
      if (const DType want = g.type(g.outputs[i].value).dtype; results[i].dtype != want)
        throw UserError("GAF3107", fmt::format("output '{}': dtype {} given, {} expected", g.outputs[i].name,
                                               long_name(results[i].dtype), long_name(want)));
    return public_info(impl_->compiled->run(own_views(inputs), results));
  });
}

std::map<std::string, Tensor> CompiledModel::run_named(const std::map<std::string, ConstTensorView>& inputs) const {
  return guarded([&] {
    const std::vector<std::string> names = input_names(), results = output_names();
    for (const auto& [name, view] : inputs)
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw UserError("GAF3104", fmt::format("unknown input '{}'{}", name, did_you_mean(name, names)));
    std::vector<ConstTensorView> ordered;
    for (const std::string& name : names) {
      const auto it = inputs.find(name);
      if (it == inputs.end()) throw UserError("GAF3103", fmt::format("input '{}' missing", name));
      ordered.push_back(it->second);
    }
    std::vector<Tensor> out = run(ordered);
    std::map<std::string, Tensor> named;
    for (size_t i = 0; i < out.size(); i++) named[results[i]] = std::move(out[i]);
    return named;
  });
}

Stats CompiledModel::stats() const {
  const gaf::Stats s = impl_->compiled->stats();
  return {.kernels = s.kernels,
          .compiled = s.compiled,
          .cache_hits = s.cache_hits,
          .allocations = s.allocations,
          .externs = s.externs};
}
std::map<std::string, std::string> CompiledModel::sources() const {
  return {impl_->compiled->sources().begin(), impl_->compiled->sources().end()};
}
std::string CompiledModel::report_text() const { return impl_->compiled->report().text(); }
std::string CompiledModel::report_json() const { return impl_->compiled->report().json().dump(); }

}  // namespace v0
}  // namespace gaf
