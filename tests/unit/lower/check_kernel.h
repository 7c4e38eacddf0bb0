// Runs a kernel function written as graph text through one lowering template, the verifier and the kernel interpreter,
// and compares with the graph's reference evaluation, in place of its inputs too.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "lower/lowering.h"
#include "unit/ir/in_place_form.h"

namespace gaf {

inline const char* const kCpuTargets[] = {"x86-64-sse", "x86-64-avx2", "x86-64-avx512"};

inline Tensor random_tensor(DType t, std::vector<int64_t> dims, std::mt19937& g) {
  Tensor x = Tensor::make(t, std::move(dims));
  std::uniform_real_distribution<double> d(-1, 1);
  for (int64_t i = 0; i < x.numel(); i++) x.set(i, d(g));
  return x;
}

struct KernelCase {
  Graph fn;
  std::vector<int64_t> sizes;  // of each symbol of the graph
  std::vector<Tensor> inputs;  // made at random where empty
  double tolerance = 2e-5;
};

inline std::vector<int64_t> numbers(const Dims& dims, std::span<const int64_t> sizes) {
  std::vector<int64_t> n;
  for (const Expr& d : dims) n.push_back(d.eval(sizes));
  return n;
}

inline std::vector<Tensor> random_inputs(const Graph& fn, std::span<const int64_t> sizes, unsigned seed = 1) {
  std::mt19937 g(seed);
  std::vector<Tensor> inputs;
  for (const Node& n : fn.nodes)
    if (n.op == "input") inputs.push_back(random_tensor(n.types[0].dtype, numbers(n.types[0].dims, sizes), g));
  return inputs;
}

// What the kernel computes; empty (with a failed test) if it is wrong on its face. Where an output may take over an
// input, it must be the same in place.
inline std::vector<Tensor> run_lowered(const Lowered& l, const Target& t, const Graph& fn,
                                       std::span<const int64_t> sizes, std::span<const Tensor> inputs) {
  std::string problems;
  for (const kir::KernelProblem& p : kir::verify_kernel(l.kernel, t))
    if (!p.warning) problems += p.text + "\n";
  EXPECT_EQ(problems, "") << kir::print_kernel(l.kernel);
  std::vector<int64_t> kernel_sizes;
  for (int s : l.sizes) kernel_sizes.push_back(sizes[static_cast<size_t>(s)]);
  std::vector<Tensor> outputs, buffers;
  for (const Output& o : fn.outputs)
    outputs.push_back(Tensor::make(fn.type(o.value).dtype, numbers(fn.type(o.value).dims, sizes)));
  for (const KernelArg& a : l.args) {
    if (a.kind == KernelArg::input)
      buffers.push_back(a.pack ? apply(*a.pack, inputs[a.index]) : inputs[a.index]);
    else if (a.kind == KernelArg::output)
      buffers.push_back(outputs[a.index]);
    else
      buffers.push_back(Tensor::make(a.dtype, numbers(a.dims, sizes)));
  }
  std::vector<void*> pointers;
  for (Tensor& b : buffers) pointers.push_back(b.mut<char>());
  try {
    for (auto [out, in] : kir::in_place_pairs(l.kernel))
      EXPECT_EQ(kir::run_in_place(l.kernel, t, buffers, kernel_sizes, out, in), "")
          << "parameter " << out << " in place of " << in << "\n"
          << kir::print_kernel(l.kernel);
    kir::interpret(l.kernel, t, pointers, kernel_sizes);
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << "\n" << kir::print_kernel(l.kernel);
    return {};
  }
  return outputs;
}

// Elements may differ by `tolerance` of the largest magnitude of their tensor; NaN and infinities must agree.
inline void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.dims, want.dims) << what;
  double top = 1;
  for (int64_t i = 0; i < want.numel(); i++)
    if (std::isfinite(want.get(i))) top = std::max(top, std::fabs(want.get(i)));
  for (int64_t i = 0; i < want.numel(); i++) {
    double a = got.get(i), b = want.get(i);
    bool same = std::isfinite(b) ? std::fabs(a - b) <= tolerance * top : (std::isnan(a) && std::isnan(b)) || a == b;
    ASSERT_TRUE(same) << what << ": element " << i << " is " << a << ", should be " << b;
  }
}

// Lowers with `attempt` for every CPU target and compares. `tmpl`: the template expected to write it.
template <class F>
void expect_kernel(F attempt, const std::string& text, std::vector<std::vector<int64_t>> size_sets = {{}},
                   std::string_view tmpl = "", std::vector<Tensor> inputs = {}) {
  const Graph fn = parse_graph(text);
  for (const char* name : kCpuTargets) {
    const Target t = load_target(name);
    auto a = attempt(fn, t);
    ASSERT_TRUE(a) << "not this template's:\n" << text;
    if (auto* v = std::get_if<Verdict>(&*a)) FAIL() << v->reason << ": " << v->text << "\n" << text;
    const Lowered& l = std::get<Lowered>(*a);
    if (!tmpl.empty()) {
      EXPECT_EQ(l.template_name, tmpl);
    }
    for (const std::vector<int64_t>& sizes : size_sets) {
      std::vector<Tensor> in = inputs.empty() ? random_inputs(fn, sizes) : inputs;
      std::vector<Tensor> want = interpret_graph(fn, in), got = run_lowered(l, t, fn, sizes, in);
      ASSERT_EQ(got.size(), want.size()) << name << "\n" << text;
      for (size_t i = 0; i < got.size(); i++) {
        expect_close(got[i], want[i], 2e-5, std::string(name) + " output " + std::to_string(i));
        if (::testing::Test::HasFatalFailure()) FAIL() << text << "\n" << kir::print_kernel(l.kernel);
      }
    }
  }
}

}  // namespace gaf
