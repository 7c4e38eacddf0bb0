// The C entry points of libgaf_codegen_cpu.so: text in, emitter, object out. Errors leave as text, never as exceptions.
#include <exception>
#include <string>

#include "base/error.h"
#include "codegen/cpu/abi.h"
#include "codegen/cpu/emitter.h"

namespace gaf::cpu {
namespace {

Target target_of(const GafCodegenRequest& q) {
  Target t;
  t.llvm_cpu = q.llvm_cpu;
  t.lanes = q.lanes, t.vector_bits = q.vector_bits, t.max_regs = q.max_regs, t.k_unroll = q.k_unroll;
  t.fma = q.fma != 0, t.prefetch_panel = q.prefetch_panel != 0;
  t.memories = {{Mem::gm, INT64_MAX, 64}, {Mem::scratch, INT64_MAX, 64}, {Mem::reg, INT64_MAX, 1}};
  return t;
}

void run(const GafCodegenRequest& q, GafCodegenReply& reply, GafCodegenGive give, void* context) {
  kir::Kernel k = kir::parse_kernel({q.kernel, q.kernel_size});
  const Target t = target_of(q);
  const auto peak = kir::place(k, t);
  const auto scratch = peak.find(Mem::scratch);
  Ir ir(k.name, t.llvm_cpu, t.fma);
  Emitter emitter(k, t, ir, {q.shared, q.shared_size});
  emitter.run();
  if (q.check) ir.check();
  reply = {emitter.phases(), scratch == peak.end() ? 0 : scratch->second};
  auto text = [&](const std::string& s) { give(context, s.data(), s.size()); };
  switch (q.want) {
    case kGafWantIr: return text(ir.text());
    case kGafWantAssembly: return text(ir.assembly());
    default: break;
  }
  const std::vector<uint8_t> object = ir.object();
  give(context, object.data(), object.size());
}

}  // namespace
}  // namespace gaf::cpu

#define GAF_EXPORT __attribute__((visibility("default")))

extern "C" GAF_EXPORT int gaf_codegen_cpu_abi() { return kGafCodegenAbi; }

extern "C" GAF_EXPORT int gaf_codegen_cpu_run(const GafCodegenRequest* request, GafCodegenReply* reply,
                                              GafCodegenGive give, void* context) {
  int status = kGafInternalError;
  std::string what;
  try {
    gaf::cpu::run(*request, *reply, give, context);
    return kGafOk;
  } catch (const gaf::UserError& e) {
    status = kGafUserError, what = e.info().message;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "unknown exception";
  }
  give(context, what.data(), what.size());
  return status;
}
