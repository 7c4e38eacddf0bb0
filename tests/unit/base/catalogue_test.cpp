// The error catalogue is complete and the nearest-name search suggests what a person meant.
#include "base/catalogue.h"

#include <gtest/gtest.h>

#include <set>

namespace gaf {
namespace {

TEST(Catalogue, RowsAreUniqueAndFull) {
  std::set<std::string_view> seen;
  for (const CatalogueRow& r : catalogue()) {
    SCOPED_TRACE(std::string(r.code));
    EXPECT_TRUE(seen.insert(r.code).second);
    EXPECT_EQ(r.code.size(), 7u);
    for (std::string_view s : {r.type, r.title, r.example, r.cause, r.remedy}) EXPECT_FALSE(s.empty());
  }
}

TEST(Catalogue, ExitCodesFollowTheFamilies) {
  EXPECT_EQ(exit_code("GAF1101"), 2);
  EXPECT_EQ(exit_code("GAF3105"), 3);
  EXPECT_EQ(exit_code("GAF4001"), 4);
  EXPECT_EQ(exit_code("GAF4009"), 2);
  EXPECT_EQ(exit_code("GAF7003"), 1);
  EXPECT_EQ(exit_code("GAF0000"), 70);
}

TEST(Catalogue, FillsInCauseAndRemedy) {
  ErrorInfo e = with_catalogue(ErrorInfo{.code = "GAF3105", .message = "m", .remedy = "own"});
  EXPECT_FALSE(e.cause.empty());
  EXPECT_EQ(e.remedy, "own");
}

TEST(Nearest, FindsSlipsAndNothingElse) {
  std::vector<std::string> names = {"strategy", "max_fusion_depth", "level", "x"};
  EXPECT_EQ(nearest("stratgy", names), "strategy");
  EXPECT_EQ(nearest("MaxFusionDepht", names), "max_fusion_depth");
  EXPECT_EQ(nearest("X", names), "x");
  EXPECT_EQ(nearest("banana", names), "");
  EXPECT_EQ(did_you_mean("levle", names, "--"), " (did you mean '--level'?)");
  EXPECT_EQ(nearest(std::string(100000, 'a'), names), "");
}

}  // namespace
}  // namespace gaf
