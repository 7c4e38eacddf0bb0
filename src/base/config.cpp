// Settings: one table of fields, the environment's names for them, and the layers in order of precedence.
#include "base/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "base/catalogue.h"
#include "base/error.h"

extern char** environ;

namespace gaf {
namespace {

[[noreturn]] void bad(const std::string& code, const std::string& what, const std::string& value, const std::string& legal) {
  throw UserError(code, what + "='" + value + "' is not " + legal);
}
struct Where {
  std::string code, what;  // for errors: GAF1201, "AUTOFUSION_STRATEGY"
};

bool read_bool(const std::string& v, const Where& w) {
  std::string s;
  for (char c : v) s += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (s == "1" || s == "true" || s == "on" || s == "yes") return true;
  if (s == "0" || s == "false" || s == "off" || s == "no") return false;
  bad(w.code, w.what, v, "one of 1, 0, true, false, on, off");
}
int read_int(const std::string& v, int lo, int hi, const Where& w) {
  int x = 0;
  auto [end, e] = std::from_chars(v.data(), v.data() + v.size(), x);
  if (e != std::errc() || end != v.data() + v.size() || x < lo || x > hi)
    bad(w.code, w.what, v, hi == INT32_MAX ? "a whole number of at least " + std::to_string(lo) : "a whole number from " + std::to_string(lo) + " to " + std::to_string(hi));
  return x;
}
double read_number(const std::string& v, double lo, double hi, const Where& w) {
  char* end = nullptr;
  double x = std::strtod(v.c_str(), &end);
  if (v.empty() || *end || !(x >= lo && x <= hi)) bad(w.code, w.what, v, std::isinf(hi) ? "a number of at least 0" : "a number above 0 and at most 1");
  return x;
}
std::vector<std::string> read_list(const std::string& v) {
  std::vector<std::string> items;
  for (size_t b = 0; b <= v.size() && !v.empty();) {
    size_t e = std::min(v.find(',', b), v.size());
    if (e > b) items.push_back(v.substr(b, e - b));
    b = e + 1;
  }
  return items;
}
constexpr std::string_view kStrategies[] = {"conservative", "balanced", "aggressive"};

struct Field {
  std::string name;
  std::string fallback;  // as `config` prints it
  std::vector<std::string> env;  // first found wins
  std::function<void(FusionConfig&, const std::string&, const Where&)> set;
};

const std::vector<Field>& fields() {
  using C = FusionConfig;
  static const std::vector<Field> table = {
      {"enable_superkernel", "true", {}, [](C& c, auto& v, auto& w) { c.enable_superkernel = read_bool(v, w); }},
      {"enable_autofuse", "true", {}, [](C& c, auto& v, auto& w) { c.enable_autofuse = read_bool(v, w); }},
      {"max_fusion_depth", "by strategy", {"AUTOFUSION_MAX_DEPTH"}, [](C& c, auto& v, auto& w) { c.max_fusion_depth = read_int(v, 1, INT32_MAX, w); }},
      {"cost_threshold", "by strategy", {"AUTOFUSION_COST_THRESHOLD"}, [](C& c, auto& v, auto& w) { c.cost_threshold = read_number(v, 0, INFINITY, w); }},
      {"strategy", "balanced", {"AUTOFUSION_STRATEGY"},
       [](C& c, auto& v, auto& w) {
         auto* at = std::find(std::begin(kStrategies), std::end(kStrategies), v);
         if (at == std::end(kStrategies)) bad(w.code, w.what, v, "one of balanced, aggressive, conservative");
         c.strategy = static_cast<Strategy>(at - std::begin(kStrategies));
       }},
      {"level", "2", {"CANN_GRAPH_FUSION"}, [](C& c, auto& v, auto& w) { c.level = read_int(v, 0, 2, w); }},
      {"target", "host", {"AUTOFUSION_TARGET"}, [](C& c, auto& v, auto&) { c.target = v; }},
      {"extern_ops", "", {}, [](C& c, auto& v, auto&) { c.extern_ops = read_list(v); }},
      {"max_fusion_size", "64", {}, [](C& c, auto& v, auto& w) { c.max_fusion_size = read_int(v, 1, INT32_MAX, w); }},
      {"resource_budget", "0.8", {},
       [](C& c, auto& v, auto& w) {
         c.resource_budget = read_number(v, 0, 1, w);
         if (c.resource_budget <= 0) bad(w.code, w.what, v, "a number above 0 and at most 1");
       }},
      {"strict", "false", {}, [](C& c, auto& v, auto& w) { c.strict = read_bool(v, w); }},
      {"threads", "0", {"AUTOFUSION_NUM_THREADS", "OMP_NUM_THREADS"}, [](C& c, auto& v, auto& w) { c.threads = read_int(v, 0, 1024, w); }},
      {"cache_dir", "user cache folder", {"AUTOFUSION_CACHE_DIR"}, [](C& c, auto& v, auto&) { c.cache_dir = v; }},
  };
  return table;
}

// Names of the environment that have a meaning elsewhere (log, files).
constexpr std::string_view kOtherVariables[] = {"AUTOFUSION_ENABLE", "AUTOFUSION_LOG_LEVEL", "AUTOFUSION_LOG_FORMAT", "AUTOFUSION_LOG_ASCII", "AUTOFUSION_CONFIG",
                                                "AUTOFUSION_RULES", "AUTOFUSION_DEBUG_DIR", "AUTOFUSION_PROFILE_DIR", "AUTOFUSION_NO_NATIVE"};

void warn_unknown_variables(Settings& s) {
  std::vector<std::string> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const Field& f : fields()) known.insert(known.end(), f.env.begin(), f.env.end());
  for (char** e = environ; *e; e++) {
    std::string name(*e, std::string_view(*e).find('='));
    if (name.starts_with("AUTOFUSION_") && std::find(known.begin(), known.end(), name) == known.end())
      s.warnings.push_back("unknown environment variable " + name + did_you_mean(name, known));
  }
}

}  // namespace

int FusionConfig::depth_limit() const {
  if (max_fusion_depth) return *max_fusion_depth;
  return strategy == Strategy::conservative ? 4 : strategy == Strategy::balanced ? 16 : 64;
}
double FusionConfig::threshold() const {
  if (cost_threshold) return *cost_threshold;
  return strategy == Strategy::conservative ? 0.10 : strategy == Strategy::balanced ? 0.01 : 0.0;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const Field& f : fields()) names.push_back(f.name);
  return names;
}

Settings resolve_settings(const SettingLayer& cli, const SettingLayer& config, const SettingLayer& file, const std::string& file_name) {
  Settings s;
  warn_unknown_variables(s);
  for (const SettingLayer* layer : {&cli, &config, &file})
    for (const auto& [name, value] : *layer) {
      std::vector<std::string> names = setting_names();
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw UserError(layer == &file ? "GAF1202" : "GAF1102", (layer == &file ? "settings file " + file_name + ": " : "") + "unknown setting '" + name + "'" + did_you_mean(name, names));
    }
  const char* enable = std::getenv("AUTOFUSION_ENABLE");
  bool off = enable && !read_bool(enable, {"GAF1201", "AUTOFUSION_ENABLE"});
  for (const Field& f : fields()) {
    Setting& v = s.values[f.name];
    v = {f.fallback, "default"};
    auto take = [&](const SettingLayer& layer, const std::string& origin, const std::string& code, const std::string& what) {
      auto it = layer.find(f.name);
      if (it == layer.end()) return false;
      f.set(s.config, it->second, {code, what});
      v = {it->second, origin};
      return true;
    };
    if (take(cli, "cli", "GAF1102", "--" + f.name) || take(config, "config", "GAF1102", f.name)) continue;
    if (f.name == "level" && off) {
      s.config.level = 0, v = {"0", "env AUTOFUSION_ENABLE"};
      continue;
    }
    bool found = false;
    for (const std::string& name : f.env)
      if (const char* e = std::getenv(name.c_str()); e && !found) {
        // an OpenMP list such as "4,2" names the outer level first
        std::string text = name == "OMP_NUM_THREADS" ? std::string(e).substr(0, std::string(e).find(',')) : e;
        f.set(s.config, text, {"GAF1201", name});
        v = {text, "env " + name}, found = true;
      }
    if (!found) take(file, "file", "GAF1202", file_name + ": " + f.name);
  }
  return s;
}

}  // namespace gaf
