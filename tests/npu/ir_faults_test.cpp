// Six kinds of faults planted into kernel IR that is otherwise ready to print: the static checker, the race check of
// the interpreter or the interpreted values must notice each, as the engine does on text (faults.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/error.h"
#include "codegen/npu/npu.h"
#include "ir/graph_text.h"
#include "ir/kernel.h"
#include "lower/lower.h"
#include "ops/op.h"

namespace gaf {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* kSoftmax = "graph @k(%0: f16[37,100]) -> (%1) {\n  %1 = Softmax(%0) {axis=-1} : f16[37,100]\n}\n";
constexpr const char* kMatMul =
    "graph @k(%0: f16[40,600], %1: f16[600,40], %2: f16[40]) -> (%5) {\n  %3 = MatMul(%0, %1) : f16[40,40]\n"
    "  %4 = Add(%3, %2) : f16[40,40]\n  %5 = Relu(%4) : f16[40,40]\n}\n";

kir::Kernel ready(const char* graph, const Target& t) {
  auto made = lower(infer(parse_graph(graph)).graph, t);
  kir::Kernel k = kir::legalise(std::get<Lowered>(std::move(made)).kernel, t);
  kir::place(k, t);
  return kir::insert_sync(std::move(k), t);
}

std::vector<std::string> complaints(const kir::Kernel& k, const Target& t) {
  std::vector<std::string> all;
  for (NpuLanguage l : {NpuLanguage::ascendc, NpuLanguage::pto})
    for (const NpuProblem& p : check_npu(k, t, l)) all.push_back(p.statement + ": " + p.text);
  return all;
}

struct IrFaults : testing::TestWithParam<const char*> {
  Target t = load_target("ascend910b1");
  kir::Kernel k = ready(GetParam(), t);
  // Tiles of UB or L1, in order of the text.
  std::vector<kir::Tile*> tiles() {
    std::vector<kir::Tile*> all;
    for (kir::Tile& x : k.tiles)
      if (x.mem == Mem::ub || x.mem == Mem::l1) all.push_back(&x);
    return all;
  }
};

TEST_P(IrFaults, NoneIsFoundWithoutOne) { EXPECT_THAT(complaints(k, t), testing::IsEmpty()); }

TEST_P(IrFaults, Overlap) {
  tiles().back()->at = tiles().front()->at;
  EXPECT_THAT(complaints(k, t), Contains(HasSubstr("shares bytes with tile")));
}
TEST_P(IrFaults, Misalignment) {
  tiles().back()->at += 8;
  EXPECT_THAT(complaints(k, t), Contains(HasSubstr("is no multiple of 32 bytes")));
}
TEST_P(IrFaults, Overflow) {
  tiles().back()->at = t.memory(tiles().back()->mem)->bytes - 32;
  EXPECT_THAT(complaints(k, t), Contains(HasSubstr("ends at byte")));
}

void each_sync(kir::Body& b, const std::function<void(kir::Sync&)>& f) {
  for (kir::Stmt& s : b) {
    if (auto* y = std::get_if<kir::Sync>(&s.alt)) f(*y);
    if (auto* x = std::get_if<kir::For>(&s.alt)) each_sync(x->body, f);
    if (auto* x = std::get_if<kir::If>(&s.alt)) each_sync(x->yes, f), each_sync(x->no, f);
  }
}
TEST_P(IrFaults, OneIdForTwo) {
  // All ids of every source pipe begin at 0.
  each_sync(k.body, [](kir::Sync& y) {
    if (y.kind != kir::SyncKind::fence) y.event = Expr(0);
  });
  EXPECT_THAT(complaints(k, t), Contains(HasSubstr("has the id of one from")));
}

// Buffers of a kernel, filled at random, and its last one, the result, after a run.
struct Buffers {
  std::vector<Tensor> tensors;
  std::vector<void*> at;
  explicit Buffers(const kir::Kernel& k) {
    std::mt19937 g(1);
    std::uniform_real_distribution<float> d(-1, 1);
    for (int p : kir::parameters(k)) {
      std::vector<int64_t> dims;
      for (const Expr& e : k.bufs[size_t(p)].shape) dims.push_back(e.num());
      tensors.push_back(Tensor::make(DType::f16, dims));
      for (int64_t i = 0; i < tensors.back().numel(); i++) tensors.back().set(i, d(g));
    }
    for (Tensor& x : tensors) at.push_back(x.mut<void>());
  }
  std::vector<float> result() const {
    std::vector<float> out;
    for (int64_t i = 0; i < tensors.back().numel(); i++) out.push_back(float(tensors.back().get(i)));
    return out;
  }
};
std::vector<float> run(const kir::Kernel& k, const Target& t) {
  Buffers b(k);
  kir::interpret(k, t, b.at, {});
  return b.result();
}
std::vector<std::string> races(const kir::Kernel& k, const Target& t) {
  std::vector<std::string> all;
  for (const kir::KernelProblem& p : kir::check_races(k, t, Buffers(k).at, {})) all.push_back(p.text);
  return all;
}

TEST_P(IrFaults, NoRaceWithoutOne) { EXPECT_THAT(races(k, t), testing::IsEmpty()); }

TEST_P(IrFaults, WrongRingSlot) {
  // The first tile that is loaded in turns has one slot only; the events still let two loads be under way.
  for (kir::Tile* x : tiles()) {
    if (x->ring == 1) continue;
    x->ring = 1;
    break;
  }
  EXPECT_THAT(complaints(k, t), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(races(k, t), testing::Not(testing::IsEmpty()));
}

bool drop_reduce(kir::Body& b) {  // the last of the text; of a product, the steps of K
  for (size_t i = b.size(); i-- > 0;) {
    if (auto* m = std::get_if<kir::Mma>(&b[i].alt); m && m->add) return m->add = false, true;
    if (std::holds_alternative<kir::Reduce>(b[i].alt)) return b.erase(b.begin() + long(i)), true;
    if (auto* f = std::get_if<kir::For>(&b[i].alt); f && drop_reduce(f->body)) return true;
    if (auto* f = std::get_if<kir::If>(&b[i].alt); f && (drop_reduce(f->no) || drop_reduce(f->yes))) return true;
  }
  return false;
}
TEST_P(IrFaults, MissingReduce) {
  const std::vector<float> right = run(k, t);
  ASSERT_TRUE(drop_reduce(k.body));
  EXPECT_NE(run(k, t), right);
}

INSTANTIATE_TEST_SUITE_P(Kernels, IrFaults, testing::Values(kSoftmax, kMatMul));

}  // namespace
}  // namespace gaf
