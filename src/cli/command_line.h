// Words of the command line -> named values. One table of options and one of commands say what there is; this and
// command_line.cpp are the only files that know the parsing library. Values are text here, converted where they are
// used.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"

namespace gaf {

struct CommandLine {
  std::string command;  // "run"; "--version", "--help" for these two without a command
  std::string model;    // first positional word, "" if none
  std::map<std::string, std::vector<std::string>> values;  // option without dashes -> values; a flag: empty strings
  SettingLayer settings;                                   // options that set a field of FusionConfig
  std::string help;                                        // text to print, if help was asked for

  bool has(const std::string& option) const { return values.contains(option); }
  std::string text(const std::string& option, const std::string& fallback) const;  // last one given
  std::vector<std::string> all(const std::string& option) const;
  // UserError GAF1102 if the text is no such number.
  int64_t whole(const std::string& option, int64_t fallback, int64_t least, int64_t most = INT64_MAX) const;
  double number(const std::string& option, double fallback, double least) const;
  // One of `legal`, else GAF1102 with the nearest.
  std::string choice(const std::string& option, const std::string& fallback,
                     const std::vector<std::string>& legal) const;
};

// UserError GAF1101, 1102, 4009.
CommandLine parse_command_line(int argc, const char* const* argv);

// "--random" in an error about its value: GAF1102 "option '--random' needs a whole number, got 'x'".
[[noreturn]] void bad_value(const std::string& option, const std::string& needs, const std::string& got);

}  // namespace gaf
