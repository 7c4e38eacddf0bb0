// The border of libgaf_codegen_cpu.so, in C: kernel text and target numbers go in, bytes or text come back through
// `give`. Both sides include this header; a changed meaning is a new kGafCodegenAbi, so that a library of another build
// is refused.
#pragma once
#include <cstddef>
#include <cstdint>

inline constexpr int kGafCodegenAbi = 2;

enum GafCodegenWant : int { kGafWantObject = 0, kGafWantIr = 1, kGafWantAssembly = 2 };
enum GafCodegenStatus : int { kGafOk = 0, kGafUserError = 1, kGafInternalError = 2 };

struct GafCodegenRequest {
  const char* kernel;  // kernel text
  size_t kernel_size;
  const char* llvm_cpu;  // of the target, zero-terminated
  int lanes, vector_bits, max_regs, k_unroll;
  int fma, prefetch_panel;
  const int* shared;  // positions of parameters that may have the address of another one
  size_t shared_size;
  int want;   // GafCodegenWant
  int check;  // 1: run LLVM's verifier over what was emitted
};
struct GafCodegenReply {
  int phases;
  int64_t scratch_bytes;
};
using GafCodegenGive = void (*)(void* context, const void* data,
                                size_t size);  // called once: result, or text of the error

extern "C" {
int gaf_codegen_cpu_abi();
int gaf_codegen_cpu_run(const GafCodegenRequest* request, GafCodegenReply* reply, GafCodegenGive give, void* context);
}
