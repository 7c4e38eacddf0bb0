// kernel MODEL NODE...: the nodes as one kernel: what it takes and saves, and its text, or the reason why it cannot be.
#include <cstdio>

#include "gaf/gaf.h"

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "kernel MODEL NODE...\n"), 2;
  const gaf::FusionPlan plan = gaf::analyze_fusion_opportunity({gaf::load_model(argv[1]), {argv + 2, argv + argc}});
  if (!plan.can_be_one_kernel())
    return std::printf("no: %s: %s\n", plan.reason().c_str(), plan.explanation().c_str()), 1;

  const gaf::HWResource machine = gaf::hw_resource();
  std::printf("%s: predicted %.2f us instead of %.2f us\n", plan.kernel_name().c_str(), plan.predicted_us(),
              plan.unfused_us());
  std::printf("%zu of %zu registers, %zu of %zu bytes: %s\n", gaf::estimate_reg_usage(plan), machine.max_regs,
              gaf::estimate_ub_usage(plan), machine.max_ub, gaf::can_fuse(plan, machine) ? "fits" : "over budget");
  const std::string text = gaf::codegen_jit(plan);
  std::printf("%s", text.c_str());
  std::printf("compiled: %zu inputs\n", gaf::compile_kernel(text).inputs().size());
} catch (const gaf::Error& e) {
  std::fprintf(stderr, "%s\n    remedy: %s\n", e.what(), e.remedy().c_str());
  return 2;
}
