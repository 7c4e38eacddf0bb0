// Steps over the two IRs: reading, writing and verifying graph text and kernel text.
#include <fmt/format.h>

#include "base/error.h"
#include "base/target.h"
#include "ir/graph.h"
#include "ir/kernel.h"
#include "text_steps.h"

namespace gaf::text {
namespace {

// print(parse(x)), and that the printed text reads back as itself.
Result graph(const std::string& input, const Options&) {
  Graph g = parse_graph(input);
  std::string text = print_graph(g), again = print_graph(parse_graph(text));
  Result r{{{"graph", text}}, {}};
  for (const gaf::Problem& p : verify_graph(g)) r.problems.push_back({0, p.text});
  if (again != text) r.problems.push_back({0, "printed graph reads back as\n" + again});
  return r;
}

Result kernel(const std::string& input, const Options&) {
  kir::Kernel k = kir::parse_kernel(input);
  std::string text = kir::print_kernel(k), again = kir::print_kernel(kir::parse_kernel(text));
  Result r{{{"kernel", text}}, {}};
  if (again != text) r.problems.push_back({0, "printed kernel reads back as\n" + again});
  return r;
}

// Every rule the kernel breaks on the target (or the one its text names), on its line.
Result kernel_verify(const std::string& input, const Options& options) {
  kir::Kernel k = kir::parse_kernel(input);
  auto target = options.find("target");
  Result r;
  for (const kir::KernelProblem& p : kir::verify_kernel(k, load_target(target == options.end() ? k.target : target->second)))
    r.problems.push_back({p.line, p.text, p.warning});
  return r;
}

Result place(const std::string& input, const Options& options) {
  kir::Kernel k = kir::parse_kernel(input);
  auto target = options.find("target");
  std::string peaks;
  for (auto [mem, bytes] : kir::place(k, load_target(target == options.end() ? k.target : target->second)))
    peaks += std::string(kMemName[static_cast<int>(mem)]) + " " + std::to_string(bytes) + "\n";
  return {{{"kernel", kir::print_kernel(k)}, {"peak", peaks}}, {}};
}

Target target_of(const kir::Kernel& k, const Options& options) {
  auto target = options.find("target");
  return load_target(target == options.end() ? k.target : target->second);
}

Result legalise(const std::string& input, const Options& options) {
  kir::Kernel k = kir::parse_kernel(input);
  Target t = target_of(k, options);
  Result r{{{"kernel", kir::print_kernel(kir::legalise(k, t))}}, {}};
  if (kir::print_kernel(kir::legalise(kir::legalise(k, t), t)) != r.sections[0].text) r.problems.push_back({0, "a second run changes it"});
  return r;
}

// What is counted on the text, for a kernel without sizes.
Result analyse(const std::string& input, const Options& options) {
  kir::Kernel k = kir::parse_kernel(input);
  kir::Work w = kir::analyse(k, target_of(k, options), {});
  auto name = [](auto x, const auto& names) { return std::string(names[static_cast<int>(x)]); };
  std::string text;
  for (auto [mem, bytes] : w.peak) text += fmt::format("peak {} {}\n", name(mem, kMemName), bytes);
  for (auto [edge, bytes] : w.moved) text += fmt::format("moved {} {} {}\n", name(edge.first, kMemName), name(edge.second, kMemName), bytes);
  for (auto [pipe, cycles] : w.busy) text += fmt::format("busy {} {}\n", name(pipe, kPipeName), cycles);
  text += fmt::format("gm {}\nflops {}\ncompute {:.3f} us, memory {:.3f} us, fill {:.3f} us, launch {} us\n", w.gm_bytes, w.mma_flops, w.compute_us, w.memory_us, w.fill_us, w.launch_us);
  return {{{"work", text}}, {}};
}

// Offsets, then set, wait and fence, as a back end gets them.
Result sync(const std::string& input, const Options& options) {
  kir::Kernel k = kir::parse_kernel(input);
  Target t = target_of(k, options);
  kir::place(k, t);
  return {{{"kernel", kir::print_kernel(kir::insert_sync(std::move(k), t))}}, {}};
}

Result strip(const std::string& input, const Options&) { return {{{"kernel", kir::print_kernel(kir::strip_names(kir::parse_kernel(input)))}}, {}}; }

}  // namespace

void add_steps_ir(Steps& steps) {
  steps["graph"] = graph;
  steps["kernel"] = kernel;
  steps["kernel-verify"] = kernel_verify;
  steps["place"] = place;
  steps["legalise"] = legalise;
  steps["analyse"] = analyse;
  steps["sync"] = sync;
  steps["strip-names"] = strip;
}

}  // namespace gaf::text
