// gaf bench: fused against unfused, interleaved, and against ONNX Runtime on request (CONTRACT 1.3).
#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/onnxruntime.h"
#include "results.h"

namespace gaf {
namespace {

std::vector<std::string> row(const std::string& name, const Quantiles& q, const std::string& kernels) {
  return {name, fmt::format("{:.1f} us", q.median), fmt::format("{:.1f}", q.p10), fmt::format("{:.1f}", q.p90),
          kernels};
}

}  // namespace

int command_bench(const Session& s) {
  const int runs = static_cast<int>(s.line.whole("runs", 50, 1, 1'000'000)),
            warmup = static_cast<int>(s.line.whole("warmup", 5, 0, 1'000'000));
  const double min_time = s.line.number("min-time", 1.0, 0);
  if (s.line.has("baseline") && s.line.choice("baseline", "", {"onnxruntime", "torch"}) == "torch")
    throw UserError("GAF4009", "'--baseline torch' is not available in this version", "use --baseline onnxruntime");
  const Model m = s.load();
  const std::vector<Tensor> inputs = s.inputs(m);
  BenchResult b;
  {
    const Progress p("measuring", s.progress());
    b = bench_model(m, s.settings, inputs, runs, warmup, min_time);
  }
  std::optional<BaselineTimes> ort;
  if (s.line.has("baseline")) ort = time_onnxruntime(s, m, inputs, runs, warmup);

  std::vector<std::vector<std::string>> rows{{"", "median", "p10", "p90", "kernels"},
                                             row("unfused", b.unfused_us, std::to_string(b.kernels_unfused)),
                                             row("fused", b.fused_us, std::to_string(b.kernels_fused))};
  if (ort) rows.push_back(row("onnxruntime", ort->us, ""));
  std::string text = columns(rows, {false, true, true, true, true});
  const Tint tint = b.verdict == "faster" ? Tint::green : b.verdict == "slower" ? Tint::red : Tint::bold;
  text += fmt::format(
      "speed-up   {:.2f}x  (95 % interval {:.2f} .. {:.2f})   verdict: {}     compile {:.0f} ms ({} kernels, {} from "
      "cache)\n",
      b.speedup, b.low, b.high, tinted(stdout, tint, b.verdict), b.compile_ms, b.kernels_fused, b.cache_hits);
  if (ort) text += fmt::format("against onnxruntime {}: {:.2f}x\n", ort->version, ort->us.median / b.fused_us.median);
  s.say(text);
  Json d = bench_json(b, m.name, s.settings);
  if (ort)
    d.set("baselines",
          Json::object({{"onnxruntime", Json::object({{"version", ort->version},
                                                      {"median", ort->us.median},
                                                      {"p10", ort->us.p10},
                                                      {"p90", ort->us.p90},
                                                      {"speedup", ort->us.median / b.fused_us.median}})}}));
  s.document(d);
  if (!s.line.has("fail-if-slower") || b.verdict != "slower") return 0;
  if (!s.json()) throw UserError("GAF7003", fmt::format("fused {:.1f} % slower", 100 * (1 / b.speedup - 1)));
  return 1;
}

}  // namespace gaf
