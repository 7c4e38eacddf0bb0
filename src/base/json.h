// JSON values: what target files, plan metadata and every --json document are made of. Objects keep the order in which keys
// were set, so documents print as they were written down. A parsed value knows the line it stood on, for errors. This file
// and json.cpp are the only ones that know which library reads and writes the text.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gaf {

class Json {
 public:
  enum class Kind : uint8_t { null, boolean, integer, number, string, array, object };
  using Member = std::pair<std::string, Json>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool v) : kind_(Kind::boolean), integer_(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Json(T v) : kind_(Kind::integer), integer_(static_cast<int64_t>(v)) {}
  Json(double v) : kind_(Kind::number), number_(v) {}  // not finite: written as null
  Json(std::string v) : kind_(Kind::string), string_(std::move(v)) {}
  Json(std::string_view v) : Json(std::string(v)) {}
  Json(const char* v) : Json(std::string(v)) {}

  // Json::object({{"schema", "gaf.run/1"}, {"kernels", 3}}), Json::array({1, 2}); both may be filled on.
  static Json object(std::initializer_list<Member> members = {});
  static Json array(std::initializer_list<Json> items = {});
  template <class Range>
  static Json array_of(const Range& r) {
    Json a = array();
    for (const auto& x : r) a.push(Json(x));
    return a;
  }
  Json& set(std::string key, Json v);  // replaces the value of a key that is there; returns *this
  Json& push(Json v);                  // returns *this

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool is_bool() const { return kind_ == Kind::boolean; }
  bool is_integer() const { return kind_ == Kind::integer; }
  bool is_number() const { return kind_ == Kind::number || kind_ == Kind::integer; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_object() const { return kind_ == Kind::object; }

  // InternalError if the value is of another kind: readers of foreign text ask is_...() first.
  bool boolean() const;
  int64_t integer() const;
  double number() const;  // of an integer too
  const std::string& str() const;
  const std::vector<Json>& items() const;
  const std::vector<Member>& members() const;
  const Json* find(std::string_view key) const;  // null if absent or not an object
  const Json& operator[](std::string_view key) const;  // a null value if absent
  int line() const { return line_; }  // 1-based; 0 if built

  std::string dump(int indent = -1) const;  // one line, or indented by that many spaces; never a trailing newline

 private:
  Kind kind_ = Kind::null;
  int line_ = 0;
  int64_t integer_ = 0;
  double number_ = 0;
  std::string string_;
  std::vector<Json> items_;
  std::vector<Member> members_;
  friend struct JsonReader;
};

// UserError with `code`, file and line if the text is not JSON, nests deeper than 64 or repeats a key.
Json parse_json(std::string_view text, std::string_view file, const std::string& code);

}  // namespace gaf
