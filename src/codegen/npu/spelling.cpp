// The spelling tables, and map statements sorted into the forms that the tables have words for.
#include "codegen/npu/spelling.h"

#include <array>
#include <cmath>

namespace gaf::npu {
namespace {

using kir::S;
constexpr size_t kOps = static_cast<size_t>(S::count);

struct Row {
  S op;
  std::string_view one;     // form unary or binary, by the op's arity; a column operand uses the binary word
  std::string_view scalar;  // with a number (fill for mov)
  std::string_view column;  // PTO has own instructions
  bool integers = false;
};

// Ascend C basic API; dtypes by the A2 / A3 rows of its documentation.
constexpr std::array<Row, kOps> kAscendC = {{
    {S::mov, "", "Duplicate", "", true},
    {S::cast, "Cast", "", "", true},
    {S::bitcast},
    {S::neg, "", "Muls", ""},
    {S::abs, "Abs", "", ""},
    {S::sign},
    {S::add, "Add", "Adds", "Add", true},
    {S::sub, "Sub", "Adds", "Sub", true},
    {S::mul, "Mul", "Muls", "Mul", true},
    {S::div, "Div", "Muls", "Div"},
    {S::rem},
    {S::fma},
    {S::min, "Min", "Mins", "Min", true},
    {S::max, "Max", "Maxs", "Max", true},
    {S::minp},
    {S::maxp},
    {S::sqrt, "Sqrt", "", ""},
    {S::rsqrt},
    {S::recip},
    {S::exp, "Exp", "", ""},
    {S::expn, "Exp", "", ""},
    {S::expm1},
    {S::log, "Ln", "", ""},
    {S::log1p},
    {S::pow},
    {S::tanh},
    {S::sigmoid},
    {S::erf},
    {S::sin},
    {S::cos},
    {S::floor},
    {S::ceil},
    {S::round},
    {S::trunc},
    {S::eq},
    {S::ne},
    {S::lt},
    {S::le},
    {S::isnan},
    {S::select},
    {S::and_},
    {S::or_},
    {S::xor_},
    {S::not_},
    {S::shl},
    {S::shr},
    {S::rand},
}};

// PTO tile instructions; the `.pto` text writes them in small letters.
constexpr std::array<Row, kOps> kPto = {{
    {S::mov, "", "TEXPANDS", "", true},
    {S::cast, "TCVT", "", "", true},
    {S::bitcast},
    {S::neg, "", "TMULS", ""},
    {S::abs, "TABS", "", ""},
    {S::sign},
    {S::add, "TADD", "TADDS", "TROWEXPANDADD", true},
    {S::sub, "TSUB", "TADDS", "TROWEXPANDSUB", true},
    {S::mul, "TMUL", "TMULS", "TROWEXPANDMUL", true},
    {S::div, "TDIV", "TMULS", "TROWEXPANDDIV"},
    {S::rem},
    {S::fma},
    {S::min, "TMIN", "TMINS", "TROWEXPANDMIN", true},
    {S::max, "TMAX", "TMAXS", "TROWEXPANDMAX", true},
    {S::minp},
    {S::maxp},
    {S::sqrt, "TSQRT", "", ""},
    {S::rsqrt},
    {S::recip},
    {S::exp, "TEXP", "", ""},
    {S::expn, "TEXP", "", ""},
    {S::expm1},
    {S::log, "TLOG", "", ""},
    {S::log1p},
    {S::pow},
    {S::tanh},
    {S::sigmoid},
    {S::erf},
    {S::sin},
    {S::cos},
    {S::floor},
    {S::ceil},
    {S::round},
    {S::trunc},
    {S::eq},
    {S::ne},
    {S::lt},
    {S::le},
    {S::isnan},
    {S::select},
    {S::and_},
    {S::or_},
    {S::xor_},
    {S::not_},
    {S::shl},
    {S::shr},
    {S::rand},
}};

consteval bool answers_every_op(const std::array<Row, kOps>& rows) {
  for (size_t i = 0; i < kOps; i++)
    if (rows[i].op != static_cast<S>(i)) return false;
  return true;
}
static_assert(answers_every_op(kAscendC) && answers_every_op(kPto),
              "a row for every scalar op, in the order of kir::S");

bool commutes(S op) { return op == S::add || op == S::mul || op == S::min || op == S::max; }

}  // namespace

Word word(NpuLanguage l, S op, Form f) {
  const Row& r = (l == NpuLanguage::ascendc ? kAscendC : kPto)[static_cast<size_t>(op)];
  switch (f) {
    case Form::unary:
    case Form::binary: return {r.one, r.integers};
    case Form::column: return {r.column, r.integers};
    default: return {r.scalar, r.integers};
  }
}

Word reduction_word(NpuLanguage l, S op) {
  const bool c = l == NpuLanguage::ascendc;
  if (op == S::add) return {c ? "WholeReduceSum" : "TROWSUM"};
  if (op == S::max) return {c ? "WholeReduceMax" : "TROWMAX"};
  if (op == S::min) return {c ? "WholeReduceMin" : "TROWMIN"};
  return {};
}

std::optional<MapForm> map_form(const kir::Map& m, const std::function<bool(const kir::Ref&)>& is_column) {
  MapForm f;
  f.op = m.op;
  auto tile = [&](size_t i) { return std::get_if<kir::Ref>(&m.args[i]); };
  auto number = [&](size_t i) { return std::get<double>(m.args[i]); };
  if (m.args.size() == 1) {
    if (!tile(0)) {
      f.form = Form::fill, f.number = number(0);
      return m.op == S::mov ? std::optional(f) : std::nullopt;
    }
    f.a = tile(0);
    if (m.op == S::neg) f.form = Form::scalar, f.number = -1;
    return is_column(*f.a) ? std::nullopt : std::optional(f);
  }
  if (m.args.size() != 2) return std::nullopt;
  if (tile(0) && tile(1)) {
    f.a = tile(0), f.b = tile(1);
    const bool first = is_column(*f.a), second = is_column(*f.b);
    if (first && (second || !commutes(m.op))) return std::nullopt;
    if (first) std::swap(f.a, f.b);
    f.form = first || second ? Form::column : Form::binary;
    return f;
  }
  if (!tile(0) && (!tile(1) || !commutes(m.op))) return std::nullopt;
  f.form = Form::scalar;
  f.a = tile(0) ? tile(0) : tile(1);
  f.number = tile(0) ? number(1) : number(0);
  if (is_column(*f.a)) return std::nullopt;
  if (m.op == S::sub) f.number = -f.number;
  if (m.op == S::div) {  // times the reciprocal, where that is the same
    int exponent = 0;
    if (f.number == 0 || !std::isfinite(f.number) || std::fabs(std::frexp(f.number, &exponent)) != 0.5)
      return std::nullopt;
    f.number = 1 / f.number;
  }
  if (!std::isfinite(f.number)) return std::nullopt;
  return f;
}

std::string_view c_type(DType t) {
  switch (t) {
    case DType::f32: return "float";
    case DType::f16: return "half";
    case DType::bf16: return "bfloat16_t";
    case DType::i8: return "int8_t";
    case DType::u8: return "uint8_t";
    case DType::i16: return "int16_t";
    case DType::i32: return "int32_t";
    default: return "";
  }
}

std::string c_number(DType t, double v) {
  std::string s = kir::print_number(v);
  if (is_float(t) && s.find_first_of(".en") == std::string::npos) s += ".0";
  return std::string(c_type(t)) + "(" + s + ")";
}

}  // namespace gaf::npu
