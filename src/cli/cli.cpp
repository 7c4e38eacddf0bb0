// From arguments to a command, and from whatever goes wrong to a message and an exit code (CONTRACT 1.1, 12.1). Errors
// are caught here and nowhere else in cli/.
#include "cli/cli.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "base/catalogue.h"
#include "base/error.h"
#include "cli/commands.h"

namespace gaf {
namespace {

constexpr int kInternalFault = 70, kInterrupted = 130;

struct CommandEntry {
  const char* name;
  int (*run)(const Session&);
};
constexpr CommandEntry kEntries[] = {
    {"run", command_run},   {"bench", command_bench}, {"explain", command_explain}, {"compare", command_compare},
    {"fuse", command_fuse}, {"emit", command_emit},   {"config", command_config},
};

// Results are written whole or not at all (write_result), so there is nothing to clean up.
void on_interrupt(int) {
  constexpr char kText[] = "\ninterrupted\n";
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(kInterrupted);
}

Json error_document(const std::vector<ErrorInfo>& errors) {
  auto text = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
  Json all = Json::array();
  for (const ErrorInfo& e : errors)
    all.push(Json::object({{"code", e.code},
                           {"message", e.message},
                           {"node", text(e.node)},
                           {"op_type", text(e.op_type)},
                           {"file", text(e.file)},
                           {"line", e.line ? Json(e.line) : Json()},
                           {"column", e.column ? Json(e.column) : Json()},
                           {"cause", text(e.cause)},
                           {"remedy", text(e.remedy)}}));
  return Json::object({{"schema", "gaf.error/1"}, {"errors", all}});
}

int report(const std::vector<ErrorInfo>& errors, bool json) {
  std::vector<ErrorInfo> full;
  for (ErrorInfo e : errors) {
    const std::string own_cause = e.cause;
    e = with_catalogue(e);
    full.push_back(e);
    e.cause = own_cause;  // the catalogue's is for gaf explain --error
    std::string text = UserError(e).what();
    const size_t word = text.find("error GAF");
    if (word != std::string::npos)
      text = text.substr(0, word) + tinted(stderr, Tint::red, "error") + text.substr(word + 5);
    fmt::print(stderr, "{}\n", text);
  }
  if (json) fmt::print("{}\n", error_document(full).dump());
  return exit_code(errors.front().code);
}

int fault(const std::string& what, bool json) {
  const ErrorInfo e{
      .code = "GAF9001",
      .message = "internal fault: " + what,
      .remedy = "this is a fault of gaf: please report it with this message, the command line and the model"};
  report({e}, json);
  return kInternalFault;
}

int dispatch(int argc, char** argv) {
  CommandLine line = parse_command_line(argc, argv);
  if (line.command == "--help") {
    std::fputs(line.help.c_str(), argc < 2 ? stderr : stdout);
    return argc < 2 ? 2 : 0;
  }
  if (line.command == "--version") return command_version(line.has("json"));
  const Session session(std::move(line));
  for (const CommandEntry& e : kEntries)
    if (session.line.command == e.name) return e.run(session);
  GAF_CHECK(false) << "no command " << session.line.command;
  return kInternalFault;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  signal(SIGINT, on_interrupt);
  signal(SIGTERM, on_interrupt);
  bool json = false;
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; i++) json |= std::strcmp(argv[i], "--json") == 0;
  int code = 0;
  try {
    code = dispatch(argc, argv);
  } catch (const UserError& e) {
    code = report(e.all(), json);
  } catch (const std::bad_alloc&) {
    code = report({ErrorInfo{.code = "GAF6003", .message = "out of memory"}}, json);
  } catch (const std::exception& e) {
    code = fault(e.what(), json);
  }
  // A reader that went away, or a full disk behind a redirection, is an error of ours to tell.
  if (std::fflush(stdout) != 0 && code == 0)
    code = report(
        {ErrorInfo{.code = "GAF8001", .message = fmt::format("cannot write to stdout: {}", std::strerror(errno))}},
        false);
  return code;
}

}  // namespace gaf
