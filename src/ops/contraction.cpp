// Matrix products: MatMul with numpy's rules for ranks and batches, Gemm, and com.microsoft FusedMatMul.
#include <fmt/format.h>

#include "ops/eval_util.h"
#include "ops/expand.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

// ---- MatMul ----

bool transposes(const Node& n, const char* key) { return attr_int(n, key, 0) != 0; }

void infer_matmul(InferContext& c) {
  need_same_dtype(c);
  Dims a = c.arg(0).dims, b = c.arg(1).dims;
  if (a.empty() || b.empty()) c.fail("GAF3101", "an operand is a scalar");
  if (a.size() > 1 && transposes(c.node, "transA")) std::swap(a[a.size() - 2], a.back());
  if (b.size() > 1 && transposes(c.node, "transB")) std::swap(b[b.size() - 2], b.back());
  const bool vector_a = a.size() == 1, vector_b = b.size() == 1;
  if (vector_a) a.insert(a.begin(), Expr(1));
  if (vector_b) b.emplace_back(1);
  const Expr &ka = a.back(), &kb = b[b.size() - 2];
  if (ka.is_num() && kb.is_num() && ka != kb)
    c.fail("GAF3101", fmt::format("inner dimensions {} and {} differ", ka.num(), kb.num()));
  const Dims batches[] = {Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2)};
  Dims out = broadcast_dims(c, batches);
  if (!vector_a) out.push_back(a[a.size() - 2]);
  if (!vector_b) out.push_back(b.back());
  c.types = {{c.arg(0).dtype, out}};
}

// C[m,n] += A[m,k] B[k,n], rows of C in double or int64.
template <class T>
void multiply(const T* a, const T* b, T* out, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t p = 0; p < k; p++) {
      const T x = a[i * k + p];
      const T* row = b + p * n;
      T* acc = out + i * n;
      for (int64_t j = 0; j < n; j++) acc[j] += x * row[j];
    }
}

Tensor swap_last(const Tensor& t) {
  Ints perm;
  for (size_t i = 0; i < t.dims.size(); i++) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[perm.size() - 2], perm.back());
  return transposed(t, perm);
}

template <class T>
void matmul(EvalContext& c) {
  Tensor a = arg(c, 0), b = arg(c, 1);
  if (a.dims.size() > 1 && transposes(c.node, "transA")) a = swap_last(a);
  if (b.dims.size() > 1 && transposes(c.node, "transB")) b = swap_last(b);
  const bool vector_a = a.dims.size() == 1, vector_b = b.dims.size() == 1;
  if (vector_a) a.dims.insert(a.dims.begin(), 1);
  if (vector_b) b.dims.push_back(1);
  const int64_t m = a.dims[a.dims.size() - 2], k = a.dims.back(), n = b.dims.back();
  if (b.dims[b.dims.size() - 2] != k)
    fail(c, "GAF3101", fmt::format("inner dimensions {} and {} differ", k, b.dims[b.dims.size() - 2]));
  const Ints batch_a(a.dims.begin(), a.dims.end() - 2), batch_b(b.dims.begin(), b.dims.end() - 2);
  const Ints both[] = {batch_a, batch_b};
  const Ints batch = broadcast_shape(c.node, both);
  const std::vector<T> x = elements<T>(a), y = elements<T>(b);
  std::vector<T> out(static_cast<size_t>(numel(batch) * m * n), T{});
  int64_t at = 0;
  walk<2>(batch, {broadcast_strides(batch_a, batch), broadcast_strides(batch_b, batch)}, [&](auto& in) {
    multiply(x.data() + in[0] * m * k, y.data() + in[1] * k * n, out.data() + at, m, k, n);
    at += m * n;
  });
  const double alpha = attr_float(c.node, "alpha", 1);
  if (alpha != 1)
    for (T& v : out) v = static_cast<T>(static_cast<double>(v) * alpha);
  Ints dims = batch;
  if (!vector_a) dims.push_back(m);
  if (!vector_b) dims.push_back(n);
  c.results = {tensor_of(c.types[0].dtype, dims, out)};
}

void eval_matmul(EvalContext& c) {
  if (is_float(arg(c, 0).dtype)) return matmul<double>(c);
  matmul<int64_t>(c);
}

// ---- Gemm: alpha op(A) op(B) + beta C ----

void infer_gemm(InferContext& c) {
  need_same_dtype(c);
  need_rank(c, 0, 2);
  need_rank(c, 1, 2);
  const bool ta = transposes(c.node, "transA"), tb = transposes(c.node, "transB");
  const Dims &a = c.arg(0).dims, &b = c.arg(1).dims;
  const Expr &ka = a[ta ? 0 : 1], &kb = b[tb ? 1 : 0];
  if (ka.is_num() && kb.is_num() && ka != kb)
    c.fail("GAF3101", fmt::format("inner dimensions {} and {} differ", ka.num(), kb.num()));
  const Dims out{a[ta ? 1 : 0], b[tb ? 0 : 1]};
  if (c.has_arg(2)) {
    const Dims both[] = {out, c.arg(2).dims};
    if (broadcast_dims(c, both).size() > 2) c.fail("GAF3101", "C has more than two dimensions");
  }
  c.types = {{c.arg(0).dtype, out}};
}

template <class T>
void gemm(EvalContext& c) {
  Tensor a = arg(c, 0), b = arg(c, 1);
  if (transposes(c.node, "transA")) a = swap_last(a);
  if (transposes(c.node, "transB")) b = swap_last(b);
  const int64_t m = a.dims[0], k = a.dims[1], n = b.dims[1];
  if (b.dims[0] != k) fail(c, "GAF3101", fmt::format("inner dimensions {} and {} differ", k, b.dims[0]));
  const double alpha = attr_float(c.node, "alpha", 1), beta = attr_float(c.node, "beta", 1);
  std::vector<T> out(static_cast<size_t>(m * n), T{});
  multiply(elements<T>(a).data(), elements<T>(b).data(), out.data(), m, k, n);
  const std::vector<T> add = has(c, 2) ? elements<T>(arg(c, 2), {m, n}) : std::vector<T>(out.size(), T{});
  for (size_t i = 0; i < out.size(); i++)
    out[i] = static_cast<T>(alpha * static_cast<double>(out[i]) + beta * static_cast<double>(add[i]));
  c.results = {tensor_of(a.dtype, {m, n}, out)};
}

void eval_gemm(EvalContext& c) {
  if (is_float(arg(c, 0).dtype)) return gemm<double>(c);
  gemm<int64_t>(c);
}

// MatMul of transposed operands, then the factor: com.microsoft FusedMatMul
Value expand_fused_matmul(GraphBuilder& b, const Node& n, std::span<const Value> a) {
  Expander e{b};
  auto turned = [&](Value v, const char* key) {
    if (!transposes(n, key) || e.rank(v) < 2) return v;
    std::vector<int64_t> perm = axes_from(0, e.rank(v));
    std::swap(perm[perm.size() - 2], perm.back());
    return e.transpose(v, perm);
  };
  Value y = b.op("MatMul", {turned(a[0], "transA"), turned(a[1], "transB")}, {}, n.types[0]);
  const double alpha = attr_float(n, "alpha", 1);
  return alpha == 1 ? y : e.with_number("Mul", y, alpha);
}

const OpRow kRows[] = {
    {.name = "MatMul",
     .friendly = "MatMul",
     .kind = OpKind::contraction,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_matmul,
     .eval = eval_matmul,
     .ulp = 32,
     .cheap = false},
    {.name = "Gemm",
     .friendly = "Gemm",
     .kind = OpKind::contraction,
     .min_args = 2,
     .max_args = 3,
     .infer = infer_gemm,
     .eval = eval_gemm,
     .ulp = 32,
     .cheap = false},
    {.name = "FusedMatMul",
     .friendly = "MatMul",
     .kind = OpKind::composite,
     .min_args = 2,
     .max_args = 2,
     .infer = infer_matmul,
     .eval = eval_matmul,
     .expand = expand_fused_matmul,
     .ulp = 32,
     .cheap = false},
};

}  // namespace

std::span<const OpRow> contraction_rows() { return kRows; }

}  // namespace gaf
