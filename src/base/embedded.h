// Data files of the repository as text inside the library: targets/*.json and rules/*.yaml, by name without suffix. The
// functions are generated at build time; nothing here knows what the files mean.
#pragma once
#include <span>
#include <string_view>

namespace gaf {

struct EmbeddedFile {
  std::string_view name, text;
};
std::span<const EmbeddedFile> embedded_targets();

}  // namespace gaf
