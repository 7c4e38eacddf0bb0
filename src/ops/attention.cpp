// Attention and rotary embeddings of the default domain (opset 23 and later), by their definitions: grouped heads,
// masks, causal and sliding windows, caches. Runs through `eval`; spelled-out attention is what kernels are made for.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

Dim heads_of(const InferContext& c, size_t i, const char* attr) {
  return c.arg(i).dims.size() == 4 ? c.arg(i).dims[1] : Expr(attr_int(c.node, attr, 1));
}

void infer_attention(InferContext& c) {
  const Type &q = c.arg(0), &k = c.arg(1), &v = c.arg(2);
  const bool packed = q.dims.size() == 3;
  if (!packed && q.dims.size() != 4) c.fail("GAF3101", "Q needs three or four dimensions");
  need_rank(c, 1, q.dims.size());
  need_rank(c, 2, q.dims.size());
  const Dim q_heads = heads_of(c, 0, "q_num_heads"), kv_heads = heads_of(c, 1, "kv_num_heads");
  if (kv_heads.is_num() && kv_heads.num() < 1) c.fail("GAF3101", "kv_num_heads must be positive");
  if (c.has_arg(4)) need_rank(c, 4, 4);
  if (packed && (!c.node.attrs.contains("q_num_heads") || !c.node.attrs.contains("kv_num_heads")))
    c.fail("GAF3101", "three-dimensional operands need q_num_heads and kv_num_heads");
  const Dim q_len = q.dims[packed ? 1 : 2], v_size = packed ? floordiv(v.dims[2], kv_heads) : v.dims[3];
  const Dim k_size = packed ? floordiv(k.dims[2], kv_heads) : k.dims[3];
  Dim total = k.dims[packed ? 1 : 2];
  if (c.has_arg(4)) total = total + c.arg(4).dims[2];
  c.types.push_back(
      {q.dtype, packed ? Dims{q.dims[0], q_len, q_heads * v_size} : Dims{q.dims[0], q_heads, q_len, v_size}});
  c.types.push_back({k.dtype, {k.dims[0], kv_heads, total, k_size}});
  c.types.push_back({v.dtype, {v.dims[0], kv_heads, total, v_size}});
  c.types.push_back({q.dtype, {q.dims[0], q_heads, q_len, total}});
}

// [batch, heads, length, size] from that or from [batch, length, heads * size]
Tensor by_heads(const EvalContext& c, const Tensor& t, int64_t heads) {
  if (t.dims.size() == 4) return t;
  if (heads < 1 || t.dims[2] % heads) fail(c, "GAF3101", fmt::format("{} elements for {} heads", t.dims[2], heads));
  return transposed(reshaped(t, {t.dims[0], t.dims[1], heads, t.dims[2] / heads}), {0, 2, 1, 3});
}

Tensor joined(const EvalContext& c, const Tensor& past, const Tensor& now) {
  Ints dims = past.dims;
  if (dims.size() != 4 || dims[0] != now.dims[0] || dims[1] != now.dims[1] || dims[3] != now.dims[3])
    fail(c, "GAF3101", "the cache does not fit the keys and values");
  dims[2] += now.dims[2];
  Tensor out = Tensor::make(now.dtype, dims);
  const Ints strides = strides_of(dims);
  strided_store(out, past, strides, 0);
  strided_store(out, now, strides, past.dims[2] * strides[2]);
  return out;
}

struct Mask {
  std::vector<double> bias;  // of [batch, heads, q, kv] by strides; empty if none
  Ints strides;
};
Mask mask_of(const EvalContext& c, const Ints& full) {
  if (!has(c, 3)) return {};
  Tensor m = arg(c, 3);
  if (m.dims.empty()) m = reshaped(m, {1});
  Ints dims = m.dims;
  std::vector<double> v = elements<double>(m);
  if (m.dtype == DType::b1)
    for (double& e : v) e = e != 0 ? 0 : kMasked;
  if (dims.back() < full[3] && dims.back() != 1) {  // keys that the mask does not reach are not attended
    const int64_t had = dims.back(), rows = numel(Ints(dims.begin(), dims.end() - 1));
    std::vector<double> wide(static_cast<size_t>(rows * full[3]), kMasked);
    for (int64_t r = 0; r < rows; r++)
      std::copy(v.begin() + r * had, v.begin() + (r + 1) * had, wide.begin() + r * full[3]);
    v = std::move(wide);
    dims.back() = full[3];
  }
  return {v, broadcast_strides(dims, full)};
}

void eval_attention(EvalContext& c) {
  const bool packed = arg(c, 0).dims.size() == 3;
  const int64_t q_heads_attr = attr_int(c.node, "q_num_heads", 1), kv_heads_attr = attr_int(c.node, "kv_num_heads", 1);
  const Tensor q = by_heads(c, arg(c, 0), q_heads_attr);
  Tensor k = by_heads(c, arg(c, 1), kv_heads_attr), v = by_heads(c, arg(c, 2), kv_heads_attr);
  const int64_t past = has(c, 4) ? arg(c, 4).dims[2] : 0;
  if (has(c, 4)) k = joined(c, arg(c, 4), k);
  if (has(c, 5)) v = joined(c, arg(c, 5), v);
  const int64_t batch = q.dims[0], heads = q.dims[1], q_len = q.dims[2], size = q.dims[3];
  const int64_t kv_heads = k.dims[1], kv_len = k.dims[2], v_size = v.dims[3], group = heads / kv_heads;
  if (kv_heads == 0 || heads % kv_heads)
    fail(c, "GAF3101", fmt::format("{} query heads over {} key heads", heads, kv_heads));
  if (k.dims[0] != batch || v.dims[0] != batch || v.dims[1] != kv_heads || v.dims[2] != kv_len || k.dims[3] != size)
    fail(c, "GAF3101", "the shapes of Q, K and V do not agree");
  const double scale = attr_float(c.node, "scale", 1 / std::sqrt(static_cast<double>(size)));
  const double softcap = attr_float(c.node, "softcap", 0);
  const int64_t mode = attr_int(c.node, "qk_matmul_output_mode", 0), left = attr_int(c.node, "left_window_size", -1);
  const int64_t right = attr_int(c.node, "right_window_size", -1);
  const bool causal = attr_int(c.node, "is_causal", 0) != 0;
  const Ints full{batch, heads, q_len, kv_len}, full_strides = strides_of(full);
  const Mask mask = mask_of(c, full);
  const Ints lengths = has(c, 6) ? elements<int64_t>(arg_of(c, 6, batch)) : Ints{};
  const std::vector<double> qs = elements<double>(q), ks = elements<double>(k), vs = elements<double>(v);
  std::vector<double> out(static_cast<size_t>(batch * heads * q_len * v_size), 0.0),
      shown(static_cast<size_t>(numel(full)));
  std::vector<double> p(static_cast<size_t>(kv_len));
  for (int64_t b = 0; b < batch; b++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t i = 0; i < q_len; i++) {
        const double* qi = qs.data() + ((b * heads + h) * q_len + i) * size;
        const int64_t kv = b * kv_heads + h / group;
        const int64_t valid = lengths.empty() ? kv_len : lengths[static_cast<size_t>(b)];
        const int64_t at =
            i + (lengths.empty() || has(c, 4) ? past : valid - q_len);  // position of the query among the keys
        double* show = shown.data() + ((b * heads + h) * q_len + i) * kv_len;
        double top = kMasked;
        bool any = false;
        for (int64_t j = 0; j < kv_len; j++) {
          const double* kj = ks.data() + (kv * kv_len + j) * size;
          double s = 0;
          for (int64_t d = 0; d < size; d++) s += qi[d] * kj[d];
          s *= scale;
          if (mode == 0 && softcap <= 0) show[j] = s;
          if (softcap > 0) s = softcap * std::tanh(s / softcap);
          if (mode == 0 || mode == 1) show[j] = s;
          double bias = mask.bias.empty() ? 0
                                          : mask.bias[static_cast<size_t>(b * mask.strides[0] + h * mask.strides[1] +
                                                                          i * mask.strides[2] + j * mask.strides[3])];
          const bool seen =
              (!causal || j <= at) && (left < 0 || j >= at - left) && (right < 0 || j <= at + right) && j < valid;
          if (!seen) bias = kMasked;
          any = any || bias != kMasked;
          s += bias;
          if (mode == 2) show[j] = s;
          p[static_cast<size_t>(j)] = s;
          top = std::max(top, s);
        }
        double sum = 0;
        for (double& e : p) sum += e = any ? std::exp(e - top) : 0;  // a row without a key is zero
        double* oi = out.data() + ((b * heads + h) * q_len + i) * v_size;
        for (int64_t j = 0; j < kv_len; j++) {
          const double w = any ? p[static_cast<size_t>(j)] / sum : 0;
          if (mode == 3) show[j] = w;
          const double* vj = vs.data() + (kv * kv_len + j) * v_size;
          for (int64_t d = 0; d < v_size; d++) oi[d] += w * vj[d];
        }
      }
  Tensor y = tensor_of(q.dtype, {batch, heads, q_len, v_size}, out);
  if (packed) y = reshaped(transposed(y, {0, 2, 1, 3}), {batch, q_len, heads * v_size});
  c.results = {y, k, v, tensor_of(q.dtype, full, shown)};
}

// ---- RotaryEmbedding: pairs of elements turned by an angle of the position ----

void infer_rotary(InferContext& c) {
  const size_t rank = c.arg(0).dims.size();
  if (rank != 3 && rank != 4) c.fail("GAF3101", "three or four dimensions are needed");
  if (c.arg(1).dims.empty() || c.arg(2).dims.empty()) c.fail("GAF3101", "the caches are scalars");
  c.types = {c.arg(0)};
}

void eval_rotary(EvalContext& c) {
  const Tensor& given = arg(c, 0);
  const bool packed = given.dims.size() == 3;
  const Tensor x = by_heads(c, given, attr_int(c.node, "num_heads", 1));
  const int64_t batch = x.dims[0], heads = x.dims[1], length = x.dims[2], size = x.dims[3];
  int64_t turned = attr_int(c.node, "rotary_embedding_dim", 0);
  if (turned == 0) turned = size;
  const int64_t half = turned / 2;
  const bool interleaved = attr_int(c.node, "interleaved", 0) != 0;
  const std::vector<double> cosines = elements<double>(arg(c, 1)), sines = elements<double>(arg(c, 2));
  if (arg(c, 1).dims.back() != half)
    fail(c, "GAF3101", fmt::format("the caches have {} angles, {} are needed", arg(c, 1).dims.back(), half));
  const Ints positions = has(c, 3) ? elements<int64_t>(arg_of(c, 3, batch * length)) : Ints{};
  if (half < 1 || turned > size || sines.size() != cosines.size())
    fail(c, "GAF3101", "the caches do not fit the heads");
  std::vector<double> v = elements<double>(x);
  for (int64_t b = 0; b < batch; b++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t t = 0; t < length; t++) {
        double* p = v.data() + ((b * heads + h) * length + t) * size;
        const int64_t at = positions.empty() ? b * length + t : positions[static_cast<size_t>(b * length + t)];
        if (at < 0 || (at + 1) * half > static_cast<int64_t>(cosines.size()))
          fail(c, "GAF6001", fmt::format("position {} is outside the caches", at));
        for (int64_t k = 0; k < half; k++) {
          double &re = p[interleaved ? 2 * k : k], &im = p[interleaved ? 2 * k + 1 : half + k];
          const double cs = cosines[static_cast<size_t>(at * half + k)], sn = sines[static_cast<size_t>(at * half + k)];
          const double a = re, d = im;
          re = cs * a - sn * d;
          im = sn * a + cs * d;
        }
      }
  Tensor y = tensor_of(x.dtype, x.dims, v);
  c.results = {packed ? reshaped(transposed(y, {0, 2, 1, 3}), given.dims) : y};
}

const OpRow kRows[] = {
    {.name = "Attention",
     .friendly = "Attention",
     .kind = OpKind::other,
     .min_args = 3,
     .max_args = 7,
     .results = -1,
     .infer = infer_attention,
     .eval = eval_attention,
     .ulp = 64,
     .cheap = false},
    {.name = "RotaryEmbedding",
     .friendly = "RoPE",
     .kind = OpKind::other,
     .min_args = 3,
     .max_args = 4,
     .infer = infer_rotary,
     .eval = eval_rotary,
     .ulp = 16},
};

}  // namespace

std::span<const OpRow> attention_rows() { return kRows; }

}  // namespace gaf
