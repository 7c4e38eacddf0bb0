// Random inputs, see random.h. Compiled without contraction of multiply and add (CMakeLists.txt), which would change
// last bits between platforms.
#include "random.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/catalogue.h"
#include "base/error.h"
#include "compile.h"

namespace gaf {
namespace {

// Natural logarithm of 0 < x <= 1 from basic operations: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), log m = 2
// atanh(s), s = (m - 1) / (m + 1), |s| < 0.172, so the 12 terms of the series reach 1e-19.
double exact_log(double x) {
  int e = 0;
  double m = std::frexp(x, &e);  // exact
  if (m < 0.70710678118654752440) m *= 2, e--;
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  return 2 * s * sum + e * 0.69314718055994530942;
}

double ratio(const double (&a)[8], const double (&b)[8], double x) {
  double top = a[7], bottom = b[7];
  for (int i = 6; i >= 0; i--) top = top * x + a[i], bottom = bottom * x + b[i];
  return top / bottom;
}

// The words of one stream, one after the other.
class Words {
 public:
  Words(uint64_t seed, uint32_t stream)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, stream_(stream) {}
  uint32_t next() {
    if (at_ == 4) {
      block_ = philox({static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), stream_, 0}, key_);
      counter_++;
      at_ = 0;
    }
    return block_[at_++];
  }
  uint64_t next64() {
    const uint64_t low = next();
    return low | static_cast<uint64_t>(next()) << 32;
  }

 private:
  std::array<uint32_t, 2> key_;
  uint32_t stream_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  size_t at_ = 4;
};

void check_range(DType t, int64_t lo, int64_t hi) {
  const int bits = 8 * bytes(t);
  const int64_t least = !row(t).is_signed ? 0 : bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
  const int64_t most = bits == 64 ? INT64_MAX : (int64_t{1} << (row(t).is_signed ? bits - 1 : bits)) - 1;
  if (lo >= hi)
    throw UserError("GAF1102", "range " + std::to_string(lo) + "," + std::to_string(hi) + " is empty",
                    "give LO,HI with LO below HI; HI itself is left out");
  if (lo < least || hi - 1 > most)
    throw UserError("GAF1102", "range " + std::to_string(lo) + "," + std::to_string(hi) + " does not fit " +
                                   std::string(long_name(t)));
}

// The upper word of a * b, and the lower one.
uint32_t multiply(uint32_t a, uint32_t b, uint32_t& low) {
  const uint64_t p = static_cast<uint64_t>(a) * b;
  low = static_cast<uint32_t>(p);
  return static_cast<uint32_t>(p >> 32);
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; round++) {
    uint32_t low0 = 0, low1 = 0;
    const uint32_t high0 = multiply(0xD2511F53, c[0], low0), high1 = multiply(0xCD9E8D57, c[2], low1);
    c = {high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0};
    k[0] += 0x9E3779B9, k[1] += 0xBB67AE85;
  }
  return c;
}

double normal_quantile(double p) {
  static constexpr double kA[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                   1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                   3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double kB[8] = {1.0,
                                   4.2313330701600911252e+1,
                                   6.8718700749205790830e+2,
                                   5.3941960214247511077e+3,
                                   2.1213794301586595867e+4,
                                   3.9307895800092710610e+4,
                                   2.8729085735721942674e+4,
                                   5.2264952788528545610e+3};
  static constexpr double kC[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                   3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kD[8] = {1.0,
                                   2.05319162663775882187e0,
                                   1.67638483018380384940e0,
                                   6.89767334985100004550e-1,
                                   1.48103976427480074590e-1,
                                   1.51986665636164571966e-2,
                                   5.47593808499534494600e-4,
                                   1.05075007164441684324e-9};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) return q * ratio(kA, kB, 0.180625 - q * q);
  const double r = std::sqrt(-exact_log(q < 0 ? p : 1 - p));
  const double x = ratio(kC, kD, r - 1.6);
  return q < 0 ? -x : x;
}

Tensor random_tensor(DType t, std::vector<int64_t> dims, uint64_t seed, uint32_t stream, int64_t lo, int64_t hi) {
  if (is_int(t)) check_range(t, lo, hi);
  Tensor r = Tensor::make(t, std::move(dims));
  Words words(seed, stream);
  const int64_t n = r.numel();
  // One word per float or bool, two per integer, in row-major order; p is never 0 or 1.
  if (t == DType::b1) {
    for (int64_t i = 0; i < n; i++) r.set_int(i, words.next() >> 31);
  } else if (is_float(t)) {
    for (int64_t i = 0; i < n; i++) r.set(i, normal_quantile((words.next() + 0.5) * 0x1p-32));
  } else {
    const auto width = static_cast<unsigned __int128>(static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo));
    for (int64_t i = 0; i < n; i++)
      r.set_int(i, static_cast<int64_t>(static_cast<uint64_t>(lo) + static_cast<uint64_t>(words.next64() * width >> 64)));  // wraps on purpose
  }
  return r;
}

std::vector<Tensor> random_inputs(const Model& m, uint64_t seed,
                                  const std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>>& ranges) {
  std::vector<std::string> names;
  for (size_t i = 0; i < m.graph.num_inputs(); i++) names.push_back(m.graph.nodes[i].name);
  for (const auto& [name, range] : ranges)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UserError("GAF3104", "unknown input '" + name + "'" + did_you_mean(name, names));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < names.size(); i++) {
    const Type& type = m.graph.nodes[i].types[0];
    std::vector<int64_t> dims;
    for (const Expr& d : type.dims) {
      if (!d.is_num()) {
        const std::string symbol = d.str([&](int s) { return m.graph.syms[static_cast<size_t>(s)].name; });
        throw UserError("GAF3105", "input '" + names[i] + "' has free dimension '" + symbol + "'",
                        "give its shape (--shape " + names[i] + ":...) or the dimension (--dim " + symbol + "=N)");
      }
      dims.push_back(d.num());
    }
    std::pair<int64_t, int64_t> range{0, 8};
    for (const auto& [name, r] : ranges)
      if (name == names[i]) range = r;
    inputs.push_back(
        random_tensor(type.dtype, std::move(dims), seed, static_cast<uint32_t>(i), range.first, range.second));
  }
  return inputs;
}

}  // namespace gaf
