// Errors and verdicts. A UserError is the user's to mend and names the model's own node; an InternalError is our bug.
// Both are caught once, at the edge of the API. "Not fused" and "this back end cannot" are Verdicts, not errors.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gaf {

// What every error carries (CONTRACT 12.1). Empty fields are not shown.
struct ErrorInfo {
  std::string code;  // "GAF3101", a row of the catalogue in base/catalogue.h
  std::string message;
  std::string node, op_type;     // as in the user's model
  std::string file;
  int line = 0, column = 0;
  std::string cause, remedy;
};

class UserError : public std::runtime_error {
 public:
  explicit UserError(ErrorInfo e);
  UserError(std::string code, std::string message, std::string remedy = "");
  explicit UserError(std::vector<ErrorInfo> several);
  UserError& at(std::string node, std::string op_type);   // fluent: throw UserError(...).at(name, type)
  const ErrorInfo& info() const { return all_.front(); }
  const std::vector<ErrorInfo>& all() const { return all_; }  // faults found together are reported together

 private:
  std::vector<ErrorInfo> all_;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A refusal is a value: yes, or no with a reason id of CONTRACT 6.2 and the sentence a user reads.
struct Verdict {
  bool ok = true;
  std::string reason;  // "iteration-mismatch"
  std::string text;
  std::vector<std::pair<std::string, double>> numbers;  // "bytes", "limit_bytes", "us", ...
  static Verdict yes() { return {}; }
  static Verdict no(std::string reason, std::string text, std::vector<std::pair<std::string, double>> numbers = {}) {
    return {false, std::move(reason), std::move(text), std::move(numbers)};
  }
  explicit operator bool() const { return ok; }
};

namespace detail {
struct Fail {
  std::ostringstream text;
  Fail(const char* file, int line, const char* what);
  [[noreturn]] ~Fail() noexcept(false);
  template <class T>
  Fail& operator<<(const T& v) {
    text << v;
    return *this;
  }
};
}  // namespace detail

}  // namespace gaf

// Throws InternalError with file and line: GAF_CHECK(a == b) << "why " << x;
#define GAF_CHECK(cond) \
  if (cond) [[likely]] {} else ::gaf::detail::Fail(__FILE__, __LINE__, #cond)
