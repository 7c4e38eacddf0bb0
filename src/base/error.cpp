// Errors: construction, and the one-line text that what() gives.
#include "base/error.h"

namespace gaf {
namespace {
std::string line(const ErrorInfo& e) {
  std::string s;
  if (!e.file.empty()) {
    s += e.file + ":";
    if (e.line) s += std::to_string(e.line) + ":";
    if (e.column) s += std::to_string(e.column) + ":";
    s += " ";
  }
  s += "error " + e.code + ": ";
  if (!e.node.empty()) s += "node '" + e.node + "'" + (e.op_type.empty() ? "" : " (" + e.op_type + ")") + ": ";
  s += e.message;
  if (!e.cause.empty()) s += " (" + e.cause + ")";
  return s;
}
std::string lines(const std::vector<ErrorInfo>& all) {
  std::string s;
  for (const ErrorInfo& e : all) {
    if (!s.empty()) s += '\n';
    s += line(e);
    if (!e.remedy.empty()) s.append("\n    remedy: ").append(e.remedy);
  }
  return s;
}
}  // namespace

UserError::UserError(ErrorInfo e) : std::runtime_error(lines({e})), all_{std::move(e)} {}
UserError::UserError(std::string code, std::string message, std::string remedy)
    : UserError(ErrorInfo{.code = std::move(code), .message = std::move(message), .remedy = std::move(remedy)}) {}
UserError::UserError(std::vector<ErrorInfo> several) : std::runtime_error(lines(several)), all_(std::move(several)) {}

UserError& UserError::at(std::string node, std::string op_type) {
  ErrorInfo e = all_.front();
  e.node = std::move(node), e.op_type = std::move(op_type);
  return *this = UserError(std::move(e));
}

namespace detail {
Fail::Fail(const char* file, int line, const char* what) { text << file << ":" << line << ": check failed: " << what << " "; }
Fail::~Fail() noexcept(false) { throw InternalError(text.str()); }
}  // namespace detail

}  // namespace gaf
