// The race check on unsynchronised, synchronised and mutilated kernels: it objects to the first, is silent on the
// second, and notices every single set, wait and fence that is missing, and planted faults.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "base/error.h"
#include "unit/ir/npu_kernels.h"

namespace gaf::kir {
namespace {

using testing::HasSubstr;

std::vector<KernelProblem> races(const Kernel& k, const Target& t, int worker = 0, int workers = 1) {
  NpuMemory m(k);
  return check_races(k, t, m.pointers, {}, worker, workers);
}
std::string show(const std::vector<KernelProblem>& problems) {
  std::string s;
  for (const KernelProblem& p : problems) s += (p.warning ? "(open) " : "") + p.text + "\n";
  return s;
}
Kernel placed(const char* text, const Target& t) {
  Kernel k = legalise(parse_kernel(text), t);
  place(k, t);
  return k;
}

// The n-th sync statement of the body taken out; nothing if there are fewer.
std::optional<Sync> remove_sync(Body& b, int& n) {
  for (size_t i = 0; i < b.size(); i++) {
    if (const Sync* s = std::get_if<Sync>(&b[i].alt); s && n-- == 0) {
      Sync gone = *s;
      b.erase(b.begin() + static_cast<long>(i));
      return gone;
    }
    std::vector<Body*> inner;
    if (For* f = std::get_if<For>(&b[i].alt)) inner = {&f->body};
    if (If* f = std::get_if<If>(&b[i].alt)) inner = {&f->yes, &f->no};
    for (Body* x : inner)
      if (std::optional<Sync> gone = remove_sync(*x, n)) return gone;
  }
  return std::nullopt;
}

class KernelRaces : public testing::TestWithParam<NpuText> {
 protected:
  Target t = npu_target();
  Kernel bare = placed(GetParam().text, t), synced = insert_sync(bare, t);
};

TEST_P(KernelRaces, ObjectsWithoutSync) {
  std::vector<KernelProblem> p = races(bare, t);
  EXPECT_TRUE(std::any_of(p.begin(), p.end(), [](const KernelProblem& x) { return !x.warning; }));
}

TEST_P(KernelRaces, SilentWithSyncForAnyShareOfAnyWorker) {
  for (const KernelProblem& p : verify_kernel(synced, t)) ADD_FAILURE() << p.line << ": " << p.text;
  for (int workers : {1, 2, 3, 5, 40})
    for (int w = 0; w < workers; w++)
      EXPECT_EQ(show(races(synced, t, w, workers)), "") << "worker " << w << " of " << workers;
  EXPECT_EQ(print_kernel(parse_kernel(print_kernel(synced))), print_kernel(synced));
}

TEST_P(KernelRaces, SyncChangesNoValues) {
  NpuMemory a(bare), b(bare);
  interpret(bare, t, a.pointers, {});
  interpret(synced, t, b.pointers, {});
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST_P(KernelRaces, NoticesEverySyncThatIsMissing) {
  int noticed[3] = {}, total[3] = {}, open = 0;
  for (int n = 0;; n++) {
    Kernel k = synced;
    int left = n;
    std::optional<Sync> gone = remove_sync(k.body, left);
    if (!gone) break;
    std::vector<KernelProblem> p = races(k, t);
    total[static_cast<int>(gone->kind)]++;
    noticed[static_cast<int>(gone->kind)] += !p.empty();
    open += !p.empty() && std::all_of(p.begin(), p.end(), [](const KernelProblem& x) { return x.warning; });
    EXPECT_FALSE(p.empty()) << "without " << print_stmt(k, {*gone}) << " (number " << n << ") of\n"
                            << print_kernel(synced);
  }
  std::cout << GetParam().name << ": noticed " << noticed[0] << " of " << total[0] << " sets, " << noticed[1] << " of "
            << total[1] << " waits, " << noticed[2] << " of " << total[2] << " fences; " << open
            << " by an open rule only\n";
  EXPECT_GT(total[0], 0);
}

TEST_P(KernelRaces, EventsOfOneSourceGoToOneDestination) {
  std::map<std::pair<Pipe, int64_t>, std::set<Pipe>> to;
  for_each_stmt(synced.body, [&](const Stmt& s) {
    const Sync* y = std::get_if<Sync>(&s.alt);
    if (!y || y->kind == SyncKind::fence || !y->event.is_num()) return;
    to[{y->from, y->event.num()}].insert(y->to);
    EXPECT_LT(y->event.num(), t.events);
  });
  for (const auto& [id, pipes] : to) EXPECT_EQ(pipes.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(, KernelRaces, testing::ValuesIn(kNpuTexts), [](const auto& i) {
  std::string s = i.param.name;
  std::replace_if(
      s.begin(), s.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return s;
});

// ---- planted faults ----
std::string replaced(std::string s, const std::string& from, const std::string& to) {
  EXPECT_NE(s.find(from), std::string::npos) << from << " in\n" << s;
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
  return s;
}
std::string synced_text(const Target& t, const char* text) { return print_kernel(insert_sync(placed(text, t), t)); }

TEST(KernelRaceFaults, WrongSlotOfARing) {
  Target t = npu_target();
  std::string s = replaced(synced_text(t, kNpuTexts[0].text), "wait mte2 v i%2", "wait mte2 v (i + 1)%2");
  EXPECT_THAT(show(races(parse_kernel(s), t)), HasSubstr("which nothing has set: the kernel hangs"));
  s = replaced(synced_text(t, kNpuTexts[0].text), "tile xh: f16[4, 32] @ub+0 ring 2",
               "tile xh: f16[4, 32] @ub+0");  // events in turn, one slot
  EXPECT_THAT(show(races(parse_kernel(s), t)), HasSubstr("pipe mte2 writes tile xh and may overtake a read on pipe v"));
}

TEST(KernelRaceFaults, TilesThatOverlap) {
  Target t = npu_target();
  std::string s = synced_text(t, kNpuTexts[0].text);
  s = replaced(s, "tile m: f32[8, 1] @ub+1024", "tile m: f32[8, 1] @ub+512");
  EXPECT_THAT(show(races(parse_kernel(s), t)), HasSubstr("reads bytes of tile x that tile m has overwritten"));
}

TEST(KernelRaceFaults, OneIdForTwoDestinations) {
  Target t = npu_target();
  std::string s = synced_text(t, kNpuTexts[0].text);
  s = replaced(s, "v mte3 i%2 + 2", "v mte3 i%2");
  EXPECT_THAT(show(races(parse_kernel(s), t)), HasSubstr("which a core that knows events by source cannot tell apart"));
}

TEST(KernelRaceFaults, EventsPrimedInsideAnOuterLoop) {
  Target t = npu_target();
  Kernel k = parse_kernel(R"(kernel @k target npu (in %0: f32[8, 64], out %1: f32[8, 64]) {
  for i in 0..8 par {
    set v mte2 0
    for c in 0..2 {
      tile x: f32[1, 32] @ub+0
      wait v mte2 0
      copy x = %0[i, c*32:32]
      set mte2 v 0
      wait mte2 v 0
      x = exp(x)
      set v mte2 0
    }
    wait v mte2 0
  }
}
)");
  EXPECT_THAT(show(races(k, t)), HasSubstr("event 0 from v to mte2 may be set again before its last wait has run"));
}

TEST(KernelRaceFaults, AccumulationWithoutABarrierIsAnOpenQuestion) {
  Target t = npu_target();
  std::string s = replaced(synced_text(t, kNpuTexts[3].text), "fence m\n", "\n");
  std::vector<KernelProblem> p = races(parse_kernel(s), t);
  EXPECT_THAT(show(p), HasSubstr("(open) pipe m"));
  for (const KernelProblem& x : p) EXPECT_TRUE(x.warning) << x.text;
  t.strict_order = false;
  EXPECT_THAT(synced_text(t, kNpuTexts[3].text), testing::Not(HasSubstr("fence")));
}

// ---- events left out because others imply them ----
// A matmul of 16 x 16 tiles: `outer` steps of K through l1, `inner` through l0 in each, rings of the bias, the
// accumulator, and both levels of operands; the bias goes to its table before the K loop.
std::string matmul(int tiles, int outer, int inner, int bias, int acc, int l1, int l0) {
  int k = outer * inner * 16;
  return fmt::format(
      R"(kernel @mm target npu (in %0: f16[16, {k}], in %1: f16[{k}, 16], in %2: f16[16], out %3: f16[{rows}, 16]) {{
  for i in 0..{tiles} par {{
    tile c: f32[16, 16] @l0c ring {acc}
    tile bl: f16[1, 16] @l1 ring {bias}
    tile bt: f32[1, 16] @bt ring {bias}
    copy bl = %2[0:16]
    copy bt = bl
    for k in 0..{outer} {{
      tile a1: f16[16, {step}] @l1 ring {l1}
      tile b1: f16[{step}, 16] @l1 ring {l1}
      copy a1 = %0[0:16, k*{step}:{step}]
      copy b1 = %1[k*{step}:{step}, 0:16]
      for q in 0..{inner} {{
        tile a0: f16[16, 16] @l0a ring {l0}
        tile b0: f16[16, 16] @l0b ring {l0}
        copy a0 = a1[0:16, q*16:16]
        copy b0 = b1[q*16:16, 0:16]
        if k + q == 0 {{
          c = mma(a0, b0, bt)
        }} else {{
          c += mma(a0, b0)
        }}
      }}
    }}
    copy %3[i*16:16, 0:16] = c post relu
  }}
}}
)",
      fmt::arg("k", k), fmt::arg("rows", tiles * 16), fmt::arg("tiles", tiles), fmt::arg("outer", outer),
      fmt::arg("inner", inner), fmt::arg("step", inner * 16), fmt::arg("bias", bias), fmt::arg("acc", acc),
      fmt::arg("l1", l1), fmt::arg("l0", l0));
}
TEST(InsertSync, LeavesOutOnlyEventsThatOthersImply) {
  Target t = npu_target();
  int checked = 0, refused = 0;
  std::set<size_t> sizes;
  for (int outer : {1, 2, 3})
    for (int inner : {1, 2, 3})
      for (int bias : {1, 2})
        for (int l1 : {1, 2, 3})
          for (int l0 : {1, 2}) {
            std::string text = matmul(4, outer, inner, bias, 3 - bias, l1, l0);
            Kernel k = placed(text.c_str(), t);
            try {
              k = insert_sync(std::move(k), t);
            } catch (const UserError& e) {
              EXPECT_THAT(e.what(), HasSubstr("events from one pipe, which has 8"));
              refused++;
              continue;
            }
            size_t syncs = 0;
            for_each_stmt(k.body, [&](const Stmt& s) { syncs += std::holds_alternative<Sync>(s.alt); });
            sizes.insert(syncs);
            EXPECT_EQ(show(races(k, t)), "") << print_kernel(k);
            EXPECT_EQ(show(races(k, t, 1, 3)), "") << print_kernel(k);
            for (const KernelProblem& p : verify_kernel(k, t)) ADD_FAILURE() << p.line << ": " << p.text;
            checked++;
          }
  std::cout << checked << " kernels without a race, " << refused << " refused for want of events\n";
  EXPECT_GT(checked, 100);
  EXPECT_GT(sizes.size(), 3u);
}

// ---- refusals ----
std::string refusal(const char* text) {
  Target t = npu_target();
  try {
    insert_sync(placed(text, t), t);
  } catch (const UserError& e) {
    return e.info().code + " " + e.what() + " " + e.info().remedy;
  }
  return "";
}
TEST(InsertSyncRefusals, SayWhatAndWhatToDo) {
  EXPECT_THAT(refusal(R"(kernel @k target npu (in %0: f32[4, 32], out %1: f32[4, 32]) {
  for i in 0..2 par {
    tile x: f32[1, 32] @ub
    for j in 0..2 {
      copy x = %0[i*2 + j, 0:32]
      x = exp(x)
      copy %1[i*2 + j, 0:32] = x
    }
  }
}
)"),
              testing::AllOf(HasSubstr("GAF4002"), HasSubstr("tile x is used on two pipes"),
                             HasSubstr("declare the tile in the block")));
  EXPECT_THAT(refusal(R"(kernel @k target npu (inout %0: f32[4, 32]) {
  for i in 0..4 par {
    tile x: f32[1, 32] @ub
    copy x = %0[i, 0:32]
    x = exp(x)
    copy %0[i, 0:32] = x
  }
}
)"),
              HasSubstr("buffer %0 is read and written"));
  EXPECT_THAT(refusal(R"(kernel @k target npu (in %0: f32[9, 32], out %1: f32[9, 32]) {
  for i in 0..9 par {
    tile x: f32[1, 32] @ub ring 9
    copy x = %0[i, 0:32]
    x = exp(x)
    copy %1[i, 0:32] = x
  }
}
)"),
              HasSubstr("needs 9 events from one pipe, which has 8"));
}

}  // namespace
}  // namespace gaf::kir
