// The static checker of NPU texts: for every rule a text that trips it, with the line and the words of the message, and
// the finished kernels that trip none. check.h numbers the rules.
#include <random>

#include "unit/codegen/npu_texts.h"
#include "unit/ir/kernel_texts.h"

namespace gaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Broken {
  std::string from, to;   // exchanged in the base text
  std::string statement;  // of the finding
  std::string message;
  bool unsupported = false;
};

// Each exchange gives at least one finding, and the first that names the statement says what is wrong.
void expect_found(const std::string& base, const std::vector<Broken>& cases, NpuLanguage l = NpuLanguage::ascendc,
                  const std::string& target = "ascend910b1") {
  const Target t = load_target(target);
  for (const Broken& c : cases) {
    const std::string text = with(base, c.from, c.to);
    SCOPED_TRACE(c.to + "\n" + text);
    bool found = false;
    for (const NpuProblem& p : check_npu(kir::parse_kernel(text), t, l)) {
      if (p.statement.find(c.statement) == std::string::npos || p.text.find(c.message) == std::string::npos) continue;
      EXPECT_EQ(p.unsupported, c.unsupported) << p.text;
      EXPECT_GT(p.line, 0);
      found = true;
    }
    if (found) continue;
    std::string all;
    for (const NpuProblem& p : check_npu(kir::parse_kernel(text), t, l)) all += p.statement + ": " + p.text + "\n";
    ADD_FAILURE() << "not found: " << c.message << "; found:\n" << all;
  }
}

TEST(NpuCheck, FinishedKernelsPass) {
  const Target t = load_target("ascend910b1");
  for (NpuLanguage l : {NpuLanguage::ascendc, NpuLanguage::pto, NpuLanguage::pto_text}) {
    EXPECT_TRUE(check_npu(finished(kNpuSoftmax), t, l).empty());
    EXPECT_TRUE(check_npu(finished(kNpuMatMul), t, l).empty());
    EXPECT_TRUE(check_npu(kir::parse_kernel(kNpuExp), t, l).empty());
  }
}

TEST(NpuCheck, TheErrorNamesStatementAndLine) {
  try {
    emit_npu(kir::parse_kernel(with(kNpuExp, "@ub+4096", "@ub+4100")), load_target("ascend910b1"),
             NpuLanguage::ascendc);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF5004");
    EXPECT_EQ(e.info().message,
              "kernel e, line 8: `tile y: f32[8, 64] @ub+4100 ring 2`: offset 4100 is no multiple of 32 bytes");
  }
  try {
    emit_npu(kir::parse_kernel(with(kNpuExp, "y = exp(x)", "y = tanh(x)")), load_target("ascend910b1"),
             NpuLanguage::pto);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF4002");
    EXPECT_THAT(e.info().message, HasSubstr("line 14: `y = tanh(x)`"));
  }
}

TEST(NpuCheck, Target) {
  expect_found(kNpuExp, {{"kernel @e", "kernel @half", "set v mte2 0", "the name half", true}});
  expect_found(kNpuExp, {{"(in %0", "(size N in 1..9, in %0", "set v mte2 0", "sizes must be known", true}});
  expect_found(kNpuExp, {{"tile y: f32[8, 64] @ub+4096", "tile y: f32[16, 64] @l0c+0", "tile y",
                          "the cube's and the vector unit's", true}});
  expect_found(kNpuExp, {{"kernel @e", "kernel @e2", "set v mte2 0", "has no pipes", true}}, NpuLanguage::ascendc,
               "x86-64-avx2");
}

TEST(NpuCheck, Statements) {
  expect_found(kNpuExp, {
                            {"y = exp(x)", "y = iota(0, i)", "iota", "no such statement", true},
                            {"y = exp(x)", "y[0:8, 0:32] = exp(x[0:8, 0:32])", "exp", "a part of tile y", true},
                            {"y = exp(x)", "y = tanh(x)", "tanh", "tanh of one tile", true},
                            {"y = exp(x)", "y = sub(1, x)", "sub", "sub with these operands", true},
                            {"y = exp(x)", "y = div(x, 3)", "div", "div with these operands", true},
                            {"y = exp(x)", "y = add(x, inf)", "add", "add with these operands", true},
                            {"y = exp(x)", "y = fma(x, x, x)", "fma", "fma with these operands", true},
                            {"copy x = %0[i*8:8, 0:64]", "copy x = %0[i*8:8, 0:64] else 0", "copy x", "`else`", true},
                            {"copy x = %0[i*8:8, 0:64]", "copy x = %0[0:64, i*8:8]^T", "copy x", "^T", true},
                            {"copy x = %0[i*8:8, 0:64]", "copy x = %0[i*8:8, 0:32:2]", "copy x", "side by side", true},
                            {"copy x = %0[i*8:8, 0:64]", "copy x = y", "copy x", "a copy from ub to ub", true},
                            {"copy %1[i*8:8, 0:64] = y", "copy %1[i*8:8, 0:64] = y post relu", "copy %1",
                             "relu on this copy", true},
                            {"y = exp(x)", "y = exp(%0[i*8:8, 0:64])", "exp", "the vector unit reads ub only", true},
                            {"i*8:8, 0:64] = y", "(8 - i*3)/2:8, 0:64] = y", "copy %1", "may divide a negative number"},
                        });
}

TEST(NpuCheck, DtypesAndRows) {
  expect_found(kNpuExp, {
                            {"tile y: f32[8, 64]", "tile y: f16[8, 64]", "y = exp(x)", "x is f32 and the result f16"},
                            {"tile y: f32[8, 64]", "tile y: f32[8, 72]", "y = exp(x)",
                             "rows of x have 64 elements, those of y 72"},
                        });
  const std::string bf16 = with(with(with(kNpuExp, "x: f32", "x: bf16"), "y: f32", "y: bf16"), "%0: f32", "%0: bf16");
  expect_found(bf16, {{"out %1: f32", "out %1: bf16", "y = exp(x)", "does not compute this in bf16"}});
  const std::string halves = with(with(kNpuExp, "x: f32", "x: f16"), "%0: f32", "%0: f16");
  expect_found(halves, {{"y = exp(x)", "y = bitcast(x)", "bitcast", "bitcast of one tile", true}});
  const std::string ints = with(with(with(with(kNpuExp, "x: f32", "x: i32"), "y: f32", "y: i32"), "%0: f32", "%0: i32"),
                                "%1: f32", "%1: i32");
  expect_found(ints, {{"y = exp(x)", "y = exp(x)", "y = exp(x)", "does not compute this in i32"}});
  EXPECT_TRUE(check_npu(kir::parse_kernel(with(ints, "y = exp(x)", "y = add(x, x)")), load_target("ascend910b1"),
                        NpuLanguage::ascendc)
                  .empty());
}

// A row reduction and a column operand, finished by hand; w is scratch.
const std::string kColumn =
    with(with(kNpuExp, "    wait v mte2 i%2\n    copy x",
              "    tile w: f32[8, 64] @ub+8192\n    tile m: f32[8, 1] @ub+10240\n    wait v mte2 i%2\n    copy x"),
         "y = exp(x)", "fence v\n    m = reduce(max, 1, x) tmp w\n    fence v\n    y = sub(x, m) tmp w");

TEST(NpuCheck, ReductionsAndColumns) {
  EXPECT_TRUE(check_npu(kir::parse_kernel(kColumn), load_target("ascend910b1"), NpuLanguage::ascendc).empty());
  expect_found(
      kColumn,
      {
          {"x) tmp w", "x)", "reduce", "a reduction needs a tmp tile"},
          {"sub(x, m) tmp w", "sub(x, m)", "sub", "a column operand needs a tmp tile"},
          {"sub(x, m) tmp w", "sub(m, x) tmp w", "sub", "sub with these operands", true},
          {"reduce(max, 1, x)", "reduce(max, 0, x)", "reduce", "a reduction over rows", true},
          {"reduce(max, 1, x)", "reduce(mul, 1, x)", "reduce", "a reduction by mul", true},
          {"m = reduce(max, 1, x)", "y = reduce(max, 1, x)", "reduce", "does not end in a packed column", true},
          {"tile w: f32[8, 64]", "tile w: f32[4, 64]", "reduce", "tmp w needs 2048 bytes"},
          {"tile w: f32[8, 64]", "tile w: f16[8, 128]", "reduce", "must be a ub tile of f32"},
          {"tile w: f32[8, 64]", "tile w: f32[16, 32]", "reduce", "rows like x"},
          {"tile m: f32[8, 1]", "tile m: f32[1, 1]", "sub", "one value for all rows", true},
          {"copy %1[i*8:8, 0:64] = y", "copy %1[i*8:8, 0:1] = m", "copy %1", "from a packed column", true},
      });
  // PTO's instruction has no scratch for a column
  EXPECT_TRUE(check_npu(kir::parse_kernel(with(kColumn, "sub(x, m) tmp w", "sub(x, m)")), load_target("ascend910b1"),
                        NpuLanguage::pto)
                  .empty());
}

TEST(NpuCheck, Memory) {
  expect_found(kNpuExp, {
                            {" @ub+4096", " @ub", "tile y", "no offset"},
                            {"@ub+4096", "@ub+4112", "tile y", "offset 4112 is no multiple of 32 bytes"},
                            {"@ub+4096", "@ub+186368", "tile y", "ends at byte 190464 of ub, which has 188416"},
                            {"@ub+4096", "@ub+4064", "tile y", "shares bytes with tile x"},
                            {"@ub+4096 ring 2", "@ub+2048", "tile y", "shares bytes with tile x"},
                            {"tile y: f32[8, 64]", "tile y: f32[8, 60]", "tile y", "not whole blocks of 32 bytes"},
                            {"@ub+4096", "@scratch+4096", "tile y", "no memory of ascend910b1", true},
                        });
}

TEST(NpuCheck, Fractals) {
  const std::string mm = kir::print_kernel(finished(kNpuMatMul));
  expect_found(mm, {
                       {"tile a1: f16[32, 32]", "tile a1: f16[20, 32]", "tile a1", "not whole fractals of 16 by 16"},
                       {"tile b0: f16[32, 32]", "tile b0: f16[32, 24]", "tile b0", "not whole fractals of 16 by 16"},
                       {"tile c: f32[32, 32]", "tile c: f32[32, 40]", "tile c", "not whole fractals of 16 by 16"},
                       {"tile bt: f32[1, 32]", "tile bt: f32[1, 40]", "tile bt", "one row of whole units of 64 bytes"},
                       {"tile bl: f16[1, 32]", "tile bl: f16[1, 40]", "tile bl", "one row of whole units of 32 bytes"},
                   });
}

TEST(NpuCheck, Cube) {
  const std::string mm = kir::print_kernel(finished(kNpuMatMul));
  expect_found(mm, {
                       {"c = mma(a0, b0, bt)", "c = mma(a1, b0, bt)", "mma", "the left operand must lie in l0a"},
                       {"c = mma(a0, b0, bt)", "c = mma(a0, b0, bl)", "mma", "the bias must lie in bt"},
                       {"tile bt: f32", "tile bt: f16", "copy bt", "a bias of f16 as f16", true},
                       {"copy b0 = b1", "copy b0 = a1", "copy", "an l1 tile that goes to two memories", true},
                       {"copy b0 = b1", "copy bt = b1", "copy bt = b1", "a bias is one row"},
                       {"= c post relu", "= bl", "copy %3", "a copy from l1 to gm", true},
                   });
  const std::string f32 = with(with(with(mm, "a1: f16", "a1: f32"), "a0: f16", "a0: f32"), "%0: f16", "%0: f32");
  expect_found(f32, {{"c += mma", "c += mma", "mma", "a product of f32 and f16 in f32", true}});
}

TEST(NpuCheck, Limits) {
  const std::string rows =
      with(with(kNpuExp, "f32[64, 64], out", "f32[40000, 8], out"), "out %1: f32[64, 64]", "out %1: f32[40000, 8]");
  const std::string tall = with(with(rows, "x: f32[8, 64] @ub+0 ring 2", "x: f32[4096, 8] @ub+0"),
                                "copy x = %0[i*8:8, 0:64]", "copy x = %0[i*8:4096, 0:8]");
  expect_found(tall, {{"y: f32[8, 64] @ub+4096 ring 2", "y: f32[8, 8] @ub+131072 ring 2", "copy x",
                       "rows 4096 is over the limit of 4095"}});
  const std::string mm = kir::print_kernel(finished(kNpuMatMul));
  expect_found(mm,
               {{"tile a1: f16[32, 32]", "tile a1: f16[16400, 16]", "tile a1", "ends at byte"},
                {"b0: f16[32, 32]", "b0: f16[16, 4112]", "copy b0", "fractals across 257 is over the limit of 255"}});
}

TEST(NpuCheck, PtoRowsFarApart) {
  const std::string far = kir::print_kernel(
      finished(with(with(with(kNpuMatMul, "%1: f16[70, 50]", "%1: f16[70, 70000]"), "%2: f16[50]", "%2: f16[70000]"),
                    "%3: f16[33, 50]", "%3: f16[33, 70000]")));
  expect_found(far, {{"kernel @mm", "kernel @mm1", "copy b1", "rows 70000 elements apart in memory", true}},
               NpuLanguage::pto);
  EXPECT_TRUE(
      check_npu(kir::parse_kernel(far), load_target("ascend910b1"), NpuLanguage::ascendc).empty());  // row by row
}

TEST(NpuCheck, PtoTilesHaveOneShape) {
  const std::string twice =
      with(kNpuExp, "    wait mte2 v i%2\n", "    wait mte2 v i%2\n    copy x = %0[i*8:4, 0:64]\n");
  expect_found(twice, {{"kernel @e", "kernel @e1", "tile x", "a PTO tile has one valid shape", true}},
               NpuLanguage::pto);
  expect_found(twice,
               {{"kernel @e", "kernel @e1", "copy %1", "the tile holds [4, 64] elements, the destination [8, 64]"}});
  const std::string inner = with(with(with(kNpuExp, "    copy x = %0[i*8:8, 0:64]\n",
                                           "    for r in 0..1 {\n      copy x = %0[i*8:min(8, 8 - r), 0:64]\n    }\n"),
                                      "y = exp(x)", "y = mov(1)"),
                                 "kernel @e", "kernel @e1");
  expect_found(inner, {{"= y", "= y", "tile x", "where r is not known yet", true}}, NpuLanguage::pto);
}

TEST(NpuCheck, Events) {
  expect_found(kNpuExp,
               {
                   {"set v mte3 i%2 + 2", "set v mte3 i%2 + 7", "set v mte3", "ids are 0 to 7"},
                   {"set v mte3 i%2 + 2\n    wait v mte3 i%2 + 2", "set v mte3 i%2\n    wait v mte3 i%2", "set v mte3",
                    "can belong to one destination only"},
                   {"  set v mte2 1\n", "", "wait v mte2", "nothing has set it"},
                   {"  set v mte2 1\n", "  set v mte2 1\n  set v mte2 1\n", "set v mte2 1", "set twice without a wait"},
                   {"    wait mte2 v i%2\n", "", "set mte2 v", "set twice without a wait"},
                   {"    set mte2 v i%2\n", "", "wait mte2 v", "nothing has set it"},
                   {"  wait mte3 v 1\n}", "}", "set mte3 v 1", "is never waited for"},
                   {"    set mte3 v i%2\n", "", "wait mte3 v", "nothing has set it"},
                   {"set mte2 v i%2", "set v v i%2", "set v v", "a fence orders one pipe"},
                   {"y = exp(x)", "y = exp(x)\n    fence s", "fence s", "the scalar pipe has no barrier"},
               });
}

TEST(NpuCheck, Order) {
  expect_found(kColumn, {{"    fence v\n    y", "    y", "sub", "tile m may not be written yet: no fence of v"},
                         {"    fence v\n    m", "    m", "reduce", "tile m may still be read: no fence of v"}});
  // both ends of an event taken away
  std::string text = with(with(kNpuExp, "    set mte2 v i%2\n", ""), "    wait mte2 v i%2\n", "");
  expect_found(text, {{"= y", "= y", "y = exp(x)", "tile x may not be written yet: no event from mte2 to v"}});
  text = with(with(with(with(kNpuExp, "  set v mte2 0\n  set v mte2 1\n", ""), "    wait v mte2 i%2\n", ""),
                   "    set v mte2 i%2\n", ""),
              "  wait v mte2 0\n  wait v mte2 1\n", "");
  expect_found(text, {{"= y", "= y", "copy x", "tile x may still be read: no event from v to mte2"}});
  // one slot where the events turn through two
  expect_found(kNpuExp, {{"@ub+0 ring 2", "@ub+0", "copy x", "tile x may still be read"}});
  // the prologue promises a second turn that nothing has earned
  text = with(with(kNpuExp, "    set v mte2 i%2\n", ""), "    wait v mte2 i%2\n",
              "    wait v mte2 i%2\n    set v mte2 i%2\n");
  expect_found(text, {{"= y", "= y", "copy x", "tile x may still be read: no event from v to mte2"}});
}

// Taking away any one set, wait or fence of a finished kernel is noticed; so is both ends of an event at once.
TEST(NpuCheck, EveryMissingSyncIsNoticed) {
  const Target t = load_target("ascend910b1");
  auto faults = [&](const std::string& text) {
    return check_npu(kir::parse_kernel(text), t, NpuLanguage::ascendc).size();
  };
  for (const std::string& text : {kir::print_kernel(finished(kNpuSoftmax)), kir::print_kernel(finished(kNpuMatMul))}) {
    int total = 0, pairs = 0;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      const size_t word = text.find_first_not_of(' ', at), end = text.find('\n', at);
      const bool set = text.compare(word, 4, "set ") == 0, inner = word > at + 2;
      if (!set && text.compare(word, 5, "wait ") != 0 && text.compare(word, 6, "fence ") != 0) continue;
      const std::string without = text.substr(0, at) + text.substr(end + 1);
      EXPECT_GT(faults(without), 0u) << text.substr(at, end - at);
      total++;
      const std::string other = "wait " + text.substr(word + 4, end - word - 3);
      const size_t match = set && inner ? without.find(other, at) : std::string::npos;
      if (match == std::string::npos) continue;  // primed before the loop, waited for in it
      pairs++;
      EXPECT_GT(faults(std::string(without).erase(match, other.size())), 0u) << "and " << other;
    }
    EXPECT_GT(total, 20);
    EXPECT_GT(pairs, 1);
  }
}

TEST(NpuCheck, KernelsForACpuAreRefused) {
  for (std::string_view text : kir::texts::kAll)
    for (NpuLanguage l : {NpuLanguage::ascendc, NpuLanguage::pto, NpuLanguage::pto_text}) {
      const kir::Kernel k = kir::parse_kernel(text);
      EXPECT_THROW(emit_npu(k, load_target("ascend910b1"), l), UserError) << text;
      EXPECT_THROW(emit_npu(k, load_target("x86-64-avx2"), l), UserError) << text;
    }
}

// Lines taken away, doubled or exchanged at random: a text or a UserError, nothing else.
TEST(NpuCheck, DamagedKernels) {
  const Target t = load_target("ascend910b1");
  std::mt19937 g(1);
  int refused = 0, unread = 0;
  for (const std::string& text : {kir::print_kernel(finished(kNpuSoftmax)), kir::print_kernel(finished(kNpuMatMul))}) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    for (int i = 0; i < 400; i++) {
      std::vector<std::string> damaged = lines;
      const size_t a = 1 + g() % (lines.size() - 2), b = 1 + g() % (lines.size() - 2);
      if (i % 3 == 0) damaged.erase(damaged.begin() + static_cast<long>(a));
      if (i % 3 == 1) damaged.insert(damaged.begin() + static_cast<long>(a), damaged[b]);
      if (i % 3 == 2) std::swap(damaged[a], damaged[b]);
      std::string all;
      for (const std::string& line : damaged) all += line + "\n";
      try {
        const kir::Kernel k = kir::parse_kernel(all);
        try {
          emit_npu(k, t, static_cast<NpuLanguage>(i % 2));
        } catch (const UserError&) {
          refused++;
        }
      } catch (const UserError&) {
        unread++;
      }
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(unread, 20);
}

}  // namespace
}  // namespace gaf
