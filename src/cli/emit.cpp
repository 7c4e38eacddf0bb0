// gaf emit: the kernels of a planned model as text, one file each (CONTRACT 1.2): kernel IR, or LLVM IR.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/catalogue.h"
#include "base/error.h"
#include "cli/commands.h"
#include "codegen/codegen.h"

namespace gaf {
namespace {

void make_folder(const std::string& path) {
  for (size_t at = 1; at != std::string::npos; at = at == std::string::npos ? at : at + 1) {
    at = path.find('/', at);
    mkdir(path.substr(0, at).c_str(), 0777);
    if (at == std::string::npos) break;
  }
  struct stat st;
  if (stat(path.c_str(), &st) != 0)
    throw UserError("GAF8001", fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  if (!S_ISDIR(st.st_mode)) throw UserError("GAF8001", fmt::format("cannot write {}: it is no folder", path));
}

// Kernel of group ID, "" = all.
std::string kernel_of(const Session& s, const Report& r) {
  if (!s.line.has("group")) return "";
  const std::string id = s.line.text("group", "");
  std::vector<std::string> ids;
  for (const GroupReport& g : r.groups) {
    if (g.id == id) return g.kernel;
    ids.push_back(g.id);
  }
  throw UserError("GAF1102", "the plan has no group '" + id + "'" + did_you_mean(id, ids),
                  "gaf explain lists the groups");
}

}  // namespace

int command_emit(const Session& s) {
  const std::string folder = s.line.text("output", "");
  if (folder.empty()) throw UserError("GAF1102", "gaf emit needs -o FOLDER", "gaf emit MODEL -o FOLDER");
  const std::string backend = s.line.choice("backend", "cpu", {"cpu", "ascendc", "pto"});
  const std::string kind = s.line.choice("kind", "source", {"source", "ir", "object", "project"});
  if (backend != "cpu") throw UserError("GAF4009", "'--backend " + backend + "' is not available in this version");
  if (kind != "source" && kind != "ir")
    throw UserError("GAF4009", "'--kind " + kind + "' is not available in this version");

  const Model m = s.load();
  const Progress p("generating", s.progress());
  const std::unique_ptr<CompiledModel> compiled = compile_model(m, s.settings);
  const std::string only = kernel_of(s, compiled->report());
  make_folder(folder);
  Json files = Json::array();
  int count = 0;
  for (const auto& [name, text] : compiled->sources()) {
    if (!only.empty() && name != only) continue;
    const std::string file = name + (kind == "ir" ? ".ll" : ".kir");
    write_result(folder + "/" + file,
                 kind == "ir" ? llvm_ir(kir::parse_kernel(text), compiled->planned().target) : text);
    files.push(Json(file));
    count++;
  }
  s.write_report(compiled->report());
  s.say(fmt::format("wrote {} kernel{} to {}", count, count == 1 ? "" : "s", folder));
  s.document(Json::object({{"schema", "gaf.emit/1"}, {"folder", folder}, {"files", files}}));
  return 0;
}

}  // namespace gaf
