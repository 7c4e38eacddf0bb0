// Fused files: groups become functions, everything else stays, reading back gives the same graph, writing again the
// same bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "frontend/onnx_group.h"
#include "frontend/onnx_proto.h"
#include "onnx_bytes.h"

namespace gaf::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GraphParts chain() {
  return {{node("MatMul", {"x", "w"}, {"a"}, "mm"), node("Add", {"a", "b"}, {"s"}), node("Relu", {"s"}, {"r"}, "relu"),
           node("Neg", {"r"}, {"y"}, "neg")},
          {value("x", {"n", "2"})},
          {value("y", {}), value("s", {})},
          {floats("w", {2, 2}, {1, 2, 3, 4}), floats("b", {2}, {1, 1})}};
}

FusedOnnx fuse(const std::string& model, const std::vector<FusedGroup>& groups) {
  return write_fused_onnx(bytes(model), "", groups, {{"gaf.version", "1"}});
}

std::set<std::string> names(const Graph& g) {
  std::set<std::string> out;
  for (const Node& n : g.nodes) out.insert(n.op + " " + n.name);
  return out;
}

TEST(OnnxWrite, GroupBecomesAFunction) {
  std::string model = ModelParts{chain().build(), 7}.build();
  FusedOnnx f = fuse(model, {{"k0_matmul_add_relu", {"mm", "Add_1", "relu"}, "epilogue", 2.5}});
  EXPECT_THAT(f.warnings, IsEmpty());
  onnx::Model m = onnx::parse_model(f.bytes);
  EXPECT_EQ(m.ir_version, 8);
  ASSERT_EQ(m.graph->nodes.size(), 2u);
  EXPECT_EQ(m.graph->nodes[0].op_type, "k0_matmul_add_relu");
  EXPECT_EQ(m.graph->nodes[0].domain, "gaf.fused");
  EXPECT_THAT(m.graph->nodes[0].inputs, ElementsAre("x", "w", "b"));
  EXPECT_THAT(m.graph->nodes[0].outputs, ElementsAre("s", "r"));
  ASSERT_EQ(m.functions.size(), 1u);
  EXPECT_EQ(m.functions[0].nodes.size(), 3u);
  EXPECT_EQ(m.functions[0].nodes[1].name, "Add_1");
  EXPECT_THAT(m.functions[0].versions, ElementsAre(17));
  EXPECT_THAT(m.domains, ElementsAre("", "gaf.fused"));
}

TEST(OnnxWrite, ReadsBackAndWritesAgain) {
  std::string model = ModelParts{chain().build()}.build();
  std::vector<FusedGroup> groups = {{"k0", {"Add_1", "mm", "Add_1"}, "epilogue", 2.5},
                                    {"k1", {"relu", "neg"}, "chain", 1}};
  FusedOnnx f = fuse(model, groups);
  Graph before = read(model), after = read(f.bytes);
  EXPECT_EQ(names(after), names(before));
  EXPECT_EQ(after.metadata.at("gaf.version"), "1");
  std::vector<FusedGroup> back = fused_groups(after);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, "k0");
  EXPECT_EQ(back[1].nodes, groups[1].nodes);
  EXPECT_THAT(back[0].nodes, ElementsAre("mm", "Add_1"));  // once each, in the order of the file
  EXPECT_EQ(back[0].gain_us, 2.5);
  EXPECT_EQ(back[0].reason, "epilogue");
  EXPECT_EQ(fuse(f.bytes, back).bytes, f.bytes);
  Graph plain = read(fuse(f.bytes, {}).bytes);
  EXPECT_EQ(names(plain), names(before));
  EXPECT_TRUE(onnx::parse_model(fuse(f.bytes, {}).bytes).functions.empty());
}

TEST(OnnxWrite, FoldedNodesBetweenComeIntoTheFunction) {
  // Shape of the first node feeds the last: folding removed it from the plan, the file still has it
  GraphParts g{{node("Relu", {"x"}, {"a"}, "relu"), node("Shape", {"a"}, {"sh"}, "shape"),
                node("Reshape", {"a", "sh"}, {"y"}, "reshape")},
               {value("x", {"n", "2"})},
               {value("y", {})},
               {}};
  FusedOnnx f = fuse(ModelParts{g.build()}.build(), {{"k0", {"relu", "reshape"}, "", 0}});
  onnx::Model m = onnx::parse_model(f.bytes);
  EXPECT_THAT(f.warnings, IsEmpty());
  EXPECT_EQ(m.functions.at(0).nodes.size(), 3u);
  EXPECT_EQ(m.graph->nodes.size(), 1u);
}

TEST(OnnxWrite, CyclesAreSplit) {
  GraphParts g{
      {node("Relu", {"x"}, {"a"}, "n0"), node("Exp", {"a"}, {"b"}, "n1"), node("Add", {"a", "b"}, {"y"}, "n2")},
      {value("x", {"2"})},
      {value("y", {})},
      {}};
  std::vector<FusedGroup> groups = {{"other", {"n1"}, "", 0}, {"k0", {"n0", "n2"}, "", 0}};
  FusedOnnx f = fuse(ModelParts{g.build()}.build(), groups);
  ASSERT_EQ(f.warnings.size(), 1u);
  EXPECT_THAT(f.warnings[0], HasSubstr("'k0' is written as 2 functions"));
  Graph back = read(f.bytes);
  EXPECT_EQ(names(back), names(read(g)));
  EXPECT_EQ(fused_groups(back)[1].nodes, groups[1].nodes);
  EXPECT_EQ(fuse(f.bytes, fused_groups(back)).bytes, f.bytes);
}

TEST(OnnxWrite, GroupsThatCrossEachOtherMakeNoCycle) {
  // a1 -> b1, b2 -> a2: each group alone is fine, both together would wait for each other
  GraphParts g{{node("Relu", {"x"}, {"a1"}, "a1"), node("Relu", {"z"}, {"b2"}, "b2"), node("Exp", {"a1"}, {"b1"}, "b1"),
                node("Exp", {"b2"}, {"a2"}, "a2")},
               {value("x", {"2"}), value("z", {"2"})},
               {value("a2", {}), value("b1", {})},
               {}};
  FusedOnnx f = fuse(ModelParts{g.build()}.build(), {{"a", {"a1", "a2"}, "", 0}, {"b", {"b1", "b2"}, "", 0}});
  EXPECT_EQ(f.warnings.size(), 1u);
  EXPECT_EQ(names(read(f.bytes)), names(read(g)));
}

TEST(OnnxWrite, ControlFlowStaysOutside) {
  GraphParts branch{{node("Neg", {"a"}, {"r"}, "neg")}, {}, {value("r", {})}, {}};
  GraphParts g{
      {node("Relu", {"x"}, {"a"}, "relu"), node("Exp", {"a"}, {"b"}, "exp"),
       node("If", {"c"}, {"y"}, "if", {attr_g("then_branch", branch.build()), attr_g("else_branch", branch.build())})},
      {value("x", {"2"}), value("c", {}, 9)},
      {value("y", {}), value("b", {})},
      {}};
  FusedOnnx f = fuse(ModelParts{g.build()}.build(), {{"k", {"relu", "exp", "if"}, "", 0}});
  EXPECT_THAT(f.warnings, ElementsAre(HasSubstr("'if' holds a subgraph")));
  onnx::Model m = onnx::parse_model(f.bytes);
  EXPECT_THAT(m.graph->nodes.at(0).outputs, ElementsAre("a", "b"));  // a: the branches read it
}

TEST(OnnxWrite, NamesThatAreTaken) {
  GraphParts g{
      {node("Relu", {"x"}, {"a"}, "k0"), node("Exp", {"a"}, {"y"}, "exp")}, {value("x", {"2"})}, {value("y", {})}, {}};
  FusedOnnx f = fuse(ModelParts{g.build()}.build(), {{"k0", {"k0"}, "", 0}, {"k0", {"exp"}, "", 0}});
  onnx::Model m = onnx::parse_model(f.bytes);
  EXPECT_EQ(m.functions.at(0).name, "k0");
  EXPECT_EQ(m.functions.at(1).name, "k0_2");
  EXPECT_EQ(names(read(f.bytes)), names(read(g)));
}

TEST(OnnxWrite, ExternalDataMovesAlong) {
  namespace fs = std::filesystem;
  fs::path root = fs::path(testing::TempDir()) / ("gaf_write_" + std::to_string(::getpid()));
  fs::create_directories(root / "new");
  float w[] = {1, 2, 3, 4};
  std::ofstream(root / "w.bin").write(reinterpret_cast<char*>(w), sizeof w);
  GraphParts g = chain();
  g.initializers[0] =
      Msg().num(1, 2).num(1, 2).num(2, 1).str(8, "w").num(14, 1).msg(13, Msg().str(1, "location").str(2, "w.bin"));
  std::string model = ModelParts{g.build()}.build();
  std::vector<FusedGroup> groups = {{"k0", {"mm", "Add_1"}, "", 0}};
  FusedOnnx inside = write_fused_onnx(bytes(model), root.string(), groups, {});
  EXPECT_TRUE(inside.data.empty());
  EXPECT_EQ(constant(read(inside.bytes), {1, 0})->get(3), 4.0);
  FusedOnnx outside = write_fused_onnx(bytes(model), root.string(), groups, {}, "m.data", 100);
  ASSERT_FALSE(outside.data.empty());
  std::ofstream data(root / "new" / "m.data");
  for (const FileBytes& p : outside.data) data << p.bytes;
  data.close();
  Graph back = read_onnx(bytes(outside.bytes), (root / "new").string());
  EXPECT_EQ(constant(back, {1, 0})->get(3), 4.0);
  save_fused_onnx((root / "new" / "f.onnx").string(), bytes(model), root.string(), groups, {});
  EXPECT_EQ(constant(read_onnx((root / "new" / "f.onnx").string()), {1, 0})->get(3), 4.0);
  fs::remove_all(root);
}

TEST(OnnxGrouping, PiecesAreConvexAndOrdered) {
  // 0 -> 1 -> 2 -> 3, 0 -> 3: {0,3} needs 1 and 2, and 2 may not be taken
  onnx::Grouping g({{}, {0}, {1}, {0, 2}}, {false, false, true, false});
  onnx::Pieces p = g.split({{0, 3}});
  EXPECT_THAT(p.nodes, ElementsAre(ElementsAre(0), ElementsAre(3)));
  EXPECT_THAT(g.order(p), ElementsAre(4, 1, 2, 5));
}

}  // namespace
}  // namespace gaf::test
