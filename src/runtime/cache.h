// Kernel objects on disk (CONTRACT 11.5): folder 0700, owner checked, no links followed, content hash checked before
// anything is mapped, atomic writes, size bounded. Key: hash of kernel text with names stripped + target numbers + CPU
// features + code generator version. Several threads and processes may use one folder at once.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/artifact.h"

namespace gaf {

class KernelCache {
 public:
  using Warn = std::function<void(const std::string&)>;
  static constexpr int64_t kDefaultLimit = int64_t{1} << 30;

  // "" = memory only. A folder that is not safe to use, or cannot be made, means memory only too; `warn` is told why,
  // once (default: a warning in the log).
  explicit KernelCache(std::string dir, int64_t limit_bytes = kDefaultLimit, Warn warn = {});
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;

  // A damaged entry is dropped and counts as absent. Never throws for what the disk does.
  std::optional<Artifact> get(const std::string& key);
  void put(const std::string& key, const Artifact& a);  // key: letters and digits
  const std::string& folder() const { return dir_; }    // "" when memory only (also after a refusal, with a warning)

  struct Usage {
    int64_t entries = 0, bytes = 0;
  };
  Usage usage() const;
  void prune();  // oldest entries first, until 9/10 of the limit are kept

 private:
  void refuse(const std::string& why);
  void warn_once(const std::string& text);
  std::optional<Artifact> read_entry(const std::string& name, const std::string& key);
  std::string dir_;
  int fd_ = -1;  // of the folder: later changes of its path change nothing
  int64_t limit_;
  Warn warn_;
  mutable std::mutex mutex_;
  bool warned_ = false;
  int64_t written_ = 0;                     // since the last prune
  std::map<std::string, Artifact> memory_;  // memory only
};

std::string default_cache_dir();              // AUTOFUSION_CACHE_DIR, else the user's cache folder
std::string hash_key(std::string_view text);  // 128-bit hex

}  // namespace gaf
