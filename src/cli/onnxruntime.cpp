// Running ONNX Runtime in a Python process, see onnxruntime.h: inputs go over as an archive in a private temporary
// folder, times come back as one line of JSON, outputs as another archive. Must not know how gaf runs a model.
#include "cli/onnxruntime.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/npy.h"

extern char** environ;

namespace gaf {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = R"(
import json, sys, time
try:
    import numpy as np, onnxruntime as ort
except ImportError as e:
    print(json.dumps({"missing": str(e)})); sys.exit(0)
model, given, results, threads, runs, warmup = sys.argv[1:4] + [int(a) for a in sys.argv[4:7]]
o = ort.SessionOptions()
o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = threads, 1, 3
s = ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])
feed = dict(np.load(given))
clock = time.perf_counter
if runs == 0:
    np.savez(results, **dict(zip([x.name for x in s.get_outputs()], s.run(None, feed))))
    print("{}"); sys.exit(0)
for _ in range(max(warmup, 1)):
    s.run(None, feed)
begin = clock(); s.run(None, feed); once = clock() - begin
repeat = int(min(max(2e-4 / max(once, 1e-7), 1), 1000))
us, start = [], clock()
while len(us) < runs or (clock() - start < 0.5 and len(us) < 100000):
    begin = clock()
    for _ in range(repeat):
        s.run(None, feed)
    us.append((clock() - begin) * 1e6 / repeat)
q = lambda p: float(np.quantile(us, p))
print(json.dumps({"median": q(0.5), "p10": q(0.1), "p90": q(0.9), "version": ort.__version__}))
)";

struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "gaf-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw UserError("GAF8001",
                      "cannot write to the folder for temporary files " + fs::temp_directory_path().string());
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
};

// The Python that gaf was installed into, else the one that PATH finds.
std::string find_python() {
  std::vector<fs::path> folders;
  if (const char* env = std::getenv("VIRTUAL_ENV")) folders.push_back(fs::path(env) / "bin");
  std::error_code e;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", e); !e)
    for (fs::path p = self.parent_path(); p.has_relative_path(); p = p.parent_path())
      folders.push_back(p / "bin"), folders.push_back(p / ".venv" / "bin");
  for (const fs::path& f : folders)
    if (access((f / "python3").c_str(), X_OK) == 0 && f != "/usr/bin" && f != "/bin") return (f / "python3").string();
  return "python3";
}

struct Finished {
  int status = 0;
  std::string out;
};
Finished run_python(std::vector<std::string> arguments) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) throw UserError("GAF8001", "cannot start a process: no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[1]);
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  Finished f;
  char part[4096];
  for (ssize_t n = 0; error == 0 && (n = read(pipe_ends[0], part, sizeof part)) != 0;)
    if (n > 0)
      f.out.append(part, static_cast<size_t>(n));
    else if (errno != EINTR)
      break;
  close(pipe_ends[0]);
  if (error != 0)
    f.status = -1;
  else
    while (waitpid(child, &f.status, 0) < 0 && errno == EINTR) {
    }
  return f;
}

// The script's line; an object with "missing" says why there is none.
Json call(const Session& s, const Model& m, const std::vector<Tensor>& inputs, const fs::path& folder, int runs,
          int warmup) {
  if (m.path.empty() || !m.path.ends_with(".onnx")) return Json::object({{"missing", "it needs an .onnx file"}});
  NamedTensors named;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (inputs[i].dtype == DType::bf16) return Json::object({{"missing", "bfloat16 inputs cannot be given to it"}});
    named.emplace_back(m.graph.nodes[i].name, inputs[i]);
  }
  write_file((folder / "inputs.npz").string(), write_npz(named));
  const int threads = s.settings.config.threads > 0 ? s.settings.config.threads : default_threads();
  const Finished f = run_python({find_python(), "-c", kScript, m.path, (folder / "inputs.npz").string(),
                                 (folder / "outputs.npz").string(), std::to_string(threads), std::to_string(runs),
                                 std::to_string(warmup)});
  if (f.status != 0 || f.out.empty())
    return Json::object({{"missing", f.status == -1 ? "no python3 was found" : "its process failed"}});
  return parse_json(f.out, "onnxruntime", "GAF9001");
}

}  // namespace

std::optional<BaselineTimes> time_onnxruntime(const Session& s, const Model& m, const std::vector<Tensor>& inputs,
                                              int runs, int warmup) {
  const TemporaryFolder folder;
  const Progress p("timing onnxruntime", s.progress());
  const Json r = call(s, m, inputs, folder.path, runs, warmup);
  if (const Json* why = r.find("missing")) {
    s.warn("baseline onnxruntime is left out: " + why->str());
    return std::nullopt;
  }
  return BaselineTimes{{r["median"].number(), r["p10"].number(), r["p90"].number()}, r["version"].str()};
}

std::vector<Tensor> run_onnxruntime(const Session& s, const Model& m, const std::vector<Tensor>& inputs) {
  const TemporaryFolder folder;
  const Json r = call(s, m, inputs, folder.path, 0, 0);
  if (const Json* why = r.find("missing"))
    throw UserError("GAF4009", "reference onnxruntime is not available: " + why->str(),
                    "install onnxruntime beside gaf, or use --reference interp");
  const std::string file = (folder.path / "outputs.npz").string();
  std::vector<Tensor> out;
  for (auto& [name, tensor] : read_npz(read_file(file), file)) out.push_back(std::move(tensor));
  return out;
}

}  // namespace gaf
