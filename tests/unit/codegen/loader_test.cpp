// The object loader and the border of the generator: damaged objects are refused or load, but never crash; compilation
// from several threads; versions and errors.
#include <thread>

#include "base/error.h"
#include "unit/codegen/run_kernel.h"
#include "unit/ir/kernel_texts.h"

namespace gaf {
namespace {

constexpr const char* kRemainder =
    R"(kernel @k target t (in %0: f32[40], in %1: f32[40], out %2: f32[40], out %3: f32[40]) {
  for c in 0..40 step 8 par {
    tile x: f32[1, 8] @reg
    x = rem(%0[c:8], %1[c:8])
    copy %2[c:8] = x
    x = exp(x)
    copy %3[c:8] = x
  }
}
)";

TEST(Loader, CallsOutAndConstantPools) { expect_compiled_like_interpreted({kRemainder, {}, {}, 2e-6}); }

TEST(Loader, DamagedObjects) {
  const Artifact good = compile_cpu(kir::parse_kernel(kRemainder), load_target("x86-64-avx2"));
  EXPECT_EQ(load(good).phases.size(), 1u);
  std::mt19937 g(1);
  int refused = 0;
  for (int i = 0; i < 2000; i++) {
    Artifact bad = good;
    if (i % 4 == 0) bad.object.resize(g() % good.object.size());
    for (int flips = 0; flips < 1 + i % 3 && !bad.object.empty(); flips++) {
      // headers and tables more often than code
      const size_t n = bad.object.size(), at = i % 2 ? g() % n : n - 1 - g() % std::min<size_t>(n, 1500);
      bad.object[i % 8 == 1 ? g() % std::min<size_t>(n, 64) : at] ^= static_cast<uint8_t>(1u << (g() % 8));
    }
    try {
      load(bad);  // its code is not run
    } catch (const InternalError&) {
      refused++;
    }
  }
  EXPECT_GT(refused, 500);
}
TEST(Loader, PhasesThatAreNotThere) {
  Artifact a = compile_cpu(kir::parse_kernel(kRemainder), load_target("x86-64-avx2"));
  a.phases = 2;
  EXPECT_THROW(load(a), InternalError);
  a.object.clear();
  EXPECT_THROW(load(a), InternalError);
}

TEST(Codegen, SameTextSameObject) {
  const kir::Kernel k = kir::parse_kernel(kir::texts::kAttention);
  const Target t = load_target("x86-64-avx512");
  EXPECT_EQ(compile_cpu(k, t).object, compile_cpu(k, t).object);
}
TEST(Codegen, FromSeveralThreads) {
  const kir::Kernel k = kir::parse_kernel(kir::texts::kMatmulBiasRelu);
  const std::vector<uint8_t> want = compile_cpu(k, load_target("x86-64-avx2")).object;
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (size_t i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 3; n++) same[i] += compile_cpu(k, load_target("x86-64-avx2")).object == want;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(same, (std::vector<int>{3, 3, 3, 3}));
}
TEST(Codegen, SaysWhatFailed) {
  Target t = load_target("x86-64-avx2");
  const kir::Kernel k = kir::parse_kernel(
      "kernel @odd target t (in %0: f32[8, 8], out %1: f32[8]) {\n  tile x: f32[1, 8] @reg\n  copy x[0:1, 0:8] = "
      "%0[0:8, 0:8]\n  copy %1[0:8] = x\n}\n");
  try {
    compile_cpu(k, t);
    FAIL() << "compiled";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("kernel odd"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("copy of other shape"), std::string::npos) << e.what();
  }
}
TEST(Codegen, TextForms) {
  const kir::Kernel k = kir::parse_kernel(kir::texts::kBiasGelu);
  const Target t = load_target("x86-64-avx2");
  EXPECT_NE(llvm_ir(k, t).find("@gaf_run_0"), std::string::npos);
  EXPECT_NE(assembly_cpu(k, t).find("vfmadd"), std::string::npos);
  EXPECT_EQ(codegen_version().find("llvm"), 0u);
}

}  // namespace
}  // namespace gaf
