// Writing log lines through spdlog: it owns the stream and its lock; level, formats and arrows are decided here.
#include "base/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <mutex>

namespace gaf {
namespace {

enum class Format : uint8_t { plain, cann, json };

struct State {
  std::atomic<LogLevel> level{LogLevel::warning};
  std::atomic<Format> format{Format::plain};
  std::atomic<bool> ascii{false};
  std::mutex lock;  // of `sink`
  LogSink sink;
  spdlog::logger out{"gaf", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  State() {
    out.set_pattern("%v");
    out.set_level(spdlog::level::trace);
    out.flush_on(spdlog::level::trace);
    read_environment();
  }
  void read_environment();
};

// Lives to the end of the process: destructors of static objects may still log.
State& state() {
  static State* s = new State;
  return *s;
}

std::string environment(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string v = environment(name);
    if (v.empty()) continue;
    std::transform(v.begin(), v.end(), v.begin(), [](unsigned char c) { return std::tolower(c); });
    return v.find("utf-8") != std::string::npos || v.find("utf8") != std::string::npos;
  }
  return false;
}

void State::read_environment() {
  // A bad value is reported by whoever reads the settings (GAF1201); a log line is no place for it.
  std::string wanted = environment("AUTOFUSION_LOG_LEVEL");
  if (wanted.empty()) wanted = environment("ASCEND_GLOBAL_LOG_LEVEL");
  level = log_level_named(wanted).value_or(LogLevel::warning);
  std::string f = environment("AUTOFUSION_LOG_FORMAT");
  format = f == "cann" ? Format::cann : f == "json" ? Format::json : Format::plain;
  ascii = environment("AUTOFUSION_LOG_ASCII") == "1" || !utf8_locale();
}

std::string with_ascii_arrows(std::string_view text) {
  constexpr std::string_view kArrow = "→";
  std::string out;
  for (size_t at = 0;;) {
    size_t next = text.find(kArrow, at);
    out += text.substr(at, next - at);
    if (next == std::string_view::npos) return out;
    out += "->";
    at = next + kArrow.size();
  }
}

std::string process_name() {
  return program_invocation_short_name;
}

std::string cann_line(LogLevel level, const std::string& text, const std::source_location& where) {
  auto now = std::chrono::system_clock::now();
  auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1000000;
  std::string_view file = where.file_name();
  file.remove_prefix(std::min(file.size(), file.find_last_of('/') + 1));
  std::string function = where.function_name();  // "void gaf::plan(const Graph&)" -> plan
  function = function.substr(0, function.find('('));
  function = function.substr(function.find_last_of(" :") + 1);
  return fmt::format("[{}] GAF({},{}):{:%Y-%m-%d-%H:%M:%S}.{:03}.{:03} [{}:{}]{} {}:\"{}\"", kLogLevelName[static_cast<int>(level)], ::getpid(),
                     process_name(), fmt::localtime(std::chrono::system_clock::to_time_t(now)), micros / 1000, micros % 1000, file, where.line(),
                     ::syscall(SYS_gettid), function, text);
}

std::string json_line(LogLevel level, std::string_view event, std::vector<Json::Member> values) {
  auto now = std::chrono::system_clock::now();
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  Json j = Json::object({{"level", kLogLevelName[static_cast<int>(level)]},
                         {"time", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)), millis)},
                         {"event", event}});
  for (auto& [key, value] : values) j.set(key, std::move(value));
  return j.dump();
}

}  // namespace

std::optional<LogLevel> log_level_named(std::string_view s) {
  if (s.size() == 1 && s[0] >= '0' && s[0] <= '4') return static_cast<LogLevel>(s[0] - '0');
  std::string upper(s);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (size_t i = 0; i < std::size(kLogLevelName); i++)
    if (kLogLevelName[i] == upper) return static_cast<LogLevel>(i);
  return std::nullopt;
}

bool log_on(LogLevel level) { return level >= state().level && level != LogLevel::off; }

void log_line(LogLevel level, std::string_view event, std::string_view text, std::vector<Json::Member> values, std::source_location where) {
  if (!log_on(level)) return;
  State& s = state();
  std::string shown = s.ascii ? with_ascii_arrows(text) : std::string(text), line;
  switch (s.format.load()) {
    case Format::plain: line = "[AUTOFUSION] " + shown; break;
    case Format::cann: line = cann_line(level, shown, where); break;
    case Format::json: line = json_line(level, event, values.empty() ? std::vector<Json::Member>{{"text", shown}} : std::move(values)); break;
  }
  std::replace(line.begin(), line.end(), '\n', ' ');  // one line each, whatever a node's name holds
  LogSink sink;
  {
    std::lock_guard guard(s.lock);
    sink = s.sink;
  }
  if (sink) sink(level, line);
  else s.out.log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

void set_log_level(LogLevel level) { state().level = level; }
void log_from_environment() { state().read_environment(); }

void set_log_sink(LogSink sink) {
  std::lock_guard guard(state().lock);
  state().sink = std::move(sink);
}

std::string_view arrow() { return state().ascii ? "->" : "→"; }

}  // namespace gaf
