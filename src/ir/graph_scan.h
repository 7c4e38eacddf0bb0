// Characters, words, numbers and strings of graph text, with the place of each for errors. Knows no grammar: that is
// graph_parse.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gaf::graph_text {

class Scanner {
 public:
  Scanner(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  [[noreturn]] void fail(const std::string& message) const { fail_at(start_, message); }
  [[noreturn]] void fail_at(size_t pos, const std::string& message) const;
  [[noreturn]] void expected(std::string_view what) const;

  void skip();  // blanks, line ends, comments; what follows is the next token
  bool at_end() { return skip(), pos_ == text_.size(); }
  bool peek(std::string_view token);  // punctuation, or a whole word
  bool accept(std::string_view token);
  void expect(std::string_view token);
  bool peek_char(std::string_view any_of) {
    return skip(), pos_ < text_.size() && any_of.find(text_[pos_]) != any_of.npos;
  }

  std::string word(std::string_view what, std::string_view also = "");
  std::string quoted();
  std::string word_or_quoted(std::string_view what, std::string_view also = "") {
    return peek_char("\"") ? quoted() : word(what, also);
  }
  int64_t integer();  // with a sign; UINT64 values above the signed range wrap
  uint64_t hex(std::string_view what);
  std::string_view number();  // characters of an integer or float, also inf and nan
  // The rest of this line if it is a comment that starts with a string: that string, then those after `from`.
  bool name_comment(std::string& name, std::vector<std::string>& origins);

  std::string_view text() const { return text_; }
  size_t& pos() { return pos_; }
  size_t start() const { return start_; }

 private:
  std::string_view text_, file_;
  size_t pos_ = 0, start_ = 0;  // start_: where the latest token began
};

}  // namespace gaf::graph_text
