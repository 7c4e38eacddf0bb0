// .gaf files: a graph with its weights, saved and loaded, is the same graph; text alone loads too; damage is refused.
#include "frontend/gaf_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace gaf {
namespace {

class GafText : public testing::Test {
 protected:
  std::string path_ =
      (std::filesystem::path(testing::TempDir()) / ("gaf_text_" + std::to_string(::getpid()) + ".gaf")).string();
  void TearDown() override { std::filesystem::remove(path_); }
};

Graph with_weights() {
  Graph g = parse_graph(R"(opset 13
kernel @k0(%0: f32[n,40]) -> (%2) {
  %1 = constant #0000000000000001 : f32[40]
  %2 = Mul(%0, %1) : f32[n,40]
}
graph @g(size n, %0 "x": f32[n,40]) -> (%3 "y") {
  %1 = constant #0000000000000002 : f16[17]
  %2 = Foo(%0, %1) {table=i8[3]:[1,2,-3]} : f32[n,40]
  %3 = call @k0(%2) : f32[n,40]
}
)");
  auto real = [](Node& n) {  // a tensor as a model has it, not one made up for a hash
    n.attrs.erase("hash");
  };
  real(g.kernels[0].nodes[1]);
  real(g.nodes[1]);
  return g;
}

TEST_F(GafText, SavedGraphIsWhole) {
  Graph g = with_weights();
  write_gaf_text(g, path_);
  Graph back = read_gaf_text(path_);
  EXPECT_EQ(print_graph(back), print_graph(g));
  EXPECT_TRUE(constant(back, {1, 0})->equal(*constant(g, {1, 0})));
  EXPECT_TRUE(constant(back.kernels[0], {1, 0})->equal(*constant(g.kernels[0], {1, 0})));
  EXPECT_TRUE(attr_tensor(back.nodes[2], "table")->equal(*attr_tensor(g.nodes[2], "table")));
  EXPECT_EQ(back.nodes[1].attrs.count("hash"), 0u);
  std::string first = read_file(path_);
  write_gaf_text(back, path_);
  EXPECT_EQ(read_file(path_), first);
}

TEST_F(GafText, DataIsAlignedForTheMap) {
  write_gaf_text(with_weights(), path_);
  Graph back = read_gaf_text(path_);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(constant(back.kernels[0], {1, 0})->data.get()) % 64, 0u);
}

TEST_F(GafText, TextAloneIsAFile) {
  Graph g = with_weights();
  write_file(path_, print_graph(g));
  EXPECT_EQ(print_graph(read_gaf_text(path_)), print_graph(g));
}

TEST_F(GafText, DamageIsRefused) {
  write_gaf_text(with_weights(), path_);
  std::string whole = read_file(path_);
  size_t mark = whole.find("---- constants\n");
  ASSERT_NE(mark, whole.npos);
  for (size_t n = mark + 16; n + 1 < whole.size(); n += 7) {  // the end of the last line may be missing, no more
    write_file(path_, whole.substr(0, n));
    try {
      read_gaf_text(path_);
      bool between = whole[n - 1] == '\n' || whole[n] == '\n';
      EXPECT_TRUE(between) << n;
    } catch (const UserError& e) {
      EXPECT_EQ(e.info().code, "GAF3001");
      EXPECT_EQ(e.info().file, path_);
    }
  }
  std::string other = whole;
  size_t size = other.find(" 160", mark);
  ASSERT_NE(size, other.npos);
  other.replace(size, 4, " 156");
  write_file(path_, other);
  EXPECT_THROW(read_gaf_text(path_), UserError);
}

TEST(BindSizes, ShapesAndDimsBecomeNumbers) {
  Graph g = parse_graph(R"(graph @g(size n, size m, %0 "x": f32[n,m]) -> (%1 "y") {
  %1 = Foo(%0) {shape=(n*2,m)} : f32[n*2,m]
}
)");
  EXPECT_EQ(print_graph(bind_sizes(g, {.dims = {{"n", 3}}})), R"(graph @g(size m, %0 "x": f32[3,m]) -> (%1 "y") {
  %1 = Foo(%0) {shape=(6,m)} : f32[6,m]
}
)");
  EXPECT_EQ(print_type(bind_sizes(g, {.shapes = {{"x", {-1, 4}}}}).nodes[1].types[0], g), "f32[n*2,4]");
  EXPECT_THROW(bind_sizes(g, {.dims = {{"k", 3}}}), UserError);
  EXPECT_THROW(bind_sizes(g, {.shapes = {{"x", {1}}}}), UserError);
  EXPECT_THROW(bind_sizes(g, {.shapes = {{"x", {2, 4}}}, .dims = {{"n", 3}}}), UserError);
}

}  // namespace
}  // namespace gaf
