// Parsing the command line, see command_line.h. Must not know what a command does.
#include "cli/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/catalogue.h"
#include "base/error.h"

namespace gaf {
namespace {

enum class Takes : uint8_t { nothing, value, values };

struct OptionRow {
  const char* names;  // "-o,--output"; the last one names it
  Takes takes;
  const char* commands;  // words; "*" = all that take a model
  const char* setting;   // FusionConfig field it sets, or null
  const char* type;
  const char* help;
};

constexpr OptionRow kOptions[] = {
    // model and inputs
    {"--shape", Takes::values, "*", nullptr, "NAME:D0,D1,..", "fix an input's shape; -1 keeps a dimension free"},
    {"--dim", Takes::values, "*", nullptr, "SYM=N", "bind a symbolic dimension in all inputs"},
    {"--input", Takes::values, "run bench compare", nullptr, "NAME=FILE",
     "an input from FILE.npy, FILE.npz#key or FILE.pb"},
    {"--inputs", Takes::value, "run bench compare", nullptr, "FILE.npz", "all inputs from one archive"},
    {"--random", Takes::value, "run bench compare", nullptr, "N", "fill inputs not given from seed N (default 0)"},
    {"--range", Takes::values, "run bench compare", nullptr, "NAME:LO,HI",
     "range of random integers, HI left out (default 0,8)"},
    // planning
    {"--strategy", Takes::value, "* config", "strategy", "NAME", "conservative, balanced (default) or aggressive"},
    {"--level", Takes::value, "* config", "level", "0|1|2", "0 no fusion, 1 basic, 2 all (default)"},
    {"--max-fusion-depth", Takes::value, "* config", "max_fusion_depth", "N", "longest path inside a group, in ops"},
    {"--cost-threshold", Takes::value, "* config", "cost_threshold", "F",
     "least gain of a group, as a fraction of its unfused time"},
    {"--max-fusion-size", Takes::value, "* config", "max_fusion_size", "N", "most nodes in a group (default 64)"},
    {"--resource-budget", Takes::value, "* config", "resource_budget", "F",
     "share of registers and local memory (default 0.8)"},
    {"--precision", Takes::value, "* config", nullptr, "NAME", "origin (default)"},
    {"--no-autofuse", Takes::nothing, "* config", "enable_autofuse", "", "no automatic discovery of groups"},
    {"--no-superkernel", Takes::nothing, "* config", "enable_superkernel", "", "plan, but run groups op by op"},
    {"--target", Takes::value, "* config", "target", "NAME|FILE", "host (default), a shipped target, or a target file"},
    {"--threads", Takes::value, "* config", "threads", "N", "worker threads; 0 (default) = all that may be used"},
    {"--strict", Takes::nothing, "* config", "strict", "", "no silent fallback: externs and failures are errors"},
    {"--config", Takes::value, "* config", nullptr, "FILE", "settings file (YAML)"},
    {"--max-memory", Takes::value, "run bench compare", nullptr, "BYTES", "refuse rather than use more, e.g. 2GiB"},
    // of single commands
    {"-o,--output", Takes::value, "run fuse emit", nullptr, "PATH", "where results go"},
    {"--unfused", Takes::nothing, "run", nullptr, "", "run without fusion"},
    {"--runs", Takes::value, "bench", nullptr, "N", "rounds (default 50)"},
    {"--warmup", Takes::value, "bench", nullptr, "N", "rounds before (default 5)"},
    {"--min-time", Takes::value, "bench", nullptr, "S", "least seconds of measuring (default 1.0)"},
    {"--baseline", Takes::value, "bench", nullptr, "NAME", "time onnxruntime too, when installed"},
    {"--fail-if-slower", Takes::nothing, "bench", nullptr, "", "exit 1 when fused is slower"},
    {"--format", Takes::value, "explain", nullptr, "text|json", "form of the report (default text)"},
    {"--node", Takes::value, "explain", nullptr, "NAME", "only what became of this node"},
    {"--edge", Takes::value, "explain", nullptr, "A,B", "only why these two are fused or not"},
    {"--error", Takes::value, "explain", nullptr, "CODE", "what an error code means"},
    {"--reference", Takes::value, "compare", nullptr, "NAME", "interp (default), unfused or onnxruntime"},
    {"--per-kernel", Takes::nothing, "compare", nullptr, "", "each kernel against the reference too"},
    {"--rtol", Takes::value, "compare", nullptr, "X", "relative tolerance (default by dtype)"},
    {"--atol", Takes::value, "compare", nullptr, "X", "absolute tolerance (default by dtype)"},
    {"--trials", Takes::value, "compare", nullptr, "N", "sets of random inputs (default 1)"},
    {"--backend", Takes::value, "emit", nullptr, "NAME", "cpu (default), ascendc or pto"},
    {"--kind", Takes::value, "emit", nullptr, "NAME", "source = kernel IR (default), ir = LLVM IR"},
    {"--group", Takes::value, "emit", nullptr, "ID", "only this group's kernel"},
    // output
    {"--report", Takes::value, "*", nullptr, "FILE", "also write the fusion report, .txt or .json"},
    {"--json", Takes::nothing, "* config", nullptr, "", "exactly one JSON document on stdout"},
    {"-q,--quiet", Takes::nothing, "* config", nullptr, "", "errors only"},
    {"-v,--verbose", Takes::nothing, "* config", nullptr, "", "log decisions; -vv: in detail"},
    {"--color", Takes::value, "* config", nullptr, "WHEN", "auto (default), always or never"},
    {"--no-progress", Takes::nothing, "* config", nullptr, "", "no progress display"},
};

struct CommandRow {
  const char* name;
  const char* help;
  bool model;
};
constexpr CommandRow kCommands[] = {
    {"run", "run a model once", true},
    {"bench", "time fused against unfused", true},
    {"explain", "why operators were fused or not", true},
    {"compare", "fused against a reference, by value", true},
    {"fuse", "write the fused model as ONNX", true},
    {"emit", "write the generated kernels as text", true},
    {"config", "every setting, its value and where it comes from", false},
};

// Known to the contract, but of later milestones: told apart from slips of the fingers.
constexpr const char* kLaterCommands[] = {"check",   "bisect",  "rules",   "ops", "cache",
                                          "targets", "compile", "profile", "atc"};
constexpr const char* kLaterOptions[] = {
    "--measure",   "--rules",           "--plugin",    "--fusion_switch_file", "--optimization_switch",
    "--debug-dir", "--compile-timeout", "--candidates"};

std::string dashless(const char* names) {
  std::string s = names;
  return s.substr(s.rfind("--") + 2);
}
bool word_in(const std::string& word, const std::string& words) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}
bool belongs(const OptionRow& o, const CommandRow& c) {
  return word_in(c.name, o.commands) || (c.model && word_in("*", o.commands));
}

[[noreturn]] void not_yet(const std::string& what) {
  throw UserError("GAF4009", "'" + what + "' is not available in this version");
}

[[noreturn]] void unknown_word(const std::string& word, const std::string& command) {
  if (!word.starts_with("-") || word == "-")
    throw UserError("GAF1101", "unexpected argument '" + word + "'", "see gaf " + command + " --help");
  const std::string name = word.substr(0, word.find('='));
  for (const char* later : kLaterOptions)
    if (name == later) not_yet(name);
  std::vector<std::string> names{"--help"};
  const auto* row =
      std::find_if(std::begin(kCommands), std::end(kCommands), [&](const CommandRow& c) { return command == c.name; });
  for (const OptionRow& o : kOptions)
    if (row != std::end(kCommands) && belongs(o, *row)) names.push_back("--" + dashless(o.names));
  throw UserError("GAF1101", "unknown option '" + name + "'" + did_you_mean(name, names),
                  "see gaf " + command + " --help");
}

[[noreturn]] void unknown_command(const std::string& word) {
  for (const char* later : kLaterCommands)
    if (word == later) not_yet(word);
  std::vector<std::string> names{"--version", "--help"};
  for (const CommandRow& c : kCommands) names.emplace_back(c.name);
  throw UserError("GAF1101",
                  std::string("unknown ") + (word.starts_with("-") ? "option" : "command") + " '" + word + "'" +
                      did_you_mean(word, names),
                  "see gaf --help");
}

// Flags that switch a setting that is true by default off.
std::string flag_value(const OptionRow& o) { return std::string_view(o.names).starts_with("--no-") ? "false" : "true"; }

// The words of one option land here.
struct Slot {
  const OptionRow* row;
  std::vector<std::string> given;  // of an option that may be repeated
  std::string last;                // of one whose last value counts
  CLI::Option* option = nullptr;
};

void declare(CLI::App& app, const CommandRow& command, std::vector<std::unique_ptr<Slot>>& slots, std::string& model) {
  app.set_help_flag("-h,--help", "this text");
  app.allow_extras();
  if (command.model) app.add_option("MODEL", model, ".onnx or .gaf file; - reads ONNX from stdin")->type_name("");
  for (const OptionRow& o : kOptions) {
    if (!belongs(o, command)) continue;
    Slot& slot = *slots.emplace_back(std::make_unique<Slot>(Slot{&o, {}, "", nullptr}));
    if (o.takes == Takes::nothing)
      slot.option = app.add_flag(o.names, o.help);
    else if (o.takes == Takes::values)
      slot.option = app.add_option(o.names, slot.given, o.help)->type_name(o.type)->allow_extra_args(false);
    else
      slot.option = app.add_option(o.names, slot.last, o.help)
                        ->type_name(o.type)
                        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

void collect(const std::vector<std::unique_ptr<Slot>>& slots, CommandLine& r) {
  for (const auto& slot : slots) {
    const OptionRow& o = *slot->row;
    if (slot->option->count() == 0) continue;
    std::vector<std::string> given = slot->given;
    if (o.takes == Takes::value) given = {slot->last};
    if (o.takes == Takes::nothing) given.assign(slot->option->count(), "");
    r.values[dashless(o.names)] = given;
    if (o.setting) r.settings[o.setting] = o.takes == Takes::nothing ? flag_value(o) : given.back();
  }
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine r;
  CLI::App top("finds operators of a neural network that run faster as one kernel, and runs them so");
  top.name("gaf");
  top.set_help_flag("-h,--help", "this text");
  int version = 0, json = 0;
  top.add_flag("--version", version, "version, instruction sets and back ends");
  top.add_flag("--json", json, "with --version: one JSON document");
  std::vector<std::vector<std::unique_ptr<Slot>>> slots(std::size(kCommands));
  std::vector<CLI::App*> commands;
  for (size_t i = 0; i < std::size(kCommands); i++) {
    commands.push_back(top.add_subcommand(kCommands[i].name, kCommands[i].help));
    declare(*commands.back(), kCommands[i], slots[i], r.model);
  }

  // The first word must be a command or an option of gaf itself: said here, where the nearest can be named.
  if (argc < 2) {
    r.command = "--help", r.help = top.help();
    return r;
  }
  const std::string first = argv[1];
  const bool own = first == "--version" || first == "--help" || first == "-h" || first == "--json";
  if (!own &&
      !std::any_of(std::begin(kCommands), std::end(kCommands), [&](const CommandRow& c) { return first == c.name; }))
    unknown_command(first);

  try {
    top.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    r.command = "--help";
    r.help = top.help();
    for (size_t i = 0; i < commands.size(); i++)
      if (first == kCommands[i].name) r.help = commands[i]->help("gaf");
    return r;
  } catch (const CLI::ExtrasError&) {
    unknown_command(argc > 2 ? argv[2] : first);
  } catch (const CLI::ParseError& e) {  // an option without its value
    const std::string last = argv[argc - 1];
    throw UserError("GAF1102", last.starts_with("--") ? "option '" + last + "' needs a value" : e.what(),
                    "see gaf " + (own ? "" : first + " ") + "--help");
  }
  for (size_t i = 0; i < commands.size(); i++) {
    if (!commands[i]->parsed()) continue;
    r.command = kCommands[i].name;
    for (const std::string& extra : commands[i]->remaining())
      if (extra != "--") unknown_word(extra, r.command);
    collect(slots[i], r);
    const std::string precision = r.text("precision", "origin");
    if (precision != "origin") {
      r.choice("precision", "origin", {"origin", "strict", "mixed_float16", "mixed_bfloat16"});
      not_yet("--precision " + precision);
    }
    return r;
  }
  if (!version) {
    r.command = "--help", r.help = top.help();
    return r;
  }
  r.command = "--version";
  if (json) r.values["json"] = {""};
  return r;
}

void bad_value(const std::string& option, const std::string& needs, const std::string& got) {
  throw UserError("GAF1102", "option '--" + option + "' needs " + needs + ", got '" + got + "'");
}

std::string CommandLine::text(const std::string& option, const std::string& fallback) const {
  const auto at = values.find(option);
  return at == values.end() ? fallback : at->second.back();
}

std::vector<std::string> CommandLine::all(const std::string& option) const {
  const auto at = values.find(option);
  return at == values.end() ? std::vector<std::string>{} : at->second;
}

int64_t CommandLine::whole(const std::string& option, int64_t fallback, int64_t least, int64_t most) const {
  if (!has(option)) return fallback;
  const std::string s = text(option, "");
  int64_t v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size()) bad_value(option, "a whole number", s);
  if (v < least || v > most)
    bad_value(option,
              "a whole number of at least " + std::to_string(least) +
                  (most == INT64_MAX ? "" : " and at most " + std::to_string(most)),
              s);
  return v;
}

double CommandLine::number(const std::string& option, double fallback, double least) const {
  if (!has(option)) return fallback;
  const std::string s = text(option, "");
  char* end = nullptr;
  const double v = std::strtod(s.c_str(), &end);
  if (s.empty() || *end || !std::isfinite(v) || v < least)
    bad_value(option, "a number of at least " + std::to_string(static_cast<int64_t>(least)), s);
  return v;
}

std::string CommandLine::choice(const std::string& option, const std::string& fallback,
                                const std::vector<std::string>& legal) const {
  const std::string s = text(option, fallback);
  if (std::find(legal.begin(), legal.end(), s) != legal.end()) return s;
  std::string names;
  for (const std::string& l : legal) names += (names.empty() ? "" : ", ") + l;
  throw UserError("GAF1102",
                  "option '--" + option + "' needs one of " + names + ", got '" + s + "'" + did_you_mean(s, legal));
}

}  // namespace gaf
