// Ops with a state that runs along the sequence, of opset 27: LinearAttention and CausalConvWithState.
#include <fmt/format.h>

#include <cmath>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

void infer_linear_attention(InferContext& c) {
  for (size_t i = 0; i < 3; i++) need_rank(c, i, 3);
  const int64_t q_heads = attr_int(c.node, "q_num_heads", 0), kv_heads = attr_int(c.node, "kv_num_heads", 0);
  if (q_heads <= 0 || kv_heads <= 0 || q_heads % kv_heads)
    c.fail("GAF3101", fmt::format("q_num_heads={} is no multiple of kv_num_heads={}", q_heads, kv_heads));
  const Dims &q = c.arg(0).dims, &v = c.arg(2).dims;
  const Dim k_size = floordiv(q[2], Expr(q_heads)), v_size = floordiv(v[2], Expr(kv_heads));
  c.types = {{c.arg(0).dtype, {q[0], q[1], Expr(q_heads) * v_size}},
             {c.has_arg(3) ? c.arg(3).dtype : c.arg(0).dtype, {q[0], kv_heads, k_size, v_size}}};
}

// S = exp(g) S + k (x) (v or beta (v - S^T k)); o = scale q^T S, token by token
void eval_linear_attention(EvalContext& c) {
  const Tensor &q = arg(c, 0), &v = arg(c, 2);
  const int64_t q_heads = attr_int(c.node, "q_num_heads", 1), kv_heads = attr_int(c.node, "kv_num_heads", 1),
                group = q_heads / kv_heads;
  const int64_t batch = q.dims[0], length = q.dims[1], dk = q.dims[2] / q_heads, dv = v.dims[2] / kv_heads;
  const std::string rule = attr_str(c.node, "update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (gated != has(c, 4) || delta != has(c, 5))
    fail(c, "GAF3101", fmt::format("decay and beta do not fit update_rule '{}'", rule));
  double scale = attr_float(c.node, "scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(dk));
  const auto qs = elements<double>(q), ks = elements<double>(arg(c, 1)), vs = elements<double>(v);
  const auto decay = gated ? elements<double>(arg(c, 4)) : std::vector<double>{};
  const auto beta = delta ? elements<double>(arg(c, 5)) : std::vector<double>{};
  const int64_t decays = gated ? arg(c, 4).dims[2] : 0, betas = delta ? arg(c, 5).dims[2] : 0;
  if (dk * q_heads != q.dims[2] || dv * kv_heads != v.dims[2])
    fail(c, "GAF3101", "the heads do not divide the operands");
  arg_of(c, 1, batch * length * kv_heads * dk);
  arg_of(c, 2, batch * length * kv_heads * dv);
  if (has(c, 3)) arg_of(c, 3, batch * kv_heads * dk * dv);
  if (gated) arg_of(c, 4, batch * length * (decays == kv_heads ? kv_heads : kv_heads * dk));
  if (delta) arg_of(c, 5, batch * length * (betas == 1 ? 1 : kv_heads));
  const size_t state_size = static_cast<size_t>(batch * kv_heads * dk * dv);
  std::vector<double> state = has(c, 3) ? elements<double>(arg(c, 3)) : std::vector<double>(state_size, 0.0);
  std::vector<double> out(static_cast<size_t>(batch * length * q_heads * dv), 0.0), update(static_cast<size_t>(dv));
  for (int64_t b = 0; b < batch; b++)
    for (int64_t h = 0; h < kv_heads; h++) {
      double* s = state.data() + (b * kv_heads + h) * dk * dv;
      for (int64_t t = 0; t < length; t++) {
        const double* k = ks.data() + ((b * length + t) * kv_heads + h) * dk;
        const double* x = vs.data() + ((b * length + t) * kv_heads + h) * dv;
        for (int64_t i = 0; i < dk && gated; i++) {
          const double g =
              decay[static_cast<size_t>((b * length + t) * decays + (decays == kv_heads ? h : h * dk + i))];
          for (int64_t j = 0; j < dv; j++) s[i * dv + j] *= std::exp(g);
        }
        for (int64_t j = 0; j < dv; j++) {
          double seen = 0;
          for (int64_t i = 0; i < dk && delta; i++) seen += s[i * dv + j] * k[i];
          const double rate = delta ? beta[static_cast<size_t>((b * length + t) * betas + (betas == 1 ? 0 : h))] : 1;
          update[static_cast<size_t>(j)] = rate * (x[j] - seen);
        }
        for (int64_t i = 0; i < dk; i++)
          for (int64_t j = 0; j < dv; j++) s[i * dv + j] += k[i] * update[static_cast<size_t>(j)];
        for (int64_t g = 0; g < group; g++) {
          const int64_t head = h * group + g;
          const double* query = qs.data() + ((b * length + t) * q_heads + head) * dk;
          double* o = out.data() + ((b * length + t) * q_heads + head) * dv;
          for (int64_t i = 0; i < dk; i++)
            for (int64_t j = 0; j < dv; j++) o[j] += scale * query[i] * s[i * dv + j];
        }
      }
    }
  c.results = {tensor_of(q.dtype, {batch, length, q_heads * dv}, out),
               tensor_of(has(c, 3) ? arg(c, 3).dtype : q.dtype, {batch, kv_heads, dk, dv}, state)};
}

void infer_causal_conv(InferContext& c) {
  for (size_t i = 0; i < 2; i++) need_rank(c, i, 3);
  const Dims& x = c.arg(0).dims;
  c.types = {c.arg(0), {c.arg(0).dtype, {x[0], x[1], c.arg(1).dims[2] - Expr(1)}}};
}

void eval_causal_conv(EvalContext& c) {
  const Tensor &x = arg(c, 0), &w = arg(c, 1);
  const int64_t batch = x.dims[0], channels = x.dims[1], length = x.dims[2], taps = w.dims[2], before = taps - 1;
  arg_of(c, 1, channels * taps);
  if (has(c, 2)) arg_of(c, 2, channels);
  if (has(c, 3)) arg_of(c, 3, batch * channels * before);
  const auto xs = elements<double>(x), ws = elements<double>(w);
  const auto bias = has(c, 2) ? elements<double>(arg(c, 2)) : std::vector<double>(static_cast<size_t>(channels), 0.0);
  const auto past = has(c, 3) ? elements<double>(arg(c, 3))
                              : std::vector<double>(static_cast<size_t>(batch * channels * before), 0.0);
  const std::string activation = attr_str(c.node, "activation", "none");
  std::vector<double> out(xs.size()), state, line(static_cast<size_t>(before + length));
  for (int64_t r = 0; r < batch * channels; r++) {
    std::copy(past.begin() + r * before, past.begin() + (r + 1) * before, line.begin());
    std::copy(xs.begin() + r * length, xs.begin() + (r + 1) * length, line.begin() + before);
    for (int64_t t = 0; t < length; t++) {
      double acc = bias[static_cast<size_t>(r % channels)];
      for (int64_t k = 0; k < taps; k++)
        acc += line[static_cast<size_t>(t + k)] * ws[static_cast<size_t>(r % channels * taps + k)];
      out[static_cast<size_t>(r * length + t)] = activation == "none" ? acc : acc / (1 + std::exp(-acc));
    }
    state.insert(state.end(), line.end() - before, line.end());
  }
  c.results = {tensor_of(x.dtype, x.dims, out), tensor_of(x.dtype, {batch, channels, before}, state)};
}

const OpRow kRows[] = {
    {.name = "LinearAttention",
     .friendly = "LinearAttention",
     .kind = OpKind::other,
     .min_args = 3,
     .max_args = 6,
     .results = -1,
     .infer = infer_linear_attention,
     .eval = eval_linear_attention,
     .ulp = 64,
     .cheap = false},
    {.name = "CausalConvWithState",
     .friendly = "CausalConv",
     .kind = OpKind::other,
     .min_args = 2,
     .max_args = 4,
     .results = -1,
     .infer = infer_causal_conv,
     .eval = eval_causal_conv,
     .ulp = 64,
     .cheap = false},
};

}  // namespace

std::span<const OpRow> state_space_rows() { return kRows; }

}  // namespace gaf
