// Reading ONNX: what names, constants, optional operands, sizes, subgraphs and functions become.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "onnx_bytes.h"

namespace gaf::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string code_of(const std::string& model, const ReadOptions& o = {}, std::string* what = nullptr) {
  try {
    read(model, o);
  } catch (const UserError& e) {
    if (what) *what = e.what();
    return e.info().code;
  }
  return "accepted";
}
std::string code_of(const GraphParts& g, const ReadOptions& o = {}, std::string* what = nullptr) {
  return code_of(ModelParts{g.build()}.build(), o, what);
}

Names ops(const Graph& g) {
  Names out;
  for (const Node& n : g.nodes) out.push_back(n.op);
  return out;
}

GraphParts linear() {
  return {{node("MatMul", {"x", "w"}, {"t"}, "mm0"), node("Add", {"t", "b"}, {"y"})},
          {value("x", {"batch", "2"})},
          {value("y", {"7"})},
          {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}), floats("b", {3}, {1, 1, 1})}};
}

TEST(OnnxRead, NamesConstantsAndSizes) {
  Graph g = read(linear());
  EXPECT_EQ(print_graph(g), R"(graph @g(size batch, %0 "x": f32[batch,2]) -> (%4 "y") {
  %1 = constant {value=[1.0,2.0,3.0,4.0,5.0,6.0]} : f32[2,3]  # "w"
  %2 = MatMul(%0, %1) : f32[]  # "mm0"
  %3 = constant {value=[1.0,1.0,1.0]} : f32[3]  # "b"
  %4 = Add(%2, %3) : f32[]  # "Add_1"
}
)");
  EXPECT_TRUE(verify_graph(g).empty());
}

TEST(OnnxRead, WeightsShareTheBytesWhereAligned) {
  for (size_t shift = 0; shift < 4; shift++) {
    GraphParts parts = linear();
    parts.name += std::string(shift, 'x');
    FileBytes file = bytes(ModelParts{parts.build()}.build());
    Graph g = read_onnx(file, "");
    const char* p = constant(g, {1, 0})->as<char>();
    bool shared = p >= file.bytes.data() && p < file.bytes.data() + file.bytes.size();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 4, 0u);
    if (shared) {
      g = {};
      return;
    }
  }
  ADD_FAILURE() << "no alignment of the file made the reader share the weights";
}

TEST(OnnxRead, InitializersListedAsInputs) {
  GraphParts parts = linear();
  parts.inputs.push_back(value("w", {"2", "3"}));
  EXPECT_EQ(read(parts).num_inputs(), 1u);
  ReadOptions o;
  o.overridden = {"w"};
  Graph g = read(parts, o);
  EXPECT_EQ(g.num_inputs(), 2u);
  EXPECT_EQ(g.nodes[1].name, "w");
}

TEST(OnnxRead, EveryFormOfConstant) {
  Msg sparse = Msg().str(1, "sparse_value").num(20, 11);
  GraphParts parts{{node("Constant", {}, {"a"}, "ca", {attr_f("value_float", 0.5f)}),
                    node("Constant", {}, {"b"}, "cb", {attr_i("value_int", 3)}),
                    node("Constant", {}, {"c"}, "cc", {attr("value_ints", 7, Msg().num(8, 4).num(8, 5))}),
                    node("Constant", {}, {"d"}, "cd", {attr("value_floats", 6, Msg().flt(7, 1).flt(7, 2))}),
                    node("Constant", {}, {"e"}, "ce", {attr_t("value", ints("", {1}, {9}))}),
                    node("Constant", {}, {"s"}, "cs", {attr_s("value_string", "unused")}),
                    node("Constant", {}, {"p"}, "cp", {sparse}), node("Identity", {"d"}, {"d2"}, "alias"),
                    node("Foo", {"a", "b", "c", "d2", "e"}, {"y"})},
                   {},
                   {value("y", {})},
                   {}};
  Graph g = read(parts);
  EXPECT_THAT(ops(g), ElementsAre("constant", "Identity", "constant", "constant", "constant", "constant", "Foo"));
  const Node& foo = g.nodes.back();
  EXPECT_TRUE(g.type(foo.args[0]) == (Type{DType::f32, {}}));
  EXPECT_TRUE(g.type(foo.args[1]) == (Type{DType::i64, {}}));
  EXPECT_EQ(constant(g, foo.args[2])->get_int(1), 5);
  EXPECT_EQ(constant(g, foo.args[3])->get(1), 2.0);
  EXPECT_EQ(constant(g, foo.args[4])->get_int(0), 9);
}

TEST(OnnxRead, UnsupportedConstantsFailOnlyWhenUsed) {
  std::string what;
  GraphParts parts{{node("Constant", {}, {"s"}, "cs", {attr_s("value_string", "x")}), node("Relu", {"s"}, {"y"}, "r")},
                   {},
                   {value("y", {})},
                   {}};
  EXPECT_EQ(code_of(parts, {}, &what), "GAF4002");
  EXPECT_THAT(what, HasSubstr("'r' (Relu)"));
}

TEST(OnnxRead, TypedDataFields) {
  auto typed = [](const std::string& name, int type, const Msg& data) {
    Msg t = Msg().num(1, 2).num(2, type).str(8, name);
    t.bytes += data.bytes;
    return t;
  };
  auto packed = [](std::initializer_list<int64_t> v) {
    std::string s;
    for (int64_t x : v) protozero::add_varint_to_buffer(&s, static_cast<uint64_t>(x));
    return s;
  };
  GraphParts parts{{node("Foo", {"f", "h", "b", "i", "u", "d"}, {"y"})},
                   {},
                   {value("y", {})},
                   {typed("f", 1, Msg().flt(4, 0.5f).flt(4, -2)),
                    typed("h", 10, Msg().str(5, packed({0x3c00, 0xc000}))), typed("b", 9, Msg().num(5, 1).num(5, 0)),
                    typed("i", 3, Msg().str(5, packed({-1, 7}))), typed("u", 13, Msg().str(11, packed({1, -1}))),
                    typed("d", 11, Msg().str(10, std::string("\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40", 16)))}};
  Graph g = read(parts);
  const auto& args = g.nodes.back().args;
  auto at = [&](int k, int i) { return constant(g, args[k])->get(i); };
  EXPECT_EQ(at(0, 1), -2.0);
  EXPECT_EQ(at(1, 0), 1.0);
  EXPECT_EQ(at(1, 1), -2.0);
  EXPECT_EQ(at(2, 0), 1.0);
  EXPECT_EQ(at(3, 0), -1.0);
  EXPECT_EQ(static_cast<uint64_t>(constant(g, args[4])->get_int(1)), UINT64_MAX);
  EXPECT_EQ(at(5, 1), 2.0);
}

TEST(OnnxRead, OptionalOperandsAndResults) {
  GraphParts parts{{node("Clip", {"x", "", "hi"}, {"c"}), node("Foo", {"c", "", ""}, {"p", "", "q", ""})},
                   {value("x", {"2"}), value("hi", {})},
                   {value("q", {})},
                   {}};
  Graph g = read(parts);
  EXPECT_THAT(g.nodes[2].args, ElementsAre(Value{0, 0}, kNoValue, Value{1, 0}));
  EXPECT_EQ(g.nodes[3].args.size(), 1u);
  EXPECT_EQ(g.nodes[3].types.size(), 3u);
  EXPECT_EQ(g.outputs[0].value, (Value{3, 2}));
}

TEST(OnnxRead, AttributesGetPlainTypes) {
  GraphParts parts{{node("Foo", {"x"}, {"y"}, "",
                         {attr_i("i", -1), attr_f("f", 0.1f), attr_s("s", "abc"),
                          attr("is", 7, Msg().num(8, 1).num(8, 2)), attr("fs", 6, Msg().flt(7, 0.5f)),
                          attr("ss", 8, Msg().str(9, "u").str(9, "v")), attr_t("t", floats("", {2}, {1, 2}))})},
                   {value("x", {"2"})},
                   {value("y", {})},
                   {}};
  Graph g = read(parts);
  EXPECT_THAT(print_graph(g),
              HasSubstr("Foo(%0) {f=0.1, fs=[0.5], i=-1, is=[1,2], s=\"abc\", ss=[\"u\",\"v\"], t=f32[2]:[1.0,2.0]}"));
}

TEST(OnnxRead, SizesByNameAndWithoutName) {
  GraphParts parts{{node("Foo", {"a", "b.0"}, {"y"})},
                   {value("a", {"batch size", "", "-1", "4"}), value("b.0", {"batch size", "?", "batch_size"})},
                   {value("y", {})},
                   {}};
  Graph g = read(parts);
  EXPECT_EQ(print_type(g.nodes[0].types[0], g), "f32[batch_size,a_d1,a_d2,4]");
  EXPECT_EQ(print_type(g.nodes[1].types[0], g), "f32[batch_size,b_0_d1,batch_size_2]");
}

TEST(OnnxRead, ShapesAndDimsGiven) {
  GraphParts parts{
      {node("Foo", {"a", "b"}, {"y"})}, {value("a", {"n", ""}), value("b", {"n", "4"})}, {value("y", {})}, {}};
  auto types = [&](const ReadOptions& o) {
    Graph g = read(parts, o);
    return print_type(g.nodes[0].types[0], g) + print_type(g.nodes[1].types[0], g);
  };
  EXPECT_EQ(types({.shapes = {{"a", {3, -1}}}}), "f32[3,a_d1]f32[3,4]");
  EXPECT_EQ(types({.dims = {{"n", 5}, {"a_d1", 2}}}), "f32[5,2]f32[5,4]");
  std::string what;
  EXPECT_EQ(code_of(parts, {.shapes = {{"b", {3, 5}}}}, &what), "GAF3102");
  EXPECT_THAT(what, HasSubstr("expected float32 [n,4], got [3,5]"));
  EXPECT_EQ(code_of(parts, {.shapes = {{"A", {3, 5}}}}, &what), "GAF3104");
  EXPECT_THAT(what, HasSubstr("did you mean 'a'"));
  EXPECT_EQ(code_of(parts, {.dims = {{"m", 3}}}), "GAF3104");
  EXPECT_EQ(code_of(parts, {.shapes = {{"a", {3, 1}}, {"b", {2, 4}}}}), "GAF3102");
}

TEST(OnnxRead, UnsortedNodesAreSortedCyclesAreNamed) {
  GraphParts parts{{node("Neg", {"b"}, {"c"}, "n3"), node("Relu", {"x"}, {"a"}, "n1"), node("Abs", {"a"}, {"b"}, "n2")},
                   {value("x", {"2"})},
                   {value("c", {})},
                   {}};
  EXPECT_THAT(ops(read(parts)), ElementsAre("input", "Relu", "Abs", "Neg"));
  parts.nodes[1] = node("Add", {"x", "b"}, {"a"}, "n1");
  std::string what;
  EXPECT_EQ(code_of(parts, {}, &what), "GAF3003");
  EXPECT_THAT(what, HasSubstr("'n1', 'n2'"));
}

TEST(OnnxRead, NamesThatAreMissingTwiceOrNowhere) {
  GraphParts parts = linear();
  parts.nodes[0] = node("MatMul", {"x", "v"}, {"t"}, "mm0");
  std::string what;
  EXPECT_EQ(code_of(parts, {}, &what), "GAF3002");
  EXPECT_THAT(what, HasSubstr("node 'mm0' (MatMul): input 'v' is defined nowhere"));
  parts = linear();
  parts.outputs.push_back(value("z", {}));
  EXPECT_EQ(code_of(parts), "GAF3002");
  parts = linear();
  parts.nodes.push_back(node("Relu", {"x"}, {"t"}, "again"));
  EXPECT_EQ(code_of(parts, {}, &what), "GAF3002");
  EXPECT_THAT(what, HasSubstr("again"));
  parts = linear();
  parts.nodes.push_back(node("Relu", {"x"}, {"w"}, "onto_weight"));
  EXPECT_EQ(code_of(parts), "GAF3002");
  parts = linear();
  parts.initializers.push_back(parts.initializers[0]);
  EXPECT_EQ(code_of(parts), "GAF3002");
}

TEST(OnnxRead, NodeNamesAreUnique) {
  GraphParts parts{{node("Relu", {"x"}, {"a"}, "r"), node("Relu", {"a"}, {"b"}, "r"), node("Relu", {"b"}, {"c"}),
                    node("Relu", {"c"}, {"d"}, "Relu_2")},
                   {value("x", {"2"})},
                   {value("d", {})},
                   {}};
  Graph g = read(parts);
  EXPECT_EQ(g.nodes[1].name, "r");
  EXPECT_EQ(g.nodes[2].name, "r_2");
  EXPECT_EQ(g.nodes[3].name, "Relu_2_2");
  EXPECT_EQ(g.nodes[4].name, "Relu_2");
}

TEST(OnnxRead, VersionsAndDomains) {
  ModelParts m{linear().build()};
  m.opsets = {opset(99)};
  EXPECT_EQ(code_of(m.build()), "GAF3006");
  m.opsets = {opset(6)};
  EXPECT_EQ(code_of(m.build()), "GAF3006");
  m.opsets = {};
  EXPECT_EQ(code_of(m.build()), "GAF3006");
  m.opsets = {opset(13), opset(14)};
  EXPECT_EQ(code_of(m.build()), "GAF3007");
  m.opsets = {opset(13), opset(13, "ai.onnx"), opset(1, "my.ops")};
  EXPECT_EQ(read(m.build()).opset, 13);
  m.ir = 2;
  EXPECT_EQ(code_of(m.build()), "GAF3001");
  m.ir = 1000;
  std::vector<std::string> warnings;
  read(m.build(), {}, &warnings);
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(OnnxRead, ForeignDomainsStayVisible) {
  GraphParts parts{{node("Foo", {"x"}, {"a"}, "", {}, "my.ops"), node("call", {"a"}, {"y"})},
                   {value("x", {"2"})},
                   {value("y", {})},
                   {}};
  EXPECT_THAT(ops(read(parts)), ElementsAre("input", "my.ops::Foo", "ai.onnx::call"));
}

TEST(OnnxRead, BranchesCaptureValuesAndCopyConstants) {
  GraphParts then_branch{{node("Add", {"t", "w"}, {"r"}, "add")}, {}, {value("r", {})}, {}};
  GraphParts else_branch{
      {node("Mul", {"x", "local"}, {"r"}, "mul")}, {}, {value("r", {})}, {floats("local", {1}, {2})}};
  GraphParts parts{{node("Exp", {"x"}, {"t"}, "exp"),
                    node("If", {"c"}, {"y"}, "if",
                         {attr_g("else_branch", else_branch.build()), attr_g("then_branch", then_branch.build())})},
                   {value("x", {"1"}), value("c", {}, 9)},
                   {value("y", {})},
                   {floats("w", {1}, {3})}};
  Graph g = read(parts);
  EXPECT_EQ(print_graph(g), R"(graph @g(%0 "x": f32[1], %1 "c": b1[]) -> (%3 "y") {
  %2 = Exp(%0) : f32[]  # "exp"
  %3 = If(%1, %2, %0) {captures=2} : f32[]  # "if"
    region @then_branch(%0 "t": f32[], %1 "x": f32[1]) -> (%3 "r") {
      %2 = constant {value=[3.0]} : f32[1]  # "w"
      %3 = Add(%0, %2) : f32[]  # "add"
    }
    region @else_branch(%0 "t": f32[], %1 "x": f32[1]) -> (%3 "r") {
      %2 = constant {value=[2.0]} : f32[1]  # "local"
      %3 = Mul(%1, %2) : f32[]  # "mul"
    }
}
)");
  EXPECT_TRUE(verify_graph(g).empty());
}

TEST(OnnxRead, LoopPassesItsOperandsAndCaptures) {
  GraphParts body{{node("Add", {"v", "x"}, {"v2"}, "add"), node("Identity", {"go"}, {"go2"}, "id")},
                  {value("i", {}, 7), value("go", {}, 9), value("v", {})},
                  {value("go2", {}), value("v2", {})},
                  {}};
  GraphParts parts{{node("Loop", {"n", "", "x"}, {"y"}, "loop", {attr_g("body", body.build())})},
                   {value("n", {}, 7), value("x", {"4"})},
                   {value("y", {})},
                   {}};
  Graph g = read(parts);
  const Node& loop = g.nodes.back();
  EXPECT_THAT(loop.args, ElementsAre(Value{0, 0}, kNoValue, Value{1, 0}, Value{1, 0}));
  EXPECT_EQ(attr_int(loop, "captures", -1), 1);
  EXPECT_EQ(loop.regions[0]->num_inputs(), 4u);
  EXPECT_TRUE(verify_graph(g).empty());
}

TEST(OnnxRead, FunctionsAreInlined) {
  Msg f = Msg().str(1, "Scale").str(4, "a").str(4, "opt").str(5, "out").str(6, "by");
  f.msg(7, node("Constant", {}, {"k"}, "k", {attr_ref("value_float", "by", 1)}));
  f.msg(7, node("Mul", {"a", "k"}, {"m"}, "mul"));
  f.msg(7, node("Clip", {"m", "opt"}, {"out"}, "clip"));
  f.msg(9, opset(17)).str(10, "my.ops").msg(11, attr_f("alpha", 2));
  GraphParts parts{
      {node("Scale", {"x"}, {"y"}, "s1", {attr_f("by", 0.5f)}, "my.ops")}, {value("x", {"2"})}, {value("y", {})}, {}};
  ModelParts m{parts.build()};
  m.opsets.push_back(opset(1, "my.ops"));
  m.functions = {f};
  Graph g = read(m.build());
  EXPECT_EQ(print_graph(g), R"(graph @g(%0 "x": f32[2]) -> (%3 "y") {
  %1 = constant {value=[0.5]} : f32[]  # "k"
  %2 = Mul(%0, %1) : f32[]  # "s1/mul"
  %3 = Clip(%2) : f32[]  # "s1/clip"
}
)");
}

}  // namespace
}  // namespace gaf::test
