// The kernel cache, see cache.h. All files are opened relative to the folder's descriptor and without following links.
// Must not know what an entry's bytes mean beyond the fields of Artifact.
#include "runtime/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace gaf {
namespace {

constexpr std::string_view kSuffix = ".gko";    // gaf kernel object
constexpr std::string_view kPartial = ".part";  // being written
constexpr int64_t kStalePartialSeconds = 3600;
constexpr int64_t kTouchSeconds = 24 * 3600;  // how exact "oldest" is
constexpr int64_t kMaxEntry = int64_t{256} << 20;

// One entry: this header, then the pairs (two int64 each), then the object. The hash covers the key and all that
// follows the hash, so that an entry under another's name, or with a changed size, is found out.
struct Header {
  char magic[8] = {'G', 'A', 'F', 'K', 'O', '0', '0', '2'};
  XXH128_hash_t hash{};
  int64_t phases = 0, scratch_bytes = 0, object_bytes = 0, pairs = 0;
};
constexpr size_t kHashed = offsetof(Header, phases);
constexpr size_t kPair = 2 * sizeof(int64_t);

XXH128_hash_t content_hash(const std::string& key, const void* from_phases, size_t n) {
  return XXH3_128bits_withSeed(from_phases, n, XXH3_64bits(key.data(), key.size()));
}

struct File {
  int fd;
  explicit File(int f) : fd(f) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
};

bool read_all(int fd, void* to, size_t n) {
  auto* p = static_cast<char*>(to);
  while (n > 0) {
    const ssize_t got = read(fd, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    p += got, n -= static_cast<size_t>(got);
  }
  return true;
}
bool write_all(int fd, const void* from, size_t n) {
  const auto* p = static_cast<const char*>(from);
  while (n > 0) {
    const ssize_t put = write(fd, p, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    p += put, n -= static_cast<size_t>(put);
  }
  return true;
}

// Makes the folder and what is missing above it, private to the user.
void make_folders(const std::string& path) {
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at);
    mkdir(path.substr(0, at).c_str(), 0700);  // an error shows when the folder is opened
    if (at != std::string::npos) at++;
  }
}

bool plain_key(const std::string& key) {
  return !key.empty() && key.size() <= 128 &&
         std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
}

struct Listed {
  std::string name;
  int64_t bytes, time;
};
// Our entries in the folder, oldest first; stale partial files are removed on the way.
std::vector<Listed> list_entries(int folder) {
  std::vector<Listed> r;
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* dir = fd >= 0 ? fdopendir(fd) : nullptr;
  if (!dir) {
    if (fd >= 0) close(fd);
    return r;
  }
  while (const dirent* e = readdir(dir)) {
    const std::string name = e->d_name;
    const bool entry = name.ends_with(kSuffix), partial = name.ends_with(kPartial);
    struct stat st;
    if ((!entry && !partial) || fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (partial && time(nullptr) - st.st_mtime > kStalePartialSeconds) unlinkat(folder, name.c_str(), 0);
    if (entry) r.push_back({name, st.st_size, st.st_mtime});
  }
  closedir(dir);
  std::sort(r.begin(), r.end(),
            [](const Listed& a, const Listed& b) { return a.time != b.time ? a.time < b.time : a.name < b.name; });
  return r;
}

// Why the folder must not be used, "" if it may. `error` of opening it.
std::string objection(int folder, int error) {
  struct stat st;
  if (folder < 0) return error == ELOOP || error == ENOTDIR ? "it is a link or no folder" : std::strerror(error);
  if (fstat(folder, &st) != 0) return std::strerror(errno);
  if (st.st_uid != geteuid()) return "it belongs to another user";
  if (st.st_mode & (S_IWGRP | S_IWOTH))
    return fmt::format("others may write to it (mode {:o}, wanted 700)", st.st_mode & 07777);
  if (faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) != 0) return "it is not writable";
  return "";
}

}  // namespace

KernelCache::KernelCache(std::string dir, int64_t limit_bytes, Warn warn)
    : dir_(std::move(dir)), limit_(limit_bytes), warn_(std::move(warn)) {
  if (!warn_) warn_ = [](const std::string& text) { log_line(LogLevel::warning, "cache", text); };
  if (dir_.empty()) return;
  make_folders(dir_);
  fd_ = open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const std::string why = objection(fd_, errno);
  if (!why.empty()) refuse(why);
}

KernelCache::~KernelCache() {
  if (fd_ >= 0) close(fd_);
}

void KernelCache::refuse(const std::string& why) {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  warn_once(fmt::format("GAF8003: cache folder {} is not used: {}; kernels are kept in memory only", dir_, why));
  dir_.clear();
}

void KernelCache::warn_once(const std::string& text) {
  if (!std::exchange(warned_, true)) warn_(text);
}

std::optional<Artifact> KernelCache::read_entry(const std::string& name, const std::string& key) {
  const File f(openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (f.fd < 0) return std::nullopt;
  struct stat st;
  if (fstat(f.fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
    return std::nullopt;
  if (st.st_size < static_cast<int64_t>(sizeof(Header)) || st.st_size > kMaxEntry) return std::nullopt;
  std::vector<uint8_t> all(static_cast<size_t>(st.st_size));
  if (!read_all(f.fd, all.data(), all.size())) return std::nullopt;
  Header h;
  std::memcpy(&h, all.data(), sizeof h);
  if (std::memcmp(h.magic, Header{}.magic, sizeof h.magic) != 0) return std::nullopt;
  if (!XXH128_isEqual(h.hash, content_hash(key, all.data() + kHashed, all.size() - kHashed))) return std::nullopt;
  const size_t rest = all.size() - sizeof h;
  if (h.pairs < 0 || h.pairs > static_cast<int64_t>(rest / kPair)) return std::nullopt;
  const size_t pairs = static_cast<size_t>(h.pairs) * kPair;
  if (h.object_bytes != static_cast<int64_t>(rest - pairs) || h.phases < 1 || h.phases > 1000 || h.scratch_bytes < 0)
    return std::nullopt;
  if (time(nullptr) - st.st_mtime > kTouchSeconds) futimens(f.fd, nullptr);  // in use: not among the oldest
  Artifact a;
  for (size_t at = sizeof h; at < sizeof h + pairs; at += kPair) {
    int64_t pair[2];
    std::memcpy(pair, all.data() + at, kPair);
    a.in_place.emplace_back(static_cast<int>(pair[0]), static_cast<int>(pair[1]));
  }
  a.object.assign(all.begin() + static_cast<std::ptrdiff_t>(sizeof h + pairs), all.end());
  a.phases = static_cast<int>(h.phases);
  a.scratch_bytes = h.scratch_bytes;
  return a;
}

std::optional<Artifact> KernelCache::get(const std::string& key) {
  GAF_CHECK(plain_key(key)) << "cache key " << key;
  if (fd_ < 0) {
    std::lock_guard lock(mutex_);
    const auto at = memory_.find(key);
    return at == memory_.end() ? std::nullopt : std::optional(at->second);
  }
  const std::string name = key + std::string(kSuffix);
  std::optional<Artifact> a = read_entry(name, key);
  // Whatever stands there under our name and is not right goes away (of a link, the link itself).
  if (!a && faccessat(fd_, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) unlinkat(fd_, name.c_str(), 0);
  return a;
}

void KernelCache::put(const std::string& key, const Artifact& a) {
  GAF_CHECK(plain_key(key)) << "cache key " << key;
  if (fd_ < 0) {
    std::lock_guard lock(mutex_);
    memory_[key] = a;
    return;
  }
  Header h;
  h.phases = a.phases, h.scratch_bytes = a.scratch_bytes, h.object_bytes = static_cast<int64_t>(a.object.size());
  h.pairs = static_cast<int64_t>(a.in_place.size());
  std::vector<uint8_t> all(sizeof h);
  std::memcpy(all.data(), &h, sizeof h);
  for (auto [out, in] : a.in_place)
    for (const int64_t x : {out, in}) {
      const auto* p = reinterpret_cast<const uint8_t*>(&x);
      all.insert(all.end(), p, p + sizeof x);
    }
  all.insert(all.end(), a.object.begin(), a.object.end());
  h.hash = content_hash(key, all.data() + kHashed, all.size() - kHashed);
  std::memcpy(all.data(), &h, sizeof h);

  static std::atomic<unsigned> count{0};
  const std::string partial = fmt::format("{}-{}-{}{}", key, getpid(), count++, kPartial);
  bool done = false;
  {
    const File f(openat(fd_, partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    done = f.fd >= 0 && write_all(f.fd, all.data(), all.size());
  }
  // Readers see the whole entry or none; two writers of one key write the same.
  done = done && renameat(fd_, partial.c_str(), fd_, (key + std::string(kSuffix)).c_str()) == 0;
  const int error = errno;
  if (!done) unlinkat(fd_, partial.c_str(), 0);
  bool full = false;
  {
    std::lock_guard lock(mutex_);
    if (!done) {
      warn_once(fmt::format("GAF8003: cannot write to cache folder {}: {}; kernels are compiled again next time", dir_,
                            std::strerror(error)));
      return;
    }
    full = written_ == 0 || (written_ += static_cast<int64_t>(all.size())) > limit_ / 16;
    if (full) written_ = 1;
  }
  if (full) prune();  // at the first write of a process, and after each sixteenth of the limit
}

KernelCache::Usage KernelCache::usage() const {
  Usage u;
  if (fd_ >= 0) {
    for (const Listed& e : list_entries(fd_)) u.entries++, u.bytes += e.bytes;
    return u;
  }
  std::lock_guard lock(mutex_);
  for (const auto& [key, a] : memory_) u.entries++, u.bytes += static_cast<int64_t>(a.object.size());
  return u;
}

void KernelCache::prune() {
  if (fd_ < 0) return;
  const File lock(openat(fd_, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (lock.fd < 0 || flock(lock.fd, LOCK_EX | LOCK_NB) != 0) return;  // another process is at it
  const std::vector<Listed> entries = list_entries(fd_);
  int64_t total = 0;
  for (const Listed& e : entries) total += e.bytes;
  if (total <= limit_) return;
  for (const Listed& e : entries) {
    if (total <= limit_ / 10 * 9) break;
    if (unlinkat(fd_, e.name.c_str(), 0) == 0) total -= e.bytes;
  }
}

std::string default_cache_dir() {
  if (const char* own = std::getenv("AUTOFUSION_CACHE_DIR")) return own;  // "" = memory only
  std::string base;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && xdg[0] == '/') {
    base = xdg;
  } else {
    const char* home = std::getenv("HOME");
    const passwd* user = home && home[0] == '/' ? nullptr : getpwuid(geteuid());
    base = home && home[0] == '/' ? home : user ? user->pw_dir : "";
    if (base.empty()) return "";
    base += "/.cache";
  }
  return base + "/graph-autofusion";
}

std::string hash_key(std::string_view text) {
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

}  // namespace gaf
