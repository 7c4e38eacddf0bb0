// The side of the CPU generator that every program links: prints the kernel, finds and loads libgaf_codegen_cpu.so when
// something must be compiled, and turns its answers into artifacts and errors. Knows nothing of LLVM.
#include "codegen/codegen.h"

#include <dlfcn.h>

#include <filesystem>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "codegen/cpu/abi.h"
#include "ir/in_place.h"

#ifndef GAF_LLVM_VERSION
#define GAF_LLVM_VERSION "unknown"
#endif

namespace gaf {

const char* emitter_digest();  // of the sources of the generator, made by the build
namespace {

constexpr const char* kLibrary = "libgaf_codegen_cpu.so";

struct Generator {
  decltype(&gaf_codegen_cpu_run) run = nullptr;
  std::string problem;  // why there is none
};

// Beside the module that contains this function (command, Python extension, test), in lib beside it, else by rpath.
std::vector<std::string> places() {
  std::vector<std::string> out;
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&places), &info) && info.dli_fname) {
    std::error_code ignored;
    std::filesystem::path self = std::filesystem::weakly_canonical(info.dli_fname, ignored);
    if (!self.has_parent_path() || !std::filesystem::exists(self, ignored))
      self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::filesystem::path dir = self.parent_path();
    for (const char* at : {"", "lib", "../lib", "../lib/graph_autofusion"})
      out.push_back((dir / at / kLibrary).lexically_normal().string());
  }
  out.emplace_back(kLibrary);
  return out;
}

Generator open_generator() {
  Generator g;
  for (const std::string& path : places()) {
    void* lib = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
      const char* why = dlerror();
      g.problem += (g.problem.empty() ? "" : "; ") + std::string(why ? why : path);
      continue;
    }
    auto abi = reinterpret_cast<decltype(&gaf_codegen_cpu_abi)>(dlsym(lib, "gaf_codegen_cpu_abi"));
    auto run = reinterpret_cast<decltype(&gaf_codegen_cpu_run)>(dlsym(lib, "gaf_codegen_cpu_run"));
    if (abi && run && abi() == kGafCodegenAbi) {
      g.run = run;
      return g;
    }
    dlclose(lib);
    g.problem += (g.problem.empty() ? "" : "; ") + path + " belongs to another version";
  }
  return g;
}

const Generator& generator() {
  static const Generator g = open_generator();  // once, by whoever comes first
  return g;
}

struct Answer {
  std::vector<uint8_t> bytes;
  GafCodegenReply reply{};
  std::vector<std::pair<int, int>> in_place;
};

Answer ask(const kir::Kernel& k, const Target& t, GafCodegenWant want) {
  const Generator& g = generator();
  if (!g.run)
    throw UserError("GAF5001", "code generation for the CPU is not available: " + g.problem,
                    std::string("reinstall; ") + kLibrary + " belongs beside the program");
  const std::string text = kir::print_kernel(k);
  GafCodegenRequest q{};
  q.kernel = text.data(), q.kernel_size = text.size();
  q.llvm_cpu = t.llvm_cpu.c_str();
  q.lanes = t.lanes, q.vector_bits = t.vector_bits, q.max_regs = t.max_regs, q.k_unroll = t.k_unroll;
  q.fma = t.fma, q.prefetch_panel = t.prefetch_panel;
  q.want = want;
  q.check = 1;
  Answer a;
  a.in_place = kir::in_place_pairs(k);
  std::vector<int> shared;
  for (auto [out, in] : a.in_place) shared.push_back(out), shared.push_back(in);
  q.shared = shared.data(), q.shared_size = shared.size();
  auto give = [](void* context, const void* data, size_t size) {
    auto& bytes = static_cast<Answer*>(context)->bytes;
    bytes.assign(static_cast<const uint8_t*>(data), static_cast<const uint8_t*>(data) + size);
  };
  const int status = g.run(&q, &a.reply, give, &a);
  if (status == kGafOk) return a;
  const std::string what(a.bytes.begin(), a.bytes.end());
  if (status == kGafUserError) throw UserError("GAF5001", "kernel " + k.name + ": code generation failed: " + what);
  throw InternalError("kernel " + k.name + ": code generation failed: " + what + "\n" + text);
}

}  // namespace

Artifact compile_cpu(const kir::Kernel& k, const Target& t) {
  Answer a = ask(k, t, kGafWantObject);
  return {std::move(a.bytes), a.reply.phases, a.reply.scratch_bytes, std::move(a.in_place)};
}
std::string llvm_ir(const kir::Kernel& k, const Target& t) {
  const Answer a = ask(k, t, kGafWantIr);
  return {a.bytes.begin(), a.bytes.end()};
}
std::string assembly_cpu(const kir::Kernel& k, const Target& t) {
  const Answer a = ask(k, t, kGafWantAssembly);
  return {a.bytes.begin(), a.bytes.end()};
}
std::string codegen_version() { return std::string("llvm ") + GAF_LLVM_VERSION + " emitter " + emitter_digest(); }

}  // namespace gaf
