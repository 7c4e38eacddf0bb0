// Kernel objects on disk (CONTRACT 11.5): folder 0700, owner checked, no links followed, content hash checked before
// anything is mapped, atomic writes, size bounded. Key: hash of kernel text with names stripped + target numbers + CPU
// features + code generator version.
#pragma once
#include <optional>
#include <string>

#include "runtime/artifact.h"

namespace gaf {

class KernelCache {
 public:
  explicit KernelCache(std::string dir);          // "" = memory only
  std::optional<Artifact> get(const std::string& key);
  void put(const std::string& key, const Artifact& a);
  const std::string& folder() const { return dir_; }  // "" when memory only (also after a refusal, with a warning)

 private:
  std::string dir_;
};
std::string default_cache_dir();                  // AUTOFUSION_CACHE_DIR, else the user's cache folder
std::string hash_key(std::string_view text);      // 128-bit hex

}  // namespace gaf
