// Shared parts of shape inference: see infer_util.h. Errors name the node through the context.
#include "ops/infer_util.h"

#include <fmt/format.h>

#include <algorithm>

namespace gaf {

namespace {

std::string show(const InferContext& c, const Dims& dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); i++)
    s += (i ? "," : "") + dims[i].str([&](int id) { return c.syms[static_cast<size_t>(id)].name; });
  return s + "]";
}

}  // namespace

std::optional<Dim> broadcast_dim(const Dim& a, const Dim& b) {
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  if (a.is_num() && b.is_num()) return std::nullopt;
  return b.is_num() ? b : a;  // a number says more than a symbol
}

std::vector<Range> ranges_of(std::span<const Sym> syms) {
  std::vector<Range> r;
  for (const Sym& s : syms) r.push_back({s.lo, s.hi});
  return r;
}

// bounded = min(n, s): then s <= n.
static void narrow(const InferContext& c, const Dim& bounded, const Dim& s) {
  if (bounded.op() != ExprOp::min || s.op() != ExprOp::sym) return;
  int64_t n = -1;
  bool mentioned = false;
  for (const Expr& e : bounded.args()) {
    if (e.is_num()) n = e.num();
    mentioned = mentioned || e == s;
  }
  Sym& sym = c.syms[static_cast<size_t>(s.sym_id())];
  if (mentioned && n >= sym.lo) sym.hi = std::min(sym.hi, n);
}

Dims broadcast_dims(const InferContext& c, std::span<const Dims> all) {
  size_t rank = 0;
  for (const Dims& d : all) rank = std::max(rank, d.size());
  Dims out(rank, Expr(1));
  for (const Dims& d : all)
    for (size_t i = 0; i < d.size(); i++) {
      Dim& o = out[rank - d.size() + i];
      auto both = broadcast_dim(o, d[i]);
      if (!both) {
        std::string shapes;
        for (const Dims& e : all) shapes += (shapes.empty() ? "" : " and ") + show(c, e);
        c.fail("GAF3101", fmt::format("shapes {} cannot be broadcast together", shapes));
      }
      narrow(c, o, d[i]);
      narrow(c, d[i], o);
      o = *both;
    }
  return out;
}

int64_t normal_axis(const InferContext& c, int64_t axis, size_t rank) {
  auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) c.fail("GAF3101", fmt::format("axis {} is outside a tensor of rank {}", axis, r));
  return axis < 0 ? axis + r : axis;
}

std::optional<std::vector<int64_t>> known_ints(const InferContext& c, size_t i) {
  if (!c.has_arg(i) || !c.value(i)) return std::nullopt;
  std::vector<int64_t> out;
  for (const Expr& e : *c.value(i)) {
    if (!e.is_num()) return std::nullopt;
    out.push_back(e.num());
  }
  return out;
}

bool given(const InferContext& c, const std::string& attr, size_t i) {
  return c.node.attrs.contains(attr) || c.has_arg(i);
}

std::optional<Dims> list_of(const InferContext& c, const std::string& attr, size_t i) {
  if (c.node.attrs.contains(attr)) {
    if (std::holds_alternative<int64_t>(c.node.attrs.at(attr))) return Dims{attr_int(c.node, attr, 0)};
    return attr_exprs(c.node, attr);
  }
  if (!c.has_arg(i)) return Dims{};
  if (!c.value(i)) return std::nullopt;
  return *c.value(i);
}

std::optional<std::vector<int64_t>> ints_of(const InferContext& c, const std::string& attr, size_t i) {
  auto list = list_of(c, attr, i);
  if (!list) return std::nullopt;
  std::vector<int64_t> out;
  for (const Expr& e : *list) {
    if (!e.is_num()) return std::nullopt;
    out.push_back(e.num());
  }
  return out;
}

Dim fresh_dim(InferContext& c, int64_t lo) {
  std::string name;
  for (size_t k = c.syms.size();; k++) {
    name = "u" + std::to_string(k);
    if (std::none_of(c.syms.begin(), c.syms.end(), [&](const Sym& s) { return s.name == name; })) break;
  }
  c.syms.push_back({name, lo, 1 << 20, 0});
  return Expr::sym(static_cast<int>(c.syms.size() - 1));
}

Dims fresh_dims(InferContext& c, size_t rank) {
  constexpr size_t most = 64;  // also catches a rank that would be negative
  if (rank > most) c.fail("GAF3101", "the result would have more than 64 dimensions, or less than none");
  Dims out;
  for (size_t i = 0; i < rank; i++) out.push_back(fresh_dim(c));
  return out;
}

std::optional<int64_t> known_rank(const InferContext& c, size_t i) {
  const Dims& d = c.arg(i).dims;
  if (d.empty()) return 1;
  if (d.size() != 1 || !d[0].is_num()) return std::nullopt;
  return d[0].num();
}

void need_rank(const InferContext& c, size_t i, size_t rank) {
  if (c.arg(i).dims.size() != rank)
    c.fail("GAF3101", fmt::format("operand {} has rank {}, {} is needed", i, c.arg(i).dims.size(), rank));
}

void need_vector(const InferContext& c, size_t i, const Dim& length) {
  if (!c.has_arg(i)) return;
  need_rank(c, i, 1);
  const Dim& d = c.arg(i).dims[0];
  if (d.is_num() && length.is_num() && d != length)
    c.fail("GAF3101", fmt::format("operand {} has {} elements, {} are needed", i, d.num(), length.num()));
}

void need_broadcast(const InferContext& c, size_t i, const Dims& dims) {
  if (!c.has_arg(i)) return;
  const Dims both[] = {dims, c.arg(i).dims};
  const Dims out = broadcast_dims(c, both);
  bool same = out.size() == dims.size();
  for (size_t d = 0; same && d < dims.size(); d++) same = !dims[d].is_num() || dims[d] == out[d];
  if (!same)
    c.fail("GAF3101",
           fmt::format("operand {} of shape {} does not broadcast to {}", i, show(c, c.arg(i).dims), show(c, dims)));
}

void need_same_dtype(const InferContext& c, size_t first) {
  std::optional<DType> t;
  for (size_t i = first; i < c.args.size(); i++) {
    if (!c.has_arg(i)) continue;
    if (!t) t = c.args[i].dtype;
    if (c.args[i].dtype != *t)
      c.fail("GAF3101",
             fmt::format("operands have different types, {} and {}", long_name(*t), long_name(c.args[i].dtype)));
  }
}

// Numbers of TensorProto.DataType in onnx.proto.
std::optional<DType> dtype_of_onnx(int64_t code) {
  switch (code) {
    case 1: return DType::f32;
    case 2: return DType::u8;
    case 3: return DType::i8;
    case 4: return DType::u16;
    case 5: return DType::i16;
    case 6: return DType::i32;
    case 7: return DType::i64;
    case 9: return DType::b1;
    case 10: return DType::f16;
    case 11: return DType::f64;
    case 12: return DType::u32;
    case 13: return DType::u64;
    case 16: return DType::bf16;
    default: return std::nullopt;
  }
}

int64_t onnx_of_dtype(DType t) {
  for (int64_t code = 1; code <= 16; code++)
    if (dtype_of_onnx(code) == t) return code;
  return 0;
}

DType dtype_attr(const Node& n, const std::string& key, DType fallback) {
  auto it = n.attrs.find(key);
  if (it == n.attrs.end()) return fallback;
  std::optional<DType> t;
  if (const auto* s = std::get_if<std::string>(&it->second)) t = dtype_named(*s);
  if (const auto* i = std::get_if<int64_t>(&it->second)) t = dtype_of_onnx(*i);
  if (!t)
    throw UserError("GAF4002", fmt::format("attribute '{}' names an element type that is not supported", key))
        .at(n.name, n.op);
  return *t;
}

void infer_same(InferContext& c) { c.types = {c.arg(0)}; }

static Dims broadcast_args(InferContext& c) {
  std::vector<Dims> all;
  for (size_t i = 0; i < c.args.size(); i++)
    if (c.has_arg(i)) all.push_back(c.args[i].dims);
  return broadcast_dims(c, all);
}

void infer_broadcast(InferContext& c) {
  need_same_dtype(c);
  c.types = {{c.arg(0).dtype, broadcast_args(c)}};
}
void infer_first(InferContext& c) { c.types = {{c.arg(0).dtype, broadcast_args(c)}}; }
void infer_test(InferContext& c) {
  need_same_dtype(c);
  c.types = {{DType::b1, broadcast_args(c)}};
}

void known_compare(InferContext& c, Compare op, bool swapped) {
  const auto ranges = ranges_of(c.syms);
  const auto &x = c.value(swapped ? 1 : 0), &y = c.value(swapped ? 0 : 1);
  if (!x || !y || c.types[0].dims.size() > 1 || x->empty() || y->empty()) return;
  if (x->size() != y->size() && x->size() != 1 && y->size() != 1) return;
  std::vector<Expr> out;
  for (size_t i = 0; i < std::max(x->size(), y->size()); i++) {
    const Expr difference = (x->size() == 1 ? (*x)[0] : (*x)[i]) - (y->size() == 1 ? (*y)[0] : (*y)[i]);
    const Range r = difference.range(ranges);
    bool yes = false, no = false;
    switch (op) {
      case Compare::equal: yes = difference.is(0), no = r.lo > 0 || r.hi < 0; break;
      case Compare::less: yes = r.hi < 0, no = r.lo >= 0; break;
      case Compare::less_equal: yes = r.hi <= 0, no = r.lo > 0; break;
    }
    if (!yes && !no) return;
    out.emplace_back(yes ? 1 : 0);
  }
  c.results = {out};
}

void known_unary(InferContext& c, std::optional<Expr> (*f)(const Expr&)) {
  if (!c.value(0)) return;
  std::vector<Expr> out;
  for (const Expr& e : *c.value(0)) {
    auto v = f(e);
    if (!v) return;
    out.push_back(*v);
  }
  c.results = {out};
}

void known_binary(InferContext& c, std::optional<Expr> (*f)(const Expr&, const Expr&)) {
  if (!c.value(0) || !c.value(1)) return;
  const auto &a = *c.value(0), &b = *c.value(1);
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return;  // a shape program has no outer products
  if (a.empty() || b.empty() || c.types[0].dims.size() > 1) return;
  std::vector<Expr> out;
  for (size_t i = 0; i < std::max(a.size(), b.size()); i++) {
    auto v = f(a.size() == 1 ? a[0] : a[i], b.size() == 1 ? b[0] : b[i]);
    if (!v) return;
    out.push_back(*v);
  }
  c.results = {out};
}

}  // namespace gaf
