// What the command line does with a terminal: colour, a progress line that leaves nothing behind, columns. Knows
// nothing of commands.
#pragma once
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gaf {

enum class ColourWhen : uint8_t { automatic, always, never };
void set_colour(ColourWhen when);
enum class Tint : uint8_t { red, yellow, green, bold };
// `text` in colour if `stream` shows it: a terminal and NO_COLOR unset, or always.
std::string tinted(std::FILE* stream, Tint tint, const std::string& text);

// While it lives, and from half a second on, a line on stderr says what is going on and for how long; then it is wiped
// away. Only on a terminal.
class Progress {
 public:
  Progress(std::string what, bool enabled);
  ~Progress();
  Progress(const Progress&) = delete;

 private:
  void show(const std::string& what);
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

// Rows of cells in columns two blanks apart, the first row being the heads; columns named in `right` are flush right.
std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right = {});

}  // namespace gaf
