// Every check of the engine can fail: small wrong traces, one for each kind of finding, and right ones that stay
// silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checks.h"

namespace npu {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Key;
using testing::SizeIs;

// Tensors of 64 floats in UB by slot, and buffer 0 (input) and 1 (output) of 256 B.
struct Engine : testing::Test {
  void SetUp() override { core.reset({{256, false}, {256, true}}); }
  static Place ub(int slot) { return local(Where::ub, Type::f32, size_t(slot) * 256, 256, 0); }
  static Place gm(int buffer) { return global(core.pointer(core.gm[size_t(buffer)].range.at), Type::f32, 64); }
  static void in(int slot, int line = 1) { move(MTE2, "load", ub(slot), gm(0), {.valid = {1, 64}}, line); }
  static void out(int slot, int line = 9) { move(MTE3, "store", gm(1), ub(slot), {.valid = {1, 64}}, line); }
  static void vec(int to, int from, int line = 5) {
    map(
        "neg", ub(to), {ub(from)}, {1, 64}, {}, [](const float* x) { return -x[0]; }, line);
  }
  static void flag(Pipe a, Pipe b, int id, int line = 3) { set_flag(a, b, id, line), wait_flag(a, b, id, line); }
  static Findings races() { return find_races(core.trace, Cells(core.trace)); }
  static void right() {  // load, compute, store, all ordered
    in(0), flag(MTE2, V, 0, 2), vec(1, 0), flag(V, MTE3, 1, 4), out(1);
  }
};

TEST_F(Engine, RightTraceIsSilentAndComputes) {
  const float x = 3;
  for (int i = 0; i < 64; i++) store(core.pointer(core.gm[0].range.at + size_t(i) * 4), Type::f32, x);
  right();
  EXPECT_TRUE(core.misuse.empty());
  EXPECT_TRUE(run_in_order(core.trace).empty());
  EXPECT_TRUE(races().faults.empty()) << races().faults.begin()->first;
  for (uint32_t seed = 0; seed < 50; seed++) {
    EXPECT_EQ(run_scheduled(core.trace, seed, false, true), "");
    EXPECT_EQ(load(core.pointer(core.gm[1].range.at + 252), Type::f32), -3);
    EXPECT_EQ(run_scheduled(core.trace, seed, true, false), "");
  }
  EXPECT_EQ(core.traffic.read, 256u);
  EXPECT_EQ(core.traffic.written, 256u);
  EXPECT_EQ(core.peak[int(Where::ub)], 512u);
}

TEST_F(Engine, EverySyncOfARightTraceIsNeeded) {
  right();
  const Mutation single = drop_each_operation(core.trace), statements = drop_each_statement(core.trace);
  EXPECT_EQ(single.removed, 4);
  EXPECT_EQ(single.noticed, 4);
  EXPECT_EQ(statements.removed, 2);
  EXPECT_EQ(statements.noticed, 2) << "both halves of a flag gone: only the race is left to notice";
}

TEST_F(Engine, AnUnneededSyncIsMissed) {
  right();
  barrier(MTE3, 20);
  EXPECT_THAT(drop_each_operation(core.trace).missed, Contains(HasSubstr("barrier of line 20")));
}

TEST_F(Engine, ABarrierMayBeIdleTheFirstTimeOnly) {
  in(0), flag(MTE2, V, 0);
  for (int i = 0; i < 3; i++) barrier(V, 4), vec(1, i ? 1 : 0);
  const Mutation m = drop_each_operation(core.trace);
  EXPECT_EQ(m.removed, 5);
  EXPECT_EQ(m.noticed, 4);
  EXPECT_EQ(m.idle, 1);
  EXPECT_TRUE(m.missed.empty());
}

TEST_F(Engine, ReadsOfUnwrittenBytes) {
  vec(1, 0);
  EXPECT_THAT(run_in_order(core.trace), Contains(Key(HasSubstr("uses bytes that nothing wrote"))));
}

TEST_F(Engine, UndefinedPaddingIsNoticedWhenUsed) {
  move(MTE2, "load", ub(0), gm(0), {.valid = {1, 60}, .target = {1, 64}}, 1);
  map(
      "neg", ub(1), {ub(0)}, {1, 60}, {}, [](const float* x) { return -x[0]; }, 2);
  EXPECT_TRUE(run_in_order(core.trace).empty());
  vec(2, 0);
  EXPECT_THAT(run_in_order(core.trace), SizeIs(1));
}

TEST_F(Engine, PaddingIsCarriedAndCountsOnlyWhenUsed) {
  move(MTE2, "load", ub(0), gm(0), {.valid = {1, 60}, .target = {1, 64}}, 1);
  move(MTE1, "carry", ub(1), ub(0), {.valid = {1, 64}, .carry = true}, 2);
  EXPECT_TRUE(run_in_order(core.trace).empty());
  vec(2, 1);
  EXPECT_THAT(run_in_order(core.trace), SizeIs(1));
}

TEST_F(Engine, BoundsOfTensorsMemoriesAndBuffers) {
  map(
      "neg", ub(0), {ub(1)}, {1, 65}, {}, [](const float* x) { return x[0]; }, 1);
  EXPECT_THAT(core.misuse, Contains(Key(HasSubstr("beyond the tensor"))));
  local(Where::ub, Type::f32, 184 * 1024 - 32, 64, 2);
  EXPECT_THAT(core.misuse, Contains(Key(HasSubstr("beyond the end of its memory"))));
  local(Where::l0a, Type::f16, 256, 512, 3);
  EXPECT_THAT(core.misuse, Contains(Key(HasSubstr("misaligned offset"))));
  move(MTE2, "load", ub(0), global(core.pointer(core.gm[0].range.at + 4), Type::f32, 64), {.valid = {1, 64}}, 4);
  EXPECT_THAT(core.misuse, Contains(Key(HasSubstr("outside every buffer"))));
  EXPECT_TRUE(core.trace.empty());
}

TEST_F(Engine, RacesBetweenPipes) {
  in(0), vec(1, 0);
  EXPECT_THAT(races().faults,
              Contains(Key(HasSubstr("neg (line 5) on V reads what may not be written yet by load (line 1) on MTE2"))));
  core.start(0, 1);
  in(0), flag(MTE2, V, 0), vec(1, 0), in(0, 7);
  EXPECT_THAT(races().faults,
              Contains(Key(HasSubstr("load (line 7) on MTE2 overwrites what may still be read by neg (line 5) on V"))));
  core.start(0, 1);
  in(0), flag(MTE2, V, 0), vec(1, 0), in(1, 7);
  EXPECT_THAT(
      races().faults,
      Contains(Key(HasSubstr("load (line 7) on MTE2 writes where a write may be pending by neg (line 5) on V"))));
}

TEST_F(Engine, AFlagOrdersOnlyWhatCameBeforeItsSet) {
  set_flag(MTE2, V, 0, 1), in(0), wait_flag(MTE2, V, 0, 3), vec(1, 0);
  EXPECT_THAT(races().faults, SizeIs(1));
}

TEST_F(Engine, OrderPassesOnThroughAThirdPipe) {
  in(0), flag(MTE2, MTE1, 0), flag(MTE1, V, 0), vec(1, 0);
  EXPECT_TRUE(races().faults.empty());
}

TEST_F(Engine, DependenceInOnePipeNeedsABarrier) {
  in(0), flag(MTE2, V, 0), vec(1, 0), vec(2, 1, 6);
  EXPECT_THAT(races().faults,
              Contains(Key(HasSubstr("neg (line 6) on V reads what may not be written yet by neg (line 5) on V"))));
  core.start(0, 1);
  in(0), flag(MTE2, V, 0), vec(1, 0), barrier(V, 6), vec(2, 1, 7);
  EXPECT_TRUE(races().faults.empty());
  core.start(0, 1);
  in(0), in(0, 2);
  EXPECT_THAT(
      races().faults,
      Contains(Key(HasSubstr("load (line 2) on MTE2 writes where a write may be pending by load (line 1) on MTE2"))));
}

TEST_F(Engine, OpenRulesAreApart) {
  in(0), in(1), flag(MTE2, V, 0), vec(2, 0), vec(0, 1, 6);  // V writes over what V read
  EXPECT_TRUE(races().faults.empty());
  EXPECT_THAT(races().open, Contains(Key(HasSubstr("overwrites what may still be read"))));
  core.start(0, 1);
  const Place a = local(Where::l0a, Type::f16, 0, 512, 0), b = local(Where::l0b, Type::f16, 0, 512, 0);
  const Place c = [] {
    Place p = local(Where::l0c, Type::f32, 0, 1024, 0);
    p.f1 = 16, p.block_row = 16, p.col = 1;
    return p;
  }();
  multiply("mad", c, a, b, nullptr, {16, 16, 16, Start::zero}, 1);
  multiply("mad", c, a, b, nullptr, {16, 16, 16, Start::accumulate}, 2);
  EXPECT_TRUE(races().faults.empty());
  EXPECT_THAT(races().open, testing::Not(testing::IsEmpty()));
}

TEST_F(Engine, FlagMisuse) {
  wait_flag(MTE2, V, 0, 1);
  EXPECT_THAT(races().faults, Contains(Key(HasSubstr("that nothing set"))));
  EXPECT_THAT(run_scheduled(core.trace, 0, false, false), HasSubstr("hang: V waits for flag MTE2->V 0"));
  core.start(0, 1);
  set_flag(MTE2, V, 0, 1);
  EXPECT_THAT(races().faults, Contains(Key(HasSubstr("never waited for"))));
  set_flag(MTE2, V, 0, 2);
  EXPECT_THAT(races().faults, Contains(Key(HasSubstr("set while up"))));
  EXPECT_THAT(run_scheduled(core.trace, 0, false, false), HasSubstr("set while up"));
  set_flag(MTE2, V, 8, 3);
  EXPECT_THAT(core.misuse, Contains(Key(HasSubstr("event id outside 0..7"))));
  barrier(S, 4);
  EXPECT_THAT(core.misuse, Contains(Key(HasSubstr("scalar pipe"))));
}

TEST_F(Engine, AFlagMayNotBeSetAgainBeforeItsWaitRan) {
  flag(MTE2, V, 0, 1), flag(MTE2, V, 0, 2);  // nothing tells MTE2 that V has waited
  EXPECT_THAT(races().faults, Contains(Key(HasSubstr("may be set again before its wait"))));
  core.start(0, 1);
  flag(MTE2, V, 0, 1), flag(V, MTE2, 0, 2), flag(MTE2, V, 0, 3);
  EXPECT_THAT(races().faults, testing::IsEmpty());
}

TEST_F(Engine, OneIdFromASourceToTwoDestinations) {
  set_flag(MTE2, V, 0, 1), set_flag(MTE2, MTE1, 0, 2), wait_flag(MTE2, V, 0, 3), wait_flag(MTE2, MTE1, 0, 4);
  EXPECT_THAT(races().faults, Contains(Key(HasSubstr("flag MTE2->any 0 set while up"))));
  int broken = 0;
  for (uint32_t seed = 0; seed < 50; seed++) {
    EXPECT_EQ(run_scheduled(core.trace, seed, false, false), "");
    broken += !run_scheduled(core.trace, seed, true, false).empty();
  }
  EXPECT_GT(broken, 0);
}

TEST_F(Engine, SchedulesHangAndDiffer) {
  wait_flag(V, MTE2, 0, 1), set_flag(MTE2, V, 0, 2), wait_flag(MTE2, V, 0, 3),
      set_flag(V, MTE2, 0, 4);  // each waits for the other
  EXPECT_THAT(run_scheduled(core.trace, 0, false, false), HasSubstr("hang"));
  core.start(0, 1);
  for (int i = 0; i < 64; i++) store(core.pointer(core.gm[0].range.at + size_t(i) * 4), Type::f32, 1);
  in(0), vec(1, 0), flag(V, MTE3, 0), out(1);  // nothing holds V back
  int wrong = 0;
  for (uint32_t seed = 0; seed < 50; seed++) {
    EXPECT_EQ(run_scheduled(core.trace, seed, false, true), "");
    wrong += load(core.pointer(core.gm[1].range.at), Type::f32) != -1;
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(Engine, BarrierOfAllPipesOrdersThemAll) {
  in(0), barrier(ALL, 2), vec(1, 0), barrier(ALL, 6), out(1);
  EXPECT_TRUE(races().faults.empty());
  EXPECT_EQ(run_scheduled(core.trace, 3, false, true), "");
  EXPECT_EQ(drop_each_operation(core.trace).noticed, 2);
}

TEST_F(Engine, ProductsHaveLimits) {
  const Place a = local(Where::l0a, Type::f16, 0, 512, 0), c = local(Where::l0c, Type::f32, 0, 1024, 0);
  Place b = local(Where::l0b, Type::f16, 0, 512, 0);
  b.block_row = 16;
  multiply("mad", c, a, b, nullptr, {4096, 16, 16, Start::zero}, 1);
  multiply("mad", c, a, b, nullptr, {16, 16, 0, Start::zero}, 2);
  EXPECT_THAT(core.misuse, SizeIs(2));
  multiply("mad", c, a, b, nullptr, {16, 17, 16, Start::zero}, 3);
  EXPECT_THAT(core.misuse, Contains(Key(HasSubstr("mad: access beyond the tensor (line 3)"))));
}

TEST_F(Engine, HalfConversionsRoundToEven) {
  uint8_t b[2];
  for (const auto& [in, out] : std::vector<std::pair<float, float>>{{1.00048828125f, 1.0f},
                                                                    {1.00146484375f, 1.001953125f},
                                                                    {65519.f, 65504.f},
                                                                    {5.9604645e-8f, 5.9604645e-8f}}) {
    store(b, Type::f16, in);
    EXPECT_EQ(load(b, Type::f16), out);
  }
}

}  // namespace
}  // namespace npu
