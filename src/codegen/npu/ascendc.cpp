// Ascend C, static tensor form: every tile is a LocalTensor at a byte offset, every statement one call of an
// instruction or of a helper from the prelude.
#include "codegen/npu/ascendc_prelude.h"
#include "codegen/npu/index.h"
#include "codegen/npu/language.h"

namespace gaf::npu {

using namespace kir;

namespace {

std::string upper(std::string_view s) {
  std::string r;
  for (char c : s) r += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return r;
}
std::string pipe(Pipe p) { return upper(kPipeName[static_cast<int>(p)]); }

class AscendC final : public CLanguage {
 public:
  using CLanguage::CLanguage;

  void declare(const TileUse& u, const Expr& at) override {
    const Tile& t = *u.tile;
    const std::string type(c_type(t.type));
    const int64_t whole = (t.size_bytes() + 31) / 32 * 32 / bytes(t.type);  // packed columns fill their last block
    line("LocalTensor<" + type + "> " + t.name + "(TPosition::" + position(u) + ", " + index(at) + ", " +
         std::to_string(whole) + ");");
  }

  void load(const TileUse& d, const MemoryUse& s) override {
    const bool l1 = d.tile->mem == Mem::l1;
    std::string to = d.name();
    if (!l1) {
      to += ", " + number(d.tile->cols);
    } else if (d.tile->rows == 1) {
      to += ", 1";
    } else if (f_.goes_to(d) == Mem::l0a && !(d.rows.is_num() && d.rows.num() > 1)) {
      to += ", " + help_.need("left_height") + "(" + index(d.rows) + ", " + number(d.tile->rows) + ")";
    } else {
      to += ", " + number(d.tile->rows);
    }
    const bool far = l1 && !s.rows.is(1) && !(s.stride.is_num() && s.stride.num() <= 65535);
    line(help_.need(!l1   ? "gm_to_ub"
                    : far ? "long_gm_to_l1"
                          : "gm_to_l1") +
         "(" + to + ", " + address(s) + ", " + index(s.rows) + ", " + index(s.cols) + ", " + index(s.stride) + ");");
  }

  void store(const MemoryUse& d, const TileUse& s, bool relu) override {
    if (s.tile->mem == Mem::l0c) {
      const char* cast = d.type == DType::f16 ? "F322F16" : d.type == DType::bf16 ? "F322BF16" : "NoQuant";
      line(help_.need("l0c_to_gm") + "<QuantMode_t::" + cast + ", " + (relu ? "true" : "false") + ">(" + address(d) +
           ", " + index(d.stride) + ", " + s.name() + ", " + index(s.rows) + ", " + index(s.cols) + ");");
      return;
    }
    line(help_.need("ub_to_gm") + "(" + address(d) + ", " + index(d.rows) + ", " + index(d.cols) + ", " +
         index(d.stride) + ", " + s.name() + ", " + number(s.tile->cols) + ");");
  }

  void move(const TileUse& d, const TileUse& s) override {
    const std::string sizes = index(s.rows) + ", " + index(s.cols);
    if (d.tile->mem == Mem::bt)
      line(help_.need("l1_to_bt") + "(" + d.name() + ", " + s.name() + ", " + index(s.cols) + ");");
    else
      line(help_.need(d.tile->mem == Mem::l0a ? "l1_to_l0a" : "l1_to_l0b") + "(" + d.name() + ", " + s.name() + ", " +
           number(s.tile->rows) + ", " + sizes + ");");
  }

  void map(const MapUse& m) override {
    const std::string w(word(NpuLanguage::ascendc, m.op, m.form).name);
    const DType type = m.dst.tile->type;
    if (m.form == Form::column) {
      line(help_.need(long_rows(m.dst) ? "long_column" : "column", w) + "(" + m.dst.name() + ", " + m.a.name() + ", " +
           m.b.name() + ", " + m.tmp->name + ", " + sizes(m.dst) + ");");
      return;
    }
    std::string args = m.dst.name();
    for (const TileUse* u : {&m.a, &m.b})
      if (u->tile) args += ", " + u->name();
    if (m.form == Form::scalar || m.form == Form::fill) args += ", " + c_number(type, m.number);
    const bool cast = m.op == S::cast;
    const std::string mode = cast ? "RoundMode::" + round_mode(m.a.tile->type, type) : "";
    if (gapless(m.dst)) {
      line(w + "(" + args + (cast ? ", " + mode : "") + ", " + index(m.dst.rows * m.dst.cols) + ");");
      return;
    }
    std::string name;
    if (m.form == Form::fill) {
      name = help_.need("fill_rows");
    } else if (cast) {
      name = help_.need(long_rows(m.dst) || long_rows(m.a) ? "long_cast" : "rows_cast") + "<" + mode + ">";
    } else {
      const std::string kind = m.form == Form::unary ? "unary" : m.form == Form::binary ? "binary" : "scalar";
      name = help_.need((long_rows(m.dst) ? "long_" : "rows_") + kind, w);
    }
    line(name + "(" + args + ", " + sizes(m.dst) + ");");
  }

  void reduce(S op, const TileUse& d, const TileUse& s, const Tile& tmp) override {
    const std::string w(word(NpuLanguage::ascendc, op, Form::binary).name);
    line(help_.need(long_rows(s) ? "long_reduce" : "reduce", w) + "(" + d.name() + ", " + s.name() + ", " + tmp.name +
         ", " + sizes(s) + ");");
  }

  void mma(const TileUse& d, const TileUse& a, const TileUse& b, const TileUse* bias, bool add) override {
    const std::string call = bias ? help_.need("mmad_bias") : help_.need("mmad") + (add ? "<true>" : "<false>");
    line(call + "(" + d.name() + ", " + a.name() + ", " + b.name() + (bias ? ", " + bias->name() : "") + ", " +
         index(a.rows) + ", " + index(a.cols) + ", " + index(b.cols) + ");");
  }

  void sync(const Sync& s) override {
    if (s.kind == SyncKind::fence) return line("PipeBarrier<PIPE_" + pipe(s.from) + ">();");
    line(std::string(s.kind == SyncKind::set ? "Set" : "Wait") + "Flag<HardEvent::" + pipe(s.from) + "_" + pipe(s.to) +
         ">(" + index(s.event) + ");");
  }

  std::string file() override {
    if (least_) help_.need("least");
    if (most_) help_.need("most");
    std::string s = header(f_, NpuLanguage::ascendc, "//");
    s += "#include \"kernel_operator.h\"\nusing namespace AscendC;\n" + help_.text() + "\n";
    std::string parameters, views;
    int i = 0;
    for (int p : kir::parameters(k_)) {
      const std::string n = std::to_string(i++), type(c_type(k_.bufs[static_cast<size_t>(p)].type));
      parameters += (n == "0" ? "" : ", ") + ("GM_ADDR p" + n);
      views +=
          "  GlobalTensor<" + type + "> g" + n + ";\n  g" + n + ".SetGlobalBuffer((__gm__ " + type + "*)p" + n + ");\n";
    }
    return s + "extern \"C\" __global__ __aicore__ void " + k_.name + "(" + parameters + ") {\n" + views + body_ +
           "}\n";
  }

 private:
  AscendcPrelude help_;

  std::string_view block_index() const override { return "GetBlockIdx()"; }
  std::string_view block_count() const override { return "GetBlockNum()"; }

  static std::string number(int64_t x) { return std::to_string(x); }
  std::string address(const MemoryUse& u) { return "g" + number(u.parameter) + "[" + index(u.offset) + "]"; }
  std::string sizes(const TileUse& u) { return index(u.rows) + ", " + index(u.cols) + ", " + number(u.tile->cols); }

  std::string position(const TileUse& u) const {
    switch (u.tile->mem) {
      case Mem::l1: return f_.goes_to(u) == Mem::l0b ? "B1" : f_.goes_to(u) == Mem::bt ? "C1" : "A1";
      case Mem::l0a: return "A2";
      case Mem::l0b: return "B2";
      case Mem::l0c: return "CO1";
      case Mem::bt: return "C2";
      default: return "VECCALC";
    }
  }
  // Valid elements lie without gaps, so that one count tells them all.
  static bool gapless(const TileUse& u) { return u.tile->cols == 1 || u.tile->rows == 1 || u.cols.is(u.tile->cols); }
  // One instruction a row is fewer, or the rows are farther apart than a repeat can step.
  static bool long_rows(const TileUse& u) {
    const int64_t size = bytes(u.tile->type), repeats = (u.tile->cols * size + 255) / 256;
    return u.tile->cols * size / 32 > 255 || (repeats > 1 && repeats > 2 * u.tile->rows);
  }
  // Exact where the result holds every value of the operand, else to the nearest, half to even.
  static std::string round_mode(DType from, DType to) {
    return bytes(to) > bytes(from) && is_float(to) ? "CAST_NONE" : "CAST_RINT";
  }
};

}  // namespace

std::unique_ptr<Language> ascendc(const Facts& f) { return std::make_unique<AscendC>(f); }

}  // namespace gaf::npu
