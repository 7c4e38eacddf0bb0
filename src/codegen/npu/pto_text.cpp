// PTO tile instructions as `.pto` text: the destination-passing level (pto.* ins(...) outs(...)) inside MLIR's func,
// scf and arith. Index expressions become chains of arith operations; an event id that turns at run time becomes a
// switch, as ids are attributes in this text.
#include <algorithm>

#include "codegen/npu/language.h"

namespace gaf::npu {

using namespace kir;

namespace {

std::string lower(std::string_view s) {
  std::string r;
  for (char c : s) r += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return r;
}
std::string pipe(Pipe p) {
  std::string r = "PIPE_";
  for (char c : kPipeName[static_cast<int>(p)]) r += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return r;
}
std::string element(DType t) { return is_int(t) ? "i" + std::to_string(8 * bytes(t)) : std::string(name(t)); }

class PtoText final : public Language {
 public:
  explicit PtoText(const Facts& f) : Language(f), scopes_(1), types_(f.k.tiles.size()) { depth_ = 3; }

  void declare(const TileUse& u, const Expr& at) override {
    const Tile& t = *u.tile;
    const std::string type = tile_type(u);
    types_[static_cast<size_t>(&t - k_.tiles.data())] = type;
    std::string valid;  // operands stand for the extents that the type leaves open
    if (!u.rows.is_num()) valid += " valid_row = " + index(u.rows);
    if (!u.cols.is_num()) valid += " valid_col = " + index(u.cols);
    line("%" + t.name + " = pto.alloc_tile addr = " + i64(at) + valid + " : " + type);
  }

  void load(const TileUse& d, const MemoryUse& s) override {
    const auto [view, type] = partition(s);
    line("pto.tload ins(" + view + " : " + type + ") " + outs(d));
  }
  void store(const MemoryUse& d, const TileUse& s, bool relu) override {
    const auto [view, type] = partition(d);
    line("pto.tstore ins(%" + s.name() + " : " + type_of(s) + ") outs(" + view + " : " + type + ")" +
         (relu ? " {reluPreMode = #pto<relu_pre_mode normal_relu>}" : ""));
  }
  void move(const TileUse& d, const TileUse& s) override { line("pto.tmov " + ins({&s}) + " " + outs(d)); }

  void map(const MapUse& m) override {
    const std::string op = "pto." + lower(word(NpuLanguage::pto_text, m.op, m.form).name);
    if (m.op == S::cast) {
      line(op + " ins(%" + m.a.name() + " {rmode = #pto<round_mode CAST_RINT>} : " + type_of(m.a) + ") " + outs(m.dst));
      return;
    }
    std::vector<const TileUse*> tiles;
    for (const TileUse* u : {&m.a, &m.b})
      if (u->tile) tiles.push_back(u);
    std::string number;
    if (m.form == Form::scalar || m.form == Form::fill) number = constant(m.dst.tile->type, m.number);
    line(op + " " + ins(tiles, number, element(m.dst.tile->type)) + " " + outs(m.dst));
  }
  void reduce(S op, const TileUse& d, const TileUse& s, const Tile& tmp) override {
    const TileUse t{&tmp, tmp.rows, tmp.cols};
    line("pto." + lower(reduction_word(NpuLanguage::pto_text, op).name) + " " + ins({&s, &t}) + " " + outs(d));
  }
  void mma(const TileUse& d, const TileUse& a, const TileUse& b, const TileUse* bias, bool add) override {
    line(bias  ? "pto.tmatmul.bias " + ins({&a, &b, bias}) + " " + outs(d)
         : add ? "pto.tmatmul.acc " + ins({&d, &a, &b}) + " " + outs(d)
               : "pto.tmatmul " + ins({&a, &b}) + " " + outs(d));
  }

  void sync(const Sync& s) override {
    if (s.kind == SyncKind::fence) return line("pto.pipe_barrier \"" + pipe(s.from) + "\"");
    const std::string call = std::string(s.kind == SyncKind::set ? "pto.set_flag" : "pto.wait_flag") + "[\"" +
                             pipe(s.from) + "\", \"" + pipe(s.to) + "\", \"EVENT_ID";
    if (s.event.is_num()) return line(call + std::to_string(s.event.num()) + "\"]");
    const Range ids = s.event.range(std::vector<Range>(k_.syms.size(), {0, INT32_MAX}));
    line("scf.index_switch " + index(s.event));
    for (int64_t id = std::max<int64_t>(ids.lo, 0); id <= std::min<int64_t>(ids.hi, 7); id++) {
      line("case " + std::to_string(id) + " {");
      line("  " + call + std::to_string(id) + "\"]");
      line("  scf.yield");
      line("}");
    }
    line("default {");
    line("  scf.yield");
    line("}");
  }

  void split(const For& f, const Expr& trips) override {
    const std::string b = fresh(), n = fresh(), from = fresh(), to = fresh(), i = f.axes.size() == 1 ? "" : fresh();
    line(b + " = pto.get_block_idx");
    line(n + " = pto.get_block_num");
    const std::string block = operation("index_cast", b + " : i64 to index"),
                      blocks = operation("index_cast", n + " : i64 to index");
    const std::string all = index(trips), next = operation("addi", block + ", " + number(1) + " : index");
    auto part = [&](const std::string& name, const std::string& of) {
      const std::string x = operation("muli", all + ", " + of + " : index");
      line(name + " = arith.divsi " + x + ", " + blocks + " : index");
    };
    part(from, block), part(to, next);
    const Axis& first = f.axes[0];
    const bool plain = f.axes.size() == 1 && first.lo.is(0) && first.step == 1;
    const std::string counter = plain ? symbol(first.sym) : fresh();
    line("scf.for " + counter + " = " + from + " to " + to + " step " + number(1) + " {");
    open();
    if (plain) return;
    std::string rest = counter;
    for (size_t j = f.axes.size(); j-- > 0;) {
      const Axis& a = f.axes[j];
      const std::string own = index(ceildiv(a.hi - a.lo, a.step));
      std::string at = rest;
      if (j > 0) {
        at = operation("remsi", rest + ", " + own + " : index");
        rest = operation("divsi", rest + ", " + own + " : index");
      }
      at = operation("muli", at + ", " + number(a.step) + " : index");
      line(symbol(a.sym) + " = arith.addi " + at + ", " + index(a.lo) + " : index");
    }
  }
  void loop(const Axis& a) override {
    const std::string lo = index(a.lo), hi = index(a.hi);
    line("scf.for " + symbol(a.sym) + " = " + lo + " to " + hi + " step " + number(a.step) + " {");
    open();
  }
  void branch(const If& i) override {
    static constexpr std::string_view kPredicate[] = {"slt", "sle", "eq", "ne"};
    const std::string a = index(i.a), b = index(i.b);
    line("scf.if " +
         operation("cmpi", std::string(kPredicate[static_cast<int>(i.cmp)]) + ", " + a + ", " + b + " : index") + " {");
    open();
  }
  void otherwise() override {
    close_scope();
    line("} else {");
    open();
  }
  void close() override {
    close_scope();
    line("}");
  }

  std::string file() override {
    bool cube = false;
    for (const Tile& t : k_.tiles) cube = cube || t.mem != Mem::ub;
    std::string parameters;
    int i = 0;
    for (int p : kir::parameters(k_))
      parameters +=
          (i ? ", %p" : "%p") + std::to_string(i) + ": !pto.ptr<" + element(k_.bufs[static_cast<size_t>(p)].type) + ">",
          i++;
    return header(f_, NpuLanguage::pto_text, "//") + "module {\n  func.func @" + k_.name + "(" + parameters +
           ") {\n    pto.section." + (cube ? "cube" : "vector") + " {\n" + constants_ + body_ +
           "    }\n    return\n  }\n}\n";
  }

 private:
  std::vector<std::vector<std::pair<Expr, std::string>>> scopes_;  // values at hand, of the blocks around
  std::vector<std::string> types_;                                 // of each tile
  std::string constants_;
  std::vector<std::string> written_;  // constants that stand in constants_
  int names_ = 0;

  std::string fresh() { return "%" + std::to_string(names_++); }
  std::string symbol(int id) const { return "%" + k_.syms[static_cast<size_t>(id)].name; }
  void open() { depth_++, scopes_.emplace_back(); }
  void close_scope() { depth_--, scopes_.pop_back(); }

  std::string constant_line(const std::string& name, const std::string& value) {
    if (std::find(written_.begin(), written_.end(), name) == written_.end()) {
      written_.push_back(name);
      constants_ += "      " + name + " = arith.constant " + value + "\n";
    }
    return name;
  }
  std::string number(int64_t x) {
    return constant_line(x < 0 ? "%c.m" + std::to_string(-x) : "%c." + std::to_string(x),
                         std::to_string(x) + " : index");
  }
  std::string constant(DType t, double v) {
    const std::string s = c_number(t, v), digits = s.substr(s.find('(') + 1, s.size() - s.find('(') - 2);
    std::string name = "%c." + element(t) + "_" + digits;  // no name of a kernel has a dot
    std::replace(name.begin(), name.end(), '+', '_');
    std::replace(name.begin(), name.end(), '-', 'm');
    return constant_line(name, digits + " : " + element(t));
  }
  std::string operation(std::string_view op, const std::string& operands) {
    const std::string name = fresh();
    line(name + " = arith." + std::string(op) + " " + operands);
    return name;
  }
  std::string i64(const Expr& x) {
    if (x.is_num()) return constant_line("%c." + std::to_string(x.num()) + "_i64", std::to_string(x.num()) + " : i64");
    return operation("index_cast", index(x) + " : index to i64");
  }

  std::string index(const Expr& x) {
    if (x.is_num()) return number(x.num());
    if (x.op() == ExprOp::sym) return symbol(x.sym_id());
    for (const auto& scope : scopes_)
      for (const auto& [known, name] : scope)
        if (known == x) return name;
    static constexpr std::string_view kOp[] = {"", "", "addi", "muli", "divsi", "remsi", "minsi", "maxsi"};
    std::string value = index(x.args()[0]);
    for (const Expr& a : x.args().subspan(1)) {
      const std::string b = index(a);
      value = operation(kOp[static_cast<int>(x.op())], value + ", " + b + " : index");
    }
    scopes_.back().emplace_back(x, value);
    return value;
  }

  std::string tile_type(const TileUse& u) const {
    const Tile& t = *u.tile;
    const int64_t block = 32 / bytes(t.type), height = u.column() ? (t.rows + block - 1) / block * block : t.rows;
    std::string_view location = "vec", outer = u.column() ? "col_major" : "row_major", inner = "none_box";
    switch (t.mem) {
      case Mem::l1:
        location = "mat";
        if (t.rows > 1) outer = "col_major", inner = "row_major";
        break;
      case Mem::bt: location = "bias"; break;
      case Mem::l0a: location = "left", inner = "row_major"; break;
      case Mem::l0b: location = "right", inner = "col_major"; break;
      case Mem::l0c: location = "acc", outer = "col_major", inner = "row_major"; break;
      default: break;
    }
    auto extent = [](const Expr& x) { return x.is_num() ? std::to_string(x.num()) : std::string("?"); };
    return "!pto.tile_buf<loc=" + std::string(location) + ", dtype=" + element(t.type) +
           ", rows=" + std::to_string(height) + ", cols=" + std::to_string(t.cols) + ", v_row=" + extent(u.rows) +
           ", v_col=" + extent(u.cols) + ", blayout=" + std::string(outer) + ", slayout=" + std::string(inner) +
           ", fractal=" + (t.mem == Mem::l0c ? "1024" : "512") + ", pad=0>";
  }
  std::string type_of(const TileUse& u) const { return types_[static_cast<size_t>(u.tile - k_.tiles.data())]; }
  std::string ins(const std::vector<const TileUse*>& tiles, const std::string& number = "",
                  const std::string& number_type = "") const {
    std::string names, types;
    for (const TileUse* u : tiles) {
      names += (names.empty() ? "%" : ", %") + u->name();
      types += (types.empty() ? "" : ", ") + type_of(*u);
    }
    if (!number.empty()) {
      names += (names.empty() ? "" : ", ") + number;
      types += (types.empty() ? "" : ", ") + number_type;
    }
    return "ins(" + names + " : " + types + ")";
  }
  std::string outs(const TileUse& u) const { return "outs(%" + u.name() + " : " + type_of(u) + ")"; }

  // A window of a parameter, and its type.
  std::pair<std::string, std::string> partition(const MemoryUse& u) {
    const std::string e = element(u.type), p = "%p" + std::to_string(u.parameter);
    std::string base = p;
    if (!u.offset.is(0)) {
      const std::string at = index(u.offset);
      base = fresh();
      line(base + " = pto.addptr " + p + ", " + at + " : !pto.ptr<" + e + "> -> !pto.ptr<" + e + ">");
    }
    const std::string rows = index(u.rows), cols = index(u.cols), ld = index(u.stride), one = number(1),
                      zero = number(0);
    const std::string view = fresh(), part = fresh(), type = "!pto.partition_tensor_view<?x?x" + e + ">";
    line(view + " = pto.make_tensor_view " + base + ", shape = [" + rows + ", " + cols + "], strides = [" + ld + ", " +
         one + "] : !pto.tensor_view<?x?x" + e + ">");
    line(part + " = pto.partition_view " + view + ", offsets = [" + zero + ", " + zero + "], sizes = [" + rows + ", " +
         cols + "] : !pto.tensor_view<?x?x" + e + "> -> " + type);
    return {part, type};
  }
};

}  // namespace

std::unique_ptr<Language> pto_text(const Facts& f) { return std::make_unique<PtoText>(f); }

}  // namespace gaf::npu
