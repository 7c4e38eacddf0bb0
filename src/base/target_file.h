// Reading one target file (CONTRACT 10, KERNEL_IR 6). Inside base/ only; others call load_target.
#pragma once
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/target.h"

namespace gaf {

// `like` gives the shipped file of the same kind and instruction set, whose kernel sections fill in for absent ones; it may
// return null. Throws a UserError with everything that is wrong: GAF2201, 2202, 2203.
Target read_target(std::string_view text, const std::string& file, const Json* (*like)(const Json& file));

// Puts the header's sizes into the memory rows: on a CPU a kernel's scratch may take half of the L2.
void fit_memories(Target& t, int64_t l0a = 0, int64_t l0b = 0, int64_t l0c = 0);

}  // namespace gaf
