// Array files: what NumPy writes is read, what is damaged is refused.
#include "cli/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace gaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy(const std::string& dict, const std::string& data, char version = 1) {
  std::string s = "\x93NUMPY";
  s += {version, 0, static_cast<char>(dict.size()), 0};
  if (version > 1) s += std::string(2, '\0');
  return s + dict + data;
}
template <class T>
std::string raw(std::vector<T> v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}
std::string refusal(const std::string& bytes) {
  try {
    read_npy(bytes, "x.npy");
  } catch (const UserError& e) {
    EXPECT_EQ(e.info().code, "GAF8001");
    return e.what();
  }
  return "";
}
std::vector<double> values(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.numel(); i++) v.push_back(t.get(i));
  return v;
}

TEST(Npy, RoundTripOfEveryType) {
  for (int i = 0; i < kDTypes; i++) {
    const auto type = static_cast<DType>(i);
    Tensor t = Tensor::make(type, {2, 3});
    for (int64_t k = 0; k < 6; k++) t.set(k, static_cast<double>(type == DType::b1 ? k % 2 : k));
    const Tensor back = read_npy(write_npy(t), "x.npy");
    EXPECT_EQ(back.dims, t.dims);
    EXPECT_EQ(back.dtype, type == DType::bf16 ? DType::u16 : type);
    EXPECT_EQ(std::memcmp(back.as<char>(), t.as<char>(), static_cast<size_t>(t.size_bytes())), 0);
  }
  for (std::vector<int64_t> dims : {std::vector<int64_t>{}, {1}, {0}, {3, 0, 2}, {1, 1, 1, 1}}) {
    const std::string s = write_npy(Tensor::make(DType::f32, dims));
    EXPECT_EQ(read_npy(s, "x").dims, dims);
    EXPECT_EQ((s.size() - static_cast<size_t>(Tensor::make(DType::f32, dims).size_bytes())) % 64, 0U);
  }
}

TEST(Npy, OrdersAndVersions) {
  const std::string data = raw<float>({1, 2, 3, 4, 5, 6});
  EXPECT_THAT(values(read_npy(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", data), "x")),
              ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(values(read_npy(npy("{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"<f4\"}", data, 2), "x")),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(
      values(read_npy(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2L,), }", {"\x00\x01\x01\x00", 4}), "x")),
      ElementsAre(1, 256));
}

TEST(Npy, Refusals) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_THAT(refusal("hello"), HasSubstr("x.npy: not a .npy file"));
  EXPECT_THAT(refusal(npy(good, "1234567")), HasSubstr("truncated"));
  EXPECT_THAT(refusal(npy("{'descr': 'O', 'fortran_order': False, 'shape': (2,), }", "12345678")),
              HasSubstr("element type 'O'"));
  EXPECT_THAT(refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "12345678")),
              HasSubstr("plain numbers"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "12345678")),
              HasSubstr("bad shape"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4), }", "12345678")),
              HasSubstr("too large"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'shape': (2,)}", "12345678")), HasSubstr("not complete"));
  EXPECT_THAT(refusal(npy(good, "12345678", 9)), HasSubstr("unknown version"));
}

NamedTensors two() {
  Tensor a = Tensor::make(DType::f32, {2});
  a.set(0, 1.5), a.set(1, -2);
  return {{"a", a}, {"layer/b:0", tensor_i64({7, 8, 9})}};
}

TEST(Npz, RoundTrip) {
  const NamedTensors back = read_npz(write_npz(two()), "x.npz");
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].first, "a");
  EXPECT_TRUE(back[0].second.equal(two()[0].second));
  EXPECT_EQ(back[1].first, "layer/b:0");
  EXPECT_TRUE(back[1].second.equal(two()[1].second));
  EXPECT_TRUE(read_npz(write_npz({}), "x.npz").empty());
  EXPECT_EQ(write_npz(two()), write_npz(two()));
}

TEST(Npz, DamageIsFoundOrHarmless) {
  const std::string good = write_npz(two());
  for (size_t cut = 0; cut < good.size(); cut += 7)
    EXPECT_THROW(read_npz(good.substr(0, cut), "x.npz"), UserError) << cut;
  for (size_t i = 0; i < good.size(); i++) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    try {
      read_npz(bad, "x.npz");  // a changed date or comment is nothing
    } catch (const UserError& e) {
      EXPECT_EQ(e.info().code, "GAF8001");
    }
  }
  std::mt19937 rng(1);
  for (int i = 0; i < 200; i++) {
    std::string noise(300, '\0');
    for (char& c : noise) c = static_cast<char>(rng());
    EXPECT_THROW(read_npz(noise, "x.npz"), UserError);
  }
}

// numpy.savez_compressed(x=numpy.zeros(100, "f4")) of NumPy 2.4.6: deflated, with 64-bit sizes in the local header.
TEST(Npz, Compressed) {
  const unsigned char bytes[] = {
#include "zeros_npz.inc"
  };
  const NamedTensors r = read_npz({reinterpret_cast<const char*>(bytes), sizeof bytes}, "x.npz");
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(r[0].first, "x");
  EXPECT_EQ(r[0].second.dims, std::vector<int64_t>{100});
  for (double v : values(r[0].second)) EXPECT_EQ(v, 0);
}

}  // namespace
}  // namespace gaf
