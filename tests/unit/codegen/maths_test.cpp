// Emitted elementary functions against libm in double: the error in units of the last place over samples of the whole
// range and at the edges. One kernel a function maps an array; f32 results are compared with the double result.
#include <bit>
#include <limits>

#include "unit/codegen/run_kernel.h"

namespace gaf {
namespace {

using kir::S;

std::string map_text(const std::string& op, int arity, const std::string& type, int64_t n, int width = 32) {
  const std::string shape = type + "[" + std::to_string(n) + "]", w = std::to_string(width);
  std::string text = "kernel @map target t (";
  for (int i = 0; i < arity; i++) text += "in %" + std::to_string(i) + ": " + shape + ", ";
  const std::string out = "%" + std::to_string(arity);
  text += "out " + out + ": " + shape + ") {\n  for c in 0.." + std::to_string(n) + " step " + w +
          " par {\n    tile x: " + type + "[1, " + w + "] @reg\n    x = " + op + "(";
  for (int i = 0; i < arity; i++) text += std::string(i ? ", " : "") + "%" + std::to_string(i) + "[c:" + w + "]";
  return text + ")\n    copy " + out + "[c:" + w + "] = x\n  }\n}\n";
}

template <class T>
std::vector<T> run_map(const std::string& op, const std::string& type, const Target& t, const std::vector<T>& a,
                       const std::vector<T>& b = {}, int width = 32) {
  const kir::Kernel k = kir::parse_kernel(map_text(op, b.empty() ? 1 : 2, type, static_cast<int64_t>(a.size()), width));
  const LoadedKernel f = load(compile_cpu(k, t));
  std::vector<T> out(a.size());
  std::vector<void*> args = {const_cast<T*>(a.data())};
  if (!b.empty()) args.push_back(const_cast<T*>(b.data()));
  args.push_back(out.data());
  f.phases[0].run(args.data(), nullptr, nullptr, 0, f.phases[0].trips(nullptr));
  return out;
}

// Distance in units of the last place of `want` rounded to float; denormals count in their own unit.
double ulps(float got, double want) {
  const auto w = static_cast<float>(want);
  if (std::isnan(w) || std::isnan(got)) return std::isnan(w) == std::isnan(got) ? 0 : HUGE_VAL;
  if (std::isinf(w) || std::isinf(got)) return got == w ? 0 : HUGE_VAL;
  const float unit =
      std::max(std::nextafter(std::fabs(w), INFINITY) - std::fabs(w), std::numeric_limits<float>::denorm_min());
  return std::fabs(static_cast<double>(got) - want) / static_cast<double>(unit);
}

std::vector<float> samples(double lo, double hi) {
  std::vector<float> x = {0.0f,     -0.0f, INFINITY, -INFINITY, NAN,      1.0f,      -1.0f,
                          0.5f,     -0.5f, 1e-45f,   -1e-45f,   1.2e-38f, -1.2e-38f, 3.4e38f,
                          -3.4e38f, 88.7f, 88.73f,   -87.3f,    -88.0f,   -103.9f,   -104.1f};
  std::mt19937 g(7);
  std::uniform_real_distribution<double> even(lo, hi), power(-40, 3);
  while (x.size() < 40000) {
    x.push_back(static_cast<float>(even(g)));
    x.push_back(static_cast<float>(std::pow(10.0, power(g)) * (g() % 2 && lo < 0 ? -1 : 1)));
  }
  while (x.size() % 32) x.push_back(0.25f);
  return x;
}

struct Case {
  const char* op;
  double (*f)(double);
  double lo, hi;  // the range of every result that is not trivial
  double limit;   // ulps, with FMA; without it half as much again
};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class Maths : public ::testing::TestWithParam<Case> {};
TEST_P(Maths, Float) {
  const Case& c = GetParam();
  std::vector<float> x = samples(c.lo, c.hi);
  const bool only_negative = std::string(c.op) == "expn";
  if (only_negative)
    for (float& v : x) v = -std::fabs(v);
  for (const char* name : kX86Targets) {
    const Target t = load_target(name);
    if (!host_runs(t)) continue;
    const std::vector<float> y = run_map<float>(c.op, "f32", t, x);
    double worst = 0;
    float at = 0, got = 0;
    for (size_t i = 0; i < x.size(); i++) {
      const bool denormal_is_0 = only_negative || std::string(c.op) == "sigmoid";
      if (denormal_is_0 && x[i] < -87.3f) {
        ASSERT_TRUE(y[i] >= 0 && y[i] < 1.3e-38f) << x[i];
        continue;
      }
      if (const double u = ulps(y[i], c.f(static_cast<double>(x[i]))); u > worst) worst = u, at = x[i], got = y[i];
    }
    EXPECT_LE(worst, t.fma ? c.limit : c.limit * 1.5 + 1) << c.op << "(" << at << ") = " << got << " on " << name;
    RecordProperty(std::string(name), std::to_string(worst));
  }
}
INSTANTIATE_TEST_SUITE_P(All, Maths,
                         ::testing::Values(Case{"exp", std::exp, -105, 89, 1.5}, Case{"expn", std::exp, -87, 0, 1.5},
                                           Case{"expm1", std::expm1, -20, 89, 2.5}, Case{"log", std::log, 0, 10, 1.5},
                                           Case{"log1p", std::log1p, -1, 5, 2.5}, Case{"tanh", std::tanh, -10, 10, 3},
                                           Case{"sigmoid", sigmoid, -87, 20, 3}, Case{"erf", std::erf, -4.5, 4.5, 6},
                                           Case{"sin", std::sin, -1e6, 1e6, 2}, Case{"cos", std::cos, -1e6, 1e6, 2}),
                         [](const auto& i) { return std::string(i.param.op); });

// Some functions are instructions of whole registers: narrower tiles are padded, wider ones cut.
TEST(Maths, AnyWidthGivesTheSameBits) {
  std::vector<float> x = samples(-5, 5);
  x.resize(3840);  // a multiple of all widths
  for (const char* name : kX86Targets) {
    const Target t = load_target(name);
    if (!host_runs(t)) continue;
    for (const char* op : {"exp", "expn", "tanh", "sigmoid", "erf"}) {
      const std::vector<float> y = run_map<float>(op, "f32", t, x);
      for (int width : {1, 2, 3, 4, 8, 16, 20, 64, 128}) {
        const std::vector<float> z = run_map<float>(op, "f32", t, x, {}, width);
        for (size_t i = 0; i < x.size(); i++)
          ASSERT_TRUE(std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(z[i]) || (y[i] != y[i] && z[i] != z[i]))
              << op << "(" << x[i] << ") in tiles of " << width << " on " << name;
      }
    }
  }
}

// What an activation leaves at its ends, and that zeros keep their sign.
TEST(Maths, Ends) {
  const std::vector<float> x = [] {
    std::vector<float> v(32, 0.0f);
    v[0] = -0.0f, v[1] = INFINITY, v[2] = -INFINITY, v[3] = 1e30f, v[4] = -1e30f, v[5] = 6, v[6] = -6;
    return v;
  }();
  for (const char* name : kX86Targets) {
    const Target t = load_target(name);
    if (!host_runs(t)) continue;
    const auto erf = run_map<float>("erf", "f32", t, x), sig = run_map<float>("sigmoid", "f32", t, x),
               tanh = run_map<float>("tanh", "f32", t, x), exp = run_map<float>("exp", "f32", t, x);
    for (const auto& y : {erf, tanh}) {
      EXPECT_TRUE(std::signbit(y[0]) && y[0] == 0 && !std::signbit(y[31]) && y[31] == 0) << name;
      for (int i : {1, 3, 5})
        EXPECT_TRUE(std::fabs(y[i] - 1) <= (i == 5 ? 3e-5f : 4e-7f) && y[i + 1] == -y[i]) << y[i] << " on " << name;
    }
    EXPECT_TRUE(sig[0] == 0.5f && sig[1] == 1 && sig[2] == 0 && sig[3] == 1 && sig[4] == 0) << name;
    EXPECT_TRUE(exp[0] == 1 && exp[1] == INFINITY && exp[2] == 0 && exp[3] == INFINITY && exp[4] == 0) << name;
  }
}

TEST(Maths, SineOfHugeNumbers) {
  std::vector<float> x;
  std::mt19937 g(3);
  std::uniform_real_distribution<double> power(0, 38);
  for (int i = 0; i < 4096; i++) x.push_back(static_cast<float>((g() % 2 ? 1 : -1) * std::pow(10.0, power(g))));
  for (const char* name : kX86Targets) {
    const Target t = load_target(name);
    if (!host_runs(t)) continue;
    const auto s = run_map<float>("sin", "f32", t, x), c = run_map<float>("cos", "f32", t, x);
    for (size_t i = 0; i < x.size(); i++) {
      ASSERT_LE(ulps(s[i], std::sin(static_cast<double>(x[i]))), 4) << "sin " << x[i] << " on " << name;
      ASSERT_LE(ulps(c[i], std::cos(static_cast<double>(x[i]))), 4) << "cos " << x[i] << " on " << name;
    }
  }
}

TEST(Maths, Pow) {
  std::vector<float> a, b;
  const float special[] = {0.0f,  -0.0f,    1.0f,      -1.0f, 2.0f,   -2.0f, 3.0f,   -3.0f, 0.5f,
                           -0.5f, INFINITY, -INFINITY, NAN,   1e-40f, 3e38f, -3e38f, 1.5f};
  for (float x : special)
    for (float y : special) a.push_back(x), b.push_back(y);
  std::mt19937 g(5);
  std::uniform_real_distribution<float> base(0, 4), exponent(-40, 40);
  while (a.size() < 8192) a.push_back(base(g)), b.push_back(exponent(g));
  for (const char* name : kX86Targets) {
    const Target t = load_target(name);
    if (!host_runs(t)) continue;
    const auto y = run_map<float>("pow", "f32", t, a, b);
    for (size_t i = 0; i < a.size(); i++)
      ASSERT_LE(ulps(y[i], std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]))), 1)
          << "pow(" << a[i] << ", " << b[i] << ") = " << y[i] << " on " << name;
  }
}

struct DoubleCase {
  const char* op;
  double (*f)(double);
  double lo, hi;
};
TEST(Maths, Double) {
  const DoubleCase cases[] = {{"exp", std::exp, -700, 700},    {"expn", std::exp, -700, 0},
                              {"expm1", std::expm1, -30, 700}, {"log", std::log, 0, 100},
                              {"log1p", std::log1p, -1, 9},    {"tanh", std::tanh, -20, 20},
                              {"sigmoid", sigmoid, -40, 40},   {"erf", std::erf, -6, 6},
                              {"sin", std::sin, -1e5, 1e5},    {"cos", std::cos, -1e5, 1e5}};
  std::mt19937_64 g(11);
  for (const DoubleCase& c : cases) {
    std::vector<double> x = {0.0, 1e-300, 1e-20, 0.5, 1.0, 2.0, c.hi, std::nextafter(c.lo, c.hi)};
    std::uniform_real_distribution<double> even(c.lo, c.hi);
    while (x.size() < 4096) x.push_back(even(g));
    for (double special : {HUGE_VAL, -HUGE_VAL, std::nan("")})
      x[x.size() - 1 - static_cast<size_t>(g() % 100)] = special;
    if (std::string(c.op) == "expn")
      for (double& v : x) v = -std::fabs(v);
    for (const char* name : kX86Targets) {
      const Target t = load_target(name);
      if (!host_runs(t)) continue;
      const auto y = run_map<double>(c.op, "f64", t, x);
      for (size_t i = 0; i < x.size(); i++) {
        const double want = c.f(x[i]);
        const double scale = std::string(c.op) == "sin" || std::string(c.op) == "cos" ? 1 : std::fabs(want);
        const bool same = std::isfinite(want) ? std::fabs(y[i] - want) <= 1e-14 * scale
                                              : (std::isnan(want) && std::isnan(y[i])) || y[i] == want;
        ASSERT_TRUE(same) << c.op << "(" << x[i] << ") = " << y[i] << ", should be " << want << " on " << name;
      }
    }
  }
  std::vector<double> a, b;
  std::uniform_real_distribution<double> base(0.01, 10), exponent(-100, 100);
  for (int i = 0; i < 2048; i++) a.push_back(base(g)), b.push_back(exponent(g));
  for (const char* name : kX86Targets) {
    const Target t = load_target(name);
    if (!host_runs(t)) continue;
    const auto y = run_map<double>("pow", "f64", t, a, b);
    for (size_t i = 0; i < a.size(); i++) {
      const double want = std::pow(a[i], b[i]);
      ASSERT_LE(std::fabs(y[i] - want), 1e-14 * want) << "pow(" << a[i] << ", " << b[i] << ") on " << name;
    }
  }
}

}  // namespace
}  // namespace gaf
