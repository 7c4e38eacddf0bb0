// The Ascend C stub refuses what the documents forbid: a call that breaks each limit, next to one that keeps it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checks.h"
#include "kernel_operator.h"

namespace {

using namespace AscendC;
using testing::Contains;
using testing::HasSubstr;
using testing::Key;

constexpr auto kUb = TPosition::VECCALC;

struct AscendC_ : testing::Test {
  GlobalTensor<half> x, y;
  void SetUp() override {
    npu::core.reset({{1 << 20, false}, {1 << 20, true}});
    x.SetGlobalBuffer(reinterpret_cast<half*>(npu::core.pointer(npu::core.gm[0].range.at)));
    y.SetGlobalBuffer(reinterpret_cast<half*>(npu::core.pointer(npu::core.gm[1].range.at)));
  }
  // The call just made was refused, and for this reason.
  static void refused(const std::string& why) {
    EXPECT_THAT(npu::core.misuse, Contains(Key(HasSubstr(why))));
    EXPECT_TRUE(npu::core.trace.empty()) << why;
    npu::core.start(0, 1);
  }
  static void accepted() {
    EXPECT_THAT(npu::core.misuse, testing::IsEmpty());
    EXPECT_EQ(npu::core.trace.size(), 1u);
    npu::core.start(0, 1);
  }
};

TEST_F(AscendC_, DataCopyPad) {
  LocalTensor<half> t(kUb, 0, 4096), l1(TPosition::A1, 0, 4096);
  const auto in = [&](DataCopyExtParams c, DataCopyPadExtParams<half> p = {}) { DataCopyPad(t, x, c, p); };
  in({16, 200, 0, 1, 0});
  accepted();
  in({4096, 2, 0, 0, 0});
  refused("blockCount outside 1..4095");
  in({1, 1u << 21, 0, 0, 0});
  refused("blockLen outside");
  in({1, 3, 0, 0, 0});
  refused("no whole number of elements");
  in({2, 32, 1, 0, 0});
  refused("stride is no whole number");
  in({1, 32, 0, 0, 0}, {true, 0, 0, half(0)});
  refused("padding values");
  in({17, 512, 0, 0, 0});
  refused("beyond the tensor");
  DataCopyPad(l1, x, {1, 32, 0, 0, 0}, DataCopyPadExtParams<half>{});
  refused("outside UB");
  DataCopyPad(t[8], x, {1, 32, 0, 0, 0}, DataCopyPadExtParams<half>{});
  refused("UB address not a multiple of 32 B");
  DataCopyPad(y, t, {2, 34, 0, 2, 0});
  accepted();
  DataCopyPad(y[(1 << 19) - 1], t, {1, 4, 0, 0, 0});
  refused("outside every buffer");
}

TEST_F(AscendC_, DataCopyPadLeavesTheTailOfItsLastBlock) {
  LocalTensor<half> t(kUb, 0, 256), u(kUb, 512, 256);
  DataCopyPad(t, x, {1, 34, 0, 0, 0}, DataCopyPadExtParams<half>{});
  Exp(u, t, 17);
  EXPECT_TRUE(npu::run_in_order(npu::core.trace).empty());
  Exp(u, t, 18);
  EXPECT_EQ(npu::run_in_order(npu::core.trace).size(), 1u);
}

TEST_F(AscendC_, NdToNz) {
  LocalTensor<half> t(TPosition::A1, 0, 65536), ub(kUb, 0, 4096);
  const auto copy = [&](Nd2NzParams p) { DataCopy(t, x, p); };
  copy({1, 30, 40, 0, 40, 32, 1, 0});
  accepted();
  copy({2, 30, 40, 0, 40, 32, 1, 0});
  refused("one matrix");
  copy({1, 16385, 1, 0, 1, 16384, 1, 0});
  refused("nValue");
  copy({1, 1, 0, 0, 1, 1, 1, 0});
  refused("dValue");
  copy({1, 30, 40, 0, 39, 32, 1, 0});
  refused("rows overlap");
  copy({1, 30, 40, 0, 40, 29, 1, 0});
  refused("column blocks overlap");
  copy({1, 30, 40, 0, 40, 16385, 1, 0});
  refused("dstNzC0Stride");
  copy({1, 30, 40, 0, 40, 0, 0, 0});
  refused("dstNzNStride");
  DataCopy(ub, x, Nd2NzParams{1, 1, 16, 0, 16, 1, 1, 0});
  refused("outside L1");
  DataCopy(t[8], x, Nd2NzParams{1, 1, 16, 0, 16, 1, 1, 0});
  refused("L1 address not a multiple of 32 B");
}

TEST_F(AscendC_, LoadData) {
  LocalTensor<half> l1(TPosition::A1, 0, 4096), a(TPosition::A2, 0, 2048), b(TPosition::B2, 0, 2048), ub(kUb, 0, 2048);
  LoadData(a, l1, LoadData2DParams{0, 8, 1, 0, 0, false, 0});
  accepted();
  LoadData(b, l1, LoadData2DParams{1, 4, 2, 0, 1, true, 0});
  accepted();
  LoadData(a, l1, LoadData2DParams{0, 0, 1, 0, 0, false, 0});
  refused("repeatTimes");
  LoadData(a, l1, LoadData2DParams{0, 9, 1, 0, 0, false, 0});
  refused("beyond the tensor");
  LoadData(a, l1, LoadData2DParams{15, 2, 1, 0, 0, false, 0});
  refused("beyond the tensor");
  LoadData(l1, a, LoadData2DParams{0, 1, 1, 0, 0, false, 0});
  refused("neither A2 nor B2");
  LoadData(a, ub, LoadData2DParams{0, 1, 1, 0, 0, false, 0});
  refused("source outside L1");
  LoadData(a[16], l1, LoadData2DParams{0, 1, 1, 0, 0, false, 0});
  refused("not a multiple of 512 B");
  LocalTensor<float> f1(TPosition::A1, 0, 256), f0(TPosition::B2, 0, 256);
  LoadData(f0, f1, LoadData2DParams{0, 1, 1, 0, 0, true, 0});
  refused("16 bit elements");
}

TEST_F(AscendC_, BiasTable) {
  LocalTensor<half> l1(TPosition::C1, 0, 256), ub(kUb, 0, 256);
  LocalTensor<float> t(TPosition::C2, 0, 256);
  DataCopy(t, l1, DataCopyParams{1, 16, 0, 0});
  accepted();
  DataCopy(t, l1, DataCopyParams{1, 17, 0, 0});
  refused("beyond the tensor");
  DataCopy(t, l1, DataCopyParams{2, 1, 0, 0});
  refused("one block");
  DataCopy(t, l1, DataCopyParams{1, 0, 0, 0});
  refused("nothing to copy");
  DataCopy(t[8], l1, DataCopyParams{1, 1, 0, 0});
  refused("not a multiple of 64 B");
  DataCopy(t, ub, DataCopyParams{1, 1, 0, 0});
  refused("source outside L1");
  LocalTensor<float> over(TPosition::C2, 512, 256);
  refused("beyond the end of its memory");
}

TEST_F(AscendC_, Mmad) {
  LocalTensor<half> a(TPosition::A2, 0, 4096), b(TPosition::B2, 0, 4096);
  LocalTensor<float> c(TPosition::CO1, 0, 4096), t(TPosition::C2, 0, 64), ub(kUb, 0, 64);
  MmadParams p;
  p.m = 30, p.n = 50, p.k = 40;
  Mmad(c, a, b, p);
  accepted();
  Mmad(c[16], a, b, p);
  refused("256 elements");
  Mmad(c, a[16], b, p);
  refused("A2 address");
  Mmad(c, a, b[16], p);
  refused("B2 address");
  Mmad(c, b, b, p);
  refused("left operand outside A2");
  Mmad(c, a, b, t, p);
  refused("cmatrixInitVal false");
  p.cmatrixInitVal = false, p.cmatrixSource = true;
  Mmad(c, a, b, t, p);
  accepted();
  Mmad(c, a, b, t[4], p);
  refused("bias address");
  Mmad(c, a, b, ub, p);
  refused("bias outside C2");
  Mmad(c, a, b, p);
  refused("without a bias");
  p.k = 4096;
  Mmad(c, a, b, t, p);
  refused("outside 1..4095");
}

TEST_F(AscendC_, MmadOfOneRowReadsAPlainRow) {
  LocalTensor<half> l1(TPosition::A1, 0, 256), a(TPosition::A2, 0, 256), b(TPosition::B2, 0, 512);
  LocalTensor<float> c(TPosition::CO1, 0, 256);
  for (int i = 0; i < 256; i++)
    npu::store(npu::core.pointer(npu::core.gm[0].range.at + size_t(i) * 2), npu::Type::f16, float(i));
  DataCopy(l1, x, Nd2NzParams{1, 1, 256, 0, 256, 1, 1, 0});
  LoadData(a, l1, LoadData2DParams{0, 1, 1, 0, 0, false, 0});
  DataCopy(l1, x[512], Nd2NzParams{1, 32, 16, 0, 16, 32, 1, 0});
  EXPECT_THAT(npu::core.misuse, Contains(Key(HasSubstr("beyond the tensor"))));  // 32 rows need 512 elements
  MmadParams p;
  p.m = 1, p.n = 16, p.k = 32;
  Mmad(c, a, b, p);
  const npu::Op& op = npu::core.trace.back();
  EXPECT_EQ(op.needs.front(), (npu::Range{a.place.at, 64}));  // 32 adjacent elements, not two rows of fractals
}

TEST_F(AscendC_, Fixpipe) {
  LocalTensor<float> c(TPosition::CO1, 0, 4096), ub(kUb, 0, 256);
  const auto fix = [&](FixpipeParamsV220 p) { Fixpipe(y, c, p); };
  fix({50, 30, 32, 50, F322F16, true});
  accepted();
  fix({50, 30, 30, 50, F322F16, true});
  refused("srcStride");
  fix({50, 30, 16, 50, F322F16, true});
  refused("srcStride");
  fix({4096, 16, 16, 4096, F322F16, true});
  refused("nSize");
  fix({50, 0, 16, 50, F322F16, true});
  refused("mSize");
  fix({50, 30, 32, 49, F322F16, true});
  refused("rows overlap");
  fix({50, 30, 32, 50, NoQuant, true});
  refused("F322F16");
  fix({65, 64, 64, 65, F322F16, true});
  refused("beyond the tensor");
  Fixpipe(y, ub, FixpipeParamsV220{16, 16, 16, 16, F322F16, false});
  refused("outside CO1");
}

TEST_F(AscendC_, VectorForms) {
  LocalTensor<float> a(kUb, 0, 2048), b(kUb, 16384, 2048), l0(TPosition::CO1, 0, 2048);
  LocalTensor<half> h(kUb, 32768, 2048);
  Exp(b, a, 64, 32, UnaryRepeatParams{1, 1, 8, 8});
  accepted();
  Exp(b, a, 65, 1, UnaryRepeatParams{1, 1, 8, 8});
  refused("mask outside");
  Exp(b, a, 0, 1, UnaryRepeatParams{1, 1, 8, 8});
  refused("mask outside");
  Exp(b, a, 64, 256, UnaryRepeatParams{1, 1, 0, 0});
  refused("repeat outside 1..255");
  Exp(b, a, 64, 33, UnaryRepeatParams{1, 1, 8, 8});
  refused("beyond the tensor");
  Exp(b, a[4], 8);
  refused("multiple of 32 B");
  Exp(b, l0, 8);
  refused("outside UB");
  Exp(a[64], a, 128);
  refused("overlap in part");
  Exp(a, a, 128);
  accepted();
  Add(b, a, a, 64, 4, BinaryRepeatParams{1, 1, 0, 8, 8, 1});
  accepted();
  Cast(h, a, RoundMode::CAST_NONE, 64);
  refused("CAST_RINT to half");
  Cast(a, h, RoundMode::CAST_RINT, 64);
  refused("CAST_NONE to float");
  Cast(a, h, RoundMode::CAST_NONE, 65, 1, UnaryRepeatParams{1, 1, 8, 4});
  refused("mask outside");  // the wider type counts
  Cast(a, h, RoundMode::CAST_NONE, 64, 2, UnaryRepeatParams{1, 1, 8, 4});
  accepted();
}

TEST_F(AscendC_, AcrossLanes) {
  LocalTensor<float> a(kUb, 0, 2048), b(kUb, 8192, 2048);
  Brcb(b, a, 2, BrcbRepeatParams{1, 8});
  accepted();
  Brcb(a, a, 2, BrcbRepeatParams{1, 8});
  refused("Brcb in place");
  Brcb(b, a, 256, BrcbRepeatParams{1, 8});
  refused("repeat outside");
  WholeReduceMax(b, a, 64, 16, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
  accepted();
  WholeReduceMax(b, a, 64, 16, 1, 1, 8);
  refused("pairs of value and index");
  WholeReduceSum(b, a, 65, 16, 1, 1, 8);
  refused("mask outside");
  WholeReduceSum(b, a, 64, 300, 1, 1, 0);
  refused("repeat outside");
  WholeReduceSum(b, a, 64, 2, 0, 1, 8);
  refused("all results to one place");
  WholeReduceSum(a, a, 64, 2, 1, 1, 8);
  refused("over its source");
}

TEST_F(AscendC_, Placement) {
  LocalTensor<float> t(kUb, 8, 8);
  refused("misaligned offset");
  LocalTensor<float> c(TPosition::CO1, 32, 8);
  refused("misaligned offset");
  LocalTensor<float> empty(kUb, 0, 0);
  refused("an empty tensor");
  SetFlag<HardEvent::MTE2_V>(8);
  refused("event id");
}

}  // namespace
