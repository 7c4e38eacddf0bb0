// What a code generator hands to the runtime: machine code in a relocatable object with two functions per phase,
//   void    gaf_run_<phase>(void* const* buffers, const int64_t* sizes, void* scratch, int64_t lo, int64_t hi)
//   int64_t gaf_trips_<phase>(const int64_t* sizes)
// buffers in parameter order; lo..hi is a part of the phase's collapsed `par` nest; scratch is 64-byte aligned, one per
// worker, `scratch_bytes` long. No calls out, no allocation. The object has no undefined symbols but those of loader.cpp.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gaf {

struct Artifact {
  std::vector<uint8_t> object;   // ELF x86-64 relocatable
  int phases = 1;
  int64_t scratch_bytes = 0;
  // (position of an `out` parameter, position of an `in` parameter): the code is right too if both have one address.
  std::vector<std::pair<int, int>> in_place;
};

using RunFn = void (*)(void* const* buffers, const int64_t* sizes, void* scratch, int64_t lo, int64_t hi);
using TripsFn = int64_t (*)(const int64_t* sizes);

struct LoadedKernel {
  struct Phase { RunFn run; TripsFn trips; };
  std::vector<Phase> phases;
  int64_t scratch_bytes = 0;
  std::vector<std::pair<int, int>> in_place;  // as in Artifact
  std::shared_ptr<void> code;    // keeps the mapping (never writable and executable at once)
};

// Maps an object made by codegen/cpu: own small ELF loader, so that a warm start needs no LLVM. InternalError if malformed.
LoadedKernel load(const Artifact& a);

}  // namespace gaf
