// JSON values: order of keys, numbers as documents show them, and errors with lines for anything that is not JSON.
#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace gaf {
namespace {

TEST(Json, PrintsInTheOrderItWasBuilt) {
  Json j = Json::object({{"schema", "gaf.run/1"}, {"kernels", 3}});
  j.set("latency_us", 41.2).set("outputs", Json::array({Json::object({{"name", "y"}, {"min", 0.0}})})).set("kernels", 4);
  EXPECT_EQ(j.dump(), R"({"schema":"gaf.run/1","kernels":4,"latency_us":41.2,"outputs":[{"name":"y","min":0.0}]})");
}

TEST(Json, NumbersThatAreNotFiniteAreNull) { EXPECT_EQ(Json::array({NAN, INFINITY, 1.5, true}).dump(), "[null,null,1.5,true]"); }

TEST(Json, ValuesKnowTheirLine) {
  Json j = parse_json("{\n \"a\": 1,\n \"b\": [true,\n 2\n],\n \"c\": {\"d\": null}}", "f.json", "GAF2201");
  EXPECT_EQ(j["a"].line(), 2);
  EXPECT_EQ(j["b"].line(), 3);
  EXPECT_EQ(j["b"].items()[1].line(), 4);
  EXPECT_EQ(j["c"]["d"].line(), 6);
  EXPECT_TRUE(j["none"].is_null());
}

TEST(Json, RoundTrips) {
  std::string text = R"({"a":[1,-2,0.1,1e+300],"b":"\"\\\n\u0001é","c":{},"d":[]})";
  EXPECT_EQ(parse_json(text, "", "GAF2201").dump(), text);
}

TEST(Json, BadTextIsAnErrorWithALine) {
  for (std::string text : {"", "{", "[1,]", "{\"a\":1\n,\"a\":2}", "nul", "\"\xff\"", "[1] 2"}) {
    SCOPED_TRACE(text);
    try {
      parse_json(text, "f.json", "GAF2201");
      ADD_FAILURE() << "no error";
    } catch (const UserError& e) {
      EXPECT_EQ(e.info().code, "GAF2201");
      EXPECT_EQ(e.info().file, "f.json");
      EXPECT_GE(e.info().line, 1);
    }
  }
  EXPECT_THROW(parse_json(std::string(100000, '['), "", "GAF2201"), UserError);
}

TEST(Json, AskingForAnotherKindIsOurBug) { EXPECT_THROW(Json("x").number(), InternalError); }

}  // namespace
}  // namespace gaf
