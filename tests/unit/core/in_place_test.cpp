// In-place reuse from model to run: a chain of residual blocks keeps fewer bytes between its steps than the same plan
// without the kernels' pairs, and computes the same bits, for any batch and number of threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "build.h"
#include "random.h"

namespace gaf {
namespace {

constexpr const char* kBlocks = R"(
graph @blocks(size batch, %0 "x": f32[batch,96], %1 "w": f32[96,96], %2 "scale": f32[96], %3 "shift": f32[96]) -> (%14 "y") {
  %4 = MatMul(%0, %1) : f32[batch,96]  # "in"
  %5 = LayerNormalization(%4, %2, %3) {axis=-1, epsilon=1e-05} : f32[batch,96]  # "norm1"
  %6 = MatMul(%5, %1) : f32[batch,96]  # "up1"
  %7 = Gelu(%6) : f32[batch,96]  # "gelu1"
  %8 = MatMul(%7, %1) : f32[batch,96]  # "down1"
  %9 = Add(%8, %4) : f32[batch,96]  # "residual1"
  %10 = LayerNormalization(%9, %2, %3) {axis=-1, epsilon=1e-05} : f32[batch,96]  # "norm2"
  %11 = MatMul(%10, %1) : f32[batch,96]  # "up2"
  %12 = Gelu(%11) : f32[batch,96]  # "gelu2"
  %13 = MatMul(%12, %1) : f32[batch,96]  # "down2"
  %14 = Add(%13, %9) : f32[batch,96]  # "residual2"
}
)";

TEST(InPlace, ResidualBlocksNeedLessMemory) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("gaf_in_place_" + std::to_string(getpid()) + ".gaf")).string();
  std::ofstream(path) << kBlocks;
  Settings s;
  s.config.cache_dir = "";
  Planned p = plan_model(load_model(path), s);
  std::filesystem::remove(path);
  Lowerings lowerings(load_target(s.config.target));
  Built b = build(p, lowerings, p.report);
  RunPlan without = b.plan;
  for (PlanStep& step : without.steps)
    if (step.kernel) step.kernel->kernel.in_place.clear();
  for (int threads : {1, 4}) {
    Executor plain(without, threads), in_place(b.plan, threads);
    for (int64_t batch : {1, 7, 64, 200}) {
      const std::vector<Tensor> in = {random_tensor(DType::f32, {batch, 96}, 1, 0),
                                      random_tensor(DType::f32, {96, 96}, 1, 1), random_tensor(DType::f32, {96}, 1, 2),
                                      random_tensor(DType::f32, {96}, 1, 3)};
      std::vector<Tensor> want, got;
      plain.run(in, want);
      in_place.run(in, got);
      EXPECT_TRUE(want[0].equal(got[0])) << "batch " << batch << ", threads " << threads;
      EXPECT_LT(in_place.arena_bytes(), plain.arena_bytes()) << "batch " << batch;
      EXPECT_LT(in_place.allocations(), plain.allocations());
    }
  }
}

}  // namespace
}  // namespace gaf
