// Characters and words of kernel text: blanks, comments, names, numbers, and faults with line and column. Knows no
// grammar.
#pragma once
#include <cctype>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"

namespace gaf::kir {

class KernelLexer {
 public:
  KernelLexer(std::string_view text, std::string_view file) : text_(text), file_(file) {}

 protected:
  std::string_view text_, file_;
  size_t pos_ = 0, counted_ = 0;
  int line_ = 1;  // of counted_

  [[noreturn]] void die_at(size_t pos, const std::string& message) const {
    int line = 1, column = 1;
    for (size_t i = 0; i < pos && i < text_.size(); i++) {
      column++;
      if (text_[i] == '\n') line++, column = 1;
    }
    ErrorInfo e;
    e.code = "GAF5001";
    e.message = "kernel text: " + message;
    e.file = file_;
    e.line = line;
    e.column = column;
    throw UserError(std::move(e));
  }
  [[noreturn]] void die(const std::string& message) const { die_at(pos_, message); }

  void space() {
    for (; pos_ < text_.size(); pos_++) {
      if (text_[pos_] == '#')
        while (pos_ < text_.size() && text_[pos_] != '\n') pos_++;
      if (pos_ >= text_.size() || !std::isspace(static_cast<unsigned char>(text_[pos_]))) return;
    }
  }
  int line_here() {
    for (; counted_ < pos_; counted_++) line_ += text_[counted_] == '\n';
    return line_;
  }
  static bool letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  bool eat(std::string_view t) {
    space();
    if (text_.substr(pos_, t.size()) != t) return false;
    size_t end = pos_ + t.size();
    if (letter(t.back()) && end < text_.size() && letter(text_[end])) return false;  // whole words only
    pos_ = end;
    return true;
  }
  void need(std::string_view t) {
    if (!eat(t)) die("expected '" + std::string(t) + "'");
  }
  std::string word(std::string_view what) {
    space();
    size_t end = pos_;
    if (end < text_.size() && text_[end] == '%') end++;
    while (end < text_.size() && letter(text_[end])) end++;
    if (end == pos_) die("expected " + std::string(what));
    std::string w(text_.substr(pos_, end - pos_));
    pos_ = end;
    return w;
  }
  std::string target_name() {  // "x86-64-avx2"
    space();
    size_t end = pos_;
    while (end < text_.size() && (letter(text_[end]) || text_[end] == '-' || text_[end] == '.')) end++;
    if (end == pos_) die("expected the target's name");
    std::string w(text_.substr(pos_, end - pos_));
    pos_ = end;
    return w;
  }
  template <class T>
  T parse_number(std::string_view what) {
    space();
    T v{};
    auto [end, error] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), v);
    if (error != std::errc()) die("expected " + std::string(what));
    pos_ = static_cast<size_t>(end - text_.data());
    return v;
  }
  // An integer before "..": from_chars of an int stops at the dot by itself.
  int64_t integer() { return parse_number<int64_t>("an integer"); }
  double real() {
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (eat("nan")) return std::numeric_limits<double>::quiet_NaN();
    if (eat("-inf")) return -inf;
    if (eat("inf")) return inf;
    return parse_number<double>("a number");
  }
};

}  // namespace gaf::kir
