// One call of a command: its words, resolved settings, and the ways to load a model, gather inputs and say results that
// all commands share. Results go to stdout, everything else to stderr.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command_line.h"
#include "cli/npy.h"
#include "cli/terminal.h"
#include "compile.h"

namespace gaf {

struct Session {
  explicit Session(CommandLine line);  // resolves settings and sets log level and colour

  CommandLine line;
  Settings settings;

  bool json() const { return line.has("json"); }
  bool quiet() const { return line.has("quiet"); }
  bool progress() const { return !line.has("no-progress") && !quiet(); }

  Model load() const;                                               // MODEL with --shape and --dim; prints its warnings
  std::vector<Tensor> inputs(const Model& m, uint64_t seed) const;  // --input, --inputs, --random, --range (inputs.cpp)
  std::vector<std::string> given_names() const;                     // those that --input and --inputs name (inputs.cpp)
  const NamedTensors& archive() const;                              // of --inputs, read once; empty without (inputs.cpp)
  std::vector<Tensor> inputs(const Model& m) const { return inputs(m, seed()); }
  uint64_t seed() const { return static_cast<uint64_t>(line.whole("random", 0, 0)); }

  void say(const std::string& text) const;  // results as text; nothing with --quiet or --json
  void document(const Json& d) const;       // the one document of --json
  void warn(const std::string& text) const;
  void write_report(const Report& r) const;  // --report

 private:
  mutable std::optional<NamedTensors> archive_;
};

// Writes a result file; an interrupt waits until it is whole.
void write_result(const std::string& path, const std::string& content);

}  // namespace gaf
