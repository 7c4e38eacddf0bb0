// Reading settings files through yaml-cpp's event interface: no tree is built, so aliases cannot blow one up and nesting is
// refused where it begins.
#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

#include "base/catalogue.h"
#include "base/error.h"

namespace gaf {
namespace {

constexpr size_t kLargestFile = 1 << 20;
constexpr size_t kMostErrors = 50;
struct TooMany {};  // leaves the parser once enough was found

class MapReader final : public YAML::EventHandler {
 public:
  MapReader(const std::string& file, const std::string& code, const std::vector<std::string>& legal)
      : file_(file), code_(code), legal_(legal) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& m, YAML::anchor_t) override { value(m, ""); }
  void OnAlias(const YAML::Mark& m, YAML::anchor_t) override { fault(m, "aliases are not allowed"); }
  void OnScalar(const YAML::Mark& m, const std::string& tag, YAML::anchor_t, const std::string& v) override {
    if (!tag.empty() && tag != "?" && tag != "!") return fault(m, fmt::format("tag '{}' is not allowed", tag));
    value(m, v);
  }
  void OnSequenceStart(const YAML::Mark& m, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    if (depth_ != 1 || !has_key_ || in_list_) return nested(m);
    in_list_ = true;
    list_.clear();
  }
  void OnSequenceEnd() override {
    if (skip_ > 0) return void(skip_--);
    in_list_ = false;
    put(key_mark_, fmt::format("{}", fmt::join(list_, ",")));
  }
  void OnMapStart(const YAML::Mark& m, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    if (depth_ == 0 && skip_ == 0) return void(depth_ = 1);
    nested(m);
  }
  void OnMapEnd() override {
    if (skip_ > 0) return void(skip_--);
    depth_ = 0;
  }

  std::map<std::string, std::string> values;
  std::vector<ErrorInfo> errors;

 private:
  void fault(const YAML::Mark& m, std::string text) {
    ErrorInfo e;
    e.code = code_, e.message = std::move(text), e.file = file_, e.line = m.line + 1, e.column = m.column + 1;
    errors.push_back(std::move(e));
    has_key_ = false;
    if (errors.size() >= kMostErrors) throw TooMany{};
  }
  void nested(const YAML::Mark& m) {
    if (skip_++ == 0) fault(m, depth_ == 0 ? "a settings file is one mapping of names to values" : "a value or a list of values expected");
  }
  void value(const YAML::Mark& m, const std::string& v) {
    if (skip_ > 0) return;
    if (depth_ == 0) return fault(m, "a settings file is one mapping of names to values");
    if (in_list_) return list_.push_back(v);
    if (!has_key_) {
      key_ = v, key_mark_ = m, has_key_ = true;
      return;
    }
    put(key_mark_, v);
  }
  void put(const YAML::Mark& m, const std::string& v) {
    if (std::find(legal_.begin(), legal_.end(), key_) == legal_.end()) {
      fault(m, fmt::format("unknown key '{}'{}", key_, did_you_mean(key_, legal_)));
    } else if (!values.emplace(key_, v).second) {
      fault(m, fmt::format("key '{}' stands twice", key_));
    }
    has_key_ = false;
  }

  std::string file_, code_;
  const std::vector<std::string>& legal_;
  int depth_ = 0, skip_ = 0;  // skip_: open containers that were refused
  bool has_key_ = false, in_list_ = false;
  std::string key_;
  YAML::Mark key_mark_;
  std::vector<std::string> list_;
};

}  // namespace

std::map<std::string, std::string> read_yaml_map(std::string_view text, const std::string& file, const std::string& code,
                                                 const std::vector<std::string>& legal) {
  MapReader reader(file, code, legal);
  auto fault = [&](int line, int column, std::string message) {
    ErrorInfo e;
    e.code = code, e.message = std::move(message), e.file = file, e.line = line, e.column = column;
    reader.errors.push_back(std::move(e));
  };
  if (text.size() > kLargestFile) {
    fault(1, 1, "settings file over 1 MiB");
  } else {
    std::istringstream stream{std::string(text)};
    try {
      YAML::Parser parser(stream);
      if (parser.HandleNextDocument(reader) && parser.HandleNextDocument(reader)) fault(1, 1, "more than one document");
    } catch (const TooMany&) {
    } catch (const YAML::Exception& e) {
      fault(e.mark.line + 1, e.mark.column + 1, "not YAML: " + e.msg);
    }
  }
  if (!reader.errors.empty()) throw UserError(std::move(reader.errors));
  return std::move(reader.values);
}

}  // namespace gaf
