// The rows of the error catalogue, and the nearest-name search. Pure data and text: knows nothing of who throws.
#include "base/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace gaf {
namespace {

// code, Python class, exit, title, example, cause, remedy
constexpr CatalogueRow kRows[] = {
    {"GAF1101", "UsageError", 2, "unknown command or option", "unknown option '--stratgy' (did you mean '--strategy'?)",
     "the command line has a word that this command does not know", "see gaf COMMAND --help for the options"},
    {"GAF1102", "UsageError", 2, "bad option value", "option '--random' needs a whole number, got 'x'",
     "the value of an option has the wrong form or is out of range", "give a value of the form that --help shows"},
    {"GAF1201", "ConfigError", 2, "bad setting", "AUTOFUSION_STRATEGY='fast' is not one of balanced, aggressive, conservative",
     "an environment variable or a config field has a value that is not legal", "use one of the legal values; gaf config shows where each setting comes from"},
    {"GAF1202", "ConfigError", 2, "bad settings file", "settings file gaf.yaml:3: unknown key 'stratgy'",
     "a settings file is not YAML, or has an unknown key or a bad value", "use FusionConfig field names as keys"},
    {"GAF1303", "UsageError", 0, "option taken as another (warning)", "--mode=5 with an ONNX model taken as --mode=0 --framework=5",
     "this combination of converter options means something else for an ONNX model", "say --mode=0 --framework=5"},
    {"GAF2101", "RuleError", 2, "rule file is not YAML", "not YAML: mapping values are not allowed here",
     "the file cannot be read as YAML", "mend the syntax at the line shown"},
    {"GAF2102", "RuleError", 2, "rule key missing or unknown", "rule 'a': missing key 'pattern'",
     "a rule lacks a required key or has one that does not exist", "a rule needs name and pattern; see docs for the others"},
    {"GAF2103", "RuleError", 2, "unknown condition", "rule 'a': unknown condition key 'conv_out_channel_ge' (did you mean 'conv_out_channels_ge'?)",
     "a condition names a subject or comparison that does not exist", "use <subject>_<eq|ne|ge|gt|le|lt|in>"},
    {"GAF2104", "RuleError", 2, "wrong value type in a rule", "rule 'a': 'priority' needs a whole number",
     "a value has another type than its key needs", "give a value of the type named"},
    {"GAF2105", "RuleError", 2, "pattern syntax", "rule 'a': ')' expected in the pattern",
     "the pattern is not of one of the documented forms", "mend the pattern at the column shown"},
    {"GAF2106", "RuleError", 2, "unknown op or class in a pattern", "rule 'a': unknown op 'Relu6' (did you mean 'Relu'?)",
     "a pattern names an op type or class that is not registered", "use a registered op type, a friendly name or a class such as @elementwise"},
    {"GAF2107", "RuleError", 2, "duplicate rule name", "rule 'a' is defined twice", "rule names are unique over all files", "rename one of the rules"},
    {"GAF2108", "RuleError", 2, "unknown rule strategy", "rule 'a': unknown strategy 'sequential'",
     "the strategy is not one of the documented ones", "use auto, sequential_fuse, pairing, horizontal, eliminate or never"},
    {"GAF2109", "RuleError", 2, "expression syntax", "rule 'a': unexpected 'and' in expr", "an expression cannot be read", "mend the expression at the column shown"},
    {"GAF2110", "RuleError", 2, "label not in the pattern", "rule 'a': condition names 'conv', which the pattern does not have",
     "a condition refers to a stage that the pattern does not define", "use a label or an op name of the pattern"},
    {"GAF2111", "RuleError", 2, "strategy contradicts the pattern", "rule 'a': eliminate needs a pattern proven to be an identity",
     "the strategy cannot apply to this pattern", "choose another strategy or pattern"},
    {"GAF2112", "RuleError", 2, "rule file too large or too deep", "file over 1 MiB", "the file is over 1 MiB, nests over 32 levels, or uses aliases or tags", "split the file, write values out"},
    {"GAF2201", "TargetError", 2, "target file: something is missing", "missing key 'cores'",
     "a target file lacks a required key, or is not a JSON object", "add the key; gaf targets show prints a complete one"},
    {"GAF2202", "TargetError", 2, "target file: value out of range", "'clock_mhz' must be above 0, got -1",
     "a number is not above 0, the budget is outside (0, 1], or a value has the wrong type", "give the value in the unit that the key's name says"},
    {"GAF2203", "TargetError", 2, "target file: unknown key", "unknown key 'clock_mhx' (did you mean 'clock_mhz'?)",
     "a target file has a key that does not exist", "remove the key or correct its name"},
    {"GAF2204", "TargetError", 2, "unknown target", "unknown target 'ascend910' (did you mean 'ascend910b'?)",
     "the name is neither a shipped target nor the path of a file", "see gaf targets list, or give the path of a .json file"},
    {"GAF2301", "ConfigError", 2, "plugin ABI", "plugin my.so was built for ABI 2, this is 1", "the plugin was built against another version", "build the plugin again with this version's headers"},
    {"GAF2302", "ConfigError", 2, "operator registration", "operator 'Snake': no shape function", "the registration of an operator is incomplete or contradicts itself", "mend the registration at the place shown"},
    {"GAF3001", "ModelError", 3, "not an ONNX file, or damaged", "not an ONNX file (truncated at byte 812)", "the file is not ONNX, is truncated, or nests over 64 subgraphs", "check the file; export the model again"},
    {"GAF3002", "ModelError", 3, "value without a definition", "node 'mm0': input 'w' is defined nowhere", "a node reads a value that no node, input or initializer makes", "export the model again, or add the initializer"},
    {"GAF3003", "ModelError", 3, "graph has a cycle", "graph has a cycle through 'a', 'b'", "nodes depend on each other in a circle", "export the model again"},
    {"GAF3004", "ModelError", 3, "not a .gafm file, or damaged", "not a .gafm file, or damaged (checksum)", "the offline model is foreign, truncated or changed", "compile the model again"},
    {"GAF3005", "ModelError", 3, "external data outside the model's folder", "external data '../w.bin' leaves the model's folder", "external data must lie in the folder of the model or below it", "move the data file next to the model"},
    {"GAF3006", "ModelError", 3, "opset not supported", "opset 99 is newer than supported (newest: 28)", "the model uses an opset outside 7..28", "export the model with a supported opset"},
    {"GAF3007", "ModelError", 3, "two opset versions for one domain", "two opset versions for domain ''", "the model imports one domain twice", "keep one import"},
    {"GAF3101", "ShapeError", 3, "shapes of an op's inputs do not fit", "node 'mm0' (MatMul): inner dimensions 64 and 32 differ", "the op cannot take inputs of these shapes", "check the model and the shapes given"},
    {"GAF3102", "ShapeError", 3, "input of the wrong shape", "input 'x': expected float32 [4,8], got [4,9]", "an input array has another shape than the model takes", "give an array of the expected shape"},
    {"GAF3103", "ModelError", 3, "input missing", "input 'x' missing; model needs x, mask", "not every input was given", "give all inputs, or --random"},
    {"GAF3104", "ModelError", 3, "unknown input", "unknown input 'X' (did you mean 'x'?)", "the model has no input of that name", "use one of the model's input names"},
    {"GAF3105", "ShapeError", 3, "free dimension", "input 'x' has free dimension 'batch'", "numbers are needed, but a dimension has no value yet", "bind it with --dim NAME=N or --shape INPUT:D0,D1,..."},
    {"GAF3106", "ShapeError", 3, "tensor too large", "tensor 't' would have 2^70 elements", "the product of a tensor's dimensions is beyond what can be addressed", "check the shapes given"},
    {"GAF3107", "DTypeError", 3, "input of the wrong dtype", "dtype float64 given, float32 expected", "inputs are never cast silently", "convert the array to the expected dtype"},
    {"GAF4001", "UnsupportedError", 4, "operator without an implementation", "operator my.ops::Foo has no implementation", "no row of the op table and no registered reference knows the operator", "register it (gaf.register_op) or let it run as extern"},
    {"GAF4002", "UnsupportedError", 4, "not supported by the back end", "Cast to float8 is not supported by back end ascendc", "the back end of the target cannot express the op", "choose another target or let the op run as extern"},
    {"GAF4003", "UnsupportedError", 4, "control flow not supported on the target", "control flow 'Loop' on target ascend910b", "the target's back end has no control flow", "run the model on the CPU"},
    {"GAF4009", "UnsupportedError", 2, "not in this version", "'--framework=3' is not available in this version", "the feature is planned for a later version", "do without it, or use a later version"},
    {"GAF5001", "CompileError", 5, "code generation failed", "kernel g3: code generation failed, group runs unfused", "the code generator refused the kernel", "please report it with the kernel text"},
    {"GAF5002", "CompileError", 5, "no free registers", "kernel g3: no free registers", "the kernel needs more registers than the target has", "lower --resource-budget or --max-fusion-size"},
    {"GAF5003", "CompileTimeout", 5, "compile timeout", "compile timeout after 12.0 s, 3 of 9 groups left unfused", "compiling took longer than --compile-timeout allows", "give more time, or compile ahead"},
    {"GAF5004", "CompileError", 5, "generated text failed its check", "generated text failed check: flag never waited for, line 41", "the generator's own check found a fault in its output", "please report it with the kernel text"},
    {"GAF6001", "ExecutionError", 6, "index out of range", "node 'g': index 9 out of range [0,8)", "an index tensor holds a value outside its axis", "check the input data"},
    {"GAF6002", "ExecutionError", 6, "integer division by zero", "node 'd': integer division by zero", "an integer divisor is 0", "check the input data"},
    {"GAF6003", "ExecutionError", 6, "memory limit", "needs 3.1 GiB, limit 2 GiB", "the model needs more memory than --max-memory allows", "raise the limit or use smaller shapes"},
    {"GAF6005", "ExecutionError", 6, "CPU lacks an instruction set", "CPU lacks avx2", "the kernels were built for another CPU", "choose --target host, or compile for this CPU"},
    {"GAF7001", "AccuracyError", 1, "outputs differ", "output 'y': 3 of 64 values differ, worst 3.1e-2 at [0,7]", "results differ from the reference by more than the tolerance", "gaf compare --per-kernel or gaf bisect find the kernel"},
    {"GAF7002", "AccuracyError", 1, "expectation failed", "expectation kernels<=3 failed: 5", "a --expect expression does not hold", "see gaf explain for the reasons"},
    {"GAF7003", "AccuracyError", 1, "slower than unfused", "fused 2.1 % slower", "measured: fusing did not pay here", "run with --measure on, which rolls such groups back"},
    {"GAF8001", "CacheError", 7, "cannot read or write a file", "cannot read m.onnx: No such file or directory", "the file does not exist or may not be opened", "check the path and its permissions"},
    {"GAF8002", "CacheError", 7, "disk full", "disk full, nothing written", "there is no room for the output", "free some space"},
    {"GAF8003", "CacheError", 0, "cache folder not usable (warning)", "cache folder not writable, using memory only", "the cache folder is not writable, or is not the user's own", "set AUTOFUSION_CACHE_DIR to a folder of your own"},
    {"GAF9001", "InternalError", 70, "internal fault", "internal fault in pass 'fold-constants'; please report with the file debug/...", "a check of our own failed: this is our bug", "please report it with the text shown"},
};

std::string canonical(std::string_view s) {
  std::string out;
  for (char c : s)
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Damerau-Levenshtein distance in its optimal-string-alignment form.
int distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); i++) d[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); j++) d[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); i++)
    for (size_t j = 1; j <= b.size(); j++) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::span<const CatalogueRow> catalogue() { return kRows; }

const CatalogueRow* catalogue_row(std::string_view code) {
  for (const CatalogueRow& r : kRows)
    if (r.code == code) return &r;
  return nullptr;
}

int exit_code(std::string_view code) {
  const CatalogueRow* r = catalogue_row(code);
  return r ? r->exit : 70;
}

ErrorInfo with_catalogue(ErrorInfo e) {
  if (const CatalogueRow* r = catalogue_row(e.code)) {
    if (e.cause.empty()) e.cause = r->cause;
    if (e.remedy.empty()) e.remedy = r->remedy;
  }
  return e;
}

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  constexpr size_t kLongestName = 64;  // longer is not a slip of the fingers, and the search is quadratic
  if (name.size() > kLongestName) return "";
  std::string wanted = canonical(name), best;
  int best_distance = std::max(1, static_cast<int>(wanted.size()) / 3) + 1;
  for (const std::string& c : candidates) {
    if (c.size() > kLongestName) continue;
    int d = distance(wanted, canonical(c));
    if (d < best_distance) best_distance = d, best = c;
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates, std::string_view prefix) {
  std::string n = nearest(name, candidates);
  return n.empty() ? "" : fmt::format(" (did you mean '{}{}'?)", prefix, n);
}

}  // namespace gaf
