// Log lines (CONTRACT 5): "[AUTOFUSION] Found fusable subgraph: MatMul → BiasAdd → ReLU" on stderr, one line each. Level,
// format and arrow come from the environment until the command line or a caller sets them. This header costs nothing to
// include; the logging library stays in log.cpp.
#pragma once
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace gaf {

enum class LogLevel : uint8_t { debug, info, warning, error, off };
inline constexpr std::string_view kLogLevelName[] = {"DEBUG", "INFO", "WARNING", "ERROR", "OFF"};
std::optional<LogLevel> log_level_named(std::string_view s);  // a name in any case, or 0 (DEBUG) .. 4 (OFF)

bool log_on(LogLevel level);  // ask before building a costly line
// `event` is a short word for the json format ("found"); `text` the line behind the prefix, with "→" for arrows; `values`
// what the line tells, apart, for the json format.
void log_line(LogLevel level, std::string_view event, std::string_view text, std::vector<Json::Member> values = {},
              std::source_location where = std::source_location::current());

void set_log_level(LogLevel level);  // of this process, from now on: beats the environment
void log_from_environment();         // reads level, format and arrow again; forgets set_log_level

// Lines go to `sink` instead of stderr (Python's logging, tests); an empty one brings stderr back.
using LogSink = std::function<void(LogLevel, std::string_view line)>;
void set_log_sink(LogSink sink);

// The arrow of lists of ops as log lines show it: "→", or "->" where the locale is not UTF-8 or AUTOFUSION_LOG_ASCII=1.
std::string_view arrow();

}  // namespace gaf
