// gaf fuse: plans, rewrites, and writes the fused model (CONTRACT 1.4).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/commands.h"

namespace gaf {

int command_fuse(const Session& s) {
  const std::string path = s.line.text("output", "");
  if (path.empty()) throw UserError("GAF1102", "gaf fuse needs -o FILE", "gaf fuse MODEL -o OUT.onnx");
  if (!path.ends_with(".onnx") && !path.ends_with(".gaf")) bad_value("output", "a file ending in .onnx or .gaf", path);
  const Model m = s.load();
  Planned planned;
  {
    const Progress p("planning", s.progress());
    planned = plan_model(m, s.settings);
    for (const std::string& w : save_model(planned, path)) s.warn(w);
  }
  const Report& r = planned.report;
  s.write_report(r);
  const auto eliminated =
      std::count_if(r.nodes.begin(), r.nodes.end(), [](const auto& n) { return n.second.fate == "eliminated"; });
  s.say(fmt::format("{} ops -> {} ops ({} group{}, {} eliminated), predicted {:.0f} -> {:.0f} us{}, wrote {}",
                    r.totals.ops_before, r.totals.ops_after, r.groups.size(), r.groups.size() == 1 ? "" : "s",
                    eliminated, r.totals.predicted_us_before, r.totals.predicted_us_after, r.simulated ? " simulated" : "", path));
  const Json report = r.json();
  s.document(Json::object(
      {{"schema", "gaf.fuse/1"}, {"output", path}, {"totals", report["totals"]}, {"groups", report["groups"]}}));
  return 0;
}

}  // namespace gaf
