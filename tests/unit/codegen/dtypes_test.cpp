// Every scalar op on every dtype it computes on, and every conversion, against the interpreter. Values include NaN,
// infinities, zeros of both signs and the ends of the integer ranges.
#include <limits>

#include "unit/codegen/run_kernel.h"

namespace gaf {
namespace {

using kir::S;

constexpr int64_t kN = 104;  // not a multiple of a chunk: the last one is ragged

void interesting(Tensor& t, unsigned seed) {
  std::mt19937_64 g(seed);
  const double special[] = {0.0,          -0.0,          1,        -1,        0.5,    2.5,     -2.5,  3.5,   1e-3,
                            126.6,        127.5,         -128.6,   255.4,     300,    -300,    65503, 65520, 70000,
                            2147483520.0, -2147483648.0, 3e9,      -3e9,      9.3e18, -9.3e18, 2e19,  1e-40, 6e-8,
                            5.9604645e-8, 1e300,         HUGE_VAL, -HUGE_VAL, NAN};
  std::normal_distribution<double> d(0, 3);
  for (int64_t i = 0; i < t.numel(); i++) {
    if (is_float(t.dtype))
      t.set(i, i < 32 ? special[(static_cast<uint64_t>(i) + seed) % 32] : d(g));
    else
      t.set_int(
          i, i % 4 == 0 ? static_cast<int64_t>(g()) : static_cast<int64_t>(g() % 9) - (row(t.dtype).is_signed ? 4 : 0));
  }
}

std::string text(const std::string& op, int arity, DType first, DType in, DType out) {
  const std::string n = std::to_string(kN);
  std::string s = "kernel @k target t (";
  for (int i = 0; i < arity; i++)
    s += "in %" + std::to_string(i) + ": " + std::string(name(i == 0 ? first : in)) + "[" + n + "], ";
  s += "out %" + std::to_string(arity) + ": " + std::string(name(out)) + "[" + n + "]) {\n  for c in 0.." + n +
       " step 32 par {\n    tile x: " + std::string(name(out)) + "[1, 32] @reg\n    x = " + op + "(";
  for (int i = 0; i < arity; i++) s += (i ? ", %" : "%") + std::to_string(i) + "[c:min(32, -c + " + n + ")]";
  return s + ")\n    copy %" + std::to_string(arity) + "[c:min(32, -c + " + n + ")] = x\n  }\n}\n";
}

// Runs one op; floats may differ by `tolerance` of themselves.
void check(const std::string& op, int arity, DType first, DType in, DType out, double tolerance) {
  const std::string source = text(op, arity, first, in, out);
  SCOPED_TRACE(source);
  const kir::Kernel k = kir::parse_kernel(source);
  std::vector<Tensor> buffers;
  std::vector<void*> args;
  for (int i = 0; i < arity; i++) {
    buffers.push_back(Tensor::make(i == 0 ? first : in, {kN}));
    interesting(buffers.back(), static_cast<unsigned>(3 * i + 1));
    if (op == "expn")
      for (int64_t j = 0; j < kN; j++) buffers[0].set(j, -std::fabs(buffers[0].get(j)));
  }
  Tensor want = Tensor::make(out, {kN});
  for (Tensor& b : buffers) args.push_back(b.mut<char>());
  args.push_back(want.mut<char>());
  bool first_target = true;
  for (const char* target : kX86Targets) {
    const Target t = load_target(target);
    if (!host_runs(t)) continue;
    if (first_target) kir::interpret(k, t, args, {});
    first_target = false;
    const LoadedKernel f = load(compile_cpu(k, t));
    Guarded got(static_cast<size_t>(want.size_bytes()), static_cast<size_t>(bytes(out)));
    std::vector<void*> now(args.begin(), args.end() - 1);
    now.push_back(got.data());
    std::mt19937 g(1);
    call_kernel(f, now, {}, g);
    ASSERT_TRUE(got.intact());
    Tensor x = want;
    x.data = std::shared_ptr<const void>(got.data(), [](const void*) {});
    for (int64_t i = 0; i < kN; i++) {
      std::string inputs;
      for (Tensor& b : buffers) inputs += " " + std::to_string(b.get(i));
      if (!is_float(out)) {
        ASSERT_EQ(x.get_int(i), want.get_int(i)) << target << ": " << op << " of" << inputs;
        continue;
      }
      const double a = x.get(i), b = want.get(i);
      const double small = out == DType::f16 ? 6e-8 : out == DType::f64 ? 1e-307 : 1e-37;  // denormals: one step
      const bool same =
          std::isnan(b) ? std::isnan(a)
                        : a == b || std::fabs(a - b) <= std::max(tolerance * std::fabs(b), tolerance > 0 ? small : 0);
      ASSERT_TRUE(same) << target << ": " << op << " of" << inputs << " is " << a << ", should be " << b;
    }
  }
}

double last_place(DType t) {
  return t == DType::f16 ? 0x1p-10 : t == DType::bf16 ? 0x1p-7 : t == DType::f32 ? 0x1p-23 : 0x1p-52;
}

class Dtypes : public ::testing::TestWithParam<int> {};
TEST_P(Dtypes, Conversions) {
  const auto from = static_cast<DType>(GetParam());
  for (int i = 0; i < kDTypes; i++) {
    const auto to = static_cast<DType>(i);
    const bool big =
        !is_float(from) && bytes(from) == 8 && (to == DType::f16 || to == DType::bf16);  // over f32: rounded twice
    check("cast", 1, from, from, to, big ? last_place(to) : 0);
    if (HasFatalFailure()) return;
  }
}
TEST_P(Dtypes, Ops) {
  const auto t = static_cast<DType>(GetParam());
  for (int i = 0; i < static_cast<int>(S::count); i++) {
    const auto op = static_cast<S>(i);
    if (op == S::cast || op == S::bitcast || !kir::computes(op, t)) continue;
    const int arity = kir::row(op).arity;
    // Plain operations are exact; f16 and bf16 may differ where the interpreter rounds from double at once.
    const bool plain = op < S::rsqrt || op >= S::floor || op == S::recip;
    double tolerance = !is_float(t) ? 0
                       : plain      ? (t == DType::f16 || t == DType::bf16 ? last_place(t) : 0)
                                    : 8 * last_place(t);
    if (t == DType::f64 && !plain) tolerance = 1e-13;
    if (op == S::fma && is_float(t)) tolerance = 1e-5;            // two roundings without FMA
    if ((op == S::sin || op == S::cos) && is_float(t)) continue;  // by their own error bound: maths_test
    check(std::string(kir::row(op).name), arity, op == S::select ? DType::b1 : t, t, kir::result_dtype(op, t),
          tolerance);
    if (HasFatalFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(All, Dtypes, ::testing::Range(0, kDTypes),
                         [](const auto& i) { return std::string(name(static_cast<DType>(i.param))); });

TEST(Dtypes, Bitcast) {
  check("bitcast", 1, DType::f32, DType::f32, DType::i32, 0);
  check("bitcast", 1, DType::i32, DType::i32, DType::u32, 0);
  check("bitcast", 1, DType::f16, DType::f16, DType::u16, 0);
}

TEST(Dtypes, Reductions) {
  for (DType t : {DType::f32, DType::f16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64, DType::b1}) {
    for (const char* op : {"add", "mul", "min", "max", "minp", "maxp", "and", "or"}) {
      if (!kir::computes(*kir::scalar_named(op), t)) continue;
      const std::string n(name(t));
      expect_compiled_like_interpreted(
          {"kernel @k target t (size N in 1..40, in %0: " + n + "[6, N], out %1: " + n + "[6], out %2: " + n +
               "[40], out %3: " + n + "[1]) {\n  tile x: " + n + "[6, 40] @reg\n  tile r: " + n +
               "[6, 1] @reg\n  tile c: " + n + "[1, 40] @reg\n  tile a: " + n +
               "[1, 1] @reg\n  copy x[0:6, 0:N] = %0[0:6, 0:N]\n  r = reduce(" + op +
               ", 1, x[0:6, 0:N])\n  c[0:1, 0:N] = reduce(" + op + ", 0, x[0:6, 0:N])\n  a = reduce(" + op +
               ", 2, x[0:6, 0:N])\n  copy %1[0:6] = r\n  copy %2[0:N] = c[0:1, 0:N]\n  copy %3[0] = a\n}\n",
           {27},
           {},
           t == DType::f16 || t == DType::bf16 ? 1e-1 : 1e-5});
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace gaf
