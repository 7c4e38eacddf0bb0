// Reading and atomic writing of whole files with plain system calls, so that each failure keeps its reason.
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace gaf {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

UserError failed(std::string_view what, const std::string& path) {
  return UserError("GAF8001", fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

}  // namespace

std::string read_file(const std::string& path, int64_t limit) {
  Descriptor f{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat st {};
  if (f.fd < 0 || ::fstat(f.fd, &st) != 0) throw failed("read", path);
  if (S_ISDIR(st.st_mode)) throw UserError("GAF8001", fmt::format("cannot read {}: it is a folder", path));
  std::string text;
  char part[1 << 16];
  for (;;) {
    ssize_t n = ::read(f.fd, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failed("read", path);
    if (n == 0) return text;
    text.append(part, static_cast<size_t>(n));
    if (limit >= 0 && static_cast<int64_t>(text.size()) > limit)
      throw UserError("GAF8001", fmt::format("cannot read {}: longer than {} bytes", path, limit));
  }
}

void write_file(const std::string& path, std::string_view content) { write_file(path, std::span(&content, 1)); }

void write_file(const std::string& path, std::span<const std::string_view> parts) {
  std::string fresh = fmt::format("{}.{}.tmp", path, ::getpid());
  Descriptor f{::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (f.fd < 0) throw failed("write", path);
  auto give_up = [&] {
    UserError e = errno == ENOSPC ? UserError("GAF8002", fmt::format("disk full, {} not written", path)) : failed("write", path);
    ::unlink(fresh.c_str());
    return e;
  };
  for (std::string_view content : parts)
    for (size_t done = 0; done < content.size();) {
      ssize_t n = ::write(f.fd, content.data() + done, content.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw give_up();
      done += static_cast<size_t>(n);
    }
  if (::rename(fresh.c_str(), path.c_str()) != 0) throw give_up();
}

}  // namespace gaf
