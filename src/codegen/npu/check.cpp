// check_npu: runs the groups of rules and puts what they find in order of the text.
#include "codegen/npu/check.h"

#include <algorithm>

namespace gaf {

std::vector<NpuProblem> check_npu(const kir::Kernel& built, const Target& t, NpuLanguage l) {
  const kir::Kernel k = kir::parse_kernel(kir::print_kernel(built));  // its statements know their lines
  std::vector<NpuProblem> found;
  const npu::Report report = [&](const kir::Stmt& s, std::string text, bool unsupported) {
    found.push_back({s.line, print_stmt(k, s), std::move(text), unsupported});
  };
  npu::check_statements(k, t, l, report);
  npu::check_memory(k, t, report);
  if (found.empty()) npu::check_events(k, t, report);  // runs the kernel's loops, which must be sound for that
  std::stable_sort(found.begin(), found.end(),
                   [](const NpuProblem& a, const NpuProblem& b) { return a.line < b.line; });
  return found;
}

}  // namespace gaf
