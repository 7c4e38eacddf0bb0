// The hot path allocates nothing: counted by this program's own operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/plan.h"

namespace {
std::atomic<long> g_allocations{0};
}  // namespace

#ifndef __SANITIZE_ADDRESS__  // which has allocation functions of its own, and objects to a mixture
[[gnu::noinline]] void* operator new(size_t n) {
  g_allocations++;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace gaf {
namespace {

int64_t trips(const int64_t* sizes) { return sizes[0]; }
void add_one(void* const* b, const int64_t*, void*, int64_t lo, int64_t hi) {
  for (int64_t i = lo; i < hi; i++) static_cast<float*>(b[1])[i] = static_cast<const float*>(b[0])[i] + 1;
}

TEST(HotPath, ARepeatedCallAllocatesNothing) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "allocations are the sanitizer's here";
#endif
  const Expr n = Expr::sym(0);
  RunPlan p;
  p.symbols = {"n"};
  const PlanBuffer::Kind kinds[] = {PlanBuffer::input, PlanBuffer::arena, PlanBuffer::output, PlanBuffer::output};
  for (const PlanBuffer::Kind kind : kinds) p.buffers.push_back({kind, DType::f32, {n}, {}, -1, "b"});
  p.inputs = {0};
  p.outputs = {2, 3, 0};
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {2, 3}}) {
    KernelStep k;
    k.kernel.phases = {{add_one, trips}};
    k.args = {from, to};
    k.sizes = {n};
    p.steps.push_back({std::move(k), std::nullopt});
  }
  for (const int threads : {1, 2}) {
    Executor e(p, threads);
    std::vector<Tensor> inputs{Tensor::make(DType::f32, {1000})}, other{Tensor::make(DType::f32, {500})}, out,
        out_other;
    e.run(inputs, out);  // plans, and allocates what it returns
    e.run(other, out_other);
    const long before = g_allocations;
    for (int i = 0; i < 10; i++) {
      e.run(inputs, out);
      e.run(other, out_other);  // two sizes in turn: both remembered
    }
    EXPECT_EQ(g_allocations - before, 0) << threads << " threads";
  }
}

}  // namespace
}  // namespace gaf
