// Reading and writing JSON text through nlohmann-json. The reader's input iterator counts what the lexer took, which is how
// values get their line numbers: the library itself keeps none.
#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace gaf {

Json Json::object(std::initializer_list<Member> members) {
  Json j;
  j.kind_ = Kind::object;
  for (const Member& m : members) j.set(m.first, m.second);
  return j;
}

Json Json::array(std::initializer_list<Json> items) {
  Json j;
  j.kind_ = Kind::array;
  j.items_ = items;
  return j;
}

Json& Json::set(std::string key, Json v) {
  GAF_CHECK(is_object() || is_null()) << "set of '" << key << "' on a JSON value that is no object";
  kind_ = Kind::object;
  for (Member& m : members_)
    if (m.first == key) return m.second = std::move(v), *this;
  members_.emplace_back(std::move(key), std::move(v));
  return *this;
}

Json& Json::push(Json v) {
  GAF_CHECK(is_array() || is_null()) << "push on a JSON value that is no array";
  kind_ = Kind::array;
  items_.push_back(std::move(v));
  return *this;
}

bool Json::boolean() const {
  GAF_CHECK(is_bool());
  return integer_ != 0;
}
int64_t Json::integer() const {
  GAF_CHECK(is_integer());
  return integer_;
}
double Json::number() const {
  GAF_CHECK(is_number());
  return is_integer() ? static_cast<double>(integer_) : number_;
}
const std::string& Json::str() const {
  GAF_CHECK(is_string());
  return string_;
}
const std::vector<Json>& Json::items() const {
  GAF_CHECK(is_array());
  return items_;
}
const std::vector<Json::Member>& Json::members() const {
  GAF_CHECK(is_object());
  return members_;
}

const Json* Json::find(std::string_view key) const {
  for (const Member& m : members_)
    if (m.first == key) return &m.second;
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json null;
  const Json* v = find(key);
  return v ? *v : null;
}

namespace {

nlohmann::ordered_json to_library(const Json& j) {
  switch (j.kind()) {
    case Json::Kind::null: return nullptr;
    case Json::Kind::boolean: return j.boolean();
    case Json::Kind::integer: return j.integer();
    case Json::Kind::number: return j.number();
    case Json::Kind::string: return j.str();
    case Json::Kind::array: {
      auto out = nlohmann::ordered_json::array();
      for (const Json& x : j.items()) out.push_back(to_library(x));
      return out;
    }
    case Json::Kind::object: {
      auto out = nlohmann::ordered_json::object();
      for (const auto& [key, value] : j.members()) out.emplace(key, to_library(value));
      return out;
    }
  }
  return nullptr;
}

// A forward pass over the text that tells how many characters the lexer has taken.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  const char* at;
  size_t* taken;
  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    ++at, ++*taken;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at == b.at; }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return a.at != b.at; }
};

constexpr size_t kMaxDepth = 64;  // deeper is hostile; keeps the recursion of printing and destruction bounded

}  // namespace

struct JsonReader final : nlohmann::json_sax<nlohmann::json> {
  std::string_view text;
  size_t taken = 0;
  Json root;
  std::vector<Json> open;         // the arrays and objects around the current place
  std::vector<std::string> keys;  // the key that each open value will get in its parent, and the current one
  std::string key_, problem;
  size_t counted = 0;
  int line = 1;

  // The lexer stands behind the token, or one character further behind a number: a newline just taken is not counted.
  int here() {
    size_t end = std::min(taken, text.size());
    if (end > 0 && text[end - 1] == '\n') end--;
    if (end > counted) line += static_cast<int>(std::count(text.begin() + counted, text.begin() + end, '\n')), counted = end;
    return line;
  }
  bool put(Json v) {
    if (open.empty()) {
      root = std::move(v);
      return true;
    }
    Json& parent = open.back();
    if (parent.is_array()) {
      parent.items_.push_back(std::move(v));
    } else if (parent.find(key_)) {
      problem = fmt::format("key '{}' stands twice", key_);
      return false;
    } else {
      parent.members_.emplace_back(key_, std::move(v));
    }
    return true;
  }
  bool leaf(Json v) {
    v.line_ = here();
    return put(std::move(v));
  }
  bool start(Json v) {
    v.line_ = here();
    if (open.size() >= kMaxDepth) {
      problem = fmt::format("nesting deeper than {}", kMaxDepth);
      return false;
    }
    open.push_back(std::move(v));
    keys.push_back(key_);
    return true;
  }
  bool end() {
    Json v = std::move(open.back());
    open.pop_back();
    key_ = std::move(keys.back());
    keys.pop_back();
    return put(std::move(v));
  }

  bool null() override { return leaf(nullptr); }
  bool boolean(bool v) override { return leaf(v); }
  bool number_integer(number_integer_t v) override { return leaf(v); }
  bool number_unsigned(number_unsigned_t v) override {
    return v <= INT64_MAX ? leaf(static_cast<int64_t>(v)) : leaf(static_cast<double>(v));
  }
  bool number_float(number_float_t v, const string_t&) override { return leaf(v); }
  bool string(string_t& v) override { return leaf(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return start(Json::object()); }
  bool start_array(size_t) override { return start(Json::array()); }
  bool key(string_t& v) override {
    key_ = std::move(v);
    return true;
  }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool parse_error(size_t, const std::string& token, const nlohmann::json::exception& e) override {
    std::string what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...: text"
    size_t colon = what.find(": ");
    problem = colon == std::string::npos ? "unexpected '" + token + "'" : what.substr(colon + 2);
    return false;
  }
};

std::string Json::dump(int indent) const {
  return to_library(*this).dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Json parse_json(std::string_view text, std::string_view file, const std::string& code) {
  JsonReader reader;
  reader.text = text;
  CountingIterator begin{text.data(), &reader.taken}, end{text.data() + text.size(), &reader.taken};
  if (nlohmann::json::sax_parse(begin, end, &reader)) return std::move(reader.root);
  ErrorInfo e;
  e.code = code;
  e.message = "not JSON: " + reader.problem;
  e.file = file;
  e.line = reader.here();
  throw UserError(std::move(e));
}

}  // namespace gaf
