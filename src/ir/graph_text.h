// Words and strings of graph text, shared by its writer and its reader.
#pragma once
#include <string>
#include <string_view>

namespace gaf::graph_text {

inline bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool valid_utf8(std::string_view s);
std::string quote(std::string_view s);  // "..." with \" \\ \n \xNN; bytes that are no UTF-8 are escaped
// Does it read back without quotes? Word characters and those of `also`, not starting with a digit.
bool plain_word(std::string_view s, std::string_view also = "");

}  // namespace gaf::graph_text
