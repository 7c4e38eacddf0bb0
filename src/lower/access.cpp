// The algebra of strided accesses: transpose, reshape, broadcast and slice move no data, they change strides. Knows
// graph nodes only as far as a view-like node says which of these it is; knows nothing of tiles or loops.
#include <algorithm>

#include "lower/lowering.h"

namespace gaf {

std::vector<Expr> dense_strides(const Dims& dims) {
  std::vector<Expr> s(dims.size(), Expr(1));
  for (size_t d = dims.size(); d-- > 1;) s[d - 1] = s[d] * dims[d];
  return s;
}

Access dense(int buf, const Dims& dims) {
  Access a;
  a.buf = buf;
  a.dims = dims;
  a.strides = dense_strides(dims);
  return a;
}

namespace {

// Applies f to the index accesses too; nothing if it fails for one of them.
template <class F>
std::optional<Access> with_indirect(Access out, const Access& a, F f) {
  out.indirect.clear();
  for (const Indirect& i : a.indirect) {
    std::optional<Access> index = f(*i.index);
    if (!index) return {};
    out.indirect.push_back({std::make_shared<Access>(std::move(*index)), i.extent, i.stride});
  }
  return out;
}

bool plain_window(const Access& a, size_t d) {
  return a.window.empty() || (a.window[d].start.is(0) && a.window[d].extent == a.dims[d]);
}

template <class T>
std::vector<T> permuted(const std::vector<T>& v, std::span<const int64_t> perm) {
  std::vector<T> out;
  if (v.empty()) return out;
  for (int64_t p : perm) out.push_back(v[static_cast<size_t>(p)]);
  return out;
}

}  // namespace

std::optional<Access> transpose(const Access& a, std::span<const int64_t> perm) {
  if (perm.size() != a.dims.size()) return {};
  Access out = a;
  out.dims = permuted(a.dims, perm);
  out.strides = permuted(a.strides, perm);
  out.window = permuted(a.window, perm);
  return with_indirect(std::move(out), a, [&](const Access& i) { return transpose(i, perm); });
}

std::optional<Access> broadcast(const Access& a, const Dims& dims) {
  size_t drop = 0;
  while (a.dims.size() - drop > dims.size()) {
    if (!a.dims[drop].is(1)) return {};
    drop++;
  }
  const size_t lead = dims.size() - (a.dims.size() - drop);
  Access out = a;
  out.dims = dims;
  out.strides.assign(dims.size(), Expr(0));
  out.window.clear();
  if (!a.window.empty())
    for (const Expr& d : dims) out.window.push_back({0, d});
  for (size_t d = lead; d < dims.size(); d++) {
    const size_t s = d - lead + drop;
    if (a.dims[s] == dims[d]) {
      out.strides[d] = a.strides[s];
      if (!a.window.empty()) out.window[d] = a.window[s];
    } else if (!a.dims[s].is(1) || !plain_window(a, s)) {
      return {};
    }
  }
  return with_indirect(std::move(out), a, [&](const Access& i) { return broadcast(i, dims); });
}

void set_window(Access& a, size_t axis, const Access::Window& w) {
  const Expr end = w.start + w.extent;
  const bool covers = w.start.is_num() && w.start.num() <= 0 && end.is_num() && a.dims[axis].is_num() &&
                      end.num() >= a.dims[axis].num();
  if (a.window.empty())
    for (const Expr& d : a.dims) a.window.push_back({0, d});
  a.window[axis] = covers ? Access::Window{0, a.dims[axis]} : w;
  if (covers) a.offset += -w.start * a.strides[axis];
}

std::optional<Access> slice(const Access& a, size_t axis, const Expr& start, int64_t step, const Expr& extent) {
  Access out = a;
  out.dims[axis] = extent;
  if (!plain_window(a, axis)) {
    if (step != 1) return {};
    set_window(out, axis, {a.window[axis].start - start, a.window[axis].extent});
  } else {
    out.offset += start * a.strides[axis];
    out.strides[axis] = a.strides[axis] * Expr(step);
    if (!a.window.empty()) out.window[axis] = {0, extent};
  }
  return with_indirect(std::move(out), a, [&](const Access& i) { return slice(i, axis, start, step, extent); });
}

std::optional<Access> reshape(const Access& a, const Dims& dims) {
  // dims of 1 take no part; runs of old and new dims with equal products are matched, shortest first
  std::vector<size_t> from, to;
  for (size_t d = 0; d < a.dims.size(); d++) {
    if (!a.dims[d].is(1))
      from.push_back(d);
    else if (!plain_window(a, d))
      return {};
  }
  for (size_t d = 0; d < dims.size(); d++)
    if (!dims[d].is(1)) to.push_back(d);
  Access out = a;
  out.dims = dims;
  out.strides.assign(dims.size(), Expr(0));
  out.window.clear();
  if (!a.window.empty())
    for (const Expr& d : dims) out.window.push_back({0, d});
  auto run = [](const Dims& v, const std::vector<size_t>& at, size_t begin, size_t n) {
    Expr p = 1;
    for (size_t i = 0; i < n; i++) p = p * v[at[begin + i]];
    return p;
  };
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t m = 0, n = 0;
    for (size_t total = 2; total <= from.size() - i + to.size() - j && !m; total++)
      for (size_t x = 1; x < total && !m; x++)
        if (x <= from.size() - i && total - x <= to.size() - j &&
            run(a.dims, from, i, x) == run(dims, to, j, total - x))
          m = x, n = total - x;
    if (!m) return {};
    if (m == 1 && n == 1) {
      out.strides[to[j]] = a.strides[from[i]];
      if (!a.window.empty()) out.window[to[j]] = a.window[from[i]];
    } else {
      for (size_t x = 0; x < m; x++) {
        if (!plain_window(a, from[i + x])) return {};
        if (x + 1 < m && !(a.strides[from[i + x]] == a.strides[from[i + x + 1]] * a.dims[from[i + x + 1]])) return {};
      }
      Expr s = a.strides[from[i + m - 1]];
      for (size_t y = n; y-- > 0;) {
        out.strides[to[j + y]] = s;
        s = s * dims[to[j + y]];
      }
    }
    i += m, j += n;
  }
  return with_indirect(std::move(out), a, [&](const Access& x) { return reshape(x, dims); });
}

bool same_place(const Access& a, const Access& b) {
  if (a.buf != b.buf || a.dims != b.dims || !(a.offset == b.offset)) return false;
  if (!a.indirect.empty() || !b.indirect.empty()) return false;
  for (size_t d = 0; d < a.dims.size(); d++) {
    if (!plain_window(a, d) || !plain_window(b, d)) return false;
    if (!a.dims[d].is(1) && !(a.strides[d] == b.strides[d])) return false;
  }
  return true;
}

// ---- which view a node is ----
namespace {

// A list given as an attribute (canonical graphs) or as a constant operand.
std::optional<Dims> list(const Graph& g, const Node& n, const std::string& attr, size_t operand) {
  if (n.attrs.contains(attr)) return attr_exprs(n, attr);
  if (operand >= n.args.size() || n.args[operand] == kNoValue) return Dims{};
  const Tensor* t = constant(g, n.args[operand]);
  if (!t) return {};
  Dims out;
  for (int64_t i = 0; i < t->numel(); i++) out.emplace_back(t->get_int(i));
  return out;
}

int64_t lowest(const Graph& g, const Expr& e) {
  std::vector<Range> r;
  for (const Sym& s : g.syms) r.push_back({s.lo, s.hi});
  return e.range(r).lo;
}

std::optional<Access> apply_slice(const Graph& g, const Node& n, const Access& a) {
  std::optional<Dims> starts = list(g, n, "starts", 1), axes = list(g, n, "axes", 3), steps = list(g, n, "steps", 4);
  if (!starts || !axes || !steps) return {};
  std::optional<Access> out = a;
  for (size_t i = 0; i < starts->size() && out; i++) {
    int64_t axis = static_cast<int64_t>(i);
    if (!axes->empty()) {
      if (!(*axes)[i].is_num()) return {};
      axis = (*axes)[i].num();
    }
    if (axis < 0) axis += static_cast<int64_t>(a.dims.size());
    int64_t step = 1;
    if (!steps->empty()) {
      if (!(*steps)[i].is_num()) return {};
      step = (*steps)[i].num();
    }
    const Expr& dim = a.dims[static_cast<size_t>(axis)];
    const Expr last = step > 0 ? dim : dim - 1;  // ONNX clamps the start to 0..dim, or 0..dim-1 for negative steps
    Expr start = (*starts)[i];
    if (start.is_num() && start.num() < 0) start = dim + start;
    if (dim.is_num() && start.is_num())
      start = std::clamp<int64_t>(start.num(), 0, last.num());
    else if (start.is_num() && start.num() >= INT32_MAX)
      start = last;
    else if (lowest(g, start) < 0)
      start = max(start, Expr(0));
    out = slice(*out, static_cast<size_t>(axis), start, step, n.types[0].dims[static_cast<size_t>(axis)]);
  }
  return out;
}

std::optional<Access> apply_split(const Node& n, const Access& a, uint32_t result) {
  int64_t axis = attr_int(n, "axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(a.dims.size());
  const size_t d = static_cast<size_t>(axis);
  Expr start = 0;
  for (uint32_t r = 0; r < result; r++) start += n.types[r].dims[d];
  return slice(a, d, start, 1, n.types[result].dims[d]);
}

// Blocks of channels become pixels, or the other way round: a reshape, a transpose and a reshape.
std::optional<Access> regroup(const Access& a, const Dims& split, std::span<const int64_t> perm, const Dims& to) {
  std::optional<Access> out = reshape(a, split);
  if (out) out = transpose(*out, perm);
  if (out) out = reshape(*out, to);
  return out;
}

std::optional<Access> apply_depth(const Node& n, const Access& a) {
  if (a.dims.size() != 4) return {};
  const int64_t bs = attr_int(n, "blocksize", 1);
  const Dims& d = a.dims;
  if (n.op == "SpaceToDepth") {
    const Dims split{d[0], d[1], floordiv(d[2], bs), bs, floordiv(d[3], bs), bs};
    return regroup(a, split, std::array<int64_t, 6>{0, 3, 5, 1, 2, 4}, n.types[0].dims);
  }
  const Expr c = floordiv(d[1], bs * bs);
  if (attr_str(n, "mode", "DCR") == "CRD")
    return regroup(a, {d[0], c, bs, bs, d[2], d[3]}, std::array<int64_t, 6>{0, 1, 4, 2, 5, 3}, n.types[0].dims);
  return regroup(a, {d[0], bs, bs, c, d[2], d[3]}, std::array<int64_t, 6>{0, 3, 4, 1, 5, 2}, n.types[0].dims);
}

}  // namespace

std::optional<Access> apply_view(const Graph& g, const Node& n, const Access& a, uint32_t result) {
  const Dims& dims = n.types[result].dims;
  if (n.op == "Split") return apply_split(n, a, result);
  if (n.op == "Slice") return apply_slice(g, n, a);
  if (n.op == "Expand") return broadcast(a, dims);
  if (n.op == "DepthToSpace" || n.op == "SpaceToDepth") return apply_depth(n, a);
  if (n.op == "Transpose") {
    std::vector<int64_t> reversed;
    for (size_t d = a.dims.size(); d-- > 0;) reversed.push_back(static_cast<int64_t>(d));
    return transpose(a, attr_ints(n, "perm", reversed));
  }
  if (product(a.dims) == product(dims)) return reshape(a, dims);  // Reshape, Squeeze, Unsqueeze, Flatten, Identity ...
  return {};
}

}  // namespace gaf
