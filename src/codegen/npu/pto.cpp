// PTO tile instructions, C++ form: a tile is a typed object bound to a byte offset, its valid extents are part of it,
// and every statement is one instruction.
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
std::string pipe(Pipe p) { return "PIPE_" + upper(kPipeName[static_cast<int>(p)]); }

class Pto final : public CLanguage {
 public:
  using CLanguage::CLanguage;

  void declare(const TileUse& u, const Expr& at) override {
    const Tile& t = *u.tile;
    std::string valid;  // what the type leaves open
    auto extent = [&](const Expr& x) {
      if (x.is_num()) return std::to_string(x.num());
      valid += (valid.empty() ? "" : ", ") + index(x);
      return std::string("DYNAMIC");
    };
    const int64_t block = 32 / bytes(t.type), height = u.column() ? (t.rows + block - 1) / block * block : t.rows;
    const std::string type(c_type(t.type)), size = std::to_string(height) + ", " + std::to_string(t.cols);
    const std::string rows = extent(u.rows), cols = extent(u.cols), in = rows + ", " + cols;
    auto tile = [&](std::string_view location, std::string_view layout) {
      return "Tile<TileType::" + std::string(location) + ", " + type + ", " + size +
             ", BLayout::" + std::string(layout) + ", " + in;
    };
    std::string kind;
    switch (t.mem) {
      case Mem::l1:
        kind = t.rows == 1 ? tile("Mat", "RowMajor") + ">" : tile("Mat", "ColMajor") + ", SLayout::RowMajor>";
        break;
      case Mem::bt: kind = tile("Bias", "RowMajor") + ">"; break;
      case Mem::l0a: kind = "TileLeft<" + type + ", " + size + ", " + in + ">"; break;
      case Mem::l0b: kind = "TileRight<" + type + ", " + size + ", " + in + ">"; break;
      case Mem::l0c: kind = "TileAcc<" + type + ", " + size + ", " + in + ">"; break;
      default: kind = tile("Vec", u.column() ? "ColMajor" : "RowMajor") + ">";
    }
    line(kind + " " + t.name + (valid.empty() ? "" : "(" + valid + ")") + ";");
    line(at.is_num() ? "TASSIGN<" + std::to_string(at.num()) + ">(" + t.name + ");"
                     : "TASSIGN(" + t.name + ", " + index(at) + ");");
  }

  void load(const TileUse& d, const MemoryUse& s) override { line(view(s) + "TLOAD(" + d.name() + ", view); }"); }

  void store(const MemoryUse& d, const TileUse& s, bool relu) override {
    const std::string mode =
        relu ? "<decltype(" + s.name() + "), decltype(view), AtomicType::AtomicNone, ReluPreMode::NormalRelu>" : "";
    line(view(d) + "TSTORE" + mode + "(view, " + s.name() + "); }");
  }

  void move(const TileUse& d, const TileUse& s) override { line("TMOV(" + d.name() + ", " + s.name() + ");"); }

  void map(const MapUse& m) override {
    std::string args = m.dst.name();
    for (const TileUse* u : {&m.a, &m.b})
      if (u->tile) args += ", " + u->name();
    if (m.form == Form::scalar || m.form == Form::fill) args += ", " + c_number(m.dst.tile->type, m.number);
    if (m.op == S::cast) args += ", RoundMode::CAST_RINT";  // to the nearest, half to even; exact where nothing is lost
    line(std::string(word(NpuLanguage::pto, m.op, m.form).name) + "(" + args + ");");
  }

  void reduce(S op, const TileUse& d, const TileUse& s, const Tile& tmp) override {
    line(std::string(reduction_word(NpuLanguage::pto, op).name) + "(" + d.name() + ", " + s.name() + ", " + tmp.name +
         ");");
  }

  void mma(const TileUse& d, const TileUse& a, const TileUse& b, const TileUse* bias, bool add) override {
    const std::string ab = ", " + a.name() + ", " + b.name();
    line(bias  ? "TMATMUL_BIAS(" + d.name() + ab + ", " + bias->name() + ");"
         : add ? "TMATMUL_ACC(" + d.name() + ", " + d.name() + ab + ");"
               : "TMATMUL(" + d.name() + ab + ");");
  }

  void sync(const Sync& s) override {
    if (s.kind == SyncKind::fence) return line("pipe_barrier(" + pipe(s.from) + ");");
    line(std::string(s.kind == SyncKind::set ? "set" : "wait") + "_flag(" + pipe(s.from) + ", " + pipe(s.to) +
         ", event_t(" + index(s.event) + "));");
  }

  std::string file() override {
    std::string s = header(f_, NpuLanguage::pto, "//") + "#include <pto/pto-inst.hpp>\nusing namespace pto;\n";
    if (least_) s += "\nAICORE inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }\n";
    if (most_) s += "\nAICORE inline int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }\n";
    s += R"(
// rows x cols elements of an array in global memory whose rows are ld elements apart
using Extents = Shape<1, 1, 1, DYNAMIC, DYNAMIC>;
using Steps = Stride<1, 1, 1, DYNAMIC, 1>;
template <typename T>
AICORE inline GlobalTensor<T, Extents, Steps, Layout::ND> rows_of(__gm__ T* p, int64_t rows, int64_t cols, int64_t ld) {
  return GlobalTensor<T, Extents, Steps, Layout::ND>(p, Extents(int(rows), int(cols)), Steps(int(ld)));
}

)";
    std::string parameters, views;
    int i = 0;
    for (int p : kir::parameters(k_)) {
      const std::string n = std::to_string(i++), type(c_type(k_.bufs[static_cast<size_t>(p)].type));
      parameters += (n == "0" ? "" : ", ") + ("__gm__ uint8_t* p" + n);
      views += "  __gm__ " + type + "* g" + n + " = (__gm__ " + type + "*)p" + n + ";\n";
    }
    return s + "extern \"C\" __global__ AICORE void " + k_.name + "(" + parameters + ") {\n" + views + body_ + "}\n";
  }

 private:
  std::string_view block_index() const override { return "get_block_idx()"; }
  std::string_view block_count() const override { return "get_block_num()"; }

  std::string view(const MemoryUse& u) {
    return "{ auto view = rows_of(g" + std::to_string(u.parameter) + (u.offset.is(0) ? "" : " + " + index(u.offset)) +
           ", " + index(u.rows) + ", " + index(u.cols) + ", " + index(u.stride) + "); ";
  }
};

}  // namespace

std::unique_ptr<Language> pto(const Facts& f) { return std::make_unique<Pto>(f); }

}  // namespace gaf::npu
