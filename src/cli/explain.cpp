// gaf explain: the report of what was fused and why (CONTRACT 6), of one node or edge, or an error code in full.
#include <fmt/format.h>

#include <algorithm>

#include "base/catalogue.h"
#include "base/error.h"
#include "cli/commands.h"

namespace gaf {
namespace {

int explain_error(const Session& s, std::string code) {
  std::transform(code.begin(), code.end(), code.begin(), [](unsigned char c) { return std::toupper(c); });
  const CatalogueRow* row = catalogue_row(code);
  if (!row) {
    std::vector<std::string> codes;
    for (const CatalogueRow& r : catalogue()) codes.emplace_back(r.code);
    bad_value("error", "an error code" + did_you_mean(code, codes), code);
  }
  s.say(fmt::format("{}: {}\n  example:  {}\n  cause:    {}\n  remedy:   {}\n  exit:     {}\n  Python:   gaf.{}\n",
                    row->code, row->title, row->example, row->cause, row->remedy, row->exit, row->type));
  s.document(Json::object({{"schema", "gaf.error-code/1"},
                           {"code", row->code},
                           {"title", row->title},
                           {"example", row->example},
                           {"cause", row->cause},
                           {"remedy", row->remedy},
                           {"exit", row->exit},
                           {"type", row->type}}));
  return 0;
}

}  // namespace

int command_explain(const Session& s) {
  if (s.line.has("error")) return explain_error(s, s.line.text("error", ""));
  const std::string format = s.line.text("format", "text");
  if (format == "html" || format == "svg")
    throw UserError("GAF4009", "'--format " + format + "' is not available in this version", "use text or json");
  const bool json = s.line.choice("format", "text", {"text", "json"}) == "json" || s.json();
  const std::string edge = s.line.text("edge", "");
  const size_t comma = edge.find(',');
  if (!edge.empty() && comma == std::string::npos) bad_value("edge", "two node names A,B", edge);

  const Model m = s.load();
  Planned planned;
  {
    const Progress p("planning", s.progress());
    planned = plan_model(m, s.settings);
  }
  const Report& r = planned.report;
  s.write_report(r);
  if (s.line.has("node") || s.line.has("edge")) {
    const std::string why =
        s.line.has("node") ? r.why(s.line.text("node", "")) : r.why(edge.substr(0, comma), edge.substr(comma + 1));
    if (json)
      fmt::print("{}\n", Json::object({{"schema", "gaf.why/1"}, {"why", why}}).dump());
    else
      s.say(why);
    return 0;
  }
  if (json)
    fmt::print("{}\n", r.json().dump(s.json() ? -1 : 2));
  else
    s.say(r.text());
  return 0;
}

}  // namespace gaf
