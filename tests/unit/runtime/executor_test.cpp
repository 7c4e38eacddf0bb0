// The executor on plans made by hand, with kernels that are C++ functions: sizes, aliases, outputs, overlap, host
// steps, threads, fork.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/error.h"
#include "runtime/plan.h"

namespace gaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- kernels: (in.., out), one size n ----
int64_t trips_n(const int64_t* sizes) { return sizes[0]; }
void add_one(void* const* b, const int64_t*, void*, int64_t lo, int64_t hi) {
  for (int64_t i = lo; i < hi; i++) static_cast<float*>(b[1])[i] = static_cast<const float*>(b[0])[i] + 1;
}
void twice(void* const* b, const int64_t*, void*, int64_t lo, int64_t hi) {
  for (int64_t i = lo; i < hi; i++) static_cast<float*>(b[1])[i] = static_cast<const float*>(b[0])[i] * 2;
}
void add(void* const* b, const int64_t*, void*, int64_t lo, int64_t hi) {
  for (int64_t i = lo; i < hi; i++)
    static_cast<float*>(b[2])[i] = static_cast<const float*>(b[0])[i] + static_cast<const float*>(b[1])[i];
}
// Goes through scratch, so that two workers with one scratch would spoil each other's numbers.
void square_through_scratch(void* const* b, const int64_t*, void* scratch, int64_t lo, int64_t hi) {
  auto* s = static_cast<float*>(scratch);
  for (int64_t i = lo; i < hi; i++) {
    for (int k = 0; k < 64; k++) s[k] = static_cast<const float*>(b[0])[i];
    float least = s[0], most = s[0];
    for (int k = 1; k < 64; k++) least = std::min(least, s[k]), most = std::max(most, s[k]);
    static_cast<float*>(b[1])[i] = least * most;
  }
}

PlanStep kernel(std::string name, RunFn f, std::vector<int> args, Expr n, int64_t scratch = 0) {
  KernelStep k;
  k.name = std::move(name);
  k.kernel.phases = {{f, trips_n}};
  k.kernel.scratch_bytes = scratch;
  k.results = {args.back()};  // every function here writes its last buffer
  k.args = std::move(args);
  k.sizes = {std::move(n)};
  return {std::move(k), std::nullopt};
}
PlanBuffer buffer(PlanBuffer::Kind kind, std::string name, Dims dims, int index = -1, DType t = DType::f32) {
  return {kind, t, std::move(dims), {}, index, std::move(name)};
}
Tensor floats(std::vector<int64_t> dims, float first = 0) {
  Tensor t = Tensor::make(DType::f32, std::move(dims));
  for (int64_t i = 0; i < t.numel(); i++) t.mut<float>()[i] = first + static_cast<float>(i);
  return t;
}
std::vector<float> values(const Tensor& t) { return {t.as<float>(), t.as<float>() + t.numel()}; }

const Expr n = Expr::sym(0);

// x[n] -> +1 -> *2 -> +1 -> y
RunPlan chain() {
  RunPlan p;
  p.symbols = {"n"};
  p.buffers = {buffer(PlanBuffer::input, "x", {n}, 0), buffer(PlanBuffer::arena, "a", {n}),
               buffer(PlanBuffer::arena, "b", {n}), buffer(PlanBuffer::output, "y", {n}, 0)};
  p.inputs = {0};
  p.outputs = {3};
  p.steps = {kernel("k0", add_one, {0, 1}, n), kernel("k1", twice, {1, 2}, n), kernel("k2", add_one, {2, 3}, n)};
  return p;
}

TEST(Executor, ChainWithSymbol) {
  Executor e(chain(), 2);
  for (int64_t size : {3, 1000, 3, 0, 1}) {
    std::vector<Tensor> out;
    const RunInfo info = e.run({{floats({size})}}, out);
    EXPECT_EQ(info.kernels, 3);
    EXPECT_EQ(info.copies, 0);
    ASSERT_EQ(out[0].dims, std::vector<int64_t>{size});
    for (int64_t i = 0; i < size; i++) EXPECT_EQ(out[0].as<float>()[i], (static_cast<float>(i) + 1) * 2 + 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(out[0].data.get()) % 64, 0U);
  }
}

TEST(Executor, InPlaceSavesABuffer) {
  Executor plain(chain(), 1);
  RunPlan p = chain();
  p.steps[1].kernel->kernel.in_place = {{1, 0}};
  Executor in_place(std::move(p), 1);
  std::vector<Tensor> a, b;
  plain.run({{floats({100})}}, a);
  in_place.run({{floats({100})}}, b);
  EXPECT_EQ(values(a[0]), values(b[0]));
  EXPECT_EQ(plain.allocations(), 2);
  EXPECT_EQ(in_place.allocations(), 1);
  EXPECT_LT(in_place.arena_bytes(), plain.arena_bytes());
}

// The output lends its memory to b, and b's producer hands it on to a: nothing is left for the arena.
TEST(Executor, InPlaceOfAnOutput) {
  RunPlan p = chain();
  for (size_t i : {1, 2}) p.steps[i].kernel->kernel.in_place = {{1, 0}};
  Executor e(std::move(p), 1);
  std::vector<Tensor> out{Tensor::make(DType::f32, {4})};
  const void* mine = out[0].data.get();
  EXPECT_EQ(e.run({{floats({4})}}, out).copies, 0);
  EXPECT_EQ(out[0].data.get(), mine);
  EXPECT_THAT(values(out[0]), ElementsAre(3, 5, 7, 9));
  EXPECT_EQ(e.arena_bytes(), 0);
  EXPECT_EQ(e.allocations(), 0);
  out.clear();
  e.run({{floats({100})}}, out);
  for (int64_t i = 0; i < 100; i++) EXPECT_EQ(out[0].as<float>()[i], (static_cast<float>(i) + 1) * 2 + 1);
  // the caller's buffer is the input's: then it must wait
  Tensor x = floats({4});
  out = {x};
  EXPECT_EQ(e.run({{x}}, out).copies, 1);
  EXPECT_THAT(values(x), ElementsAre(3, 5, 7, 9));
}

// y = (a = x + 1) * 2 and z = a + 1, where z could take a over but y's kernel reads it later; y0 = a + a
// reads it twice.
TEST(Executor, InPlaceIsRefusedWhereTheInputIsStillNeeded) {
  RunPlan p;
  p.symbols = {"n"};
  p.buffers = {buffer(PlanBuffer::input, "x", {n}, 0), buffer(PlanBuffer::arena, "a", {n}),
               buffer(PlanBuffer::output, "z", {n}, 0), buffer(PlanBuffer::output, "y", {n}, 1),
               buffer(PlanBuffer::output, "y0", {n}, 2)};
  p.inputs = {0};
  p.outputs = {2, 3, 4};
  p.steps = {kernel("k0", add_one, {0, 1}, n), kernel("k1", add_one, {1, 2}, n), kernel("k2", twice, {1, 3}, n),
             kernel("k3", add, {1, 1, 4}, n)};
  p.steps[1].kernel->kernel.in_place = p.steps[2].kernel->kernel.in_place = {{1, 0}};
  p.steps[3].kernel->kernel.in_place = {{2, 0}, {2, 1}};
  Executor e(std::move(p), 1);
  std::vector<Tensor> out;
  e.run({{floats({3})}}, out);
  EXPECT_EQ(e.allocations(), 1);
  EXPECT_THAT(values(out[0]), ElementsAre(2, 3, 4));
  EXPECT_THAT(values(out[1]), ElementsAre(2, 4, 6));
  EXPECT_THAT(values(out[2]), ElementsAre(2, 4, 6));
}

// One input, two results that could take it over: the first has it.
TEST(Executor, InPlaceGoesToOneResult) {
  RunPlan p = chain();
  p.buffers.push_back(buffer(PlanBuffer::output, "z", {n}, 1));
  p.outputs = {3, 4};
  const auto both = [](void* const* b, const int64_t*, void*, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; i++) {
      const float x = static_cast<const float*>(b[0])[i];
      static_cast<float*>(b[1])[i] = x + 1, static_cast<float*>(b[2])[i] = x - 1;
    }
  };
  p.steps[2] = kernel("k2", both, {2, 3, 4}, n);
  p.steps[2].kernel->kernel.in_place = {{1, 0}, {2, 0}};
  Executor e(std::move(p), 1);
  std::vector<Tensor> out;
  e.run({{floats({3})}}, out);
  EXPECT_EQ(e.allocations(), 1);  // a; b lies in y
  EXPECT_THAT(values(out[0]), ElementsAre(3, 5, 7));
  EXPECT_THAT(values(out[1]), ElementsAre(1, 3, 5));
}

TEST(Executor, CallersBufferIsUsed) {
  Executor e(chain(), 1);
  std::vector<Tensor> out{Tensor::make(DType::f32, {4})};
  const void* mine = out[0].data.get();
  EXPECT_EQ(e.run({{floats({4})}}, out).copies, 0);
  EXPECT_EQ(out[0].data.get(), mine);
  EXPECT_THAT(values(out[0]), ElementsAre(3, 5, 7, 9));
}

TEST(Executor, CallersBufferOfWrongShape) {
  Executor e(chain(), 1);
  std::vector<Tensor> out{Tensor::make(DType::f32, {5})};
  EXPECT_THROW(e.run({{floats({4})}}, out), UserError);
  out = {Tensor::make(DType::f32, {4})};
  e.run({{floats({4})}}, out);
  EXPECT_THAT(values(out[0]), ElementsAre(3, 5, 7, 9));
}

// y0 = x + 1, y1 = x * 2 + 1; the caller gives x's own memory for y0
TEST(Executor, OutputBufferMayBeAnInput) {
  RunPlan p = chain();
  p.buffers.push_back(buffer(PlanBuffer::output, "y0", {n}, 1));
  p.outputs = {3, 4};
  p.steps = {kernel("k0", add_one, {0, 4}, n), kernel("k1", twice, {0, 2}, n), kernel("k2", add_one, {2, 3}, n)};
  Executor e(std::move(p), 1);
  Tensor x = floats({3});
  std::vector<Tensor> out{Tensor::make(DType::f32, {3}), x};
  const RunInfo info = e.run({{x}}, out);
  EXPECT_EQ(info.copies, 1);
  EXPECT_THAT(values(out[0]), ElementsAre(1, 3, 5));
  EXPECT_THAT(values(out[1]), ElementsAre(1, 2, 3));
  EXPECT_EQ(out[1].data.get(), x.data.get());
}

TEST(Executor, TwoOutputsInOneBuffer) {
  RunPlan p = chain();
  p.outputs = {3, 3};
  Executor e(std::move(p), 1);
  std::vector<Tensor> out;
  EXPECT_EQ(e.run({{floats({2})}}, out).copies, 1);
  EXPECT_THAT(values(out[0]), ElementsAre(3, 5));
  EXPECT_THAT(values(out[1]), ElementsAre(3, 5));
  EXPECT_NE(out[0].data.get(), out[1].data.get());
}

TEST(Executor, OutputsThatAreInputsConstantsAndViews) {
  RunPlan p;
  p.symbols = {"n"};
  p.buffers = {buffer(PlanBuffer::input, "x", {n, 2}, 0), buffer(PlanBuffer::constant, "c", {2}),
               buffer(PlanBuffer::arena, "a", {n, 2}), buffer(PlanBuffer::alias, "flat", {n * 2}, 2),
               buffer(PlanBuffer::alias, "same", {n, 2}, 0)};
  p.buffers[1].data = floats({2}, 7);
  p.inputs = {0};
  p.outputs = {0, 1, 3, 4};
  p.steps = {kernel("k", add_one, {0, 2}, n * 2)};
  Executor e(std::move(p), 1);
  Tensor x = floats({2, 2});
  std::vector<Tensor> out;
  EXPECT_EQ(e.run({{x}}, out).copies, 3);  // the view of `a` is written directly
  EXPECT_THAT(values(out[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_NE(out[0].data.get(), x.data.get());
  EXPECT_THAT(values(out[1]), ElementsAre(7, 8));
  EXPECT_THAT(values(out[2]), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(out[2].dims, std::vector<int64_t>{4});
  EXPECT_EQ(out[3].dims, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(e.arena_bytes(), 0);
}

// ---- sizes ----
std::string refusal(Executor& e, std::vector<Tensor> inputs) {
  std::vector<Tensor> out;
  try {
    e.run(inputs, out);
  } catch (const UserError& x) {
    return x.what();
  }
  return "";
}

TEST(Binding, ExpressionsAreCheckedAndSolved) {
  RunPlan p;
  p.symbols = {"batch", "seq"};
  const Expr batch = Expr::sym(0), seq = Expr::sym(1);
  p.buffers = {buffer(PlanBuffer::input, "half", {batch, seq * 2 + 1}, 0),
               buffer(PlanBuffer::input, "x", {batch, 8}, 1), buffer(PlanBuffer::output, "y", {batch, seq}, 0),
               buffer(PlanBuffer::input, "z", {seq + batch}, 2)};
  p.inputs = {0, 1, 3};
  p.outputs = {2};
  // y of batch * seq elements from x's first ones
  p.steps = {kernel("k", add_one, {1, 2}, batch * seq)};
  Executor e(std::move(p), 1);
  std::vector<Tensor> out;
  e.run({{floats({4, 7}), floats({4, 8}), floats({7})}}, out);
  EXPECT_EQ(out[0].dims, (std::vector<int64_t>{4, 3}));

  EXPECT_THAT(refusal(e, {floats({4, 7}), floats({5, 8}), floats({7})}),
              HasSubstr("GAF3102: input 'x': expected float32 [batch=4,8], got [5,8] ('batch' is 4 in input 'half')"));
  EXPECT_THAT(refusal(e, {floats({4, 7}), floats({4, 9}), floats({7})}),
              HasSubstr("input 'x': expected float32 [batch=4,8], got [4,9]"));
  EXPECT_THAT(refusal(e, {floats({4, 7}), floats({4, 8}), floats({9})}), HasSubstr("input 'z': expected"));
  EXPECT_THAT(refusal(e, {floats({4, 7}), floats({4, 8, 1}), floats({7})}), HasSubstr("input 'x'"));
  EXPECT_THAT(refusal(e, {floats({4, 8}), floats({4, 8}), floats({8})}),
              HasSubstr("input 'half': expected"));  // 8 is even
  EXPECT_EQ(refusal(e, {floats({4, 7}), floats({4, 8}), floats({7})}), "");
}

TEST(Binding, SizesBeyondWhatTheModelAllows) {
  RunPlan p = chain();
  p.most = {6};
  Executor e(std::move(p), 1);
  EXPECT_EQ(refusal(e, {floats({6})}), "");
  EXPECT_THAT(refusal(e, {floats({7})}), HasSubstr("is 7, the model takes at most 6"));
}

TEST(Binding, WhatCannotBeSolved) {
  RunPlan p = chain();
  p.buffers[0].dims = {n * 2 + 1};
  Executor odd(std::move(p), 1);
  EXPECT_EQ(refusal(odd, {floats({5})}), "");
  EXPECT_THAT(refusal(odd, {floats({6})}), HasSubstr("GAF3102"));
  p = chain();
  p.buffers[0].dims = {n * n};
  Executor square(std::move(p), 1);
  EXPECT_THAT(refusal(square, {floats({9})}), HasSubstr("GAF3105"));
}

TEST(Binding, NegativeAndHugeSizes) {
  RunPlan p = chain();
  p.buffers[1].dims = {n - 4};
  Executor negative(std::move(p), 1);
  EXPECT_THAT(refusal(negative, {floats({3})}), HasSubstr("tensor 'a' would have the shape [-1]"));
  p = chain();
  p.buffers[1].dims = {n * (int64_t{1} << 40), n * (int64_t{1} << 20)};
  Executor huge(std::move(p), 1);
  EXPECT_THAT(refusal(huge, {floats({3})}), HasSubstr("GAF3106"));
}

TEST(Binding, MemoryLimit) {
  RunPlan p = chain();
  p.memory_limit = 1 << 20;
  Executor e(std::move(p), 1);
  EXPECT_EQ(refusal(e, {floats({1000})}), "");
  EXPECT_THAT(refusal(e, {floats({100000})}), HasSubstr("GAF6003"));
  EXPECT_THAT(refusal(e, {floats({100000})}),
              HasSubstr("GAF6003: needs 1.1 MiB, limit 1.0 MiB"));  // also the second time
  EXPECT_EQ(refusal(e, {floats({1000})}), "");
}

TEST(Binding, SymbolThatNothingGives) {
  RunPlan p = chain();
  p.symbols = {"n", "m"};
  p.buffers[1].dims = {Expr::sym(1)};
  EXPECT_THROW(Executor(std::move(p), 1), UserError);
}

// ---- host steps ----
// Keeps the positive elements: the size of the result is known only afterwards.
std::vector<Tensor> positive(std::span<const Tensor> args) {
  std::vector<float> kept;
  for (int64_t i = 0; i < args[0].numel(); i++)
    if (args[0].as<float>()[i] > 0) kept.push_back(args[0].as<float>()[i]);
  Tensor t = Tensor::make(DType::f32, {static_cast<int64_t>(kept.size())});
  std::copy(kept.begin(), kept.end(), t.mut<float>());
  return {t};
}
PlanStep host(std::string name, std::vector<int> args, std::vector<int> results,
              std::function<std::vector<Tensor>(std::span<const Tensor>)> f) {
  HostStep h;
  h.name = std::move(name);
  h.args = std::move(args);
  h.results = std::move(results);
  h.run = [f = std::move(f)](std::span<const Tensor> in, std::span<const int64_t>) { return f(in); };
  return {std::nullopt, std::move(h)};
}

// x[n] -> *2 -> positive -> a[m] -> +1 -> *2 -> y[m]
RunPlan filter() {
  const Expr m = Expr::sym(1);
  RunPlan p;
  p.symbols = {"n", "m"};
  p.buffers = {buffer(PlanBuffer::input, "x", {n}, 0), buffer(PlanBuffer::arena, "t", {n}),
               buffer(PlanBuffer::arena, "a", {m}), buffer(PlanBuffer::arena, "b", {m}),
               buffer(PlanBuffer::output, "y", {m}, 0)};
  p.inputs = {0};
  p.outputs = {4};
  p.steps = {kernel("k0", twice, {0, 1}, n), host("positive", {1}, {2}, positive), kernel("k1", add_one, {2, 3}, m),
             kernel("k2", twice, {3, 4}, m)};
  return p;
}

TEST(HostSteps, DataDependentSize) {
  Executor e(filter(), 2);
  for (float first : {-3.0F, 1.0F, -3.0F, -100.0F}) {
    std::vector<Tensor> out;
    const RunInfo info = e.run({{floats({5}, first)}}, out);
    EXPECT_EQ(info.fallbacks, 1);
    std::vector<float> want;
    for (int i = 0; i < 5; i++)
      if (first + static_cast<float>(i) > 0) want.push_back(((first + static_cast<float>(i)) * 2 + 1) * 2);
    EXPECT_EQ(values(out[0]), want);
  }
}

TEST(HostSteps, SizeReadFromATensor) {
  // s: i64[1] gives m; y[m] = first m of x, plus 1
  const Expr m = Expr::sym(1);
  RunPlan p;
  p.symbols = {"n", "m"};
  p.buffers = {buffer(PlanBuffer::input, "x", {n}, 0), buffer(PlanBuffer::input, "s", {1}, 1, DType::i64),
               buffer(PlanBuffer::output, "y", {m}, 0)};
  p.inputs = {0, 1};
  p.outputs = {2};
  PlanStep read = host("shape", {1}, {}, [](std::span<const Tensor>) { return std::vector<Tensor>{}; });
  read.host->binds = {{1, 0, 0}};
  read.host->fallback = false;
  p.steps = {read, kernel("k", add_one, {0, 2}, m)};
  Executor e(std::move(p), 1);
  std::vector<Tensor> out;
  EXPECT_EQ(e.run({{floats({9}), tensor_i64({3})}}, out).fallbacks, 0);
  EXPECT_THAT(values(out[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(refusal(e, {floats({9}), tensor_i64({-1})}), HasSubstr("tensor 'y' would have the shape [-1]"));
}

TEST(HostSteps, ResultMayBeAViewOfTheArgument) {
  // t = x * 2; v = t (same bytes); t's memory is used again by u; y = v + u
  RunPlan p;
  p.symbols = {"n"};
  p.buffers = {buffer(PlanBuffer::input, "x", {n}, 0),  buffer(PlanBuffer::arena, "t", {n}),
               buffer(PlanBuffer::arena, "v", {n}),     buffer(PlanBuffer::arena, "u", {n}),
               buffer(PlanBuffer::output, "y", {n}, 0), buffer(PlanBuffer::alias, "w", {n}, 2)};
  p.inputs = {0};
  p.outputs = {4};
  p.steps = {kernel("k0", twice, {0, 1}, n),
             host("view", {1}, {2}, [](std::span<const Tensor> a) { return std::vector<Tensor>{a[0]}; }),
             kernel("k1", add_one, {0, 3}, n), kernel("k2", add, {5, 3, 4}, n)};
  Executor e(std::move(p), 1);
  std::vector<Tensor> out;
  e.run({{floats({3}, 1)}}, out);
  EXPECT_THAT(values(out[0]), ElementsAre(2 + 2, 4 + 3, 6 + 4));
}

TEST(HostSteps, ResultIsTheOutput) {
  RunPlan p = filter();
  p.buffers[2].kind = PlanBuffer::output;
  p.outputs = {2};
  p.steps.resize(2);
  Executor e(std::move(p), 1);
  std::vector<Tensor> out;
  e.run({{floats({3}, 1)}}, out);
  EXPECT_THAT(values(out[0]), ElementsAre(2, 4, 6));
  const std::vector<float> kept = values(out[0]);
  std::vector<Tensor> mine{Tensor::make(DType::f32, {3})};
  const void* address = mine[0].data.get();
  e.run({{floats({3}, 1)}}, mine);
  EXPECT_EQ(mine[0].data.get(), address);
  EXPECT_EQ(values(mine[0]), kept);
}

TEST(HostSteps, ErrorsPassThroughAndTheExecutorLives) {
  RunPlan p = filter();
  auto fail = std::make_shared<bool>(true);
  p.steps[1].host->run = [fail](std::span<const Tensor> a, std::span<const int64_t>) {
    if (*fail) throw UserError("GAF6001", "index 9 out of range [0,8)");
    return positive(a);
  };
  Executor e(std::move(p), 1);
  EXPECT_THAT(refusal(e, {floats({5})}), HasSubstr("GAF6001"));
  *fail = false;
  EXPECT_EQ(refusal(e, {floats({5})}), "");
}

TEST(HostSteps, WrongResultIsOurBug) {
  RunPlan p = filter();
  p.steps[1].host->run = [](std::span<const Tensor>, std::span<const int64_t>) { return std::vector<Tensor>{Tensor::make(DType::f64, {1})}; };
  Executor e(std::move(p), 1);
  std::vector<Tensor> out;
  EXPECT_THROW(e.run({{floats({5})}}, out), InternalError);
}

TEST(Plan, MalformedPlansAreRefused) {
  RunPlan p = chain();
  p.outputs = {1, 9};
  EXPECT_THROW(Executor(p, 1), InternalError);
  p = chain();
  p.buffers.push_back(buffer(PlanBuffer::alias, "loop", {n}, 4));
  EXPECT_THROW(Executor(p, 1), InternalError);
  p = chain();
  p.steps[0].kernel->args[0] = -1;
  EXPECT_THROW(Executor(p, 1), InternalError);
}

// ---- threads ----
RunPlan squares() {
  RunPlan p = chain();
  p.steps = {kernel("k0", add_one, {0, 1}, n), kernel("k1", square_through_scratch, {1, 2}, n, 64 * 4),
             kernel("k2", add_one, {2, 3}, n)};
  return p;
}

TEST(Threads, ManyCallersManySizes) {
  Executor e(squares(), 3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; t++)
    callers.emplace_back([&, t] {
      for (int i = 0; i < 60; i++) {
        const int64_t size = 1 + (i * 37 + t * 11) % 700;
        std::vector<Tensor> out;
        e.run({{floats({size}, static_cast<float>(t))}}, out);
        for (int64_t k = 0; k < size; k++) {
          const float x = static_cast<float>(t) + static_cast<float>(k) + 1;
          if (out[0].as<float>()[k] != x * x + 1) wrong++;
        }
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, SameBitsForAnyNumber) {
  std::vector<float> first;
  for (int threads : {1, 2, 3, 8}) {
    Executor e(squares(), threads);
    for (int i = 0; i < 5; i++) {
      std::vector<Tensor> out;
      e.run({{floats({5000}, 0.1F)}}, out);
      if (first.empty()) first = values(out[0]);
      EXPECT_EQ(values(out[0]), first);
    }
  }
}

#if !defined(__SANITIZE_THREAD__)
TEST(Threads, RunsInAForkedChild) {
  Executor e(squares(), 3);
  std::vector<Tensor> out;
  e.run({{floats({100})}}, out);
  const std::vector<float> want = values(out[0]);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      std::vector<Tensor> o;
      e.run({{floats({50})}}, o);
    }
  });
  for (int i = 0; i < 10; i++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      std::vector<Tensor> o;
      e.run({{floats({100})}}, o);
      _exit(values(o[0]) == want ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
}
#endif

TEST(Threads, InterruptBetweenSteps) {
  Executor e(chain(), 1);
  set_interrupt_check([] { throw UserError("GAF6001", "stop"); });
  std::vector<Tensor> out;
  EXPECT_THROW(e.run({{floats({5})}}, out), UserError);
  set_interrupt_check(nullptr);
  EXPECT_EQ(refusal(e, {floats({5})}), "");
}

TEST(Executor, ProfileHasATimePerStep) {
  Executor e(filter(), 1);
  EXPECT_EQ(e.profile({{floats({100})}}).size(), 4U);
}

}  // namespace
}  // namespace gaf
