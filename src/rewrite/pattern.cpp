// Reading and matching of patterns; backtracks over the operand orders of commutative ops.
#include "rewrite/pattern.h"

#include <algorithm>
#include <cmath>

namespace gaf {

struct PatternNode {
  enum Kind : uint8_t { op, name, constant, number } kind;
  std::vector<std::string> ops;  // alternatives
  std::string text;
  double value = 0;
  bool through_views = false;
  std::vector<PatternNode> args;
};

namespace {

struct Reader {
  std::string_view s;
  size_t i = 0;
  void space() { while (i < s.size() && (s[i] == ' ' || s[i] == '\n')) i++; }
  bool eat(char c) {
    space();
    if (i < s.size() && s[i] == c) return i++, true;
    return false;
  }
  PatternNode node() {
    PatternNode n;
    n.through_views = eat('~');
    space();
    if (i < s.size() && (std::isdigit(static_cast<unsigned char>(s[i])) || s[i] == '-')) {
      size_t used = 0;
      n.kind = PatternNode::number, n.value = std::stod(std::string(s.substr(i)), &used);
      i += used;
      return n;
    }
    bool constant = eat('$');
    do {
      size_t b = i;
      while (i < s.size() && (std::isalnum(static_cast<unsigned char>(s[i])) || s[i] == '_')) i++;
      n.ops.emplace_back(s.substr(b, i - b));
      GAF_CHECK(!n.ops.back().empty()) << "pattern '" << s << "' at " << i;
    } while (eat('|'));
    if (!eat('(')) {
      n.kind = constant ? PatternNode::constant : PatternNode::name, n.text = n.ops[0];
      return n;
    }
    n.kind = PatternNode::op;
    do n.args.push_back(node());
    while (eat(','));
    GAF_CHECK(eat(')')) << "pattern '" << s << "' at " << i;
    return n;
  }
};

bool commutes(std::string_view op) { return op == "Add" || op == "Mul" || op == "Max" || op == "Min" || op == "Sum"; }

// Same elements in the same order, dims equal but for ones.
bool unit_view(const Graph& g, const Node& n) {
  if (n.op != "Reshape" && n.op != "Identity") return false;
  auto bare = [](const Dims& d) {
    Dims r;
    for (const Expr& e : d)
      if (!e.is(1)) r.push_back(e);
    return r;
  };
  return bare(n.types[0].dims) == bare(g.type(n.args[0]).dims);
}

struct Matcher {
  const Rebuild& b;
  using State = Pattern::Match;

  bool value(const PatternNode& p, Value v, State& s) {
    if (v == kNoValue) return false;
    const Graph& g = b.g();
    switch (p.kind) {
      case PatternNode::number: {
        std::optional<double> c = splat(g, v);
        return c && std::fabs(*c - p.value) <= 1e-5 * std::max(1e-30, std::fabs(p.value));
      }
      case PatternNode::constant:
        if (!gaf::constant(g, v)) return false;
        [[fallthrough]];
      case PatternNode::name: {
        auto [it, fresh] = s.at.try_emplace(p.text, v);
        return fresh || it->second == v;
      }
      case PatternNode::op: break;
    }
    while (p.through_views && unit_view(g, g.nodes[v.node]) && b.uses(v) <= 1) v = g.nodes[v.node].args[0];
    if (b.uses(v) > 1 && !shared) return false;
    State before = s;
    if (!node(p, g.nodes[v.node], s)) return s = before, false;
    if (std::find(s.inner.begin(), s.inner.end(), v) == s.inner.end()) s.inner.push_back(v);
    return true;
  }
  bool shared = false;  // inner values may have several readers, if match() finds them all inside

  bool node(const PatternNode& p, const Node& n, State& s) {
    if (std::find(p.ops.begin(), p.ops.end(), n.op) == p.ops.end()) return false;
    size_t have = n.args.size();
    while (have > 0 && n.args[have - 1] == kNoValue) have--;
    if (have != p.args.size()) return false;
    auto in_order = [&](bool swap) {
      State before = s;
      for (size_t i = 0; i < have; i++)
        if (!value(p.args[i], n.args[swap ? have - 1 - i : i], s)) return s = before, false;
      return true;
    };
    return in_order(false) || (have == 2 && commutes(n.op) && in_order(true));
  }
};

}  // namespace

Pattern::Pattern(std::string_view text) {
  Reader r{text};
  root_ = std::make_shared<const PatternNode>(r.node());
}

std::optional<Pattern::Match> Pattern::match(const Rebuild& b, const Node& n) const {
  for (bool shared : {false, true}) {
    Match s;
    Matcher m{b, shared};
    if (!m.node(*root_, n, s)) continue;
    if (!shared) return s;
    // every reader of a shared inner value must be inside the match
    std::map<Value, int> readers;
    for (Value v : n.args) readers[v]++;
    for (Value v : s.inner)
      for (Value a : b.g().nodes[v.node].args) readers[a]++;
    bool closed = std::all_of(s.inner.begin(), s.inner.end(), [&](Value v) { return readers[v] >= b.uses(v); });
    if (closed) return s;
  }
  return std::nullopt;
}

}  // namespace gaf
