// Comparing and timing: fused against a reference, fused against unfused interleaved in one process; deterministic inputs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "compile.h"
#include "ops/op.h"

namespace gaf {
namespace {

struct Tolerance {
  double rtol, atol;
};
Tolerance tolerance(DType t) {  // CONTRACT 12.3
  switch (t) {
    case DType::f64: return {1e-7, 1e-9};
    case DType::f32: return {1.3e-6, 1e-5};
    case DType::f16: return {1e-3, 1e-5};
    case DType::bf16: return {1.6e-2, 1e-5};
    default: return {0, 0};
  }
}
// Distance in units in the last place of the dtype at the wanted value.
double ulp_distance(DType t, double want, double got) {
  if (want == got) return 0;
  int bits = t == DType::f64 ? 52 : t == DType::f32 ? 23 : t == DType::f16 ? 10 : 7;
  int least = t == DType::f64 ? -1022 : t == DType::f16 ? -14 : -126;
  int e = want == 0 ? least : std::max(least, std::ilogb(want));
  return std::fabs(got - want) / std::ldexp(1.0, e - bits);
}

Settings unfused(const Settings& s) {
  Settings u = s;
  u.config.level = 0;
  return u;
}

double quantile(std::vector<double> v, double q) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  double at = q * static_cast<double>(v.size() - 1);
  auto lo = static_cast<size_t>(at);
  size_t hi = std::min(lo + 1, v.size() - 1);
  return v[lo] + (v[hi] - v[lo]) * (at - static_cast<double>(lo));
}
Quantiles quantiles(const std::vector<double>& v) { return {quantile(v, 0.5), quantile(v, 0.1), quantile(v, 0.9)}; }

}  // namespace

std::vector<DType> computed_in(const Graph& g) {
  auto coarser = [](std::optional<DType> a, std::optional<DType> b) { return !a || (b && tolerance(*b).rtol > tolerance(*a).rtol) ? b : a; };
  std::vector<std::optional<DType>> of(g.nodes.size());  // none: as given, or a whole number
  for (size_t i = 0; i < g.nodes.size(); i++) {
    const Node& n = g.nodes[i];
    if (n.op == "input" || n.op == "constant" || n.types.empty() || !is_float(n.types[0].dtype)) continue;
    for (Value v : n.args)
      if (v != kNoValue) of[i] = coarser(of[i], of[v.node]);
    const bool moved = is_kind(n, OpKind::view) || n.op == "Cast";  // of what is given, equal however it is done
    if (of[i] || !moved) of[i] = coarser(of[i], n.types[0].dtype);
  }
  std::vector<DType> all;
  for (const Output& o : g.outputs) all.push_back(of[o.value.node].value_or(g.type(o.value).dtype));
  return all;
}

OutputDifference difference(const std::string& name, const Tensor& want, const Tensor& got, double rtol, double atol, std::optional<DType> computed) {
  OutputDifference d;
  d.name = name, d.dtype = want.dtype;
  const Tolerance t = tolerance(is_float(want.dtype) ? computed.value_or(want.dtype) : want.dtype);
  d.rtol = rtol >= 0 ? rtol : t.rtol, d.atol = atol >= 0 ? atol : t.atol;
  if (want.dims != got.dims || want.dtype != got.dtype) {
    d.mismatches = std::max<int64_t>(1, want.numel()), d.first_mismatch = 0;
    return d;
  }
  // sums of n terms err by about sqrt(n) roundings relative to the magnitude of the terms: that magnitude is the output's scale
  double scale = 0;
  if (is_float(want.dtype))
    for (int64_t i = 0; i < want.numel(); i++)
      if (double v = std::fabs(want.get(i)); std::isfinite(v)) scale = std::max(scale, v);
  double worst = -1;
  for (int64_t i = 0; i < want.numel(); i++) {
    if (!is_float(want.dtype)) {
      if (want.get_int(i) == got.get_int(i)) continue;
      d.max_abs = std::max(d.max_abs, std::fabs(want.get(i) - got.get(i)));
    } else {
      double a = want.get(i), b = got.get(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      double e = std::fabs(a - b);
      if (std::isfinite(e)) {
        d.max_abs = std::max(d.max_abs, e);
        if (a != 0) d.max_rel = std::max(d.max_rel, e / std::fabs(a));
        d.max_ulp = std::max(d.max_ulp, ulp_distance(want.dtype, a, b));
        if (e > worst) worst = e, d.worst_expected = a, d.worst_got = b;
        if (e <= d.atol + d.rtol * std::max(std::fabs(a), scale)) continue;
      }
    }
    if (d.first_mismatch < 0) d.first_mismatch = i;
    d.mismatches++;
  }
  return d;
}

CompareResult compare_model(const Model& m, const Settings& s, std::span<const Tensor> inputs, const std::string& reference, bool per_kernel,
                            double rtol, double atol) {
  CompareResult c;
  c.reference = reference;
  std::unique_ptr<CompiledModel> fused = compile_model(m, s);
  std::vector<Tensor> got, want;
  fused->run(inputs, got);
  if (reference == "unfused") compile_model(m, unfused(s))->run(inputs, want);
  else if (reference == "interp") want = interpret_graph(m.graph, inputs);
  else throw UserError("GAF1102", "unknown reference '" + reference + "'", "use interp or unfused");
  std::vector<std::string> names = fused->output_names();
  const std::vector<DType> computed = computed_in(m.graph);
  for (size_t i = 0; i < names.size(); i++) c.outputs.push_back(difference(names[i], want[i], got[i], rtol, atol, computed[i]));
  if (per_kernel) {  // each kernel alone, on the reference's own intermediate values
    const Graph& g = fused->planned().graph;
    std::vector<std::vector<Tensor>> values(g.nodes.size());
    for (uint32_t i = 0; i < g.nodes.size(); i++) {
      const Node& n = g.nodes[i];
      if (n.op == "input") {
        values[i] = {inputs[i]};
        continue;
      }
      if (n.op == "constant") {
        values[i] = {*attr_tensor(n, "value")};
        continue;
      }
      std::vector<Tensor> args;
      for (Value v : n.args)
        if (v != kNoValue) args.push_back(values[v.node][v.result]);
      if (n.op != "call") {
        values[i] = {eval_node_single(n, args)};
        continue;
      }
      const Graph& fn = g.kernels[static_cast<size_t>(n.callee)];
      values[i] = interpret_graph(fn, args);
      Model one;
      one.name = n.name, one.graph = fn;
      for (size_t k = 0; k < fn.num_inputs(); k++) one.graph.nodes[k].name = "x" + std::to_string(k);
      for (size_t k = 0; k < fn.outputs.size(); k++) one.graph.outputs[k].name = "y" + std::to_string(k);
      std::vector<Tensor> out;
      compile_model(one, s)->run(args, out);
      std::vector<OutputDifference> d;
      const std::vector<DType> within = computed_in(fn);
      for (size_t k = 0; k < out.size(); k++) d.push_back(difference("y" + std::to_string(k), values[i][k], out[k], rtol, atol, within[k]));
      c.kernels.push_back({n.name, d});
    }
  }
  for (const OutputDifference& d : c.outputs) c.pass = c.pass && d.mismatches == 0;
  for (const auto& [name, all] : c.kernels)
    for (const OutputDifference& d : all) c.pass = c.pass && d.mismatches == 0;
  return c;
}

BenchResult bench_model(const Model& m, const Settings& s, std::span<const Tensor> inputs, int runs, int warmup, double min_time_s) {
  using Clock = std::chrono::steady_clock;
  BenchResult b;
  std::unique_ptr<CompiledModel> sides[2] = {compile_model(m, unfused(s)), compile_model(m, s)};
  std::vector<Tensor> out[2];
  b.kernels_unfused = sides[0]->stats().kernels + sides[0]->stats().externs;
  b.kernels_fused = sides[1]->stats().kernels + sides[1]->stats().externs;
  b.compile_ms = sides[1]->stats().compile_ms, b.cache_hits = sides[1]->stats().cache_hits;
  for (int side : {0, 1})
    for (int i = 0; i < std::max(1, warmup); i++) sides[side]->run(inputs, out[side]);
  std::vector<double> us[2], ratios;
  Clock::time_point start = Clock::now();
  // Interleaved, the order swapped each round, so that drift of the machine hits both sides alike. A sample is one call or, for
  // short models, enough of them to outlast the clock.
  double once = 0;
  {
    Clock::time_point t = Clock::now();
    sides[1]->run(inputs, out[1]);
    once = std::chrono::duration<double, std::micro>(Clock::now() - t).count();
  }
  int repeat = static_cast<int>(std::clamp(200.0 / std::max(once, 0.1), 1.0, 1000.0));
  for (int i = 0; i < runs || (std::chrono::duration<double>(Clock::now() - start).count() < min_time_s && i < 100000); i++) {
    double round[2];
    for (int k : {0, 1}) {
      int side = (k + i) % 2;
      sides[side]->run(inputs, out[side]);  // the other side's data left the caches
      Clock::time_point t = Clock::now();
      for (int r = 0; r < repeat; r++) sides[side]->run(inputs, out[side]);
      round[side] = std::chrono::duration<double, std::micro>(Clock::now() - t).count() / repeat;
    }
    us[0].push_back(round[0]), us[1].push_back(round[1]), ratios.push_back(round[0] / round[1]);
  }
  b.runs = static_cast<int>(ratios.size());
  b.unfused_us = quantiles(us[0]), b.fused_us = quantiles(us[1]);
  b.speedup = quantile(ratios, 0.5);
  std::mt19937 rng(1);  // bootstrap of the median of per-round ratios
  std::vector<double> medians;
  for (int k = 0; k < 400; k++) {
    std::vector<double> sample(ratios.size());
    for (double& x : sample) x = ratios[rng() % ratios.size()];
    medians.push_back(quantile(sample, 0.5));
  }
  b.low = quantile(medians, 0.025), b.high = quantile(medians, 0.975);
  b.verdict = b.low > 1 ? "faster" : b.high < 1 ? "slower" : "same";
  return b;
}

}  // namespace gaf
