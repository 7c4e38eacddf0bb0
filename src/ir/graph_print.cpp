// Graph text, writing. The form is described in ir/graph.h; graph_parse.cpp reads it. print(parse(print(g))) ==
// print(g).
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/graph_text.h"

namespace gaf {
namespace graph_text {

bool valid_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    unsigned char c = s[i];
    int more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : -1;
    if (more < 0 || i + more >= s.size() + (more == 0)) return false;
    uint32_t code = more == 0 ? c : c & (0x3f >> more);
    for (int k = 1; k <= more; k++) {
      unsigned char follow = s[i + k];
      if ((follow & 0xc0) != 0x80) return false;
      code = code << 6 | (follow & 0x3f);
    }
    static constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    i += more + 1;
  }
  return true;
}

std::string quote(std::string_view s) {
  bool keep_high = valid_utf8(s);
  std::string out = "\"";
  for (char ch : s) {
    unsigned char c = ch;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += ch;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !keep_high)) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += ch;
    }
  }
  return out + "\"";
}

bool plain_word(std::string_view s, std::string_view also) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  for (char c : s)
    if (!is_word_char(c) && also.find(c) == also.npos) return false;
  return true;
}

namespace {

std::string word_or_quoted(std::string_view s, std::string_view also = "") {
  return plain_word(s, also) ? std::string(s) : quote(s);
}

// Shortest text that reads back as the same number, with a point or an exponent so that it is not taken for an integer.
template <class F>
std::string float_text(F v) {
  if (std::isnan(v)) return std::signbit(v) ? "-nan" : "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".e") == s.npos) s += ".0";
  return s;
}

std::string attr_float_text(double v) {
  if (std::isnan(v) || static_cast<double>(static_cast<float>(v)) == v) return float_text(static_cast<float>(v));
  return float_text(v) + "d";
}

// NaNs other than the quiet one keep their bits in brackets.
template <class Bits, class F>
std::string element_text(Bits bits, F v, Bits quiet_nan) {
  if (std::isnan(v) && bits != quiet_nan) return fmt::format("nan({:x})", static_cast<uint64_t>(bits));
  return float_text(v);
}

std::string tensor_values(const Tensor& t) {
  std::string out = "[";
  for (int64_t i = 0; i < t.numel(); i++) {
    if (i) out += ',';
    switch (t.dtype) {
      case DType::f32: out += element_text(t.as<uint32_t>()[i], t.as<float>()[i], 0x7fc00000u); break;
      case DType::f16:
        out += element_text<uint16_t>(t.as<uint16_t>()[i], f16_to_f32(t.as<uint16_t>()[i]), 0x7e00);
        break;
      case DType::bf16:
        out += element_text<uint16_t>(t.as<uint16_t>()[i], bf16_to_f32(t.as<uint16_t>()[i]), 0x7fc0);
        break;
      case DType::f64: out += element_text(t.as<uint64_t>()[i], t.as<double>()[i], 0x7ff8000000000000u); break;
      case DType::u64: out += fmt::format("{}", t.as<uint64_t>()[i]); break;
      default: out += fmt::format("{}", t.get_int(i));
    }
  }
  return out + "]";
}

template <class T, class F>
std::string list_text(const std::vector<T>& v, std::string_view empty, F each) {
  if (v.empty()) return std::string(empty);
  std::string out = "[";
  for (size_t i = 0; i < v.size(); i++) out += (i ? "," : "") + each(v[i]);
  return out + "]";
}

using SymName = std::function<std::string(int)>;

std::string dims_text(const Dims& dims, const SymName& sym) {
  std::string out;
  for (size_t i = 0; i < dims.size(); i++) out += (i ? "," : "") + dims[i].str(sym);
  return out;
}

std::string type_text(const Type& t, const SymName& sym) {
  return fmt::format("{}[{}]", name(t.dtype), dims_text(t.dims, sym));
}

struct AttrText {
  const SymName& sym;
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return attr_float_text(v); }
  std::string operator()(const std::string& v) const { return quote(v); }
  std::string operator()(const std::vector<int64_t>& v) const {
    return list_text(v, "ints[]", [](int64_t x) { return fmt::format("{}", x); });
  }
  std::string operator()(const std::vector<double>& v) const { return list_text(v, "floats[]", attr_float_text); }
  std::string operator()(const std::vector<std::string>& v) const { return list_text(v, "strings[]", quote); }
  std::string operator()(const Tensor& t) const {
    return fmt::format("{}[{}]:{}", name(t.dtype), fmt::join(t.dims, ","), tensor_values(t));
  }
  std::string operator()(const Dims& v) const { return "(" + dims_text(v, sym) + ")"; }
};

class Printer {
 public:
  explicit Printer(const Graph& top)
      : sym_([&top](int id) {
          bool known = id >= 0 && static_cast<size_t>(id) < top.syms.size();
          return known ? top.syms[id].name : fmt::format("?{}", id);
        }) {}

  void header(const Graph& g, std::string_view keyword, bool sizes, const std::string& indent) {
    out_ += fmt::format("{}{} @{}(", indent, keyword, word_or_quoted(g.name, ".-"));
    std::string_view comma;
    for (size_t i = 0; sizes && i < g.syms.size(); i++) {
      const Sym& s = g.syms[i];
      out_ += fmt::format("{}size {}", comma, s.name);
      if (s.lo != Sym{}.lo || s.hi != Sym{}.hi) out_ += fmt::format(" in {}..{}", s.lo, s.hi);
      if (s.hint) out_ += fmt::format(" hint {}", s.hint);
      comma = ", ";
    }
    number(g);
    for (size_t i = 0; i < g.num_inputs(); i++) {
      const Node& n = g.nodes[i];
      out_ += fmt::format("{}%{}", comma, numbers_[i]);
      if (!n.name.empty()) out_ += " " + quote(n.name);
      out_ += ": " + type_text(n.types.at(0), sym_);
      Attrs rest = n.attrs;
      auto flag = rest.find("const");
      if (flag != rest.end() && std::get_if<int64_t>(&flag->second) && std::get<int64_t>(flag->second) == 1) {
        out_ += " const";
        rest.erase(flag);
      }
      out_ += attrs(rest);
      comma = ", ";
    }
    out_ += ") -> (";
    for (size_t i = 0; i < g.outputs.size(); i++) {
      if (i) out_ += ", ";
      out_ += value(g.outputs[i].value);
      if (!g.outputs[i].name.empty()) out_ += " " + quote(g.outputs[i].name);
    }
    out_ += ") {\n";
  }

  void graph(const Graph& g, const Graph& kernels_of, std::string_view keyword, bool sizes, const std::string& indent) {
    std::vector<uint32_t> outer = std::move(numbers_);
    header(g, keyword, sizes, indent);
    for (size_t i = g.num_inputs(); i < g.nodes.size(); i++) node(g, i, kernels_of, indent + "  ");
    out_ += indent + "}\n";
    numbers_ = std::move(outer);
  }

  std::string take() { return std::move(out_); }
  const SymName& sym() const { return sym_; }

 private:
  void number(const Graph& g) {
    numbers_.clear();
    uint32_t next = 0;
    for (const Node& n : g.nodes) {
      numbers_.push_back(next);
      next += static_cast<uint32_t>(n.types.size());
    }
  }

  std::string value(Value v) const {
    if (v == kNoValue) return "_";
    if (v.node >= numbers_.size()) return fmt::format("%?{}.{}", v.node, v.result);  // only a broken graph has this
    return fmt::format("%{}", numbers_[v.node] + v.result);
  }

  std::string attrs(const Attrs& attrs) const {
    if (attrs.empty()) return "";
    std::string out;
    for (const auto& [key, attr] : attrs) {
      out += fmt::format("{}{}={}", out.empty() ? " {" : ", ", word_or_quoted(key), std::visit(AttrText{sym_}, attr));
    }
    return out + "}";
  }

  void constant_node(const Node& n) {
    const Tensor* t = attr_tensor(n, "value");
    out_ += "constant";
    Attrs rest = n.attrs;
    rest.erase("value");
    rest.erase("hash");
    std::string body;
    if (t && t->numel() > kInlineElements) out_ += fmt::format(" #{:016x}", constant_hash(n));
    if (t && t->numel() <= kInlineElements) body = "value=" + tensor_values(*t);
    for (const auto& [key, attr] : rest)
      body += (body.empty() ? "" : ", ") + word_or_quoted(key) + "=" + std::visit(AttrText{sym_}, attr);
    if (!body.empty()) out_ += " {" + body + "}";
  }

  void node(const Graph& g, size_t i, const Graph& kernels_of, const std::string& indent) {
    const Node& n = g.nodes[i];
    out_ += indent;
    for (size_t r = 0; r < n.types.size(); r++) out_ += fmt::format("{}%{}", r ? ", " : "", numbers_[i] + r);
    if (!n.types.empty()) out_ += " = ";
    if (n.op == "constant") {
      constant_node(n);
    } else {
      bool known = n.callee >= 0 && static_cast<size_t>(n.callee) < kernels_of.kernels.size();
      out_ += word_or_quoted(n.op, ".:");
      if (n.op == "call")
        out_ += " @" + (known ? word_or_quoted(kernels_of.kernels[n.callee].name, ".-") : fmt::format("?{}", n.callee));
      out_ += "(";
      for (size_t a = 0; a < n.args.size(); a++) out_ += (a ? ", " : "") + value(n.args[a]);
      out_ += ")" + attrs(n.attrs);
    }
    for (size_t r = 0; r < n.types.size(); r++) out_ += (r ? ", " : " : ") + type_text(n.types[r], sym_);
    if (!n.name.empty() || !n.origins.empty()) out_ += "  # " + quote(n.name);
    for (size_t k = 0; k < n.origins.size(); k++) out_ += (k ? ", " : " from ") + quote(n.origins[k]);
    out_ += "\n";
    for (const auto& region : n.regions) graph(*region, *region, "region", false, indent + "  ");
  }

  SymName sym_;
  std::vector<uint32_t> numbers_;
  std::string out_;
};

}  // namespace
}  // namespace graph_text

uint64_t constant_hash(const Node& constant) {
  if (auto it = constant.attrs.find("hash"); it != constant.attrs.end())
    if (auto* h = std::get_if<int64_t>(&it->second)) return static_cast<uint64_t>(*h);
  const Tensor* t = attr_tensor(constant, "value");
  GAF_CHECK(t) << "constant without a value";
  return t->hash();
}

std::string print_graph(const Graph& g) {
  graph_text::Printer printer(g);
  std::string head;
  if (g.opset != Graph{}.opset) head += fmt::format("opset {}\n", g.opset);
  for (const auto& [key, value] : g.metadata)
    head += fmt::format("metadata {} = {}\n", graph_text::quote(key), graph_text::quote(value));
  for (const Graph& kernel : g.kernels) printer.graph(kernel, kernel, "kernel", false, "");
  printer.graph(g, g, "graph", true, "");
  return head + printer.take();
}

std::string print_type(const Type& t, const Graph& g) { return graph_text::type_text(t, graph_text::Printer(g).sym()); }

}  // namespace gaf
