// Losses over classes: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. The class is dim 1.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

void infer_loss(InferContext& c) {
  const Type& x = c.arg(0);
  if (x.dims.size() < 2) c.fail("GAF3101", "batch and class dimensions are needed");
  const bool each = attr_str(c.node, "reduction", "mean") == "none";
  c.types = {{x.dtype, each ? c.arg(1).dims : Dims{}}, x};
  if (c.node.op == "NegativeLogLikelihoodLoss") c.types.pop_back();
}

// `logs`: log probabilities [n, classes, inner]
Tensor loss_of(const EvalContext& c, const std::vector<double>& logs) {
  const Tensor &x = arg(c, 0), &target = arg(c, 1);
  const int64_t classes = x.dims[1], inner = numel(Ints(x.dims.begin() + 2, x.dims.end()));
  const Ints labels = elements<int64_t>(arg_of(c, 1, x.dims[0] * inner));
  const auto weights =
      has(c, 2) ? elements<double>(arg_of(c, 2, classes)) : std::vector<double>(static_cast<size_t>(classes), 1.0);
  const bool ignores = c.node.attrs.contains("ignore_index");
  const int64_t ignored = attr_int(c.node, "ignore_index", -1);
  std::vector<double> loss(labels.size());
  double total = 0, weight = 0;
  for (size_t i = 0; i < labels.size(); i++) {
    const int64_t label = labels[i], k = static_cast<int64_t>(i);
    if (ignores && label == ignored) continue;
    if (label < 0 || label >= classes) fail(c, "GAF6001", fmt::format("class {} out of range [0,{})", label, classes));
    const double w = weights[static_cast<size_t>(label)];
    loss[i] = -logs[static_cast<size_t>((k / inner * classes + label) * inner + k % inner)] * w;
    total += loss[i];
    weight += w;
  }
  const std::string reduction = attr_str(c.node, "reduction", "mean");
  if (reduction == "none") return tensor_of(x.dtype, target.dims, loss);
  return tensor_of(x.dtype, {}, std::vector<double>{reduction == "sum" ? total : total / weight});
}

void eval_nll(EvalContext& c) { c.results = {loss_of(c, elements<double>(arg(c, 0)))}; }

void eval_cross_entropy(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const int64_t classes = x.dims[1], inner = numel(Ints(x.dims.begin() + 2, x.dims.end()));
  std::vector<double> v = elements<double>(x);
  for (int64_t r = 0; r < x.dims[0] * inner; r++) {
    double* p = v.data() + r / inner * classes * inner + r % inner;
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < classes; k++) top = std::max(top, p[k * inner]);
    for (int64_t k = 0; k < classes; k++) sum += std::exp(p[k * inner] - top);
    for (int64_t k = 0; k < classes; k++) p[k * inner] -= top + std::log(sum);
  }
  c.results = {loss_of(c, v), tensor_of(x.dtype, x.dims, v)};
}

const OpRow kRows[] = {
    {.name = "NegativeLogLikelihoodLoss",
     .friendly = "NLLLoss",
     .kind = OpKind::other,
     .min_args = 2,
     .max_args = 3,
     .infer = infer_loss,
     .eval = eval_nll,
     .ulp = 32},
    {.name = "SoftmaxCrossEntropyLoss",
     .friendly = "CrossEntropy",
     .kind = OpKind::other,
     .min_args = 2,
     .max_args = 3,
     .results = -1,
     .infer = infer_loss,
     .eval = eval_cross_entropy,
     .ulp = 32},
};

}  // namespace

std::span<const OpRow> loss_rows() { return kRows; }

}  // namespace gaf
