// What the NPU text generators print: fragments for each kind of statement in each language, ragged sizes, the choice
// of helpers, names, the split over blocks. That the whole texts compile and compute is tests/npu.
#include "unit/codegen/npu_texts.h"

namespace gaf {
namespace {

using testing::HasSubstr;
using testing::Not;

// `for r in 0..N` over one vector statement on tiles of [rows, cols].
std::string vector_kernel(const std::string& statement, const std::string& tile, const std::string& part,
                          const std::string& shape = "f32[64, 4096]") {
  return "kernel @v target ascend910b1 (in %0: " + shape + ", out %1: " + shape + ") {\n  for i in 0..2 par {\n" +
         "    tile x: " + tile + " @ub\n    tile y: " + tile + " @ub\n    copy x = %0[" + part + "]\n    " + statement +
         "\n    copy %1[" + part + "] = y\n  }\n}\n";
}

TEST(NpuText, AscendCSoftmax) {
  const std::string s = npu_text(kNpuSoftmax, NpuLanguage::ascendc);
  for (const char* line : {
           "extern \"C\" __global__ __aicore__ void softmax(GM_ADDR p0, GM_ADDR p1) {",
           "for (int64_t i = 3 * GetBlockIdx() / GetBlockNum(); i < 3 * (GetBlockIdx() + 1) / GetBlockNum(); i++) {",
           "LocalTensor<half> h(TPosition::VECCALC, i % 2 * 3584, 1792);",
           "gm_to_ub(h, 112, g0[i * 1600], least(16, 37 - i * 16), 100, 100);",
           "rows_cast<RoundMode::CAST_NONE>(x, h, least(16, 37 - i * 16), 100, 112);",
           "reduce_max(m, x, ",
           "column_sub(x, x, m, ",
           "rows_exp(x, x, least(16, 37 - i * 16), 100, 112);",
           "reduce_add(m, x, ",
           "column_div(x, x, m, ",
           "rows_cast<RoundMode::CAST_RINT>(y, x, least(16, 37 - i * 16), 100, 112);",
           "ub_to_gm(g1[i * 1600], least(16, 37 - i * 16), 100, 100, y, 112);",
           "SetFlag<HardEvent::MTE2_V>(i % 2);",
           "PipeBarrier<PIPE_V>();",
       })
    EXPECT_THAT(s, HasSubstr(line));
  EXPECT_THAT(s, Not(HasSubstr("TPipe ")));  // own event ids are forbidden beside it
  EXPECT_THAT(s, Not(HasSubstr("mmad")));    // helpers that the kernel does not use
}

TEST(NpuText, AscendCMatMul) {
  const std::string s = npu_text(kNpuMatMul, NpuLanguage::ascendc);
  for (const char* line : {
           "const int64_t i = share / 2;",
           "const int64_t j = share % 2;",
           "gm_to_l1(bl, 1, g2[j * 32], 1, least(32, 50 - j * 32), least(32, 50 - j * 32));",
           "l1_to_bt(bt, bl, least(32, 50 - j * 32));",
           // a left operand of one row lies as it is, as Mmad reads it with m = 1
           "gm_to_l1(a1, left_height(least(32, 33 - i * 32), 32), g0[",
           "gm_to_l1(b1, 32, g1[j * 32 + k * 50], least(32, 70 - k), least(32, 50 - j * 32), 50);",
           "l1_to_l0a(a0, a1, 32, least(32, 33 - i * 32), least(32, 70 - k));",
           "l1_to_l0b(b0, b1, 32, least(32, 70 - k), least(32, 50 - j * 32));",
           "if (k == 0) {",
           "mmad_bias(c, a0, b0, bt, least(32, 33 - i * 32), least(32, 70 - k), least(32, 50 - j * 32));",
           "} else {",
           "mmad<true>(c, a0, b0, ",
           "l0c_to_gm<QuantMode_t::F322F16, true>(g3[",
           "LocalTensor<half> a1(TPosition::A1, ",
           "LocalTensor<half> b1(TPosition::B1, ",
           "LocalTensor<half> bl(TPosition::C1, ",
       })
    EXPECT_THAT(s, HasSubstr(line));
}

TEST(NpuText, Pto) {
  const std::string softmax = npu_text(kNpuSoftmax, NpuLanguage::pto);
  for (const char* line : {
           "extern \"C\" __global__ AICORE void softmax(__gm__ uint8_t* p0, __gm__ uint8_t* p1) {",
           "Tile<TileType::Vec, half, 16, 112, BLayout::RowMajor, DYNAMIC, 100> h(least(16, 37 - i * 16));",
           "TASSIGN(h, i % 2 * 3584);",
           "TASSIGN<7168>(x);",
           "Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, DYNAMIC, 1> m(least(16, 37 - i * 16));",
           "{ auto view = rows_of(g0 + i * 1600, least(16, 37 - i * 16), 100, 100); TLOAD(h, view); }",
           "TCVT(x, h, RoundMode::CAST_RINT);",
           "TROWMAX(m, x, ",
           "TROWEXPANDSUB(x, x, m);",
           "TEXP(x, x);",
           "TROWSUM(m, x, ",
           "TROWEXPANDDIV(x, x, m);",
           "TSTORE(view, y); }",
           "set_flag(PIPE_MTE2, PIPE_V, event_t(i % 2));",
           "pipe_barrier(PIPE_V);",
       })
    EXPECT_THAT(softmax, HasSubstr(line));
  const std::string product = npu_text(kNpuMatMul, NpuLanguage::pto);
  for (const char* line : {
           "TileAcc<float, 32, 32, DYNAMIC, DYNAMIC> c(least(32, 33 - i * 32), least(32, 50 - j * 32));",
           "Tile<TileType::Mat, half, 32, 32, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor> a1(",
           "Tile<TileType::Mat, half, 1, 32, BLayout::RowMajor, 1, DYNAMIC> bl(least(32, 50 - j * 32));",
           "Tile<TileType::Bias, float, 1, 32, BLayout::RowMajor, 1, DYNAMIC> bt(",
           "TileLeft<half, 32, 32, DYNAMIC, DYNAMIC> a0(",
           "TileRight<half, 32, 32, DYNAMIC, DYNAMIC> b0(",
           "TMOV(bt, bl);",
           "TMATMUL_BIAS(c, a0, b0, bt);",
           "TMATMUL_ACC(c, c, a0, b0);",
           "ReluPreMode::NormalRelu>(view, c); }",
       })
    EXPECT_THAT(product, HasSubstr(line));
}

TEST(NpuText, PtoText) {
  const std::string softmax = npu_text(kNpuSoftmax, NpuLanguage::pto_text);
  for (const char* line : {
           "func.func @softmax(%p0: !pto.ptr<f16>, %p1: !pto.ptr<f16>) {",
           "pto.section.vector {",
           "= pto.get_block_idx",
           "scf.for %i = ",
           "%h = pto.alloc_tile addr = ",
           "!pto.tile_buf<loc=vec, dtype=f16, rows=16, cols=112, v_row=?, v_col=100, blayout=row_major, "
           "slayout=none_box, ",
           "%m = pto.alloc_tile addr = ",
           "pto.tload ins(",
           "pto.tcvt ins(%h {rmode = #pto<round_mode CAST_RINT>} : ",
           "pto.trowmax ins(%x, ",
           "pto.trowexpandsub ins(%x, %m : ",
           "pto.texp ins(%x : ",
           "pto.tstore ins(%y : ",
           "scf.index_switch %",
           "pto.wait_flag[\"PIPE_V\", \"PIPE_MTE2\", \"EVENT_ID1\"]",
           "pto.pipe_barrier \"PIPE_V\"",
       })
    EXPECT_THAT(softmax, HasSubstr(line));
  const std::string product = npu_text(kNpuMatMul, NpuLanguage::pto_text);
  for (const char* line : {"pto.section.cube {", "loc=acc", "loc=left", "loc=right", "loc=bias", "fractal=1024",
                           "pto.tmatmul.bias ins(%a0, %b0, %bt : ", "pto.tmatmul.acc ins(%c, %a0, %b0 : ", "scf.if %",
                           "{reluPreMode = #pto<relu_pre_mode normal_relu>}"})
    EXPECT_THAT(product, HasSubstr(line));
}

// A value is defined before it is used, once, and in a scope that is still open.
TEST(NpuText, PtoTextDefinesWhatItUses) {
  for (const char* kernel : {kNpuSoftmax, kNpuMatMul}) {
    const std::string text = npu_text(kernel, NpuLanguage::pto_text);
    std::vector<std::vector<std::string>> scopes{{}};
    auto known = [&](const std::string& n) {
      for (const auto& s : scopes)
        if (std::find(s.begin(), s.end(), n) != s.end()) return true;
      return false;
    };
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("//")) continue;
      const size_t first = line.find_first_not_of(' ');
      if (line[first] == '}') scopes.pop_back();
      if (line.ends_with("{")) scopes.emplace_back();
      const bool defines = line[first] == '%' || line.find("func.func") != std::string::npos ||
                           line.find("scf.for") != std::string::npos;
      const bool only_one = line.find("func.func") == std::string::npos;
      bool target = defines;
      for (size_t at = line.find('%'); at != std::string::npos; at = line.find('%', at + 1)) {
        const size_t end = line.find_first_of(" ,:)]", at);
        const std::string name = line.substr(at, end - at);
        if (target) {
          EXPECT_FALSE(known(name)) << name << " again in " << line;
          scopes.back().push_back(name);
          target = !only_one;
        } else {
          EXPECT_TRUE(known(name)) << name << " in " << line << "\n" << text;
        }
      }
    }
    EXPECT_EQ(scopes.size(), 1u);
  }
}

TEST(NpuText, HeaderSaysWhatAUserMustKnow) {
  const std::string s = npu_text(kNpuSoftmax, NpuLanguage::ascendc);
  for (const char* line :
       {"// softmax(in p0: f16[37, 100], out p1: f16[37, 100])", "for ascend910b1", "CANN 8.3 or later",
        "automatic synchronisation off", "// Memory ub: ", " of 188416 bytes", "// Launch: 3 blocks on vector cores",
        "// Events (ids by source and destination pipe): v->mte2 0 1"})
    EXPECT_THAT(s, HasSubstr(line));
  EXPECT_THAT(npu_text(kNpuMatMul, NpuLanguage::pto), HasSubstr("a PTO edition whose TSTORE takes a ReluPreMode"));
  EXPECT_THAT(npu_text(kNpuMatMul, NpuLanguage::ascendc), HasSubstr("// Launch: 4 blocks on cube cores"));
}

TEST(NpuText, FilesOfTwoChipsDifferInTheirHeadersOnly) {
  for (NpuLanguage l : {NpuLanguage::ascendc, NpuLanguage::pto, NpuLanguage::pto_text}) {
    auto body = [&](const char* target) {
      const std::string s = npu_text(kNpuSoftmax, l, target);
      return s.substr(s.find(l == NpuLanguage::pto_text ? "module" : "#include"));
    };
    EXPECT_EQ(body("ascend910b1"), body("ascend910b4"));
    EXPECT_EQ(npu_text(kNpuSoftmax, l), npu_text(kNpuSoftmax, l));
  }
}

TEST(NpuText, VectorFormsByTheTilesShape) {
  auto ascendc = [](const std::string& k) { return npu_text(k, NpuLanguage::ascendc); };
  // whole rows: one count tells all elements
  EXPECT_THAT(ascendc(vector_kernel("y = exp(x)", "f32[16, 64]", "i*16:16, 0:64")), HasSubstr("Exp(y, x, 1024);"));
  // valid columns only: repeats that step over rows
  EXPECT_THAT(ascendc(vector_kernel("y = exp(x)", "f32[16, 64]", "i*16:16, 0:61")),
              HasSubstr("rows_exp(y, x, 16, 61, 64);"));
  // rows too far apart for a repeat's step of 255 blocks, and few long rows: one row after the other
  EXPECT_THAT(ascendc(vector_kernel("y = exp(x)", "f32[4, 2048]", "i*4:4, 0:2047")),
              HasSubstr("long_exp(y, x, 4, 2047, 2048);"));
  EXPECT_THAT(ascendc(vector_kernel("y = exp(x)", "f32[2, 512]", "i*2:2, 0:511")), HasSubstr("long_exp("));
  EXPECT_THAT(ascendc(vector_kernel("y = add(x, x)", "f32[16, 64]", "i*16:16, 0:61")),
              HasSubstr("rows_add(y, x, x, 16, 61, 64);"));
  // numbers: subtraction adds the negative, division by a power of two multiplies
  EXPECT_THAT(ascendc(vector_kernel("y = sub(x, 0.5)", "f32[16, 64]", "i*16:16, 0:64")),
              HasSubstr("Adds(y, x, float(-0.5), 1024);"));
  EXPECT_THAT(ascendc(vector_kernel("y = div(x, 4)", "f32[16, 64]", "i*16:16, 0:64")),
              HasSubstr("Muls(y, x, float(0.25), 1024);"));
  EXPECT_THAT(ascendc(vector_kernel("y = max(0, x)", "f32[16, 64]", "i*16:16, 0:60")),
              HasSubstr("rows_maxs(y, x, float(0.0), 16, 60, 64);"));
  EXPECT_THAT(ascendc(vector_kernel("y = neg(x)", "f32[16, 64]", "i*16:16, 0:64")),
              HasSubstr("Muls(y, x, float(-1.0), 1024);"));
  const std::string pto = npu_text(vector_kernel("y = max(0, x)", "f32[16, 64]", "i*16:16, 0:60"), NpuLanguage::pto);
  EXPECT_THAT(pto, HasSubstr("TMAXS(y, x, float(0.0));"));
}

TEST(NpuText, RowsFarApartAreLoadedOneByOne) {
  const std::string text =
      with(with(with(kNpuMatMul, "%1: f16[70, 50]", "%1: f16[70, 70000]"), "%2: f16[50]", "%2: f16[70000]"),
           "%3: f16[33, 50]", "%3: f16[33, 70000]");
  EXPECT_THAT(npu_text(text, NpuLanguage::ascendc), HasSubstr("long_gm_to_l1(b1, 32, g1["));
  EXPECT_THAT(npu_text(kNpuMatMul, NpuLanguage::ascendc), Not(HasSubstr("long_gm_to_l1")));
}

TEST(NpuText, NamesOfTheLanguageGiveWay) {
  const std::string text =
      with(with(kNpuSoftmax, "for i in", "for p0 in"), "i*16:min(16, 37 - i*16)", "p0*16:min(16, 37 - p0*16)");
  const std::string s =
      npu_text(with(text, "%1[i*16:min(16, 37 - i*16)", "%1[p0*16:min(16, 37 - p0*16)"), NpuLanguage::ascendc);
  EXPECT_THAT(s, HasSubstr("for (int64_t p0_ = "));
  EXPECT_THAT(s, HasSubstr("g0[p0_ * 1600]"));
}

TEST(NpuText, Blocks) {
  auto blocks = [](const std::string& text, const char* target) {
    return npu_blocks(finished(text, target), load_target(target));
  };
  EXPECT_EQ(blocks(kNpuSoftmax, "ascend910b1"), 3);
  EXPECT_EQ(blocks(kNpuMatMul, "ascend910b4"), 4);
  const std::string many = with(kNpuMatMul, "for i in 0..2, j", "for i in 0..100, j");
  const Target b1 = load_target("ascend910b1"), b4 = load_target("ascend910b4");
  EXPECT_EQ(npu_blocks(kir::parse_kernel(many), b1), 24);  // cube cores
  EXPECT_EQ(npu_blocks(kir::parse_kernel(many), b4), 20);
  EXPECT_EQ(npu_blocks(kir::parse_kernel(with(kNpuSoftmax, "0..3 par", "0..300 par")), b1), 48);  // vector cores
}

}  // namespace
}  // namespace gaf
