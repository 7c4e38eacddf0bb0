// Kernel IR -> text for the Ascend NPUs, in the languages that their public documentation describes. One walker over
// the statements, one table of spellings a language; every statement becomes one call. Plain text generation: nothing
// here needs a vendor's tool, and no code tests a target's name. docs/design.md says how the parts fit.
#pragma once
#include <string>
#include <vector>

#include "ir/kernel.h"

namespace gaf {

enum class NpuLanguage : uint8_t {
  ascendc,   // Ascend C, static tensor form: LocalTensor at byte offsets, basic API, explicit flags
  pto,       // PTO tile instructions, C++ form
  pto_text,  // PTO tile instructions, `.pto` text: level 2 (destination-passing) inside MLIR's scf and arith
};

// One self-contained file. Takes a verified kernel after legalise, place and insert_sync: tiles have offsets, and set,
// wait and fence statements stand where the pipes need them. Runs `check_npu` first and throws its first finding as
// UserError (GAF5004: the kernel breaks a rule of the device; GAF4002: a statement that the language cannot say).
std::string emit_npu(const kir::Kernel& k, const Target& t, NpuLanguage l);

// What the static checker finds, in order of the text. check.h lists the rules. `line` counts the lines of
// print_kernel(k).
struct NpuProblem {
  int line;
  std::string statement, text;
  bool unsupported = false;  // the language has no word for it; else a rule of the device is broken
};
std::vector<NpuProblem> check_npu(const kir::Kernel& k, const Target& t, NpuLanguage l);

// Launch: the most blocks that have work, at most the cores of the kind that the kernel runs on.
int64_t npu_blocks(const kir::Kernel& k, const Target& t);

}  // namespace gaf
