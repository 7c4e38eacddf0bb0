// gaf config: every setting, its effective value, and where it comes from (CONTRACT 4.1).
#include "cli/commands.h"

namespace gaf {

int command_config(const Session& s) {
  std::vector<std::vector<std::string>> rows;
  Json values = Json::object();
  for (const std::string& name : setting_names()) {
    const Setting& v = s.settings.values.at(name);
    rows.push_back({name, v.value, v.origin});
    values.set(name, Json::object({{"value", v.value}, {"origin", v.origin}}));
  }
  s.say(columns(rows));
  s.document(Json::object({{"schema", "gaf.config/1"}, {"settings", values}}));
  return 0;
}

}  // namespace gaf
