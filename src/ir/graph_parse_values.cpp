// Graph text, reading: expressions, types, attributes and tensors. The grammar around them is graph_parse.cpp's.
#include "ir/graph_parse_values.h"

#include <charconv>

#include "base/error.h"

namespace gaf::graph_text {
namespace {

constexpr int64_t kMaxInvented = int64_t{1} << 28;  // elements of a constant that text gives no data for

// Deterministic stand-in for the data of `#hash`: floats in [-1, 1) in steps of 1/128 (exact in every float dtype),
// integers in [-4, 4) or [0, 8), bools. splitmix64 over the element number.
Tensor invented(uint64_t hash, DType dtype, const std::vector<int64_t>& dims) {
  Tensor t = Tensor::make(dtype, dims);
  for (int64_t i = 0, n = t.numel(); i < n; i++) {
    uint64_t z = hash + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(i + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    if (is_float(dtype)) {
      t.set(i, static_cast<double>(static_cast<int64_t>(z % 256) - 128) / 128.0);
    } else if (dtype == DType::b1) {
      t.set_int(i, static_cast<int64_t>(z & 1));
    } else {
      t.set_int(i, static_cast<int64_t>(z % 8) - (row(dtype).is_signed ? 4 : 0));
    }
  }
  return t;
}

bool is_integer(std::string_view w) { return w.find_first_not_of("+-0123456789") == w.npos; }

}  // namespace

Expr ValueParser::expr() {
  s_.skip();
  size_t at = s_.pos();
  try {
    return parse_expr(s_.text(), s_.pos(), [this, at](std::string_view word) {
      for (size_t i = 0; i < syms_.size(); i++)
        if (syms_[i].name == word) return static_cast<int>(i);
      s_.fail_at(at, "size '" + std::string(word) + "' is not declared in the head of the graph");
    });
  } catch (const UserError& e) {
    if (e.info().line) throw;
    s_.fail_at(at, e.info().message);
  }
}

Dims ValueParser::dims(std::string_view close) {
  Dims out;
  if (s_.accept(close)) return out;
  do out.push_back(expr());
  while (s_.accept(","));
  s_.expect(close);
  return out;
}

Type ValueParser::type() {
  std::string word = s_.word("a type");
  auto dtype = dtype_named(word);
  if (!dtype || name(*dtype) != word) s_.fail("'" + word + "' is no element type");
  s_.expect("[");
  return {*dtype, dims("]")};
}

Attrs ValueParser::attrs(RawValue* constant_value) {
  Attrs out;
  s_.expect("{");
  if (s_.accept("}")) return out;
  do {
    std::string key = s_.word_or_quoted("the name of an attribute");
    size_t at = s_.start();
    s_.expect("=");
    if (constant_value && key == "value") {
      constant_value->present = true;
      constant_value->elements = raw_elements(&constant_value->pos);
    } else if (!out.emplace(key, attr()).second) {
      s_.fail_at(at, "attribute '" + key + "' stands twice");
    }
  } while (s_.accept(","));
  s_.expect("}");
  return out;
}

Attr ValueParser::attr() {
  if (s_.peek_char("\"")) return s_.quoted();
  if (s_.accept("(")) return dims(")");
  if (s_.accept("[")) return list();
  for (std::string_view kind : {"ints", "floats", "strings"})
    if (s_.accept(kind)) {
      s_.expect("[");
      s_.expect("]");
      if (kind == "ints") return std::vector<int64_t>{};
      if (kind == "floats") return std::vector<double>{};
      return std::vector<std::string>{};
    }
  if (s_.peek_char("fbiu") && !s_.peek("inf")) return tensor();
  std::string_view n = s_.number();
  if (is_integer(n)) return integer(n);
  return real(n);
}

Attr ValueParser::list() {
  if (s_.peek_char("\"")) {
    std::vector<std::string> strings;
    do strings.push_back(s_.quoted());
    while (s_.accept(","));
    s_.expect("]");
    return strings;
  }
  std::vector<std::string_view> words;
  if (!s_.peek("]")) do
      words.push_back(s_.number());
    while (s_.accept(","));
  s_.expect("]");
  bool ints = true;
  for (std::string_view w : words) ints = ints && is_integer(w);
  if (ints) {
    std::vector<int64_t> out;
    for (std::string_view w : words) out.push_back(integer(w));
    return out;
  }
  std::vector<double> out;
  for (std::string_view w : words) out.push_back(real(w));
  return out;
}

Tensor ValueParser::tensor() {
  Type t = type();
  size_t at = s_.start();
  s_.expect(":");
  std::vector<int64_t> sizes = numbers(t.dims, at);
  return filled(t.dtype, sizes, raw_elements(&at), at);
}

int64_t ValueParser::integer(std::string_view w) {
  int64_t v = 0;
  auto r = std::from_chars(w.data(), w.data() + w.size(), v);
  if (r.ec != std::errc() || r.ptr != w.data() + w.size()) s_.fail("'" + std::string(w) + "' is no 64-bit integer");
  return v;
}

template <class F>
F ValueParser::real_as(std::string_view w) {
  F v = 0;
  auto r = std::from_chars(w.data(), w.data() + w.size(), v);
  bool whole = r.ptr == w.data() + w.size();
  if (!whole || r.ec != std::errc()) s_.fail("'" + std::string(w) + "' is no number in range");
  return v;
}

double ValueParser::real(std::string_view w) {
  if (w.ends_with('d')) return real_as<double>(w.substr(0, w.size() - 1));
  return real_as<float>(w);
}

std::vector<std::string_view> ValueParser::raw_elements(size_t* pos) {
  std::vector<std::string_view> out;
  s_.expect("[");
  *pos = s_.start();
  if (s_.accept("]")) return out;
  do {
    std::string_view w = s_.number();
    if (w == "nan" && s_.pos() < s_.text().size() && s_.text()[s_.pos()] == '(') {  // nan(bits)
      s_.pos()++;
      s_.hex("the bits of a nan");
      s_.expect(")");
      w = s_.text().substr(w.data() - s_.text().data(), s_.text().data() + s_.pos() - w.data());
    }
    out.push_back(w);
  } while (s_.accept(","));
  s_.expect("]");
  return out;
}

void ValueParser::element(Tensor& t, int64_t i, std::string_view w) {
  if (!is_float(t.dtype)) {
    uint64_t large = 0;
    auto r = std::from_chars(w.data(), w.data() + w.size(), large);
    bool plain = r.ec == std::errc() && r.ptr == w.data() + w.size();
    t.set_int(i, plain ? static_cast<int64_t>(large) : integer(w));
  } else if (w.starts_with("nan(")) {
    uint64_t bits = 0;
    std::from_chars(w.data() + 4, w.data() + w.size(), bits, 16);
    size_t size = bytes(t.dtype);
    std::memcpy(t.mut<char>() + i * size, &bits, size);
  } else if (t.dtype == DType::f64) {
    t.set(i, real_as<double>(w));
  } else {
    t.set(i, real_as<float>(w));
  }
}

Tensor ValueParser::filled(DType dtype, const std::vector<int64_t>& sizes,
                           const std::vector<std::string_view>& elements, size_t at) {
  int64_t n = element_count(sizes, at);
  if (n != static_cast<int64_t>(elements.size()))
    s_.fail_at(at, "the type has " + std::to_string(n) + " elements, the value " + std::to_string(elements.size()));
  Tensor t = Tensor::make(dtype, sizes);
  for (int64_t i = 0; i < n; i++) element(t, i, elements[i]);
  return t;
}

std::vector<int64_t> ValueParser::numbers(const Dims& dims, size_t at) {
  std::vector<int64_t> out;
  for (const Dim& d : dims) {
    if (!d.is_num() || d.num() < 0) s_.fail_at(at, "the dims of a constant are numbers");
    out.push_back(d.num());
  }
  element_count(out, at);
  return out;
}

int64_t ValueParser::element_count(const std::vector<int64_t>& sizes, size_t at) {
  int64_t n = 1;
  for (int64_t d : sizes)
    if (__builtin_mul_overflow(n, d, &n) || n > (int64_t{1} << 40)) s_.fail_at(at, "a constant this large cannot be");
  return n;
}

Tensor ValueParser::data_for(uint64_t hash, DType dtype, const std::vector<int64_t>& sizes, size_t at) {
  if (source_)
    if (Tensor t = source_(hash, dtype, sizes); t.data) return t;
  if (element_count(sizes, at) > kMaxInvented) s_.fail_at(at, "no data for a constant this large");
  return invented(hash, dtype, sizes);
}

void ValueParser::constant(Node& n, const RawValue& raw, bool by_hash, uint64_t hash, size_t at) {
  if (n.types.size() != 1) s_.fail_at(at, "a constant has one result");
  std::vector<int64_t> sizes = numbers(n.types[0].dims, at);
  if (by_hash) {
    Tensor t = data_for(hash, n.types[0].dtype, sizes, at);
    if (t.hash() != hash) n.attrs["hash"] = static_cast<int64_t>(hash);
    n.attrs["value"] = std::move(t);
  } else if (raw.present) {
    n.attrs["value"] = filled(n.types[0].dtype, sizes, raw.elements, raw.pos);
  } else {
    s_.fail_at(at, "a constant needs a value or a hash");
  }
}

}  // namespace gaf::graph_text
