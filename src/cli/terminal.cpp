// Terminal output, see terminal.h. Must not know what is printed.
#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace gaf {
namespace {

ColourWhen g_colour = ColourWhen::automatic;

bool coloured(std::FILE* stream) {
  if (g_colour != ColourWhen::automatic) return g_colour == ColourWhen::always;
  const char* no = std::getenv("NO_COLOR");
  return (!no || !*no) && isatty(fileno(stream)) != 0;
}

// Characters that a terminal shows for UTF-8 text.
size_t width(const std::string& s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

void set_colour(ColourWhen when) { g_colour = when; }

std::string tinted(std::FILE* stream, Tint tint, const std::string& text) {
  constexpr const char* kCodes[] = {"31", "33", "32", "1"};
  return coloured(stream) ? fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<int>(tint)], text) : text;
}

Progress::Progress(std::string what, bool enabled) {
  if (enabled && isatty(STDERR_FILENO)) thread_ = std::thread([this, what = std::move(what)] { show(what); });
}

Progress::~Progress() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::show(const std::string& what) {
  using namespace std::chrono_literals;
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  bool shown = false;
  while (!stop_.wait_for(lock, shown ? 100ms : 500ms, [this] { return stopped_; })) {
    fmt::print(stderr, "\r{} ... {:.1f} s", what,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::fflush(stderr);
    shown = true;
  }
  if (shown) std::fputs("\r\033[K", stderr);
}

std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); i++) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  std::string s;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); i++) {
      const std::string blanks(widths[i] - width(row[i]), ' ');
      const bool flush = i < right.size() && right[i];
      line += (i ? "  " : "") + (flush ? blanks + row[i] : row[i] + blanks);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    s += line + "\n";
  }
  return s;
}

}  // namespace gaf
