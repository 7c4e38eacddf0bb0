// Writes a kernel as text. One form, no options: print(parse(print(k))) == print(k), so the text can be a cache key, a
// golden file and the thing that crosses into the code generator's library. Knows nothing of targets.
#include <charconv>
#include <cmath>
#include <utility>

#include "ir/kernel.h"

namespace gaf::kir {
namespace {

class Printer {
 public:
  explicit Printer(const Kernel& k) : k_(k) {}

  std::string kernel() {
    out_ = "kernel @" + k_.name + " target " + k_.target + " (";
    bool first = true;
    auto comma = [&] { out_ += std::exchange(first, false) ? "" : ", "; };
    for (const Symbol& s : k_.syms) {
      if (s.kind != SymKind::size) continue;
      comma();
      out_ += "size " + s.name + " in " + std::to_string(s.lo) + ".." + std::to_string(s.hi);
      if (s.mult != 1) out_ += " mult " + std::to_string(s.mult);
    }
    for (const Buf& b : k_.bufs) {
      if (b.role == Role::view) continue;
      comma();
      out_ += std::string(kRoleName[static_cast<int>(b.role)]) + " " + b.name + ": " + type(b);
    }
    out_ += ") {\n";
    body(k_.body);
    out_ += "}\n";
    return std::move(out_);
  }

  std::string first_line(const Stmt& s) {
    stmt(s, false);
    out_.pop_back();
    return std::move(out_);
  }

  std::string ref(const Ref& r) const {
    std::string s(name_of(k_, r));
    for (size_t i = 0; i < r.at.size(); i++) {
      const Slice& a = r.at[i];
      s += (i ? ", " : "[") + expr(a.at);
      if (a.n) s += ":" + expr(*a.n);
      if (a.step != 1) s += ":" + std::to_string(a.step);
    }
    return s + (r.at.empty() ? "" : "]") + (r.transposed ? "^T" : "");
  }
  std::string expr(const Expr& x) const {
    return x.str([&](int id) { return k_.syms[static_cast<size_t>(id)].name; });
  }

 private:
  const Kernel& k_;
  std::string out_;
  int depth_ = 0;

  std::string list(const std::vector<Expr>& v) const {
    std::string s;
    for (const Expr& x : v) s += (s.empty() ? "" : ", ") + expr(x);
    return s;
  }
  std::string type(const Buf& b) const { return std::string(name(b.type)) + "[" + list(b.shape) + "]"; }
  std::string arg(const Arg& a) const {
    if (const double* v = std::get_if<double>(&a)) return print_number(*v);
    return ref(std::get<Ref>(a));
  }
  std::string tmp(int t) const { return t < 0 ? "" : " tmp " + k_.tiles[static_cast<size_t>(t)].name; }
  const std::string& symbol(int id) const { return k_.syms[static_cast<size_t>(id)].name; }

  void line(const std::string& s) { out_ += std::string(static_cast<size_t>(2 * depth_), ' ') + s + "\n"; }
  void body(const Body& b) {
    depth_++;
    for (const Stmt& s : b) stmt(s, true);
    depth_--;
  }

  void stmt(const Stmt& s, bool nested) {
    std::visit(
        Match{
            [&](const Declare& d) { line(declaration(k_.tiles[static_cast<size_t>(d.tile)])); },
            [&](const View& v) {
              const Buf& b = k_.bufs[static_cast<size_t>(v.buf)];
              line("view " + b.name + " = " + k_.bufs[static_cast<size_t>(b.base)].name + ": " + type(b) + " strides(" +
                   list(b.strides) + ") at " + expr(b.offset));
            },
            [&](const Copy& c) {
              line("copy " + ref(c.dst) + " = " + ref(c.src) + (c.pad ? " else " + print_number(*c.pad) : "") +
                   (c.relu ? " post relu" : ""));
            },
            [&](const Map& m) {
              std::string args;
              for (const Arg& a : m.args) args += (args.empty() ? "" : ", ") + arg(a);
              line(ref(m.dst) + " = " + std::string(row(m.op).name) + "(" + args + ")" + tmp(m.tmp));
            },
            [&](const Reduce& r) {
              line(ref(r.dst) + " = reduce(" + std::string(row(r.op).name) + ", " + std::to_string(r.axis) + ", " +
                   ref(r.src) + ")" + tmp(r.tmp));
            },
            [&](const Mma& m) {
              std::string ahead;
              for (const Ref& p : m.prefetch) ahead += (ahead.empty() ? " prefetch " : ", ") + ref(p);
              line(ref(m.dst) + (m.add ? " += mma(" : " = mma(") + ref(m.a) + ", " + ref(m.b) +
                   (m.bias ? ", " + ref(*m.bias) : "") + ")" + ahead);
            },
            [&](const Iota& i) { line(ref(i.dst) + " = iota(" + std::to_string(i.axis) + ", " + expr(i.base) + ")"); },
            [&](const Gather& g) { line(ref(g.dst) + " = gather(" + ref(g.src) + ", " + ref(g.index) + ")"); },
            [&](const Read& r) {
              line("read " + symbol(r.sym) + " = " + ref(r.src) + " in " + expr(r.lo) + ".." + expr(r.hi));
            },
            [&](const For& f) {
              line(header(f));
              if (nested) block(f.body, nullptr);
            },
            [&](const Barrier&) { line("barrier"); },
            [&](const If& f) {
              line("if " + expr(f.a) + " " + std::string(keyword(f.cmp)) + " " + expr(f.b) + " {");
              if (nested) block(f.yes, f.no.empty() ? nullptr : &f.no);
            },
            [&](const Sync& y) {
              std::string from(kPipeName[static_cast<int>(y.from)]), to(kPipeName[static_cast<int>(y.to)]);
              if (y.kind == SyncKind::fence)
                line("fence " + from);
              else
                line((y.kind == SyncKind::set ? "set " : "wait ") + from + " " + to + " " + expr(y.event));
            }},
        s.alt);
  }
  void block(const Body& b, const Body* otherwise) {
    body(b);
    if (otherwise) {
      line("} else {");
      body(*otherwise);
    }
    line("}");
  }
  std::string header(const For& f) const {
    std::string s = "for ";
    for (size_t i = 0; i < f.axes.size(); i++) {
      const Axis& a = f.axes[i];
      s += (i ? ", " : "") + symbol(a.sym) + " in " + expr(a.lo) + ".." + expr(a.hi);
      if (a.step != 1) s += " step " + std::to_string(a.step);
    }
    return s + (f.kind == LoopKind::par ? " par {" : f.kind == LoopKind::unroll ? " unroll {" : " {");
  }
  static std::string declaration(const Tile& t) {
    return "tile " + t.name + ": " + std::string(name(t.type)) + "[" + std::to_string(t.rows) + ", " +
           std::to_string(t.cols) + "] @" + std::string(kMemName[static_cast<int>(t.mem)]) +
           (t.at >= 0 ? "+" + std::to_string(t.at) : "") + (t.ring > 1 ? " ring " + std::to_string(t.ring) : "");
  }
};

}  // namespace

std::string print_number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, v).ptr};
}
std::string print_kernel(const Kernel& k) {
  Kernel numbered = number_symbols(k);
  return Printer(numbered).kernel();
}
std::string print_ref(const Kernel& k, const Ref& r) { return Printer(k).ref(r); }
std::string print_expr(const Kernel& k, const Expr& x) { return Printer(k).expr(x); }
std::string print_stmt(const Kernel& k, const Stmt& s) { return Printer(k).first_line(s); }

}  // namespace gaf::kir
