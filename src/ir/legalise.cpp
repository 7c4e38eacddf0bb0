// legalise: turns statements a target has no instruction for into statements it has. Scalar ops without a cost there
// are expanded from a table of texts over other ops; half precision is computed through f32 where the vector unit does
// not compute in it; an mma larger than the register tile is split. Results go through tiles of the map memory, reused
// within a block. Statements that need scratch get it (legalise_scratch.cpp). Expansions hold to about 1e-6 of the
// result's size.
#include <algorithm>

#include "base/error.h"
#include "ir/kernel.h"
#include "ir/legalise_scratch.h"

namespace gaf::kir {
namespace {

struct Expansion {
  S op;
  std::string_view text;
};
// erf: Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7). sin: reduced to [-pi/2, pi/2] with pi in two parts, then
// the Taylor polynomial to x^11. expm1 and log1p: Kahan's quotients, exact where 1 + x rounds.
constexpr Expansion kExpansions[] = {
    {S::sign, "select(lt(a, 0), -1, select(lt(0, a), 1, a))"},
    {S::rem, "a - b * trunc(a / b)"},
    {S::minp, "select(isnan(a), a, select(isnan(b), b, min(a, b)))"},
    {S::maxp, "select(isnan(a), a, select(isnan(b), b, max(a, b)))"},
    {S::expm1,
     "select(lt(abs(a), 0.00001), a, select(lt(a, -17), -1, select(lt(20, a), exp(a) - 1, (exp(a) - 1) * a / "
     "log(exp(a)))))"},
    {S::log1p, "select(eq(1 + a, 1), a, select(lt(1e30, a), log(a), log(1 + a) * (a / ((1 + a) - 1))))"},
    {S::pow,
     "select(eq(a, 0), select(eq(b, 0), 1, select(lt(0, b), 0, inf)), exp(b * log(abs(a))) * select(lt(0, a), 1, "
     "select(eq(floor(b), b), 1 - 2 * abs(b - 2 * floor(b * 0.5)), nan)))"},
    {S::tanh,
     "select(lt(abs(a), 0.1), a * (1 - a * a * (0.3333333333333333 - a * a * (0.13333333333333333 - a * a * "
     "0.05396825396825397))), "
     "1 - 2 / (exp(2 * a) + 1))"},
    {S::sigmoid, "1 / (1 + exp(-a))"},
    {S::erf,
     "select(lt(a, 0), -1, 1) * (1 - exp(-(a * a)) * ((((1.061405429 / (1 + 0.3275911 * abs(a)) - 1.453152027) / (1 + "
     "0.3275911 * abs(a)) + "
     "1.421413741) / (1 + 0.3275911 * abs(a)) - 0.284496736) / (1 + 0.3275911 * abs(a)) + 0.254829592) / (1 + "
     "0.3275911 * abs(a)))"},
};
// r: a less k = round(a / pi + shift) multiples of pi; odd k turn the sign. Written once for sin and cos.
std::string sine(std::string_view shift) {
  std::string k = "round(a * 0.3183098861837907" + std::string(shift) + ")";
  std::string whole = shift.empty() ? k : "(" + k + " - 0.5)";
  std::string r = "((a - " + whole + " * 3.140625) - " + whole + " * 0.0009676535897932795)";
  std::string q = "(" + r + " * " + r + ")";
  return r + " * (1 + " + q + " * (-0.16666666666666666 + " + q + " * (0.008333333333333333 + " + q +
         " * (-0.0001984126984126984 + " + q + " * (2.7557319223985893e-06 - " + q +
         " * 2.505210838544172e-08))))) * (1 - 2 * (" + k + " - 2 * floor(" + k + " * 0.5)))";
}

class Legaliser {
 public:
  Legaliser(Kernel k, const Target& t) : k_(std::move(k)), t_(t) {}

  Kernel run() {
    Body b = std::move(k_.body);
    k_.body = {};
    k_.body = body(std::move(b));
    add_scratch(k_, t_);
    return std::move(k_);
  }

 private:
  Kernel k_;
  const Target& t_;
  Body* out_ = nullptr;
  int line_ = 0, names_ = 0;
  std::vector<int> pool_;  // tiles of the block that nothing uses any more

  Body body(Body in) {
    Body out;
    Body* outer = std::exchange(out_, &out);
    std::vector<int> pool = std::exchange(pool_, {});
    for (Stmt& s : in) {
      line_ = s.line;
      if (For* f = std::get_if<For>(&s.alt)) f->body = body(std::move(f->body));
      if (If* i = std::get_if<If>(&s.alt)) i->yes = body(std::move(i->yes)), i->no = body(std::move(i->no));
      if (Map* m = std::get_if<Map>(&s.alt); m && map(*m)) continue;
      if (Reduce* r = std::get_if<Reduce>(&s.alt); r && reduce(*r)) continue;
      if (Mma* m = std::get_if<Mma>(&s.alt); m && mma(*m)) continue;
      out.push_back(std::move(s));
    }
    out_ = outer;
    pool_ = std::move(pool);
    return out;
  }
  template <class T>
  void put(T s) {
    out_->push_back({std::move(s), line_});
  }

  // ---- temporary tiles ----
  Ref borrow(DType t, int64_t rows, int64_t cols) {
    for (size_t i = 0; i < pool_.size(); i++) {
      const Tile& x = k_.tiles[static_cast<size_t>(pool_[i])];
      if (x.type != t || x.rows != rows || x.cols != cols) continue;
      int id = pool_[i];
      pool_.erase(pool_.begin() + static_cast<long>(i));
      return {true, id, {}, false};
    }
    Tile x;
    do x.name = "w" + std::to_string(names_++);
    while (std::any_of(k_.tiles.begin(), k_.tiles.end(), [&](const Tile& o) { return o.name == x.name; }) ||
           std::any_of(k_.syms.begin(), k_.syms.end(), [&](const Symbol& o) { return o.name == x.name; }) ||
           std::any_of(k_.bufs.begin(), k_.bufs.end(), [&](const Buf& o) { return o.name == x.name; }));
    x.type = t, x.rows = rows, x.cols = cols, x.mem = t_.map_dst;
    k_.tiles.push_back(std::move(x));
    int id = static_cast<int>(k_.tiles.size()) - 1;
    put(Declare{id});
    return {true, id, {}, false};
  }
  // A tile for a value of like's extents: whole if `like` is a whole tile, else a part with the same extents.
  Ref borrow_like(const Ref& like, DType t) {
    auto [rows, cols] = extents(k_, like);
    int64_t most_rows = rows.is_num() ? rows.num() : like.tile ? k_.tiles[static_cast<size_t>(like.id)].rows : t_.mma.m;
    int64_t most_cols = cols.is_num() ? cols.num()
                        : like.tile   ? k_.tiles[static_cast<size_t>(like.id)].cols
                                      : t_.row_lanes;
    Ref r = borrow(t, most_rows, most_cols);
    if (!like.tile || !like.at.empty()) r.at = {{0, rows, 1}, {0, cols, 1}};
    return r;
  }
  void release(const Ref& r) { pool_.push_back(r.id); }

  // ---- what the target has ----
  float cycles(S op) const {
    const ScalarRow& r = row(op);
    return t_.pipes ? r.npu : t_.isa == "avx512" ? r.avx512 : t_.isa == "avx2" ? r.avx2 : r.sse;
  }
  // Half precision that the vector unit does not compute in: what a target's file does not list; either kind on a CPU.
  bool narrow(DType t) const {
    const std::vector<DType>& has = t_.vector_dtypes;
    return (t == DType::bf16 || t == DType::f16) && std::find(has.begin(), has.end(), t) == has.end();
  }
  static bool moves(S op) { return op == S::mov || op == S::cast || op == S::bitcast || op == S::select; }

  DType operand_type(const Map& m) const {
    for (size_t i = m.op == S::select ? 1 : 0; i < m.args.size(); i++)
      if (const Ref* r = std::get_if<Ref>(&m.args[i])) return type_of(k_, *r);
    return type_of(k_, m.dst);
  }
  std::optional<ScalarProgram> expansion(S op, DType t) const {
    std::vector<DType> types(static_cast<size_t>(row(op).arity), t);
    DType result = result_dtype(op, t);
    if (op == S::sin) return parse_scalar(sine(""), types, result);
    if (op == S::cos) return parse_scalar(sine(" + 0.5"), types, result);
    if (op == S::xor_) return parse_scalar(t == DType::b1 ? "ne(a, b)" : "or(a, b) - and(a, b)", types, result);
    for (const Expansion& e : kExpansions)
      if (e.op == op) return parse_scalar(e.text, types, result);
    return std::nullopt;
  }

  bool map(const Map& m) {
    DType in = operand_type(m), to = type_of(k_, m.dst);
    bool wide = narrow(in) && !moves(m.op), missing = cycles(m.op) == 0;
    if (!wide && !missing) return false;
    DType type = wide ? DType::f32 : in, result = result_dtype(m.op, type);
    ScalarProgram p;
    if (!missing) {
      ScalarStep s{m.op, type, result, {}};
      for (size_t i = 0; i < m.args.size(); i++) s.args.push_back({ScalarArg::operand, static_cast<int>(i), 0});
      p.steps.push_back(std::move(s));
    } else if (auto e = expansion(m.op, type)) {
      p = std::move(*e);
    } else {
      return false;  // the verifier says that it is not an instruction
    }
    std::vector<Arg> operands;
    std::vector<Ref> casts;
    for (const Arg& a : m.args) {
      const Ref* r = std::get_if<Ref>(&a);
      if (!r || !wide) {
        operands.push_back(a);
        continue;
      }
      casts.push_back(borrow_like(*r, type));
      put(Map{casts.back(), S::cast, {*r}, -1});
      operands.push_back(casts.back());
    }
    bool through = to != result;  // the last step's dtype has to be cast to the destination's
    Ref last = program(p, operands, m.dst, through ? std::nullopt : std::optional(m.dst));
    if (through) put(Map{m.dst, S::cast, {last}, -1}), release(last);
    for (const Ref& r : casts) release(r);
    return true;
  }

  // Writes the steps; the last one to `dst`, or to a borrowed tile that is returned.
  Ref program(const ScalarProgram& p, const std::vector<Arg>& operands, const Ref& like, std::optional<Ref> dst) {
    std::vector<size_t> last_use(p.steps.size(), 0);
    for (size_t i = 0; i < p.steps.size(); i++)
      for (const ScalarArg& a : p.steps[i].args)
        if (a.kind == ScalarArg::step) last_use[static_cast<size_t>(a.index)] = i;
    std::vector<Ref> results(p.steps.size());
    for (size_t i = 0; i < p.steps.size(); i++) {
      const ScalarStep& s = p.steps[i];
      Map m;
      m.op = s.op;
      for (const ScalarArg& a : s.args) {
        if (a.kind == ScalarArg::number)
          m.args.emplace_back(a.value);
        else if (a.kind == ScalarArg::operand)
          m.args.push_back(operands[static_cast<size_t>(a.index)]);
        else
          m.args.emplace_back(results[static_cast<size_t>(a.index)]);
      }
      results[i] = m.dst = i + 1 == p.steps.size() && dst ? *dst : borrow_like(like, s.out);
      put(std::move(m));
      for (size_t j = 0; j < i; j++)
        if (last_use[j] == i) release(results[j]);
    }
    return results.back();
  }

  bool reduce(const Reduce& r) {
    DType t = type_of(k_, r.src);
    if (!narrow(t)) return false;
    Ref wide = borrow_like(r.src, DType::f32), sum = borrow_like(r.dst, DType::f32);
    put(Map{wide, S::cast, {r.src}, -1});
    put(Reduce{sum, r.op, r.axis, wide, r.tmp});
    put(Map{r.dst, S::cast, {sum}, -1});
    release(wide), release(sum);
    return true;
  }

  // Rows r0 .. r0 + nr and columns c0 .. c0 + nc of a rectangle, where each comes from one slice.
  std::optional<Ref> part(const Ref& r, int64_t r0, int64_t nr, int64_t c0, int64_t nc) const {
    if (r.transposed) return std::nullopt;
    if (r.tile && r.at.empty()) return Builder::part(r, r0, nr, c0, nc);
    Ref p = r;
    std::vector<size_t> ranged;
    for (size_t i = 0; i < r.at.size(); i++)
      if (r.at[i].n) ranged.push_back(i);
    if (ranged.empty() || ranged.size() > 2) return std::nullopt;
    auto narrow_to = [&](size_t i, int64_t first, int64_t n) {
      p.at[i].at += Expr(first * p.at[i].step);
      p.at[i].n = n;
    };
    narrow_to(ranged.back(), c0, nc);
    if (ranged.size() == 2)
      narrow_to(ranged[0], r0, nr);
    else if (r0 != 0 || nr != 1)
      return std::nullopt;
    return p;
  }
  bool mma(const Mma& m) {
    if (t_.pipes) return false;
    auto [rows, cols] = extents(k_, m.dst);
    if (!rows.is_num() || !cols.is_num() || (rows.num() <= t_.mma.m && cols.num() <= t_.mma.n)) return false;
    Expr inner = extents(k_, m.a).second;
    if (!inner.is_num()) return false;
    Body parts;
    for (int64_t r = 0; r < rows.num(); r += t_.mma.m)
      for (int64_t c = 0; c < cols.num(); c += t_.mma.n) {
        int64_t nr = std::min<int64_t>(t_.mma.m, rows.num() - r), nc = std::min<int64_t>(t_.mma.n, cols.num() - c);
        auto d = part(m.dst, r, nr, c, nc), a = part(m.a, r, nr, 0, inner.num()), b = part(m.b, 0, inner.num(), c, nc);
        std::optional<Ref> bias;
        if (m.bias) bias = part(*m.bias, 0, 1, c, nc);
        if (!d || !a || !b || (m.bias && !bias)) return false;
        parts.push_back({Mma{*d, *a, *b, bias, m.add, r + c == 0 ? m.prefetch : std::vector<Ref>{}}, line_});
      }
    for (Stmt& s : parts) out_->push_back(std::move(s));
    return true;
  }
};

}  // namespace

Kernel legalise(Kernel k, const Target& t) { return Legaliser(std::move(k), t).run(); }

}  // namespace gaf::kir
