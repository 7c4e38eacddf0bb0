// What commands share, see session.h. Must not know what a single command does.
#include "cli/session.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/yaml.h"

namespace gaf {
namespace {

// NAME:4,-1 -> dims
std::pair<std::string, std::vector<int64_t>> shape_option(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::pair<std::string, std::vector<int64_t>> r{text.substr(0, colon), {}};
  if (colon == std::string::npos || colon == 0) bad_value("shape", "NAME:D0,D1,...", text);
  if (colon + 1 == text.size()) return r;  // a scalar
  for (size_t at = colon + 1; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string number = text.substr(at, end - at);
    if (number.find('~') != std::string::npos)
      throw UserError("GAF4009", "a range in '--shape' is not available in this version");
    char* stop = nullptr;
    const long long v = std::strtoll(number.c_str(), &stop, 10);
    if (number.empty() || *stop || v < -1) bad_value("shape", "NAME:D0,D1,... of whole numbers (-1: free)", text);
    r.second.push_back(v);
    at = end + 1;
  }
  return r;
}

std::pair<std::string, int64_t> dim_option(const std::string& text) {
  const size_t equals = text.rfind('=');
  char* stop = nullptr;
  const long long v = equals == std::string::npos ? -1 : std::strtoll(text.c_str() + equals + 1, &stop, 10);
  if (v < 0 || *stop || stop == text.c_str() + equals + 1 || equals == 0) bad_value("dim", "SYM=N", text);
  return {text.substr(0, equals), v};
}

SettingLayer file_layer(const std::string& path) {
  constexpr int64_t kLargest = 1 << 20;
  return read_yaml_map(read_file(path, kLargest), path, "GAF1202", setting_names());
}

// Field names are spelled with '_' in settings and with '-' in options.
Settings resolve(const CommandLine& line) {
  const char* named = std::getenv("AUTOFUSION_CONFIG");
  const std::string path = line.text("config", named ? named : "");
  try {
    return resolve_settings(line.settings, {}, path.empty() ? SettingLayer{} : file_layer(path), path);
  } catch (const UserError& e) {
    ErrorInfo info = e.info();
    if (e.all().size() > 1 || !info.message.starts_with("--")) throw;
    std::replace(
        info.message.begin(),
        info.message.begin() + static_cast<std::ptrdiff_t>(std::min(info.message.find('='), info.message.size())), '_',
        '-');
    throw UserError(info);
  }
}

// "2GiB", "1.5 GB", "4096"
int64_t byte_count(const std::string& text) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  std::string unit = end;
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  constexpr std::pair<const char*, double> kUnits[] = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (const auto& [name, factor] : kUnits)
    if (unit == name && end != text.c_str() && v >= 0 && v * factor < 0x1p62) return static_cast<int64_t>(v * factor);
  bad_value("max-memory", "a number of bytes such as 2GiB", text);
}

}  // namespace

Session::Session(CommandLine l) : line(std::move(l)) {
  const std::string colour = line.choice("color", "auto", {"auto", "always", "never"});
  set_colour(colour == "auto" ? ColourWhen::automatic : colour == "always" ? ColourWhen::always : ColourWhen::never);
  if (quiet())
    set_log_level(LogLevel::error);
  else if (line.has("verbose"))
    set_log_level(line.all("verbose").size() > 1 ? LogLevel::debug : LogLevel::info);
  settings = resolve(line);
  if (line.has("max-memory")) settings.config.max_memory = byte_count(line.text("max-memory", ""));
  for (const std::string& w : settings.warnings) warn(w);
}

Model Session::load() const {
  if (line.model.empty())
    throw UserError("GAF1102", "gaf " + line.command + " needs a model", "gaf " + line.command + " MODEL.onnx");
  for (const char* later : {".gafm", ".pt2", ".mlir", ".pb"})
    if (line.model.ends_with(later))
      throw UserError("GAF4009", fmt::format("loading {} files is not available in this version", later),
                      "give an .onnx or .gaf file");
  LoadOptions o;
  for (const std::string& s : line.all("shape")) o.shapes.push_back(shape_option(s));
  for (const std::string& s : line.all("dim")) o.dims.push_back(dim_option(s));
  const Progress p("loading " + line.model, progress());
  Model m = load_model(line.model, o);
  // What is given and no input may be a default that the model lists as an input: a constant unless given.
  for (const std::string& name : given_names()) {
    auto is_it = [&](const Node& n) { return n.op == "input" && n.name == name; };
    if (std::ranges::none_of(m.graph.nodes, is_it)) o.overridden.push_back(name);
  }
  if (!o.overridden.empty()) m = load_model(line.model, o);
  for (const std::string& w : m.warnings) warn(w);
  return m;
}

void Session::say(const std::string& text) const {
  if (quiet() || json()) return;
  std::fputs(text.c_str(), stdout);
  if (!text.ends_with('\n')) std::fputc('\n', stdout);
}

void Session::document(const Json& d) const {
  if (json()) fmt::print("{}\n", d.dump());
}

void Session::warn(const std::string& text) const {
  if (!quiet()) fmt::print(stderr, "{} {}\n", tinted(stderr, Tint::yellow, "warning:"), text);
}

void Session::write_report(const Report& r) const {
  if (!line.has("report")) return;
  const std::string path = line.text("report", "");
  if (path.ends_with(".json"))
    write_result(path, r.json().dump(2) + "\n");
  else if (path.ends_with(".txt"))
    write_result(path, r.text());
  else if (path.ends_with(".html") || path.ends_with(".svg"))
    throw UserError("GAF4009", "'--report " + path + "' is not available in this version", "write .txt or .json");
  else
    bad_value("report", "a file ending in .txt or .json", path);
}

void write_result(const std::string& path, const std::string& content) {
  sigset_t interrupt, old;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigaddset(&interrupt, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &interrupt, &old);
  struct Restore {
    const sigset_t& mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restore{old};
  write_file(path, content);
}

}  // namespace gaf
