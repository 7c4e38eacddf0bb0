// Documents of CONTRACT 1.3.
#include "results.h"

namespace gaf {
namespace {

Json quantiles(const Quantiles& q) { return Json::object({{"median", q.median}, {"p10", q.p10}, {"p90", q.p90}}); }

}  // namespace

Json output_json(const OutputDifference& d) {
  return Json::object({{"name", d.name}, {"dtype", std::string(long_name(d.dtype))}, {"max_abs", d.max_abs}, {"max_rel", d.max_rel}, {"max_ulp", d.max_ulp}, {"rtol", d.rtol}, {"atol", d.atol},
                       {"mismatches", d.mismatches}, {"first_mismatch", d.first_mismatch < 0 ? Json() : Json(d.first_mismatch)}});
}

Json compare_json(const CompareResult& c) {
  Json kernels = Json::array(), outputs = Json::array();
  for (const auto& [name, all] : c.kernels) {
    Json each = Json::array();
    for (const OutputDifference& d : all) each.push(output_json(d));
    kernels.push(Json::object({{"kernel", name}, {"outputs", each}}));
  }
  for (const OutputDifference& d : c.outputs) outputs.push(output_json(d));
  return Json::object({{"schema", "gaf.compare/1"}, {"reference", c.reference}, {"verdict", c.pass ? "pass" : "fail"}, {"trials", c.trials}, {"kernels", kernels}, {"outputs", outputs}});
}

Json bench_json(const BenchResult& b, const std::string& model, const Settings& s) {
  return Json::object({{"schema", "gaf.bench/1"}, {"model", model}, {"target", s.config.target}, {"threads", s.config.threads > 0 ? s.config.threads : default_threads()}, {"runs", b.runs},
                       {"kernels", Json::object({{"unfused", b.kernels_unfused}, {"fused", b.kernels_fused}})}, {"compile_ms", b.compile_ms}, {"cache_hits", b.cache_hits}, {"baselines", Json::object()},
                       {"unfused_us", quantiles(b.unfused_us)}, {"fused_us", quantiles(b.fused_us)}, {"speedup", b.speedup}, {"speedup_ci95", Json::array({b.low, b.high})}, {"verdict", b.verdict}});
}

}  // namespace gaf
