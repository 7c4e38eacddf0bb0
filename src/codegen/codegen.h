// Kernel IR -> artifact. The CPU generator lives in a shared library of its own (libgaf_codegen_cpu.so, LLVM linked in
// statically and hidden), loaded only when something must be compiled; what crosses its border is text and bytes.
#pragma once
#include <string>
#include <string_view>

#include "ir/kernel.h"
#include "runtime/artifact.h"

namespace gaf {

// Throws UserError GAF5001 (what failed, kernel attached) or InternalError. Thread-safe.
Artifact compile_cpu(const kir::Kernel& k, const Target& t);
std::string llvm_ir(const kir::Kernel& k, const Target& t);       // gaf emit --kind ir
std::string assembly_cpu(const kir::Kernel& k, const Target& t);  // machine code as text, for eyes
std::string codegen_version();  // LLVM + emitter version, part of the cache key; does not load LLVM

}  // namespace gaf
