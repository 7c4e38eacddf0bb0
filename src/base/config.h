// Settings of a compilation with their origins (CONTRACT 2.2, 4): defaults < file < environment < Python config < command
// line. A field set explicitly hides the lower layers even if it equals the default.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gaf {

enum class Strategy : uint8_t { conservative, balanced, aggressive };

struct FusionConfig {
  bool enable_superkernel = true;    // false: plan and rewrite, but run groups op by op
  bool enable_autofuse = true;       // false: no automatic discovery
  std::optional<int> max_fusion_depth;
  std::optional<double> cost_threshold;
  Strategy strategy = Strategy::balanced;
  int level = 2;                     // 0 off, 1 basic, 2 all
  std::string target = "host";
  std::vector<std::string> extern_ops;  // op types or node names never touched
  int max_fusion_size = 64;
  double resource_budget = 0.8;
  bool strict = false;
  int threads = 0;                   // 0: all that affinity and the container allow
  int64_t max_memory = 0;            // bytes one run may use, 0: no limit (command line only)
  std::optional<std::string> cache_dir;  // nothing: the user's cache folder; "": memory only

  int depth_limit() const;           // max_fusion_depth, else by strategy 4 / 16 / 64
  double threshold() const;          // cost_threshold, else 0.10 / 0.01 / 0.0
};

struct Setting {
  std::string value, origin;         // origin: cli config env file default; env carries the variable's name behind a space
};

// Explicit values of one layer, as text by field name; `settings` resolves the layers into a config.
using SettingLayer = std::map<std::string, std::string>;
struct Settings {
  FusionConfig config;
  std::map<std::string, Setting> values;   // every field -> value and origin
  std::vector<std::string> warnings;       // unknown AUTOFUSION_* names
};
// file: YAML text's keys already read (base/yaml.h); errors are UserError GAF1201 (environment), GAF1202 (file), GAF1102 (cli).
Settings resolve_settings(const SettingLayer& cli, const SettingLayer& config, const SettingLayer& file,
                          const std::string& file_name = "");
std::vector<std::string> setting_names();

}  // namespace gaf
