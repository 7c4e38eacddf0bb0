// Log lines byte for byte: prefix, arrows, levels and the three formats.
#include "base/log.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

namespace gaf {
namespace {

using ::testing::MatchesRegex;

class Log : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"AUTOFUSION_LOG_LEVEL", "AUTOFUSION_LOG_FORMAT", "AUTOFUSION_LOG_ASCII", "ASCEND_GLOBAL_LOG_LEVEL"}) unsetenv(name);
    setenv("LC_ALL", "C.UTF-8", 1);
    set_log_sink([this](LogLevel, std::string_view line) { lines.emplace_back(line); });
  }
  void TearDown() override {
    SetUpEnvironment("AUTOFUSION_LOG_FORMAT", "plain");
    set_log_sink({});
  }
  void SetUpEnvironment(const char* name, const char* value) {
    setenv(name, value, 1);
    log_from_environment();
  }
  std::vector<std::string> lines;
};

TEST_F(Log, PlainLineIsByteExact) {
  RecordProperty("contract", "E4");
  SetUpEnvironment("AUTOFUSION_LOG_LEVEL", "info");
  log_line(LogLevel::info, "found", "Found fusable subgraph: MatMul → BiasAdd → ReLU");
  log_line(LogLevel::debug, "resources", "Resource estimate: reg=62%, ub=45% → within budget");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "[AUTOFUSION] Found fusable subgraph: MatMul → BiasAdd → ReLU");
}

TEST_F(Log, ArrowsAreAsciiWhereTheLocaleIsNotUtf8) {
  SetUpEnvironment("AUTOFUSION_LOG_LEVEL", "0");
  SetUpEnvironment("LC_ALL", "C");
  log_line(LogLevel::debug, "resources", "a → b → c");
  EXPECT_EQ(lines.back(), "[AUTOFUSION] a -> b -> c");
  EXPECT_EQ(arrow(), "->");
  SetUpEnvironment("LC_ALL", "en_US.utf8");
  EXPECT_EQ(arrow(), "→");
  SetUpEnvironment("AUTOFUSION_LOG_ASCII", "1");
  EXPECT_EQ(arrow(), "->");
}

TEST_F(Log, LevelsComeFromTheEnvironmentOrTheCaller) {
  SetUpEnvironment("ASCEND_GLOBAL_LOG_LEVEL", "3");
  EXPECT_FALSE(log_on(LogLevel::warning));
  SetUpEnvironment("AUTOFUSION_LOG_LEVEL", "Debug");
  EXPECT_TRUE(log_on(LogLevel::debug));
  set_log_level(LogLevel::off);
  EXPECT_FALSE(log_on(LogLevel::error));
  EXPECT_FALSE(log_level_named("loud").has_value());
}

TEST_F(Log, CannFormat) {
  SetUpEnvironment("AUTOFUSION_LOG_FORMAT", "cann");
  log_line(LogLevel::warning, "fallback", "Fallback: node_12 (Resize): extern, no lowering");
  EXPECT_THAT(lines.back(),
              MatchesRegex("\\[WARNING\\] GAF\\([0-9]+,[^)]+\\):[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}\\.[0-9]{3} "
                           "\\[log_test\\.cpp:[0-9]+\\][0-9]+ TestBody:\"Fallback: node_12 \\(Resize\\): extern, no lowering\""));
}

TEST_F(Log, JsonFormatKeepsValuesApart) {
  SetUpEnvironment("AUTOFUSION_LOG_FORMAT", "json");
  log_line(LogLevel::warning, "fallback", "Fallback: n (Resize): extern", {{"node", "n"}, {"op", "Resize"}});
  EXPECT_THAT(lines.back(), MatchesRegex("\\{\"level\":\"WARNING\",\"time\":\"[-0-9T:.]+Z\",\"event\":\"fallback\",\"node\":\"n\",\"op\":\"Resize\"\\}"));
}

TEST_F(Log, OneLineWhateverANameHolds) {
  log_line(LogLevel::error, "x", "a\nb");
  EXPECT_EQ(lines.back(), "[AUTOFUSION] a b");
}

}  // namespace
}  // namespace gaf
