// Runs a kernel's text twice: interpreted, and compiled for a CPU target, loaded and called the way the runtime does,
// in pieces, with buffers between guard bytes and scratch full of rubbish. Then compares element by element. Where an
// output may take over an input, the compiled kernel runs so as well, pieces in any order: the bytes must be the same.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "codegen/codegen.h"

namespace gaf {

inline const char* const kX86Targets[] = {"x86-64-sse", "x86-64-avx2", "x86-64-avx512"};

// Bytes between two walls; the first element lies at an address no better aligned than the element asks.
class Guarded {
 public:
  Guarded(size_t size, size_t element) : size_(size), bytes_(size + 2 * kWall + 64, 0xa5) {
    size_t at = kWall;
    while (reinterpret_cast<uintptr_t>(bytes_.data() + at) % 64 != element % 64) at++;
    at_ = at;
  }
  uint8_t* data() { return bytes_.data() + at_; }
  bool intact() const {
    for (size_t i = 0; i < bytes_.size(); i++)
      if ((i < at_ || i >= at_ + size_) && bytes_[i] != 0xa5) return false;
    return true;
  }

 private:
  static constexpr size_t kWall = 256;
  size_t size_, at_ = 0;
  std::vector<uint8_t> bytes_;
};

inline void call_kernel(const LoadedKernel& k, std::span<void* const> buffers, std::span<const int64_t> sizes,
                        std::mt19937& g) {
  for (const auto& phase : k.phases) {
    const int64_t trips = phase.trips(sizes.data());
    std::vector<std::pair<int64_t, int64_t>> pieces;
    for (int64_t lo = 0; lo < trips; lo = pieces.back().second)
      pieces.emplace_back(lo, std::min(trips, lo + 1 + static_cast<int64_t>(g() % 7)));
    std::shuffle(pieces.begin(), pieces.end(), g);
    for (auto [lo, hi] : pieces) {
      Guarded scratch(static_cast<size_t>(k.scratch_bytes), 64);
      std::memset(scratch.data(), 0xff, static_cast<size_t>(k.scratch_bytes));  // NaN as a float
      phase.run(buffers.data(), sizes.data(), scratch.data(), lo, hi);
      ASSERT_TRUE(scratch.intact()) << "writes outside its scratch";
    }
  }
}

struct KernelRun {
  std::string text;
  std::vector<int64_t> sizes;
  // Fills element i of parameter p; by default floats in -1..1 and small integers.
  std::function<void(int p, Tensor& t)> fill;
  double tolerance = 2e-6;  // of the largest magnitude in the buffer
  std::vector<std::string> targets = {std::begin(kX86Targets), std::end(kX86Targets)};
};

inline Tensor random_buffer(DType t, std::vector<int64_t> dims, std::mt19937& g) {
  Tensor x = Tensor::make(t, std::move(dims));
  std::uniform_real_distribution<double> d(-1, 1);
  for (int64_t i = 0; i < x.numel(); i++) {
    if (is_float(t))
      x.set(i, d(g));
    else
      x.set_int(i, t == DType::b1 ? static_cast<int64_t>(g() % 2) : static_cast<int64_t>(g() % 16));
  }
  return x;
}

inline void expect_compiled_like_interpreted(const KernelRun& r, unsigned seed = 1) {
  const kir::Kernel k = kir::parse_kernel(r.text);
  std::mt19937 g(seed);
  std::vector<Tensor> start;
  std::vector<int64_t> by_symbol(k.syms.size(), 0);
  size_t n = 0;
  for (size_t i = 0; i < k.syms.size(); i++)
    if (k.syms[i].kind == kir::SymKind::size) by_symbol[i] = r.sizes.at(n++);
  for (const kir::Buf& b : k.bufs) {
    if (b.role == kir::Role::view) continue;
    std::vector<int64_t> dims;
    for (const Expr& d : b.shape) dims.push_back(d.eval(by_symbol));
    start.push_back(random_buffer(b.type, dims, g));
    if (r.fill) r.fill(static_cast<int>(start.size()) - 1, start.back());
  }
  std::vector<Tensor> want;
  std::vector<void*> pointers;
  for (const Tensor& t : start) {
    Tensor copy = Tensor::make(t.dtype, t.dims);
    std::memcpy(copy.mut<uint8_t>(), t.data.get(), static_cast<size_t>(t.size_bytes()));
    want.push_back(copy);
    pointers.push_back(want.back().mut<uint8_t>());
  }
  bool ran = false;
  for (const std::string& name : r.targets) {
    const Target t = load_target(name);
    if (!host_runs(t)) continue;
    if (!ran) kir::interpret(k, t, pointers, r.sizes);
    ran = true;
    SCOPED_TRACE(name + "\n" + r.text);
    const LoadedKernel compiled = load(compile_cpu(k, t));
    auto copies = [&] {
      std::vector<Guarded> all;
      for (const Tensor& b : start) {
        all.emplace_back(static_cast<size_t>(b.size_bytes()), static_cast<size_t>(bytes(b.dtype)));
        std::memcpy(all.back().data(), b.data.get(), static_cast<size_t>(b.size_bytes()));
      }
      return all;
    };
    auto addresses = [](std::vector<Guarded>& buffers) {
      std::vector<void*> all;
      for (Guarded& b : buffers) all.push_back(b.data());
      return all;
    };
    std::vector<Guarded> got = copies();
    const std::vector<void*> args = addresses(got);
    call_kernel(compiled, args, r.sizes, g);
    for (auto [out, in] : compiled.in_place) {
      std::vector<Guarded> again = copies();
      std::vector<void*> shared = addresses(again);
      const auto o = static_cast<size_t>(out), i = static_cast<size_t>(in);
      shared[o] = shared[i];
      call_kernel(compiled, shared, r.sizes, g);
      for (size_t p = 0; p < got.size(); p++)
        if (p != i && k.bufs[p].role == kir::Role::out) {
          ASSERT_EQ(std::memcmp(shared[p], got[p].data(), static_cast<size_t>(start[p].size_bytes())), 0)
              << "parameter " << p << " is another with " << out << " in place of " << in;
        }
      ASSERT_TRUE(again[i].intact()) << "writes outside parameter " << out << " in place of " << in;
    }
    for (size_t p = 0; p < got.size(); p++) {
      ASSERT_TRUE(got[p].intact()) << "writes outside parameter " << p;
      Tensor x = start[p];
      x.data = std::shared_ptr<const void>(got[p].data(), [](const void*) {});
      double top = 1e-30;
      for (int64_t i = 0; i < x.numel(); i++)
        if (std::isfinite(want[p].get(i))) top = std::max(top, std::fabs(want[p].get(i)));
      for (int64_t i = 0; i < x.numel(); i++) {
        if (!is_float(x.dtype)) {
          ASSERT_EQ(x.get_int(i), want[p].get_int(i)) << "parameter " << p << " element " << i;
          continue;
        }
        const double a = x.get(i), b = want[p].get(i);
        const bool same =
            std::isfinite(b) ? std::fabs(a - b) <= r.tolerance * top : (std::isnan(a) && std::isnan(b)) || a == b;
        ASSERT_TRUE(same) << "parameter " << p << " element " << i << " is " << a << ", should be " << b;
      }
    }
  }
}

// The same over sizes drawn from the class of each size symbol.
inline void expect_compiled_at_random_sizes(KernelRun r, int times) {
  const kir::Kernel k = kir::parse_kernel(r.text);
  std::mt19937 g(static_cast<unsigned>(times));
  for (int n = 0; n < times && !::testing::Test::HasFatalFailure(); n++) {
    r.sizes.clear();
    for (const kir::Symbol& s : k.syms)
      if (s.kind == kir::SymKind::size) {
        const int64_t steps = s.hi / s.mult - (s.lo + s.mult - 1) / s.mult + 1;
        r.sizes.push_back(((s.lo + s.mult - 1) / s.mult + static_cast<int64_t>(g() % static_cast<uint64_t>(steps))) *
                          s.mult);
      }
    SCOPED_TRACE("random sizes, number " + std::to_string(n));
    expect_compiled_like_interpreted(r, static_cast<unsigned>(n));
  }
}

}  // namespace gaf
