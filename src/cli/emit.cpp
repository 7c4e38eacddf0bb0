// gaf emit: the kernels of a planned model as text, one file each (CONTRACT 1.2): kernel IR or LLVM IR for the CPU,
// Ascend C or PTO for an NPU. Everything is generated before the first file is written.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

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

// The kernel that --group names, by the group's id or by its own name; "" = all.
std::string kernel_of(const Session& s, const Planned& p) {
  if (!s.line.has("group")) return "";
  const std::string id = s.line.text("group", "");
  std::vector<std::string> ids;
  for (const GroupReport& g : p.report.groups) {
    if (g.id == id) return g.kernel;
    ids.push_back(g.id);
  }
  for (const Node& n : p.graph.nodes) {
    if (n.op != "call") continue;
    if (n.name == id) return id;
    ids.push_back(n.name);
  }
  throw UserError("GAF1102", "the plan has no group '" + id + "'" + did_you_mean(id, ids),
                  "gaf explain lists the groups; an op on its own goes by its kernel's name");
}

// Files that belong together: if one cannot be written, those before it go again.
class FileSet {
 public:
  explicit FileSet(std::string folder) : folder_(std::move(folder)) { make_folder(folder_); }
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;
  ~FileSet() {
    if (!whole_)
      for (const std::string& name : names_) unlink((folder_ + "/" + name).c_str());
  }
  void write(const std::string& name, const std::string& text) {
    write_result(folder_ + "/" + name, text);
    names_.push_back(name);
  }
  Json keep() {
    whole_ = true;
    return Json::array_of(names_);
  }

 private:
  std::string folder_;
  std::vector<std::string> names_;
  bool whole_ = false;
};

int emit_cpu(const Session& s, const std::string& folder, bool llvm) {
  const Model m = s.load();
  const Progress p("generating", s.progress());
  const std::unique_ptr<CompiledModel> compiled = compile_model(m, s.settings);
  const std::string only = kernel_of(s, compiled->planned());
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [name, text] : compiled->sources())
    if (only.empty() || name == only)
      texts.emplace_back(name + (llvm ? ".ll" : ".kir"),
                         llvm ? llvm_ir(kir::parse_kernel(text), compiled->planned().target) : text);
  FileSet files(folder);
  for (const auto& [name, text] : texts) files.write(name, text);
  s.write_report(compiled->report());
  s.say(fmt::format("wrote {} kernel{} to {}", texts.size(), texts.size() == 1 ? "" : "s", folder));
  s.document(Json::object({{"schema", "gaf.emit/1"}, {"folder", folder}, {"files", files.keep()}}));
  return 0;
}

// What whoever launches the kernel, or checks it, has to know.
Json kernel_json(const EmittedKernel& k) {
  Json files = Json::array(), buffers = Json::array(), peak = Json::object();
  for (const auto& [name, text] : k.files) files.push(Json(name));
  for (const EmittedKernel::Buffer& b : k.buffers)
    buffers.push(Json::object({{"name", b.name},
                               {"role", b.output ? "out" : "in"},
                               {"dtype", std::string(long_name(b.dtype))},
                               {"dims", Json::array_of(b.dims)}}));
  for (const auto& [mem, bytes] : k.peak_bytes) peak.set(mem, bytes);
  return Json::object({{"name", k.name},
                       {"group", k.group.empty() ? Json() : Json(k.group)},
                       {"files", files},
                       {"buffers", buffers},
                       {"blocks", k.blocks},
                       {"peak", peak},
                       {"gm_read_bytes", k.gm_read_bytes},
                       {"gm_write_bytes", k.gm_write_bytes},
                       {"predicted_us", k.predicted_us},
                       {"simulated", true}});
}

int emit_npu_files(const Session& s, const std::string& folder, NpuBackend backend) {
  need_npu(load_target(s.settings.config.target), backend);
  const Model m = s.load();
  const Progress progress("generating", s.progress());
  const Planned p = plan_model(m, s.settings);
  const std::vector<EmittedKernel> kernels = emit_kernels(p, backend, kernel_of(s, p));
  FileSet files(folder);
  Json all = Json::array();
  for (const EmittedKernel& k : kernels) {
    for (const auto& [name, text] : k.files) files.write(name, text);
    all.push(kernel_json(k));
  }
  s.write_report(p.report);
  s.say(fmt::format("wrote {} kernel{} for {} to {}", kernels.size(), kernels.size() == 1 ? "" : "s", p.target.name,
                    folder));
  s.document(Json::object({{"schema", "gaf.emit/1"},
                           {"folder", folder},
                           {"files", files.keep()},
                           {"target", p.target.name},
                           {"kernels", all}}));
  return 0;
}

}  // namespace

int command_emit(const Session& s) {
  const std::string folder = s.line.text("output", "");
  if (folder.empty()) throw UserError("GAF1102", "gaf emit needs -o FOLDER", "gaf emit MODEL -o FOLDER");
  const std::string backend = s.line.choice("backend", "cpu", {"cpu", "ascendc", "pto"});
  const std::string kind = s.line.choice("kind", "source", {"source", "ir", "object", "project"});
  if (kind == "object" || kind == "project")
    throw UserError("GAF4009", "'--kind " + kind + "' is not available in this version");
  if (backend == "cpu") return emit_cpu(s, folder, kind == "ir");
  if (kind == "ir")
    throw UserError("GAF1102", "'--kind ir' is LLVM IR, which back end " + backend + " has none of",
                    "leave --kind out");
  return emit_npu_files(s, folder, backend == "ascendc" ? NpuBackend::ascendc : NpuBackend::pto);
}

}  // namespace gaf
