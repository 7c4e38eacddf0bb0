// Maps files read-only. Files that a model names are opened part by part of their path without following links, so that
// no model, and no one who swaps a folder for a link meanwhile, makes us read outside the model's folder.
#include "frontend/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace gaf {
namespace {

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int f) : fd(f) {}
  Descriptor(Descriptor&& o) noexcept : fd(std::exchange(o.fd, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd, o.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

UserError unreadable(const std::string& path) {
  return UserError("GAF8001", fmt::format("cannot read {}: {}", path, std::strerror(errno)));
}

FileBytes map_descriptor(const Descriptor& f, const std::string& path) {
  struct stat st {};
  if (::fstat(f.fd, &st) != 0) throw unreadable(path);
  if (S_ISDIR(st.st_mode)) throw UserError("GAF8001", fmt::format("cannot read {}: it is a folder", path));
  if (!S_ISREG(st.st_mode)) throw UserError("GAF8001", fmt::format("cannot read {}: it is no plain file", path));
  size_t size = static_cast<size_t>(st.st_size);
  if (size == 0) return {};
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, f.fd, 0);
  if (p == MAP_FAILED) throw unreadable(path);
  std::shared_ptr<const void> owner(p, [size](const void* q) { ::munmap(const_cast<void*>(q), size); });
  return {{static_cast<const char*>(p), size}, std::move(owner)};
}

}  // namespace

FileBytes map_file(const std::string& path) {
  Descriptor f(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (f.fd < 0) throw unreadable(path);
  return map_descriptor(f, path);
}

FileBytes hold(std::shared_ptr<const std::string> bytes) { return {*bytes, bytes}; }

FileBytes map_file_below(const std::string& folder, std::string_view location) {
  std::string shown = fmt::format("external data '{}'", location);
  auto refuse = [&](std::string_view why) { return UserError("GAF3005", fmt::format("{} {}", shown, why)); };
  if (location.empty() || location.find('\0') != location.npos) throw refuse("has no proper file name");
  if (location.front() == '/') throw refuse("leaves the model's folder");
  std::string where = folder.empty() ? "." : folder;
  Descriptor at(::open(where.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.fd < 0) throw unreadable(where);
  while (!location.empty()) {
    size_t cut = location.find('/');
    std::string part(location.substr(0, cut));
    location.remove_prefix(cut == location.npos ? location.size() : cut + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") throw refuse("leaves the model's folder");
    struct stat st {};
    if (::fstatat(at.fd, part.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
      throw refuse("goes through a link, which may leave the model's folder");
    int flags = location.empty() ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
    Descriptor next(::openat(at.fd, part.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
    if (next.fd < 0) throw UserError("GAF8001", fmt::format("cannot read {}: {}", shown, std::strerror(errno)));
    at = std::move(next);
  }
  return map_descriptor(at, shown);
}

}  // namespace gaf
