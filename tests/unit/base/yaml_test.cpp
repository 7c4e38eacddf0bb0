// Settings files: flat mappings are read, everything else is refused with the line.
#include "base/yaml.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace gaf {
namespace {

const std::vector<std::string> kLegal = {"strategy", "level", "extern_ops"};

std::map<std::string, std::string> read(const std::string& text) { return read_yaml_map(text, "gaf.yaml", "GAF1202", kLegal); }

ErrorInfo error_of(const std::string& text) {
  try {
    read(text);
  } catch (const UserError& e) {
    return e.info();
  }
  ADD_FAILURE() << "no error for " << text;
  return {};
}

TEST(Yaml, ReadsValuesAndLists) {
  auto m = read("# settings\nstrategy: aggressive\nlevel: 1\nextern_ops: [Softmax, \"mm0\"]\n");
  EXPECT_EQ(m["strategy"], "aggressive");
  EXPECT_EQ(m["level"], "1");
  EXPECT_EQ(m["extern_ops"], "Softmax,mm0");
  EXPECT_TRUE(read("").empty());
}

TEST(Yaml, UnknownKeyHasLineAndNearest) {
  ErrorInfo e = error_of("level: 1\n\nstratgy: x\n");
  EXPECT_EQ(e.line, 3);
  EXPECT_EQ(e.code, "GAF1202");
  EXPECT_EQ(e.message, "unknown key 'stratgy' (did you mean 'strategy'?)");
}

TEST(Yaml, RefusesEverythingElse) {
  for (std::string text : {"[1, 2]", "just text", "level: {a: 1}", "level: [[1]]", "level: 1\nlevel: 2", "level: !!int 3", "a: &x 1\nlevel: *x",
                           "level: 1\n---\nlevel: 2", "level: \"open", "\t- x", "{{{{"}) {
    SCOPED_TRACE(text);
    EXPECT_GE(error_of(text).line, 1);
  }
  EXPECT_THROW(read(std::string(2 << 20, 'a')), UserError);
  EXPECT_THROW(read("level: " + std::string(100000, '[')), UserError);
}

TEST(Yaml, ReportsAllFaultsTogether) {
  try {
    read("foo: 1\nbar: 2\nlevel: {x: {y: 1}}\n");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.all().size(), 3u);
  }
}

}  // namespace
}  // namespace gaf
