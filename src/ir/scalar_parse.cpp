// Reads the small expression texts by which pointwise ops say what one element is, into steps over the scalar-op table.
// Recursive descent with the usual precedence. The texts are our own, so a fault in one is an internal error.
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/scalar.h"

namespace gaf::kir {
namespace {

class Reader {
 public:
  Reader(std::string_view text, std::span<const DType> operands, const std::map<std::string, double>& parameters)
      : text_(text), operands_(operands), parameters_(parameters) {}

  ScalarProgram read(DType result) {
    Term r = sum();
    GAF_CHECK(!peek()) << "scalar text \"" << text_ << "\": unexpected text at column " << pos_ + 1;
    if (r.arg.kind == ScalarArg::number) r = step(S::mov, result, result, {r});
    if (r.type != result) r = step(S::cast, r.type, result, {r});
    // The result has to be the last step, also where the text is a bare operand or repeats an earlier step.
    if (r.arg.kind == ScalarArg::operand || static_cast<size_t>(r.arg.index) + 1 != program_.steps.size())
      program_.steps.push_back({S::mov, result, result, {r.arg}});
    return std::move(program_);
  }

 private:
  struct Term {
    ScalarArg arg;
    DType type = DType::f32;  // of a number: not yet known
    bool is_number() const { return arg.kind == ScalarArg::number; }
  };

  std::string_view text_;
  std::span<const DType> operands_;
  const std::map<std::string, double>& parameters_;
  size_t pos_ = 0;
  ScalarProgram program_;

  char peek() {
    while (pos_ < text_.size() && text_[pos_] == ' ') pos_++;
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  bool eat(char c) {
    if (peek() != c) return false;
    pos_++;
    return true;
  }
  void need(char c) {
    GAF_CHECK(eat(c)) << "scalar text \"" << text_ << "\": '" << c << "' expected at column " << pos_ + 1;
  }
  std::string word() {
    peek();
    size_t from = pos_;
    while (pos_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[pos_])) || text_[pos_] == '_')) pos_++;
    GAF_CHECK(pos_ > from) << "scalar text \"" << text_ << "\": a name expected at column " << from + 1;
    return std::string(text_.substr(from, pos_ - from));
  }

  Term sum() {
    Term x = product();
    for (;;) {
      if (eat('+'))
        x = apply(S::add, {x, product()});
      else if (eat('-'))
        x = apply(S::sub, {x, product()});
      else
        return x;
    }
  }
  Term product() {
    Term x = unary();
    for (;;) {
      if (eat('*'))
        x = apply(S::mul, {x, unary()});
      else if (eat('/'))
        x = apply(S::div, {x, unary()});
      else
        return x;
    }
  }
  Term unary() { return eat('-') ? apply(S::neg, {unary()}) : atom(); }

  Term atom() {
    char c = peek();
    if (eat('(')) {
      Term x = sum();
      need(')');
      return x;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') {
      double v = 0;
      auto [end, error] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), v);
      GAF_CHECK(error == std::errc()) << "scalar text \"" << text_ << "\": a number expected at column " << pos_ + 1;
      pos_ = static_cast<size_t>(end - text_.data());
      return literal(v);
    }
    if (eat('$')) {
      std::string p = word();
      auto it = parameters_.find(p);
      GAF_CHECK(it != parameters_.end()) << "scalar text \"" << text_ << "\": no parameter $" << p;
      return literal(it->second);
    }
    std::string w = word();
    if (peek() == '(') {
      std::vector<Term> args;
      for (need('('); args.empty() || eat(',');) args.push_back(sum());
      need(')');
      if (auto t = dtype_named(w); t && args.size() == 1)
        return args[0].is_number()  ? fold_cast(*t, args[0])
               : args[0].type == *t ? args[0]
                                    : step(S::cast, args[0].type, *t, {args[0]});
      auto op = scalar_named(w);
      GAF_CHECK(op) << "scalar text \"" << text_ << "\": unknown op " << w;
      return apply(*op, std::move(args));
    }
    if (w == "inf") return literal(std::numeric_limits<double>::infinity());
    if (w == "nan") return literal(std::numeric_limits<double>::quiet_NaN());
    GAF_CHECK(w.size() == 1) << "scalar text \"" << text_ << "\": unknown name " << w;
    size_t i = w[0] == 'y' ? operands_.size() - 1 : static_cast<size_t>(w[0] - 'a');
    GAF_CHECK(i < operands_.size()) << "scalar text \"" << text_ << "\": there is no operand " << w;
    return {{ScalarArg::operand, static_cast<int>(i), 0}, operands_[i]};
  }

  static Term literal(double v) { return {{ScalarArg::number, 0, v}, DType::f32}; }

  // A number cast to a dtype is a typed value: i32(3) keeps its dtype through a mov.
  Term fold_cast(DType t, const Term& x) { return step(S::mov, t, t, {x}); }

  Term apply(S op, std::vector<Term> args) {
    const ScalarRow& r = row(op);
    GAF_CHECK(static_cast<int>(args.size()) == r.arity)
        << "scalar text \"" << text_ << "\": " << r.name << " takes " << r.arity << " operands";
    GAF_CHECK(op != S::cast && op != S::bitcast)
        << "scalar text \"" << text_ << "\": casts are written as a dtype's name";
    std::optional<DType> type;
    bool numbers = true;
    for (size_t i = 0; i < args.size(); i++) {
      if (args[i].is_number()) continue;
      numbers = false;
      if (op == S::select && i == 0) {
        GAF_CHECK(args[i].type == DType::b1) << "scalar text \"" << text_ << "\": select needs a b1 first";
        continue;
      }
      GAF_CHECK(!type || *type == args[i].type)
          << "scalar text \"" << text_ << "\": " << r.name << " mixes " << name(*type) << " and " << name(args[i].type);
      type = args[i].type;
    }
    if (numbers) {
      auto value = [&](size_t i) { return i < args.size() ? args[i].arg.value : 0.0; };
      return literal(r.eval(value(0), value(1), value(2)));
    }
    DType in = type.value_or(operands_.empty() ? DType::f32 : select_type());
    GAF_CHECK(computes(op, in)) << "scalar text \"" << text_ << "\": " << r.name << " does not compute in " << name(in);
    return step(op, in, result_dtype(op, in), args);
  }
  // select(c, 1, 0): both values are numbers, so they take the dtype of the first operand that is not b1.
  DType select_type() const {
    for (DType t : operands_)
      if (t != DType::b1) return t;
    return DType::f32;
  }

  Term step(S op, DType in, DType out, const std::vector<Term>& terms) {
    std::vector<ScalarArg> args;
    for (const Term& t : terms) args.push_back(t.arg);
    auto same = [](const ScalarArg& x, const ScalarArg& y) {
      return x.kind == y.kind && x.index == y.index &&
             (x.value == y.value || (x.value != x.value && y.value != y.value)) &&
             std::signbit(x.value) == std::signbit(y.value);
    };
    for (size_t i = 0; i < program_.steps.size(); i++) {
      const ScalarStep& s = program_.steps[i];
      if (s.op == op && s.in == in && s.out == out &&
          std::equal(s.args.begin(), s.args.end(), args.begin(), args.end(), same))
        return {{ScalarArg::step, static_cast<int>(i), 0}, out};
    }
    program_.steps.push_back({op, in, out, std::move(args)});
    return {{ScalarArg::step, static_cast<int>(program_.steps.size()) - 1, 0}, out};
  }
};

}  // namespace

ScalarProgram parse_scalar(std::string_view text, std::span<const DType> operands, DType result,
                           const std::map<std::string, double>& parameters) {
  return Reader(text, operands, parameters).read(result);
}

}  // namespace gaf::kir
