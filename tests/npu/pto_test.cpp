// The PTO stub refuses what the instruction pages forbid: an instruction that breaks each limit, next to one that keeps
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pto/pto-inst.hpp>

#include "engine/checks.h"

namespace {

using namespace pto;
using testing::Contains;
using testing::HasSubstr;
using testing::Key;

template <class T>
using View = GlobalTensor<T, Shape<1, 1, 1, DYNAMIC, DYNAMIC>, Stride<1, 1, 1, DYNAMIC, 1>>;
template <class T, int R, int C>
using Vec = Tile<TileType::Vec, T, R, C, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
template <int R>
using Column = Tile<TileType::Vec, float, R, 1, BLayout::ColMajor, DYNAMIC, 1>;
template <int R, int C>
using Nz = Tile<TileType::Mat, half, R, C, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor, 512>;

struct Pto : testing::Test {
  half *x = nullptr, *y = nullptr;
  void SetUp() override {
    npu::core.reset({{1 << 20, false}, {1 << 20, true}});
    x = reinterpret_cast<half*>(npu::core.pointer(npu::core.gm[0].range.at));
    y = reinterpret_cast<half*>(npu::core.pointer(npu::core.gm[1].range.at));
  }
  template <class T>
  static View<T> view(T* p, int64_t r, int64_t c, int64_t ld) {
    return {p, typename std::remove_cvref_t<decltype(View<T>::shape)>(r, c),
            typename std::remove_cvref_t<decltype(View<T>::stride)>(ld)};
  }
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

TEST_F(Pto, LoadAndStore) {
  Vec<half, 16, 128> t(10, 100);
  auto v = view(x, 10, 100, 100), w = view(y, 10, 100, 100);
  TLOAD(t, v);
  refused("before TASSIGN");
  TASSIGN(t, 64);
  TLOAD(t, v);
  accepted();
  TSTORE(w, t);
  accepted();
  auto wide = view(x, 10, 101, 101), overlapping = view(x, 10, 100, 99), far = view(x + (1 << 19) - 999, 10, 100, 100);
  TLOAD(t, wide);
  refused("not the tile's valid region");
  TLOAD(t, overlapping);
  refused("rows of a view overlap");
  TLOAD(t, far);
  refused("outside every buffer");
  TSTORE(wide, t);
  refused("not the tile's valid region");
}

TEST_F(Pto, Placement) {
  Vec<half, 16, 128> t(16, 128);
  TASSIGN(t, 16);
  refused("misaligned offset");
  TASSIGN(t, 184 * 1024 - 1024);
  refused("beyond the end of its memory");
  TASSIGN<1024>(t);
  EXPECT_TRUE(npu::core.misuse.empty());
  Vec<half, 16, 128> bad(17, 128);
  refused("valid region outside");
}

TEST_F(Pto, OutsideTheValidRegionIsUnspecified) {
  Vec<half, 16, 128> t(10, 100), all(16, 128);
  TASSIGN(t, 0), TASSIGN(all, 0);
  auto v = view(x, 10, 100, 100), w = view(y, 16, 128, 128), small = view(y, 10, 100, 100);
  TLOAD(t, v);
  TSTORE(small, t);
  EXPECT_TRUE(npu::run_in_order(npu::core.trace).empty());
  TSTORE(w, all);
  EXPECT_EQ(npu::run_in_order(npu::core.trace).size(), 1u);
}

TEST_F(Pto, Elementwise) {
  Vec<float, 16, 64> a(10, 60), b(10, 60), c(10, 61), d(10, 60);
  TASSIGN(a, 0), TASSIGN(b, 4096), TASSIGN(c, 8192), TASSIGN(d, 32);
  TEXP(b, a);
  accepted();
  TEXP(a, a);
  accepted();
  TADD(b, a, c);
  refused("valid regions of operands differ");
  TEXP(d, a);
  refused("overlap in part");
  Vec<half, 16, 64> h(10, 60);
  TASSIGN(h, 16384);
  TCVT(h, a, RoundMode::CAST_RINT);
  accepted();
  TCVT(h, a, RoundMode::CAST_NONE);
  refused("rounds to nearest even");
}

TEST_F(Pto, RowReductions) {
  Vec<float, 16, 64> a(10, 60), scratch(10, 60);
  Column<16> m(10), other(9);
  TASSIGN(a, 0), TASSIGN(scratch, 4096), TASSIGN(m, 8192), TASSIGN(other, 8192);
  TROWMAX(m, a, scratch);
  accepted();
  TROWMAX(m, a, a);
  refused("overlap");
  TROWSUM(other, a, scratch);
  refused("other rows");
  TROWEXPANDSUB(a, a, m);
  accepted();
  TROWEXPANDSUB(a, a, other);
  refused("valid regions of operands differ");
  // The scratch tile holds nothing afterwards.
  TROWMAX(m, a, scratch);
  TEXP(a, scratch);
  EXPECT_FALSE(npu::run_in_order(npu::core.trace).empty());
}

TEST_F(Pto, Products) {
  TileLeft<half, 32, 48, DYNAMIC, DYNAMIC> a(30, 40), a2(30, 41);
  TileRight<half, 48, 64, DYNAMIC, DYNAMIC> b(40, 50);
  TileAcc<float, 32, 64, DYNAMIC, DYNAMIC> c(30, 50), other(30, 50);
  Tile<TileType::Bias, float, 1, 64, BLayout::RowMajor, 1, DYNAMIC> t(50), t2(49);
  TASSIGN(a, 0), TASSIGN(a2, 0), TASSIGN(b, 0), TASSIGN(c, 0), TASSIGN(other, 8192), TASSIGN(t, 0), TASSIGN(t2, 0);
  TMATMUL(c, a, b);
  accepted();
  TMATMUL_ACC(c, c, a, b);
  accepted();
  TMATMUL_BIAS(c, a, b, t);
  accepted();
  TMATMUL(c, a2, b);
  refused("valid regions of a product disagree");
  TMATMUL_ACC(c, other, a, b);
  refused("accumulates in place");
  TMATMUL_BIAS(c, a, b, t2);
  refused("other columns");
}

TEST_F(Pto, LoadsToNz) {
  Nz<32, 48> m(2, 40);
  TASSIGN(m, 0);
  auto near = view(x, 2, 40, 65535), far = view(x, 2, 40, 65536);
  TLOAD(m, near);
  accepted();
  TLOAD(m, far);
  refused("rows farther apart than 65535");
}

TEST_F(Pto, MovesToL0) {
  Nz<32, 48> m(30, 40), m2(30, 41);
  TileLeft<half, 32, 48, DYNAMIC, DYNAMIC> a(30, 40);
  TASSIGN(m, 0), TASSIGN(m2, 0), TASSIGN(a, 0);
  TMOV(a, m);
  accepted();
  TMOV(a, m2);
  refused("valid regions differ");
  TASSIGN(a, 256);
  refused("misaligned offset");
}

TEST_F(Pto, LayoutsAgreeWithTheFormatNames) {
  Nz<32, 32> nz(32, 32);
  TileLeft<half, 32, 32> zz;
  TileRight<half, 32, 32> zn;
  TileAcc<float, 32, 32> acc;
  TASSIGN(nz, 0), TASSIGN(zz, 0), TASSIGN(zn, 0), TASSIGN(acc, 0);
  const auto at = [](const npu::Place& p, int64_t i, int64_t j) {
    return int64_t(p.of(i, j) - p.at) / npu::size_of(p.type);
  };
  EXPECT_EQ(at(nz.place, 1, 0), 16);
  EXPECT_EQ(at(nz.place, 16, 0), 256);
  EXPECT_EQ(at(nz.place, 0, 16), 512);
  EXPECT_EQ(at(zz.place, 1, 0), 16);
  EXPECT_EQ(at(zz.place, 16, 0), 512);
  EXPECT_EQ(at(zz.place, 0, 16), 256);
  EXPECT_EQ(at(zn.place, 1, 0), 1);
  EXPECT_EQ(at(zn.place, 16, 0), 512);
  EXPECT_EQ(at(zn.place, 0, 16), 256);
  EXPECT_EQ(at(zn.place, 0, 1), 16);
  EXPECT_EQ(at(acc.place, 1, 0), 16);
  EXPECT_EQ(at(acc.place, 16, 0), 256);
  EXPECT_EQ(at(acc.place, 0, 16), 512);
}

}  // namespace
