// Ops that draw numbers. With a `seed` a node gives the same numbers in every run; without one each evaluation has a
// stream of its own, so that two equal nodes, and two runs, differ. Folding and merging leave these ops alone
// (rewrite/fold.cpp).
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numbers>
#include <random>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {
namespace {

class Stream {
 public:
  explicit Stream(const Node& n) : words_(seed_of(n)) {}
  double uniform() { return static_cast<double>(words_() >> 11) * 0x1p-53; }  // in [0, 1)
  double normal() {                                                           // Box and Muller, 1958
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 words_;

  static uint64_t seed_of(const Node& n) {
    if (n.attrs.contains("seed")) return std::bit_cast<uint64_t>(attr_float(n, "seed", 0));
    static std::atomic<uint64_t> next{(uint64_t{std::random_device{}()} << 32) | std::random_device{}()};
    return next++;
  }
};

template <class Draw>
Tensor drawn(DType t, const Ints& dims, Draw draw) {
  std::vector<double> all(static_cast<size_t>(numel(dims)));
  for (double& v : all) v = draw();
  return tensor_of(t, dims, all);
}

bool like(const Node& n) { return n.op.ends_with("Like"); }

void infer_random(InferContext& c) {
  Type t{DType::f32, {}};
  if (like(c.node)) t = c.arg(0);
  const DType wanted = dtype_attr(c.node, "dtype", t.dtype);
  if (!is_float(wanted)) c.fail("GAF3101", "draws floating-point numbers only", "give a float dtype");
  if (!like(c.node)) {
    if (!c.node.attrs.contains("shape")) c.fail("GAF3001", "has no attribute 'shape'");
    for (int64_t d : attr_ints(c.node, "shape")) t.dims.emplace_back(d);
  }
  t.dtype = wanted;
  c.types = {t};
}

template <bool normal>
void eval_random(EvalContext& c) {
  const Ints dims = like(c.node) ? arg(c, 0).dims : attr_ints(c.node, "shape");
  Stream s(c.node);
  if constexpr (normal) {
    const double mean = attr_float(c.node, "mean", 0), scale = attr_float(c.node, "scale", 1);
    c.results = {drawn(c.types[0].dtype, dims, [&] { return mean + scale * s.normal(); })};
  } else {
    const double low = attr_float(c.node, "low", 0), high = attr_float(c.node, "high", 1);
    c.results = {drawn(c.types[0].dtype, dims, [&] { return low + (high - low) * s.uniform(); })};
  }
}

void infer_bernoulli(InferContext& c) {
  Type t = c.arg(0);
  t.dtype = dtype_attr(c.node, "dtype", t.dtype);
  c.types = {t};
}
void eval_bernoulli(EvalContext& c) {
  const Tensor& p = arg(c, 0);
  Stream s(c.node);
  int64_t i = 0;
  c.results = {drawn(c.types[0].dtype, p.dims, [&] { return s.uniform() < p.get(i++) ? 1.0 : 0.0; })};
}

// Rows of unnormalised log-probabilities -> `sample_size` classes of each.
void infer_multinomial(InferContext& c) {
  need_rank(c, 0, 2);
  c.types = {{dtype_attr(c.node, "dtype", DType::i32), {c.arg(0).dims[0], Expr(attr_int(c.node, "sample_size", 1))}}};
}
void eval_multinomial(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const int64_t rows = x.dims[0], classes = x.dims[1], count = attr_int(c.node, "sample_size", 1);
  if (classes == 0) fail(c, "GAF6002", "Multinomial of no classes");
  Stream s(c.node);
  Ints all;
  for (int64_t r = 0; r < rows; r++) {
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++) most = std::max(most, x.get(r * classes + k));
    std::vector<double> below;
    for (int64_t k = 0; k < classes; k++) below.push_back(sum += std::exp(x.get(r * classes + k) - most));
    for (int64_t n = 0; n < count; n++) {
      const auto at = std::upper_bound(below.begin(), below.end() - 1, s.uniform() * sum);
      all.push_back(at - below.begin());
    }
  }
  c.results = {tensor_of(c.types[0].dtype, {rows, count}, all)};
}

OpRow row(std::string_view name, int args, void (*infer)(InferContext&), void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = args,
          .max_args = args,
          .infer = infer,
          .eval = eval};
}

const OpRow kRows[] = {
    row("RandomUniform", 0, infer_random, eval_random<false>),
    row("RandomUniformLike", 1, infer_random, eval_random<false>),
    row("RandomNormal", 0, infer_random, eval_random<true>),
    row("RandomNormalLike", 1, infer_random, eval_random<true>),
    row("Bernoulli", 1, infer_bernoulli, eval_bernoulli),
    row("Multinomial", 1, infer_multinomial, eval_multinomial),
};

}  // namespace

std::span<const OpRow> draw_rows() { return kRows; }

}  // namespace gaf
