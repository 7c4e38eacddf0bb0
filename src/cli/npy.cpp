// One array file, see npy.h. Format: numpy.lib.format, versions 1 to 3: magic, version, length, a Python dict as text,
// data. Must not know of archives.
#include "cli/npy.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace gaf {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostDims = 64;

struct Type {
  DType dtype;
  char kind;
};
constexpr Type kTypes[] = {{DType::f32, 'f'}, {DType::f16, 'f'}, {DType::f64, 'f'}, {DType::i8, 'i'},
                           {DType::u8, 'u'},  {DType::i16, 'i'}, {DType::u16, 'u'}, {DType::i32, 'i'},
                           {DType::u32, 'u'}, {DType::i64, 'i'}, {DType::u64, 'u'}, {DType::b1, 'b'},
                           {DType::bf16, 'V'}};

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

// The dict of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. No other Python is understood.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Header read() {
    Header h;
    int seen = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr")
        h.descr = string(), seen |= 1;
      else if (key == "fortran_order")
        h.fortran = boolean(), seen |= 2;
      else if (key == "shape")
        h.shape = tuple(), seen |= 4;
      else
        fail("unknown key '" + key + "' in its header");
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (seen != 7) fail("its header is not complete");
    return h;
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw UserError("GAF8001", fmt::format("cannot read {}: {}", file_, why));
  }

 private:
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) at_++;
  }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}' expected in its header", c));
  }
  std::string string() {
    space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("only arrays of plain numbers are understood");
    std::string s(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    space();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    fail("True or False expected in its header");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> dims;
    expect('(');
    while (!take(')')) {
      space();
      int64_t v = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
      if (error != std::errc() || v < 0 || dims.size() == kMostDims) fail("bad shape in its header");
      at_ = static_cast<size_t>(end - text_.data());
      take('L');  // Python 2's long
      dims.push_back(v);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

std::optional<DType> type_of(const std::string& descr) {
  if (descr.size() != 3) return std::nullopt;
  for (const Type& t : kTypes)
    if (t.kind == descr[1] && bytes(t.dtype) == descr[2] - '0') return t.dtype;
  return std::nullopt;
}

void reverse_elements(char* data, int64_t n, int size) {
  for (int64_t i = 0; i < n; i++)
    for (int b = 0; b < size / 2; b++) std::swap(data[i * size + b], data[i * size + size - 1 - b]);
}

// First index fastest -> last index fastest.
Tensor row_major(const Tensor& t) {
  Tensor r = Tensor::make(t.dtype, t.dims);
  const size_t rank = t.dims.size();
  const auto size = static_cast<size_t>(bytes(t.dtype));
  std::vector<int64_t> index(rank, 0), stride(rank, 1);
  for (size_t d = 1; d < rank; d++) stride[d] = stride[d - 1] * t.dims[d - 1];
  for (int64_t i = 0, from = 0; i < t.numel(); i++) {
    std::memcpy(r.mut<char>() + static_cast<size_t>(i) * size, t.as<char>() + static_cast<size_t>(from) * size, size);
    for (size_t d = rank; d-- > 0;) {
      from += stride[d];
      if (++index[d] < t.dims[d]) break;
      from -= stride[d] * t.dims[d], index[d] = 0;
    }
  }
  return r;
}

}  // namespace

Tensor read_npy(std::string_view all, const std::string& file) {
  const HeaderReader nothing({}, file);
  if (!all.starts_with(kMagic) || all.size() < 10) nothing.fail("not a .npy file");
  const int version = all[6];
  const size_t length_bytes = version == 1 ? 2 : 4, begin = 8 + length_bytes;
  if (version < 1 || version > 3 || all.size() < begin) nothing.fail("unknown version of .npy");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; i++) length |= static_cast<size_t>(static_cast<uint8_t>(all[8 + i])) << (8 * i);
  if (length > all.size() - begin) nothing.fail("truncated");
  HeaderReader reader(all.substr(begin, length), file);
  const Header h = reader.read();
  const std::optional<DType> type = type_of(h.descr);
  if (!type) reader.fail("unsupported element type '" + h.descr + "'");
  const std::string_view data = all.substr(begin + length);

  int64_t size = bytes(*type);
  for (const int64_t d : h.shape)
    if (__builtin_mul_overflow(size, d, &size)) reader.fail("its shape is too large");
  if (size > static_cast<int64_t>(data.size())) reader.fail("truncated");
  Tensor t = Tensor::make(*type, h.shape);
  if (size > 0) std::memcpy(t.mut<char>(), data.data(), static_cast<size_t>(size));
  if (h.descr[0] == '>') reverse_elements(t.mut<char>(), t.numel(), bytes(*type));
  if (*type == DType::b1)
    for (int64_t i = 0; i < t.numel(); i++) t.mut<uint8_t>()[i] = t.as<uint8_t>()[i] != 0;
  return h.fortran && h.shape.size() > 1 ? row_major(t) : t;
}

std::string write_npy(const Tensor& t) {
  const DType stored = t.dtype == DType::bf16 ? DType::u16 : t.dtype;
  char kind = 'f';
  for (const Type& k : kTypes)
    if (k.dtype == stored) kind = k.kind;
  std::string shape;
  for (const int64_t d : t.dims) shape += fmt::format("{}, ", d);
  if (t.dims.size() > 1)
    shape.resize(shape.size() - 2);
  else if (t.dims.size() == 1)
    shape.pop_back();
  std::string dict = fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 bytes(stored) == 1 ? '|' : '<', kind, bytes(stored), shape);
  // Data begins at a multiple of 64.
  const size_t before = kMagic.size() + 4;
  dict.append(63 - (before + dict.size()) % 64, ' ');
  dict += '\n';
  std::string all(kMagic);
  all += {1, 0, static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  all += dict;
  all.append(t.as<char>(), static_cast<size_t>(t.size_bytes()));
  return all;
}

}  // namespace gaf
