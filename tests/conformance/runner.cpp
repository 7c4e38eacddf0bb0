// Runs cases in the ONNX backend layout (CASE/model.onnx, CASE/test_data_set_K/{input,output}_I.pb) through shape
// inference, canonical form and the reference evaluation, and compares with the expected outputs. Each case runs in a
// process of its own, so that a crash is one failure.
//   conformance_runner ROOT < lines of "case rtol atol";  prints "ok CASE" or "FAIL CASE: reason" a line
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "frontend/onnx.h"
#include "frontend/onnx_tensor.h"
#include "ops/canonical.h"
#include "ops/op.h"

namespace {

namespace fs = std::filesystem;
using gaf::Tensor;

struct Case {
  std::string name;
  double rtol = 1e-3, atol = 1e-7;  // defaults of the ONNX backend tests
};

std::vector<Tensor> tensors(const fs::path& folder, const std::string& kind) {
  std::vector<Tensor> out;
  for (int i = 0; fs::exists(folder / (kind + "_" + std::to_string(i) + ".pb")); i++) {
    const std::string path = (folder / (kind + "_" + std::to_string(i) + ".pb")).string();
    const gaf::FileBytes file = gaf::map_file(path);
    gaf::onnx::ExternalData outside("", false);
    out.push_back(gaf::onnx::load_tensor(gaf::onnx::parse_tensor(file.bytes), file, outside));
  }
  return out;
}

std::string shape(const std::vector<int64_t>& dims) {
  std::string s = "[";
  for (int64_t d : dims) s += (s.size() > 1 ? "," : "") + std::to_string(d);
  return s + "]";
}

// Empty if equal within the tolerances.
std::string difference(const Tensor& got, const Tensor& want, const Case& c) {
  if (got.dtype != want.dtype)
    return "type " + std::string(name(got.dtype)) + ", expected " + std::string(name(want.dtype));
  if (got.dims != want.dims) return "shape " + shape(got.dims) + ", expected " + shape(want.dims);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < want.numel(); i++) {
    bool same = false;
    if (is_float(want.dtype)) {
      const double a = got.get(i), b = want.get(i);
      same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= c.atol + c.rtol * std::fabs(b);
    } else {
      same = got.get_int(i) == want.get_int(i);
    }
    if (!same && wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  std::ostringstream s;
  s << wrong << " of " << want.numel() << " elements differ, first at " << first << ": " << got.get(first)
    << ", expected " << want.get(first);
  return s.str();
}

std::string compare(const char* form, const gaf::Graph& g, const std::vector<Tensor>& in,
                    const std::vector<Tensor>& want, const Case& c) {
  const std::vector<Tensor> got = gaf::interpret_graph(g, in);
  if (got.size() < want.size()) return std::string(form) + ": too few outputs";
  for (size_t i = 0; i < want.size(); i++) {
    const std::string diff = difference(got[i], want[i], c);
    if (!diff.empty()) return std::string(form) + ": output " + std::to_string(i) + ": " + diff;
  }
  return "";
}

std::string run(const fs::path& folder, const Case& c) {
  const gaf::Graph read = gaf::read_onnx((folder / "model.onnx").string());
  const gaf::Inferred typed = gaf::infer(read);
  const gaf::Graph canonical = gaf::canonicalise(typed);
  bool any = false;
  for (int k = 0; fs::exists(folder / ("test_data_set_" + std::to_string(k))); k++) {
    const fs::path data = folder / ("test_data_set_" + std::to_string(k));
    const std::vector<Tensor> in = tensors(data, "input"), want = tensors(data, "output");
    any = any || !want.empty();
    std::string diff = compare("as read", typed.graph, in, want, c);
    if (diff.empty()) diff = compare("canonical", canonical, in, want, c);
    if (!diff.empty()) return diff;
  }
  return any ? "" : "no expected outputs";
}

int in_child(const fs::path& folder, const Case& c) {
  std::string reason;
  try {
    reason = run(folder, c);
  } catch (const gaf::UserError& e) {
    reason = e.info().code + " " + e.info().message;
  } catch (const std::exception& e) {
    reason = std::string("internal: ") + e.what();
  }
  for (char& ch : reason)
    if (ch == '\n') ch = ' ';
  std::cout << (reason.empty() ? "ok " : "FAIL ") << c.name << (reason.empty() ? "" : ": ") << reason << std::endl;
  return reason.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "conformance_runner ROOT < lines of \"case rtol atol\"\n";
    return 2;
  }
  bool all = true;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream fields(line);
    Case c;
    if (!(fields >> c.name)) continue;
    fields >> c.rtol >> c.atol;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      const int status = in_child(fs::path(argv[1]) / c.name, c);
      std::cout.flush();
      _exit(status);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::cout << "FAIL " << c.name << ": killed by signal " << WTERMSIG(status) << std::endl;
    all = all && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return all ? 0 : 1;
}
