// Archives of arrays, see npy.h: the parts of the zip format that numpy.savez and savez_compressed write (APPNOTE 6.3:
// stored or deflated entries, 64-bit sizes in extra fields). The central directory is believed, local headers only for
// their length.
#include <fmt/format.h>
#include <zlib.h>

#include <cstring>

#include "base/error.h"
#include "cli/npy.h"

namespace gaf {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kLocator64Bytes = 20, kEnd64Bytes = 56;
constexpr size_t kMostComment = 0xffff, kMostEntries = 100'000;
constexpr uint64_t kMostRatio = 1100;  // deflate's limit is 1032: a larger claim is a lie

struct Entry {
  std::string name;
  uint64_t method = 0, packed = 0, size = 0, crc = 0, at = 0;
};

class Archive {
 public:
  Archive(std::string_view bytes, const std::string& file) : all_(bytes), file_(file) {}

  std::vector<Entry> entries() {
    auto [at, count] = directory();
    if (count > kMostEntries) fail("too many entries");
    std::vector<Entry> r;
    for (uint64_t i = 0; i < count; i++) {
      if (number(at, 4) != kCentral) fail("damaged directory");
      Entry e;
      e.method = number(at + 10, 2), e.crc = number(at + 16, 4), e.packed = number(at + 20, 4),
      e.size = number(at + 24, 4);
      const uint64_t name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2);
      e.at = number(at + 42, 4);
      e.name = part(at + kCentralBytes, name);
      wide_fields(e, at + kCentralBytes + name, extra);
      at += kCentralBytes + name + extra + comment;
      r.push_back(std::move(e));
    }
    return r;
  }

  std::string content(const Entry& e) {
    if (number(e.at, 4) != kLocal) fail("damaged entry '" + e.name + "'");
    const uint64_t begin = e.at + kLocalBytes + number(e.at + 26, 2) + number(e.at + 28, 2);
    const std::string_view packed = part(begin, e.packed);
    std::string data;
    if (e.method == 0 && e.packed == e.size)
      data = packed;
    else if (e.method == 8)
      data = inflate_all(packed, e);
    else
      fail("entry '" + e.name + "' is compressed in an unknown way");
    if (crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()) != e.crc)
      fail("checksum of entry '" + e.name + "'");
    return data;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw UserError("GAF8001", fmt::format("cannot read {}: {}", file_, why));
  }

 private:
  uint64_t number(uint64_t at, uint64_t n) const {
    if (at > all_.size() || n > all_.size() - at) fail("truncated");
    uint64_t v = 0;
    for (uint64_t i = 0; i < n; i++) v |= static_cast<uint64_t>(static_cast<uint8_t>(all_[at + i])) << (8 * i);
    return v;
  }
  std::string_view part(uint64_t at, uint64_t n) const {
    if (at > all_.size() || n > all_.size() - at) fail("truncated");
    return all_.substr(at, n);
  }

  // Where the directory begins, and how many entries it has.
  std::pair<uint64_t, uint64_t> directory() const {
    if (all_.size() < kEndBytes) fail("not a .npz file");
    for (size_t back = kEndBytes; back <= all_.size() && back <= kEndBytes + kMostComment; back++) {
      const uint64_t end = all_.size() - back;
      if (number(end, 4) != kEnd) continue;
      if (end >= kLocator64Bytes && number(end - kLocator64Bytes, 4) == kLocator64) {
        const uint64_t end64 = number(end - kLocator64Bytes + 8, 8);
        if (end64 > all_.size() - kEnd64Bytes || number(end64, 4) != kEnd64) fail("damaged directory");
        return {number(end64 + 48, 8), number(end64 + 32, 8)};
      }
      return {number(end + 16, 4), number(end + 10, 2)};
    }
    fail("not a .npz file");
  }

  // Sizes that do not fit 32 bits stand in the extra field with id 1, in this order, only those that are needed.
  void wide_fields(Entry& e, uint64_t at, uint64_t length) const {
    const uint64_t end = at + length;
    while (at + 4 <= end) {
      const uint64_t id = number(at, 2), size = number(at + 2, 2);
      uint64_t field = at + 4;
      for (uint64_t* v : {&e.size, &e.packed, &e.at})
        if (id == 1 && *v == 0xffffffff && field + 8 <= at + 4 + size) *v = number(field, 8), field += 8;
      at += 4 + size;
    }
  }

  std::string inflate_all(std::string_view packed, const Entry& e) const {
    if (e.size / kMostRatio > packed.size()) fail("damaged entry '" + e.name + "'");
    std::string data(e.size, '\0');
    z_stream z{};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) fail("out of memory");
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    z.next_out = reinterpret_cast<Bytef*>(data.data());
    uint64_t in = packed.size(), out = data.size();
    int state = Z_OK;
    constexpr uint64_t kPart = 1 << 30;  // zlib counts in 32 bits
    while (state == Z_OK) {
      if (z.avail_in == 0) z.avail_in = static_cast<uInt>(std::min(in, kPart)), in -= z.avail_in;
      if (z.avail_out == 0) z.avail_out = static_cast<uInt>(std::min(out, kPart)), out -= z.avail_out;
      const uInt before_in = z.avail_in, before_out = z.avail_out;
      state = inflate(&z, Z_NO_FLUSH);
      if (state == Z_OK && z.avail_in == before_in && z.avail_out == before_out) state = Z_BUF_ERROR;
    }
    inflateEnd(&z);
    if (state != Z_STREAM_END || out + z.avail_out != 0) fail("damaged entry '" + e.name + "'");
    return data;
  }

  std::string_view all_;
  const std::string& file_;
};

void put(std::string& s, uint64_t v, int n) {
  for (int i = 0; i < n; i++) s += static_cast<char>(v >> (8 * i));
}

// The fields that local header and directory have in common.
void put_common(std::string& s, uint32_t crc, uint64_t size, size_t name) {
  put(s, 20, 2), put(s, 0x800, 2), put(s, 0, 2);  // version 2.0, names are UTF-8, stored
  put(s, 0, 2), put(s, 0x21, 2);                  // 1980-01-01: the same tensors give the same bytes
  put(s, crc, 4), put(s, size, 4), put(s, size, 4), put(s, name, 2), put(s, 0, 2);
}

}  // namespace

NamedTensors read_npz(std::string_view bytes, const std::string& file) {
  Archive archive(bytes, file);
  NamedTensors r;
  for (const Entry& e : archive.entries()) {
    std::string name = e.name;
    if (!name.ends_with(".npy")) continue;
    name.resize(name.size() - 4);
    r.emplace_back(name, read_npy(archive.content(e), file + "#" + name));
  }
  return r;
}

std::string write_npz(const NamedTensors& tensors) {
  std::string all, directory;
  for (const auto& [key, tensor] : tensors) {
    const std::string name = key + ".npy", data = write_npy(tensor);
    const uint64_t at = all.size();
    if (at + data.size() > 0xffff0000)
      throw UserError("GAF8002", "the results pass 4 GiB, too large for one .npz file");
    const auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
    put(all, kLocal, 4);
    put_common(all, crc, data.size(), name.size());
    all += name + data;
    put(directory, kCentral, 4), put(directory, 20, 2);
    put_common(directory, crc, data.size(), name.size());
    put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4), put(directory, at, 4);
    directory += name;
  }
  const uint64_t at = all.size();
  all += directory;
  put(all, kEnd, 4), put(all, 0, 2), put(all, 0, 2), put(all, tensors.size(), 2), put(all, tensors.size(), 2);
  put(all, directory.size(), 4), put(all, at, 4), put(all, 0, 2);
  return all;
}

}  // namespace gaf
