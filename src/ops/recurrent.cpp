// Recurrent ops: LSTM, GRU and RNN, by the equations of the ONNX operators. Weights are [directions, gates * hidden,
// ...]; layout=1 puts the batch first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

bool batch_first(const Node& n) { return attr_int(n, "layout", 0) != 0; }

int64_t gates(const Node& n) { return n.op == "LSTM" ? 4 : n.op == "GRU" ? 3 : 1; }

void infer_recurrent(InferContext& c) {
  const Type &x = c.arg(0), &w = c.arg(1), &r = c.arg(2);
  need_rank(c, 0, 3);
  need_rank(c, 1, 3);
  need_rank(c, 2, 3);
  const Dim directions = w.dims[0], hidden = r.dims[2];
  if (hidden.is_num() && r.dims[1].is_num() && r.dims[1].num() != gates(c.node) * hidden.num())
    c.fail("GAF3101", fmt::format("{} rows of recurrent weights for {} hidden units", r.dims[1].num(), hidden.num()));
  if (directions.is_num() && directions.num() != (attr_str(c.node, "direction", "forward") == "bidirectional" ? 2 : 1))
    c.fail("GAF3101", "the weights do not fit the attribute 'direction'");
  const bool first = batch_first(c.node);
  const Dim seq = x.dims[first ? 1 : 0], batch = x.dims[first ? 0 : 1];
  const Dims all = first ? Dims{batch, seq, directions, hidden} : Dims{seq, directions, batch, hidden};
  const Dims last = first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  c.types = {{x.dtype, all}, {x.dtype, last}};
  if (c.node.op == "LSTM") c.types.push_back({x.dtype, last});
}

// ---- activation functions by name ----

struct Activation {
  std::string name;
  double alpha, beta;
  double operator()(double x) const {
    if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
    if (name == "Tanh") return std::tanh(x);
    if (name == "Relu") return std::max(0.0, x);
    if (name == "Affine") return alpha * x + beta;
    if (name == "LeakyRelu") return x < 0 ? alpha * x : x;
    if (name == "ThresholdedRelu") return x > alpha ? x : 0;
    if (name == "ScaledTanh") return alpha * std::tanh(beta * x);
    if (name == "HardSigmoid") return std::min(1.0, std::max(0.0, alpha * x + beta));
    if (name == "Elu") return x < 0 ? alpha * std::expm1(x) : x;
    if (name == "Softsign") return x / (1 + std::fabs(x));
    return std::log1p(std::exp(x));  // Softplus
  }
};

std::vector<double> floats(const Node& n, const char* key) {
  auto it = n.attrs.find(key);
  if (it == n.attrs.end()) return {};
  if (const auto* v = std::get_if<std::vector<double>>(&it->second)) return *v;
  return {};
}

// The activation functions of one direction.
std::vector<Activation> activations(const EvalContext& c, size_t direction) {
  const size_t per = c.node.op == "LSTM" ? 3 : c.node.op == "GRU" ? 2 : 1;
  std::vector<std::string> names;
  if (auto it = c.node.attrs.find("activations"); it != c.node.attrs.end())
    if (const auto* v = std::get_if<std::vector<std::string>>(&it->second)) names = *v;
  const auto alphas = floats(c.node, "activation_alpha"), betas = floats(c.node, "activation_beta");
  const std::vector<std::string> fallback =
      c.node.op == "RNN" ? std::vector<std::string>{"Tanh"} : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  // alphas and betas are given only for the functions that take one, in order
  auto has_alpha = [](const std::string& f) {
    return f != "Sigmoid" && f != "Tanh" && f != "Relu" && f != "Softsign" && f != "Softplus";
  };
  auto has_beta = [](const std::string& f) { return f == "Affine" || f == "ScaledTanh" || f == "HardSigmoid"; };
  auto default_alpha = [](const std::string& f) { return f == "LeakyRelu" ? 0.01 : f == "HardSigmoid" ? 0.2 : 1.0; };
  auto default_beta = [](const std::string& f) { return f == "HardSigmoid" ? 0.5 : f == "Affine" ? 0.0 : 1.0; };
  static const char* kKnown[] = {"Sigmoid",    "Tanh",        "Relu", "Affine",   "LeakyRelu", "ThresholdedRelu",
                                 "ScaledTanh", "HardSigmoid", "Elu",  "Softsign", "Softplus"};
  std::vector<Activation> all;
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < per * (direction + 1); i++) {
    const std::string name = i < names.size() ? names[i] : fallback[i % per];
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
      fail(c, "GAF3101", fmt::format("unknown activation '{}'", name));
    Activation a{name, default_alpha(name), default_beta(name)};
    if (has_alpha(name) && alpha < alphas.size()) a.alpha = alphas[alpha++];
    if (has_beta(name) && beta < betas.size()) a.beta = betas[beta++];
    if (i >= per * direction) all.push_back(a);
  }
  return all;
}

// ---- one direction ----

struct Cell {
  int64_t hidden, inputs, gates;
  const double *w, *r, *wb, *rb, *p;  // wb, rb, p: null if absent
  std::vector<Activation> f;
  double clip;
  bool coupled, linear_before_reset;

  // pre[g] = x W[g]^T + wb[g] (+ h R[g]^T + rb[g])
  double gate(int64_t g, int64_t j, const double* x, const double* h, bool recurrent = true) const {
    const int64_t row = g * hidden + j;
    double acc = wb ? wb[row] : 0;
    for (int64_t k = 0; k < inputs; k++) acc += x[k] * w[row * inputs + k];
    return recurrent ? acc + recur(g, j, h) : acc;
  }
  double recur(int64_t g, int64_t j, const double* h) const {
    const int64_t row = g * hidden + j;
    double acc = rb ? rb[row] : 0;
    for (int64_t k = 0; k < hidden; k++) acc += h[k] * r[row * hidden + k];
    return acc;
  }
  double clipped(double v) const { return clip > 0 ? std::clamp(v, -clip, clip) : v; }
};

void lstm_step(const Cell& c, const double* x, std::vector<double>& h, std::vector<double>& state) {
  std::vector<double> next(h.size());
  for (int64_t j = 0; j < c.hidden; j++) {  // gates in the order i, o, f, c
    const auto k = static_cast<size_t>(j);
    auto peep = [&](int64_t g) { return c.p ? c.p[g * c.hidden + j] : 0.0; };
    const double in = c.f[0](c.clipped(c.gate(0, j, x, h.data()) + peep(0) * state[k]));
    const double forget = c.coupled ? 1 - in : c.f[0](c.clipped(c.gate(2, j, x, h.data()) + peep(2) * state[k]));
    const double candidate = c.f[1](c.clipped(c.gate(3, j, x, h.data())));
    state[k] = forget * state[k] + in * candidate;
    const double out = c.f[0](c.clipped(c.gate(1, j, x, h.data()) + peep(1) * state[k]));
    next[k] = out * c.f[2](state[k]);
  }
  h = next;
}

void gru_step(const Cell& c, const double* x, std::vector<double>& h) {  // gates in the order z, r, h
  std::vector<double> update(h.size()), reset(h.size()), gated(h.size()), next(h.size());
  for (int64_t j = 0; j < c.hidden; j++) {
    update[static_cast<size_t>(j)] = c.f[0](c.clipped(c.gate(0, j, x, h.data())));
    reset[static_cast<size_t>(j)] = c.f[0](c.clipped(c.gate(1, j, x, h.data())));
  }
  for (size_t j = 0; j < h.size(); j++) gated[j] = reset[j] * h[j];
  for (int64_t j = 0; j < c.hidden; j++) {
    const auto k = static_cast<size_t>(j);
    const double inner = c.linear_before_reset ? reset[k] * c.recur(2, j, h.data()) : c.recur(2, j, gated.data());
    const double candidate = c.f[1](c.clipped(c.gate(2, j, x, nullptr, false) + inner));
    next[k] = (1 - update[k]) * candidate + update[k] * h[k];
  }
  h = next;
}

void rnn_step(const Cell& c, const double* x, std::vector<double>& h) {
  std::vector<double> next(h.size());
  for (int64_t j = 0; j < c.hidden; j++) next[static_cast<size_t>(j)] = c.f[0](c.clipped(c.gate(0, j, x, h.data())));
  h = next;
}

void eval_recurrent(EvalContext& c) {
  const bool first = batch_first(c.node), lstm = c.node.op == "LSTM";
  const Tensor x = first ? transposed(arg(c, 0), {1, 0, 2}) : arg(c, 0);
  const int64_t seq = x.dims[0], batch = x.dims[1], inputs = x.dims[2];
  const int64_t directions = arg(c, 1).dims[0], hidden = arg(c, 2).dims[2], g = gates(c.node);
  for (size_t i : {size_t{5}, size_t{6}})
    if (has(c, i) && (i == 5 || lstm)) arg_of(c, i, directions * batch * hidden);
  if (has(c, 3)) arg_of(c, 3, directions * 2 * g * hidden);
  if (has(c, 7) && lstm) arg_of(c, 7, directions * 3 * hidden);
  if (has(c, 4)) arg_of(c, 4, batch);
  arg_of(c, 1, directions * g * hidden * inputs);
  arg_of(c, 2, directions * g * hidden * hidden);
  const std::vector<double> data = elements<double>(x), w = elements<double>(arg(c, 1)),
                            r = elements<double>(arg(c, 2));
  auto optional = [&](size_t i) { return has(c, i) ? elements<double>(arg(c, i)) : std::vector<double>{}; };
  auto initial = [&](size_t i) {
    if (!has(c, i)) return std::vector<double>(static_cast<size_t>(directions * batch * hidden), 0.0);
    return elements<double>(first ? transposed(arg(c, i), {1, 0, 2}) : arg(c, i));
  };
  const std::vector<double> bias = optional(3), peep = lstm ? optional(7) : std::vector<double>{};
  const Ints lengths = has(c, 4) ? elements<int64_t>(arg(c, 4)) : Ints(static_cast<size_t>(batch), seq);
  std::vector<double> h0 = initial(5), c0 = lstm ? initial(6) : std::vector<double>{};
  std::vector<double> all(static_cast<size_t>(seq * directions * batch * hidden), 0.0);
  const std::string direction = attr_str(c.node, "direction", "forward");
  for (int64_t d = 0; d < directions; d++) {
    const double* b = bias.empty() ? nullptr : bias.data() + d * 2 * g * hidden;
    const Cell cell{hidden,
                    inputs,
                    g,
                    w.data() + d * g * hidden * inputs,
                    r.data() + d * g * hidden * hidden,
                    b,
                    b ? b + g * hidden : nullptr,
                    peep.empty() ? nullptr : peep.data() + d * 3 * hidden,
                    activations(c, static_cast<size_t>(d)),
                    attr_float(c.node, "clip", 0),
                    attr_int(c.node, "input_forget", 0) != 0,
                    attr_int(c.node, "linear_before_reset", 0) != 0};
    const bool backwards = direction == "reverse" || d == 1;
    for (int64_t n = 0; n < batch; n++) {
      const auto at = static_cast<ptrdiff_t>((d * batch + n) * hidden);
      std::vector<double> h(h0.begin() + at, h0.begin() + at + hidden);
      std::vector<double> state =
          lstm ? std::vector<double>(c0.begin() + at, c0.begin() + at + hidden) : std::vector<double>{};
      const int64_t length = std::min(seq, lengths[static_cast<size_t>(n)]);
      for (int64_t k = 0; k < length; k++) {
        const int64_t t = backwards ? length - 1 - k : k;
        const double* in = data.data() + (t * batch + n) * inputs;
        if (lstm)
          lstm_step(cell, in, h, state);
        else if (g == 3)
          gru_step(cell, in, h);
        else
          rnn_step(cell, in, h);
        std::copy(h.begin(), h.end(),
                  all.begin() + static_cast<ptrdiff_t>(((t * directions + d) * batch + n) * hidden));
      }
      std::copy(h.begin(), h.end(), h0.begin() + at);
      if (lstm) std::copy(state.begin(), state.end(), c0.begin() + at);
    }
  }
  const DType t = x.dtype;
  Tensor y = tensor_of(t, {seq, directions, batch, hidden}, all), yh = tensor_of(t, {directions, batch, hidden}, h0);
  c.results = {first ? transposed(y, {2, 0, 1, 3}) : y, first ? transposed(yh, {1, 0, 2}) : yh};
  if (lstm) {
    Tensor yc = tensor_of(t, {directions, batch, hidden}, c0);
    c.results.push_back(first ? transposed(yc, {1, 0, 2}) : yc);
  }
}

OpRow recurrent(std::string_view name, int max_args) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = 3,
          .max_args = max_args,
          .results = -1,
          .infer = infer_recurrent,
          .eval = eval_recurrent,
          .ulp = 64,
          .cheap = false};
}

const OpRow kRows[] = {recurrent("LSTM", 8), recurrent("GRU", 6), recurrent("RNN", 6)};

}  // namespace

std::span<const OpRow> recurrent_rows() { return kRows; }

}  // namespace gaf
