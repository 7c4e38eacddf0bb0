// Loops, branches and the split over blocks, as both C languages write them.
#include "codegen/npu/index.h"
#include "codegen/npu/language.h"

namespace gaf::npu {

std::string CLanguage::index(const Expr& x) {
  least_ = least_ || calls(x, ExprOp::min);
  most_ = most_ || calls(x, ExprOp::max);
  return c_index(k_, x);
}

// Block b of n takes iterations trips * b / n up to trips * (b + 1) / n: contiguous, none larger than another by two.
void CLanguage::split(const kir::For& f, const Expr& trips) {
  const std::string b(block_index()), n(block_count()), all = index(trips);
  auto symbol = [&](const kir::Axis& a) { return k_.syms[static_cast<size_t>(a.sym)].name; };
  const kir::Axis& first = f.axes[0];
  const bool plain = f.axes.size() == 1 && first.lo.is(0) && first.step == 1;
  const std::string i = plain ? symbol(first) : "share";
  line("for (int64_t " + i + " = " + all + " * " + b + " / " + n + "; " + i + " < " + all + " * (" + b + " + 1) / " +
       n + "; " + i + "++) {");
  depth_++;
  if (plain) return;
  Expr inner = 1;  // iterations of the axes behind
  std::vector<std::string> lines;
  for (size_t j = f.axes.size(); j-- > 0;) {
    const kir::Axis& a = f.axes[j];
    const Expr own = ceildiv(a.hi - a.lo, a.step);
    std::string at = i;
    if (!inner.is(1)) at += " / " + c_factor(k_, inner);
    if (j > 0) at += " % " + c_factor(k_, own);
    if (a.step != 1) at += " * " + std::to_string(a.step);
    if (!a.lo.is(0)) at = index(a.lo) + " + " + at;
    lines.insert(lines.begin(), "const int64_t " + symbol(a) + " = " + at + ";");
    inner *= own;
  }
  for (const std::string& s : lines) line(s);
}

void CLanguage::loop(const kir::Axis& a) {
  const std::string& s = k_.syms[static_cast<size_t>(a.sym)].name;
  line("for (int64_t " + s + " = " + index(a.lo) + "; " + s + " < " + index(a.hi) + "; " + s +
       (a.step == 1 ? "++" : " += " + std::to_string(a.step)) + ") {");
  depth_++;
}

void CLanguage::branch(const kir::If& i) {
  line("if (" + index(i.a) + " " + std::string(keyword(i.cmp)) + " " + index(i.b) + ") {");
  depth_++;
}

void CLanguage::otherwise() {
  depth_--;
  line("} else {");
  depth_++;
}

void CLanguage::close() {
  depth_--;
  line("}");
}

}  // namespace gaf::npu
