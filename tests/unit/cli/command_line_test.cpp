// Parsing of the command line: what is understood, and what is said about the rest.
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace gaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

CommandLine parse(std::vector<const char*> words) {
  words.insert(words.begin(), "gaf");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}
std::string refusal(std::vector<const char*> words) {
  try {
    parse(std::move(words));
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(CommandLine, ModelAndOptionsInAnyOrder) {
  const CommandLine c =
      parse({"run", "--shape", "x:4,8", "m.onnx", "--shape=y:1", "--random=7", "-vv", "-o", "out.npz"});
  EXPECT_EQ(c.command, "run");
  EXPECT_EQ(c.model, "m.onnx");
  EXPECT_THAT(c.all("shape"), ElementsAre("x:4,8", "y:1"));
  EXPECT_EQ(c.whole("random", 0, 0), 7);
  EXPECT_EQ(c.all("verbose").size(), 2U);
  EXPECT_EQ(c.text("output", ""), "out.npz");
  EXPECT_FALSE(c.has("json"));
}

TEST(CommandLine, OptionsThatAreSettings) {
  const CommandLine c = parse({"explain", "m.onnx", "--strategy", "aggressive", "--no-autofuse", "--max-fusion-depth=3",
                               "--strict", "--threads", "2"});
  EXPECT_THAT(c.settings,
              UnorderedElementsAre(Pair("strategy", "aggressive"), Pair("enable_autofuse", "false"),
                                   Pair("max_fusion_depth", "3"), Pair("strict", "true"), Pair("threads", "2")));
}

TEST(CommandLine, ValuesMayLookLikeOptionsOrEquations) {
  EXPECT_EQ(parse({"run", "m.onnx", "--input", "x=a=b.npy"}).text("input", ""), "x=a=b.npy");
  EXPECT_EQ(parse({"run", "m.onnx", "--input=x=a.npy"}).text("input", ""), "x=a.npy");
  EXPECT_EQ(parse({"run", "-"}).model, "-");
  EXPECT_EQ(parse({"run", "--", "--odd-name.onnx"}).model, "--odd-name.onnx");
  EXPECT_EQ(parse({"run", "m", "--threads", "1", "--threads", "3"}).settings.at("threads"), "3");  // the last one
}

TEST(CommandLine, UnknownWords) {
  EXPECT_THAT(refusal({"run", "m.onnx", "--stratgy", "fast"}),
              HasSubstr("GAF1101: unknown option '--stratgy' (did you mean '--strategy'?)"));
  EXPECT_THAT(refusal({"run", "m.onnx", "--stratgy=fast"}), HasSubstr("unknown option '--stratgy'"));
  EXPECT_THAT(refusal({"rum", "m.onnx"}), HasSubstr("unknown command 'rum' (did you mean 'run'?)"));
  EXPECT_THAT(refusal({"--versoin"}), HasSubstr("did you mean '--version'"));
  EXPECT_THAT(refusal({"run", "a.onnx", "b.onnx"}), HasSubstr("unexpected argument 'b.onnx'"));
  EXPECT_THAT(refusal({"config", "--runs", "3"}), HasSubstr("unknown option '--runs'"));  // of another command
}

TEST(CommandLine, LaterMilestonesSaySo) {
  EXPECT_THAT(refusal({"bisect", "m.onnx"}), HasSubstr("GAF4009: 'bisect' is not available in this version"));
  EXPECT_THAT(refusal({"run", "m.onnx", "--rules", "f.yaml"}), HasSubstr("GAF4009: '--rules'"));
  EXPECT_THAT(refusal({"run", "m.onnx", "--precision", "mixed_float16"}), HasSubstr("GAF4009"));
  EXPECT_THAT(refusal({"run", "m.onnx", "--precision", "mixed_flaot16"}), HasSubstr("GAF1102"));
}

TEST(CommandLine, BadValues) {
  EXPECT_THAT(refusal({"run", "m.onnx", "--random"}), HasSubstr("GAF1102"));
  const CommandLine c = parse({"bench", "m.onnx", "--runs", "x", "--min-time", "-1", "--baseline", "onnx"});
  try {
    c.whole("runs", 50, 1);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("GAF1102: option '--runs' needs a whole number, got 'x'"));
  }
  EXPECT_THROW(c.number("min-time", 1, 0), UserError);
  EXPECT_THROW(c.choice("baseline", "", {"onnxruntime", "torch"}), UserError);
  EXPECT_EQ(c.whole("warmup", 5, 0), 5);
}

TEST(CommandLine, HelpAndVersion) {
  EXPECT_EQ(parse({}).command, "--help");
  EXPECT_THAT(parse({"--help"}).help, HasSubstr("explain"));
  EXPECT_THAT(parse({"run", "--help"}).help, HasSubstr("--unfused"));
  EXPECT_EQ(parse({"--version"}).command, "--version");
  EXPECT_TRUE(parse({"--version", "--json"}).has("json"));
}

}  // namespace
}  // namespace gaf
