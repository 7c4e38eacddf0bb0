// gaf compare: fused results against a reference, value by value (CONTRACT 1.3, 12.3).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/onnxruntime.h"
#include "results.h"

namespace gaf {
namespace {

std::vector<std::string> row(const std::string& name, const OutputDifference& d) {
  return {name,
          std::string(long_name(d.dtype)),
          fmt::format("{:.2g}", d.max_abs),
          fmt::format("{:.2g}", d.max_rel),
          fmt::format("{:.3g}", d.max_ulp),
          std::to_string(d.mismatches),
          d.mismatches ? "fail" : "pass"};
}

// Trials are told as one: the worst of each output.
void take_worst(std::vector<OutputDifference>& all, const std::vector<OutputDifference>& more) {
  for (size_t i = 0; i < all.size() && i < more.size(); i++) {
    OutputDifference& a = all[i];
    const OutputDifference& b = more[i];
    if (a.first_mismatch < 0)
      a.first_mismatch = b.first_mismatch, a.worst_expected = b.worst_expected, a.worst_got = b.worst_got;
    a.max_abs = std::max(a.max_abs, b.max_abs), a.max_rel = std::max(a.max_rel, b.max_rel),
    a.max_ulp = std::max(a.max_ulp, b.max_ulp);
    a.mismatches += b.mismatches;
  }
}

CompareResult against_onnxruntime(const Session& s, const Model& m, const std::vector<Tensor>& inputs, double rtol,
                                  double atol) {
  CompareResult c;
  c.reference = "onnxruntime";
  const std::unique_ptr<CompiledModel> compiled = compile_model(m, s.settings);
  std::vector<Tensor> got;
  compiled->run(inputs, got);
  const std::vector<Tensor> want = run_onnxruntime(s, m, inputs);
  const std::vector<std::string> names = compiled->output_names();
  GAF_CHECK(want.size() == got.size()) << "onnxruntime gave " << want.size() << " outputs";
  const std::vector<DType> computed = computed_in(m.graph);
  for (size_t i = 0; i < got.size(); i++) {
    c.outputs.push_back(difference(names[i], want[i], got[i], rtol, atol, computed[i]));
    c.pass = c.pass && c.outputs.back().mismatches == 0;
  }
  return c;
}

}  // namespace

int command_compare(const Session& s) {
  const std::string reference = s.line.choice("reference", "interp", {"interp", "unfused", "onnxruntime"});
  const double rtol = s.line.number("rtol", -1, 0), atol = s.line.number("atol", -1, 0);
  const auto trials = static_cast<int>(s.line.whole("trials", 1, 1, 10'000));
  const Model m = s.load();
  CompareResult c;
  {
    const Progress p("comparing", s.progress());
    for (int t = 0; t < trials; t++) {
      const std::vector<Tensor> inputs = s.inputs(m, s.seed() + static_cast<uint64_t>(t));
      CompareResult one = reference == "onnxruntime"
                              ? against_onnxruntime(s, m, inputs, rtol, atol)
                              : compare_model(m, s.settings, inputs, reference, s.line.has("per-kernel"), rtol, atol);
      if (t == 0) {
        c = std::move(one);
        continue;
      }
      c.pass = c.pass && one.pass;
      take_worst(c.outputs, one.outputs);
      for (size_t k = 0; k < c.kernels.size() && k < one.kernels.size(); k++)
        take_worst(c.kernels[k].second, one.kernels[k].second);
    }
    c.trials = trials;
  }
  std::vector<std::vector<std::string>> rows{{"output", "dtype", "max abs", "max rel", "max ulp", "mismatches", ""}};
  for (const OutputDifference& d : c.outputs) rows.push_back(row(d.name, d));
  for (const auto& [kernel, all] : c.kernels)
    for (const OutputDifference& d : all) rows.push_back(row("  " + kernel + "." + d.name, d));
  s.say(columns(rows) + fmt::format("verdict: {} against {}, {} trial{}\n",
                                    tinted(stdout, c.pass ? Tint::green : Tint::red, c.pass ? "pass" : "fail"),
                                    c.reference, trials, trials == 1 ? "" : "s"));
  s.document(compare_json(c));
  if (!c.pass && !s.json())
    for (const OutputDifference& d : c.outputs)
      if (d.mismatches)
        throw UserError("GAF7001", fmt::format("output '{}': {} values differ, worst {:.2g}, first at element {}",
                                               d.name, d.mismatches, d.max_abs, d.first_mismatch));
  return c.pass ? 0 : 1;
}

}  // namespace gaf
