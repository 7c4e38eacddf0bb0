// Damaged and malicious ONNX files end in a UserError with a code and, for damage, a byte: never in a crash, a hang or
// memory without bound. External data never leaves the model's folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "onnx_bytes.h"

namespace gaf::test {
namespace {

using testing::HasSubstr;

GraphParts small() {
  return {{node("Mul", {"x", "w"}, {"t"}, "mul", {attr_i("axis", 1)}), node("Relu", {"t"}, {"y"}, "relu")},
          {value("x", {"n", "2"})},
          {value("y", {})},
          {floats("w", {2}, {1, 2})}};
}

ErrorInfo refused(const std::string& model) {
  try {
    read(model);
  } catch (const UserError& e) {
    return e.info();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(OnnxHostile, NotOnnx) {
  EXPECT_EQ(refused("").code, "GAF3001");
  EXPECT_EQ(refused("hello world, this is no model").code, "GAF3001");
  EXPECT_EQ(refused(std::string(100, '\0')).code, "GAF3001");
  EXPECT_EQ(refused(Msg().num(1, 8).bytes).code, "GAF3001");  // no graph
}

TEST(OnnxHostile, TruncationNamesTheByte) {
  std::string model = ModelParts{small().build()}.build();
  std::string cut = model.substr(0, model.size() / 2);
  ErrorInfo e = refused(cut);
  EXPECT_EQ(e.code, "GAF3001");
  EXPECT_THAT(e.message, HasSubstr("truncated at byte " + std::to_string(cut.size())));
}

TEST(OnnxHostile, EveryCutAndEveryFlippedByteEndsInAnAnswer) {
  std::string model = ModelParts{small().build()}.build();
  for (size_t n = 0; n < model.size(); n++) {
    for (int k = 0; k < 3; k++) {
      std::string bad = k == 0 ? model.substr(0, n) : model;
      if (k == 1) bad[n] = static_cast<char>(~bad[n]);
      if (k == 2) bad[n] = static_cast<char>(0xff);
      try {
        Graph g = read(bad);
        EXPECT_TRUE(verify_graph(g).empty());
        EXPECT_EQ(print_graph(parse_graph(print_graph(g))), print_graph(g));
      } catch (const UserError& e) {
        EXPECT_FALSE(e.info().code.empty());
      }
    }
  }
}

TEST(OnnxHostile, WrongWireTypes) {
  Msg graph = small().build();
  graph.num(1, 5);  // a node that is a number
  EXPECT_EQ(refused(ModelParts{graph}.build()).code, "GAF3001");
}

TEST(OnnxHostile, ShapesAndDataDisagree) {
  auto with = [](const Msg& w) {
    GraphParts g = small();
    g.initializers = {w};
    return refused(ModelParts{g.build()}.build()).code;
  };
  EXPECT_EQ(with(floats("w", {3}, {1, 2})), "GAF3001");
  EXPECT_EQ(with(floats("w", {-2}, {1, 2})), "GAF3001");
  EXPECT_EQ(with(floats("w", {int64_t{1} << 40}, {1, 2})), "GAF3001");
  EXPECT_EQ(with(floats("w", {int64_t{1} << 40, int64_t{1} << 40}, {1, 2})), "GAF3106");
  EXPECT_EQ(with(Msg().num(1, int64_t{1} << 40).num(2, 6).str(8, "w")), "GAF3001");  // typed data, none there
  EXPECT_EQ(with(Msg().num(1, 2).num(2, 17).str(8, "w").str(9, "ab")), "GAF4002");   // float8
  EXPECT_EQ(with(Msg().num(1, 2).num(2, 77).str(8, "w").str(9, "ab")), "GAF4002");
}

TEST(OnnxHostile, NestingHasALimit) {
  for (int depth : {60, 70}) {
    GraphParts inner{{node("Relu", {"x"}, {"r"}, "leaf")}, {}, {value("r", {})}, {}};
    for (int i = 0; i < depth; i++)
      inner = {{node("If", {"c"}, {"r"}, "if", {attr_g("then_branch", inner.build())})}, {}, {value("r", {})}, {}};
    GraphParts parts{inner.nodes, {value("x", {"2"}), value("c", {}, 9)}, {value("r", {})}, {}};
    std::string model = ModelParts{parts.build()}.build();
    if (depth < 64)
      EXPECT_NO_THROW(read(model));
    else
      EXPECT_THAT(refused(model).message, HasSubstr("nested more than 64"));
  }
}

TEST(OnnxHostile, FunctionsThatCallThemselvesOrBlowUp) {
  auto function = [](const std::string& name, const std::string& callee) {
    Msg f = Msg().str(1, name).str(4, "a").str(5, "c").str(10, "f");
    f.msg(7, node(callee, {"a"}, {"b"}, "", {}, "f")).msg(7, node(callee, {"b"}, {"c"}, "", {}, "f"));
    return f;
  };
  GraphParts parts{{node("F0", {"x"}, {"y"}, "call0", {}, "f")}, {value("x", {"2"})}, {value("y", {})}, {}};
  ModelParts m{parts.build()};
  m.functions = {function("F0", "F0")};
  EXPECT_THAT(refused(m.build()).message, HasSubstr("nested more than 64"));
  m.functions.clear();
  for (int i = 0; i < 40; i++) m.functions.push_back(function("F" + std::to_string(i), "F" + std::to_string(i + 1)));
  EXPECT_THAT(refused(m.build()).message, HasSubstr("more than a million"));
}

// ---- external data ----

class OnnxExternal : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("gaf_external_" + std::to_string(::getpid()));
    std::filesystem::create_directories(root_ / "model" / "data");
    std::ofstream(root_ / "secret.bin") << "secretsecret";
    float w[] = {0, 1, 2, 3};
    std::ofstream(root_ / "model" / "data" / "w.bin").write(reinterpret_cast<char*>(w), sizeof w);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  Graph load(const std::string& location, const std::string& offset = "", const std::string& length = "") {
    Msg w = Msg().num(1, 2).num(2, 1).str(8, "w").num(14, 1);
    auto entry = [&](const std::string& k, const std::string& v) {
      if (!v.empty()) w.msg(13, Msg().str(1, k).str(2, v));
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    GraphParts g = small();
    g.initializers = {w};
    std::ofstream(root_ / "model" / "m.onnx", std::ios::binary) << ModelParts{g.build()}.build();
    return read_onnx((root_ / "model" / "m.onnx").string());
  }
  std::string code(const std::string& location, const std::string& offset = "", const std::string& length = "") {
    try {
      load(location, offset, length);
    } catch (const UserError& e) {
      return e.info().code;
    }
    return "accepted";
  }
  std::filesystem::path root_;
};

TEST_F(OnnxExternal, OffsetAndLengthMayBeLeftOut) {
  EXPECT_EQ(constant(load("data/w.bin"), {1, 0})->get(1), 1.0);
  EXPECT_EQ(constant(load("./data/w.bin", "8", "8"), {1, 0})->get(1), 3.0);
  EXPECT_EQ(constant(load("data/w.bin", "4"), {1, 0})->get(0), 1.0);
}

TEST_F(OnnxExternal, FaultsAreRefused) {
  EXPECT_EQ(code("data/w.bin", "12"), "GAF3001");
  EXPECT_EQ(code("data/w.bin", "9223372036854775807"), "GAF3001");
  EXPECT_EQ(code("data/w.bin", "-4"), "GAF3001");
  EXPECT_EQ(code("data/w.bin", "x"), "GAF3001");
  EXPECT_EQ(code("data/w.bin", "0", "4"), "GAF3001");
  EXPECT_EQ(code("data/none.bin"), "GAF8001");
  EXPECT_EQ(code("data"), "GAF8001");
}

TEST_F(OnnxExternal, NeverLeavesTheFolder) {
  std::filesystem::create_symlink(root_ / "secret.bin", root_ / "model" / "link.bin");
  std::filesystem::create_directory_symlink(root_, root_ / "model" / "up");
  EXPECT_EQ(code("../secret.bin"), "GAF3005");
  EXPECT_EQ(code("data/../../secret.bin"), "GAF3005");
  EXPECT_EQ(code((root_ / "secret.bin").string()), "GAF3005");
  EXPECT_EQ(code("link.bin"), "GAF3005");
  EXPECT_EQ(code("up/secret.bin"), "GAF3005");
  EXPECT_EQ(code(""), "GAF3005");
}

TEST_F(OnnxExternal, BytesWithoutAFolderHaveNone) {
  load("data/w.bin");
  EXPECT_THROW(read_onnx(map_file((root_ / "model" / "m.onnx").string()), ""), UserError);
}

}  // namespace
}  // namespace gaf::test
