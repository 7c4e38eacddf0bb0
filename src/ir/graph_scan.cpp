// Characters, words, numbers and strings of graph text; see graph_scan.h.
#include "ir/graph_scan.h"

#include <charconv>

#include "base/error.h"
#include "ir/graph_text.h"

namespace gaf::graph_text {

void Scanner::fail_at(size_t pos, const std::string& message) const {
  ErrorInfo e;
  e.code = "GAF3001";
  e.message = message;
  e.file = file_;
  e.line = 1;
  size_t line_start = 0;
  for (size_t i = 0; i < pos && i < text_.size(); i++)
    if (text_[i] == '\n') {
      e.line++;
      line_start = i + 1;
    }
  e.column = static_cast<int>(pos - line_start) + 1;
  e.cause = "the graph text does not follow the form that gaf writes";
  throw UserError(std::move(e));
}

void Scanner::expected(std::string_view what) const {
  size_t end = pos_;
  while (end < text_.size() && end < pos_ + 20 && text_[end] != '\n') end++;
  std::string found = end == pos_ ? (pos_ < text_.size() ? "the end of the line" : "the end of the text")
                                  : quote(text_.substr(pos_, end - pos_));
  fail_at(pos_, "expected " + std::string(what) + ", found " + found);
}

void Scanner::skip() {
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == '#') {
      while (pos_ < text_.size() && text_[pos_] != '\n') pos_++;
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      pos_++;
    } else {
      break;
    }
  }
  start_ = pos_;
}

bool Scanner::peek(std::string_view token) {
  skip();
  if (text_.substr(pos_, token.size()) != token) return false;
  size_t end = pos_ + token.size();
  return !is_word_char(token.back()) || end == text_.size() || !is_word_char(text_[end]);
}

bool Scanner::accept(std::string_view token) {
  size_t before = pos_;
  bool found = peek(token);
  pos_ = found ? pos_ + token.size() : before;  // a comment that was looked past may be a name: see name_comment
  return found;
}

void Scanner::expect(std::string_view token) {
  if (!accept(token)) expected("'" + std::string(token) + "'");
}

std::string Scanner::word(std::string_view what, std::string_view also) {
  skip();
  size_t end = pos_;
  while (end < text_.size() && (is_word_char(text_[end]) || also.find(text_[end]) != also.npos)) end++;
  std::string_view w = text_.substr(pos_, end - pos_);
  if (!plain_word(w, also)) expected(what);
  pos_ = end;
  return std::string(w);
}

std::string Scanner::quoted() {
  skip();
  if (pos_ == text_.size() || text_[pos_] != '"') expected("a quoted string");
  std::string out;
  for (pos_++; pos_ < text_.size() && text_[pos_] != '"' && text_[pos_] != '\n'; pos_++) {
    if (text_[pos_] != '\\') {
      out += text_[pos_];
      continue;
    }
    char escape = ++pos_ < text_.size() ? text_[pos_] : '\0';
    if (escape == 'n') {
      out += '\n';
    } else if (escape == '"' || escape == '\\') {
      out += escape;
    } else if (escape == 'x' && pos_ + 2 < text_.size()) {
      unsigned byte = 0;
      const char* digits = text_.data() + pos_ + 1;
      if (std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) fail_at(pos_, "\\x needs two hex digits");
      out += static_cast<char>(byte);
      pos_ += 2;
    } else {
      fail_at(pos_, "unknown escape in a string");
    }
  }
  if (pos_ == text_.size() || text_[pos_] != '"') fail("the string does not end on its line");
  pos_++;
  return out;
}

int64_t Scanner::integer() {
  skip();
  const char* begin = text_.data() + pos_;
  const char* end = text_.data() + text_.size();
  int64_t value = 0;
  auto r = std::from_chars(begin, end, value);
  if (r.ec == std::errc::result_out_of_range) {
    uint64_t large = 0;
    r = std::from_chars(begin, end, large);
    value = static_cast<int64_t>(large);
  }
  if (r.ec != std::errc()) expected("an integer");
  pos_ += r.ptr - begin;
  return value;
}

uint64_t Scanner::hex(std::string_view what) {
  const char* begin = text_.data() + pos_;
  uint64_t value = 0;
  auto r = std::from_chars(begin, text_.data() + text_.size(), value, 16);
  if (r.ec != std::errc()) expected(what);
  pos_ += r.ptr - begin;
  return value;
}

std::string_view Scanner::number() {
  skip();
  size_t end = pos_;
  while (end < text_.size()) {
    char c = text_[end];
    bool sign = (c == '+' || c == '-') && (end == pos_ || text_[end - 1] == 'e' || text_[end - 1] == 'E');
    if (!is_word_char(c) && c != '.' && !sign) break;
    end++;
  }
  std::string_view digits = text_.substr(pos_, end - pos_);
  if (digits.empty()) expected("a number");
  pos_ = end;
  return digits;
}

bool Scanner::name_comment(std::string& name, std::vector<std::string>& origins) {
  size_t at = pos_;
  while (at < text_.size() && text_[at] == ' ') at++;
  if (text_.substr(at, 3) != "# \"") return false;
  pos_ = at + 2;
  name = quoted();
  if (text_.substr(pos_, 6) != " from ") return true;
  do {
    pos_ += text_[pos_] == ',' ? 1 : 6;
    origins.push_back(quoted());
  } while (pos_ < text_.size() && text_[pos_] == ',');
  return true;
}

}  // namespace gaf::graph_text
