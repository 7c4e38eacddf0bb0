// Target files: what is shipped loads, what is wrong is reported with line and code, what is left out is completed.
#include "base/target.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace gaf {
namespace {

using ::testing::HasSubstr;

std::string shipped_text(const std::string& name) { return read_file(std::string(GAF_SOURCE_DIR) + "/targets/" + name + ".json"); }

// Writes the text to a file of its own and loads it as a target.
Target load_text(const std::string& text) {
  auto path = std::filesystem::path(::testing::TempDir()) / "gaf_target_test.json";
  write_file(path.string(), text);
  return load_target(path.string());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

ErrorInfo error_of(const std::string& text) {
  try {
    load_text(text);
  } catch (const UserError& e) {
    return e.info();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(Target, EveryShippedOneLoads) {
  for (const std::string& name : shipped_targets()) {
    SCOPED_TRACE(name);
    Target t = load_target(name);
    EXPECT_EQ(t.name, name);
    EXPECT_GT(t.cores, 0);
    EXPECT_NE(t.edge(Mem::gm, t.map_dst), nullptr);
    EXPECT_NE(t.memory(t.map_dst), nullptr);
    EXPECT_GT(t.mma.flops_per_cycle, 0);
    EXPECT_EQ(t.pipes, t.kind == "npu");
  }
}

TEST(Target, NamesIgnoreCaseAndAliasesResolve) {
  EXPECT_EQ(load_target("X86-64-AVX2").llvm_cpu, "haswell");
  EXPECT_EQ(load_target("Ascend910B").name, "ascend910b3");
  EXPECT_EQ(load_target("ascend910b1").cores, 48);
}

TEST(Target, HostIsALevelThatThisMachineRuns) {
  Target t = load_target("host");
  EXPECT_TRUE(host_runs(t));
  EXPECT_EQ(t.cores, host_cores());
  EXPECT_FALSE(host_runs(load_target("ascend910b3")));
}

TEST(Target, UnknownNameSuggestsTheNearest) {
  try {
    load_target("x86-64-avx1");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF2204");
    EXPECT_THAT(e.info().message, HasSubstr("did you mean 'x86-64-avx2'?"));
  }
}

TEST(Target, MissingKey) {
  ErrorInfo e = error_of(replaced(shipped_text("x86-64-avx2"), "  \"cores\": 2,\n", ""));
  EXPECT_EQ(e.code, "GAF2201");
  EXPECT_EQ(e.message, "missing key 'cores'");
}

TEST(Target, ValueOutOfRangeHasItsLine) {
  ErrorInfo e = error_of(replaced(shipped_text("x86-64-avx2"), "\"clock_mhz\": 3200", "\"clock_mhz\": -1"));
  EXPECT_EQ(e.code, "GAF2202");
  EXPECT_EQ(e.message, "'clock_mhz' must be above 0, got -1");
  EXPECT_EQ(e.line, 7);
  EXPECT_EQ(error_of(replaced(shipped_text("ascend910b3"), "\"budget\": 0.8", "\"budget\": 1.5")).code, "GAF2202");
}

TEST(Target, UnknownKeySuggestsTheNearest) {
  ErrorInfo e = error_of(replaced(shipped_text("x86-64-avx2"), "\"lanes\": 8", "\"lanes\": 8, \"tile_row\": 6"));
  EXPECT_EQ(e.code, "GAF2203");
  EXPECT_EQ(e.message, "unknown key 'cpu.tile_row' (did you mean 'tile_rows'?)");
}

TEST(Target, AllFaultsAreReportedTogether) {
  try {
    load_text(R"({"schema": "gaf.target/1", "name": "x", "kind": "cpu", "cores": 0, "foo": 1})");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_GT(e.all().size(), 10u);
  }
}

TEST(Target, NotJsonNamesTheLine) {
  ErrorInfo e = error_of("{\n\"schema\": \"gaf.target/1\",\n]");
  EXPECT_EQ(e.code, "GAF2201");
  EXPECT_EQ(e.line, 3);
}

// Only the header that CONTRACT 10 requires: the kernel sections come from the shipped target of the same instruction set.
TEST(Target, HeaderAloneIsCompleted) {
  Json j = parse_json(shipped_text("x86-64-avx2"), "", "GAF2201"), header = Json::object();
  for (const auto& [key, value] : j.members())
    if (key != "memories" && key != "edges" && key != "map" && key != "mma" && key != "scalar" && key != "issue" && key != "pipes" &&
        key != "events" && key != "cpu" && key != "budget")
      header.set(key, value);
  header.set("name", "mine").set("l2_bytes", 1 << 20);
  Target t = load_text(header.dump(2));
  EXPECT_EQ(t.name, "mine");
  EXPECT_EQ(t.llvm_cpu, "haswell");
  EXPECT_EQ(t.memory(Mem::scratch)->bytes, 1 << 19);
  EXPECT_EQ(t.memory(Mem::reg)->bytes, 16 * 32);
}

}  // namespace
}  // namespace gaf
