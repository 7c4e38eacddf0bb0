// gaf run: executes a model once and says what came out (CONTRACT 1.3).
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/npy.h"

namespace gaf {
namespace {

// Of the finite elements; counts of the others.
struct Summary {
  double min = NAN, max = NAN, mean = NAN;
  int64_t nan = 0, inf = 0;
};

Summary summarise(const Tensor& t) {
  Summary s;
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < t.numel(); i++) {
    const double v = t.get(i);
    if (std::isnan(v))
      s.nan++;
    else if (std::isinf(v))
      s.inf++;
    else
      s.min = finite ? std::min(s.min, v) : v, s.max = finite ? std::max(s.max, v) : v, sum += v, finite++;
  }
  if (finite) s.mean = sum / static_cast<double>(finite);
  return s;
}

std::string number(double v) { return std::isnan(v) ? "-" : fmt::format("{:.4g}", v); }

std::string shape(const std::vector<int64_t>& dims) {
  std::string s;
  for (const int64_t d : dims) s += (s.empty() ? "" : "x") + std::to_string(d);
  return s.empty() ? "scalar" : s;
}

}  // namespace

int command_run(const Session& s) {
  const std::string path = s.line.text("output", "");
  if (!path.empty() && !path.ends_with(".npz")) bad_value("output", "a file ending in .npz", path);
  const Model m = s.load();
  const std::vector<Tensor> inputs = s.inputs(m);
  Settings settings = s.settings;
  if (s.line.has("unfused")) settings.config.level = 0;

  std::unique_ptr<CompiledModel> compiled;
  std::vector<Tensor> outputs;
  RunInfo info;
  {
    const Progress p("compiling", s.progress());
    compiled = compile_model(m, settings);
  }
  {
    const Progress p("running", s.progress());
    info = compiled->run(inputs, outputs);
  }
  const std::vector<std::string> names = compiled->output_names();
  NamedTensors named;
  Json documents = Json::array();
  std::vector<std::vector<std::string>> rows{{"output", "dtype", "shape", "min", "max", "mean", "nan", "inf"}};
  for (size_t i = 0; i < outputs.size(); i++) {
    const Tensor& t = outputs[i];
    const Summary x = summarise(t);
    const std::string dtype(long_name(t.dtype));
    named.emplace_back(names[i], t);
    rows.push_back({names[i], dtype, shape(t.dims), number(x.min), number(x.max), number(x.mean), std::to_string(x.nan),
                    std::to_string(x.inf)});
    documents.push(Json::object({{"name", names[i]},
                                 {"dtype", dtype},
                                 {"shape", Json::array_of(t.dims)},
                                 {"min", x.min},
                                 {"max", x.max},
                                 {"mean", x.mean},
                                 {"nan", x.nan},
                                 {"inf", x.inf}}));
  }
  if (!path.empty()) write_result(path, write_npz(named));
  s.write_report(compiled->report());
  s.say(columns(rows));
  const Stats stats = compiled->stats();
  s.document(Json::object({{"schema", "gaf.run/1"},
                           {"model", m.name},
                           {"latency_us", info.latency_us},
                           {"kernels", info.kernels},
                           {"compiled", stats.compiled},
                           {"cache_hits", stats.cache_hits},
                           {"allocations", stats.allocations},
                           {"externs", stats.externs},
                           {"outputs", documents}}));
  return 0;
}

}  // namespace gaf
