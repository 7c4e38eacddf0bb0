// MatMul with bias and relu for targets that work on tiles: a tile of the result stays in the accumulator while blocks
// of A and B pass through the shared and the operand memories; the bias comes through the bias table, relu and the cast
// to f16 happen on the way out. Tile sizes are searched for: each candidate is written, legalised and priced on its own
// text, the cheapest that fits is kept.
#include <fmt/format.h>

#include <algorithm>

#include "lower/anchor.h"
#include "lower/npu_tiles.h"

namespace gaf {
namespace {

using kir::Builder;
using kir::Ref;

constexpr int64_t kMostTile = 256;   // rows and columns of an accumulator tile (KERNEL_IR 8: 128 x 256)
constexpr int64_t kMostDepth = 512;  // of one mma; far below the 4095 that the instruction takes

struct Shape {  // of the product, and what each input of the function is to it
  int64_t m, n, k;
  int a = 0, b = 1, bias = -1;
  bool relu = false;
};

struct Tiles {
  int64_t m, n, k;
  int slots;  // of the accumulator
};

// The whole text for one choice of tiles. A tile at the edge is as large as the others; its valid part is what is left.
class Writer {
 public:
  Writer(const Graph& fn, const Target& t, const Shape& p, const Tiles& s) : t_(t), p_(p), s_(s) {
    b_.k.name = fn.name, b_.k.target = t.name;
  }

  kir::Kernel write(std::vector<KernelArg>* args) {
    std::vector<int> of(3, -1);  // parameter of each input, in the function's order
    for (int input = 0; input < 3; input++) {
      if (input == p_.a) of[static_cast<size_t>(input)] = b_.buf(kir::Role::in, DType::f16, {p_.m, p_.k});
      if (input == p_.b) of[static_cast<size_t>(input)] = b_.buf(kir::Role::in, DType::f16, {p_.k, p_.n});
      if (input == p_.bias) of[static_cast<size_t>(input)] = b_.buf(kir::Role::in, DType::f16, {p_.n});
      if (args && of[static_cast<size_t>(input)] >= 0)
        args->push_back({KernelArg::input, static_cast<uint32_t>(input)});
    }
    if (args) args->push_back({KernelArg::output, 0});
    a_ = of[static_cast<size_t>(p_.a)], w_ = of[static_cast<size_t>(p_.b)];
    if (p_.bias >= 0) bias_ = of[static_cast<size_t>(p_.bias)];
    out_ = b_.buf(kir::Role::out, DType::f16, {p_.m, p_.n});
    const int64_t down = (p_.m + s_.m - 1) / s_.m, across = (p_.n + s_.n - 1) / s_.n;
    if (down * across == 1) s_.slots = 1, edge_slots_ = 1;  // a second slot would never be reached
    if (down * across == 1 && p_.k <= s_.k) operand_slots_ = 1;
    // an axis of one tile is none
    kir::For nest{{}, kir::LoopKind::par, {}};
    auto axis = [&](const char* name, int64_t tiles) -> Expr {
      b_.k.syms.push_back({name, kir::SymKind::loop});
      const int sym = static_cast<int>(b_.k.syms.size()) - 1;
      nest.axes.push_back({sym, 0, tiles, 1});
      return Expr::sym(sym);
    };
    const Expr row = down > 1 || across == 1 ? axis("i", down) : Expr(0),
               col = across > 1 ? axis("j", across) : Expr(0);
    b_.open.push_back(&nest.body);
    result_tile(row, col);
    b_.open.pop_back();
    b_.put({std::move(nest)});
    return std::move(b_.k);
  }

 private:
  Ref tile(const char* stem, DType type, int64_t rows, int64_t cols, Mem m, int ring) {
    const Ref r = b_.tile(stem, type, rows, cols, m);
    b_.k.tiles[static_cast<size_t>(r.id)].ring = ring;
    return r;
  }

  void result_tile(const Expr& row, const Expr& col) {
    const Expr i = row * Expr(s_.m), j = col * Expr(s_.n);
    const Expr rows = tile_extent(row, s_.m, p_.m), cols = tile_extent(col, s_.n, p_.n);
    const Ref c = tile("c", DType::f32, s_.m, s_.n, t_.mma.acc, s_.slots);
    std::optional<Ref> bias;
    if (bias_ >= 0) {
      const Ref narrow = tile("bl", DType::f16, 1, s_.n, Mem::l1, edge_slots_);
      bias = tile("bt", DType::f32, 1, s_.n, Mem::bt, s_.slots);
      b_.copy(narrow, Builder::at(bias_, {{j, cols, 1}}));
      b_.copy(*bias, narrow);
    }
    auto step = [&](const Expr& k, const Expr& depth, const std::function<void(const Ref&, const Ref&)>& multiply) {
      auto a = [&](Mem m) { return tile("a", DType::f16, s_.m, s_.k, m, operand_slots_); };
      auto b = [&](Mem m) { return tile("b", DType::f16, s_.k, s_.n, m, operand_slots_); };
      const Ref a1 = a(Mem::l1), b1 = b(Mem::l1), a0 = a(t_.mma.a[0]), b0 = b(t_.mma.b[0]);
      b_.copy(a1, block(a_, i, rows, k, depth));
      b_.copy(b1, block(w_, k, depth, j, cols));
      b_.copy(a0, a1);
      b_.copy(b0, b1);
      multiply(a0, b0);
    };
    auto first = [&](const Ref& a, const Ref& b) { b_.put({kir::Mma{c, a, b, bias, false, {}}}); };
    if (p_.k <= s_.k) {
      step(0, p_.k, first);
    } else {
      b_.loop("k", 0, p_.k, s_.k, kir::LoopKind::seq, [&](const Expr& k) {
        const Expr depth = p_.k % s_.k == 0 ? Expr(s_.k) : min(Expr(s_.k), Expr(p_.k) - k);
        step(k, depth, [&](const Ref& a, const Ref& b) {
          b_.when(
              kir::Cmp::eq, k, 0, [&] { first(a, b); }, [&] { b_.mma(c, a, b); });
        });
      });
    }
    kir::Copy store{block(out_, i, rows, j, cols), c, {}, p_.relu};
    b_.put({std::move(store)});
  }

  Builder b_;
  const Target& t_;
  Shape p_;
  Tiles s_;
  int operand_slots_ = 2, edge_slots_ = 2;  // of the steps of A and B; of the bias
  int a_ = -1, w_ = -1, bias_ = -1, out_ = -1;
};

// ---- which functions ----

bool row_vector(const Dims& d, const Expr& n) {  // [n], [1, n], ...
  return !d.empty() && d.back() == n && product(d) == n;
}

std::variant<Shape, Verdict> match(const Graph& fn, uint32_t anchor) {
  const Node& mm = fn.nodes[anchor];
  auto no = [&](std::string reason, std::string_view why) {
    return Verdict::no(std::move(reason), fmt::format("{} '{}' {}", mm.op, mm.name, why));
  };
  for (const Node& n : fn.nodes)
    for (const Type& type : n.types) {
      if (n.op == "constant") continue;
      if (!static_dims(type.dims)) return no("dynamic-shape", "has a free dimension; bind it with --shape or --dim");
      if (type.dtype != DType::f16)
        return no("unsupported-dtype", fmt::format("with {} has no kernel; float16 has", long_name(type.dtype)));
    }
  if (mm.op != "MatMul" && mm.op != "Gemm") return no("backend-limit", "has no kernel on this target");
  if (attr_int(mm, "transA", 0) || attr_int(mm, "transB", 0)) return no("layout", "reads an operand transposed");
  Shape p{};
  auto input = [&](Value v) -> int {  // its number; -1: it is computed here
    int number = 0;
    for (uint32_t i = 0; i < v.node; i++) number += fn.nodes[i].op == "input";
    return fn.nodes[v.node].op == "input" ? number : -1;
  };
  p.a = input(mm.args[0]), p.b = input(mm.args[1]);
  if (p.a < 0 || p.b < 0) return no("not-fusable-op", "reads what this kernel would have to compute first");
  if (p.a == p.b) return no("backend-limit", "multiplies a value by itself");
  const Dims &a = fn.type(mm.args[0]).dims, &b = fn.type(mm.args[1]).dims;
  const size_t br = b.size();
  if (br < 2 || product(b) != b[br - 2] * b[br - 1]) return no("layout", "has a second operand that is no matrix");
  p.k = b[br - 2].num(), p.n = b[br - 1].num();
  p.m = product(a).num() / p.k;

  // behind it, in this order: a bias, a relu
  std::vector<bool> mine(fn.nodes.size());
  mine[anchor] = true;
  Value v{anchor, 0};
  auto reader = [&]() -> const Node* {
    const Node* found = nullptr;
    for (uint32_t i = v.node + 1; i < fn.nodes.size(); i++)
      for (const Value& x : fn.nodes[i].args)
        if (x == v) found = &fn.nodes[i];
    return found;
  };
  auto index = [&](const Node& n) { return static_cast<uint32_t>(&n - fn.nodes.data()); };
  const Node* next = reader();
  if (next && next->op == "Add" && next->args[0] != next->args[1]) {
    const Value other = next->args[next->args[0] == v ? 1 : 0];
    p.bias = input(other);
    if (p.bias < 0 || !row_vector(fn.type(other).dims, p.n))
      return no("backend-limit", fmt::format("adds '{}', which is not one number a column", fn.node(other).name));
    if (p.bias == p.a || p.bias == p.b) return no("backend-limit", "adds one of its own operands");
    v = {index(*next), 0}, mine[v.node] = true, next = reader();
  }
  if (next && next->op == "Relu") p.relu = true, v = {index(*next), 0}, mine[v.node] = true;
  for (const Node& n : fn.nodes)
    if (!mine[index(n)] && n.op != "input" && n.op != "constant")
      return no("backend-limit",
                fmt::format("has no kernel together with {} '{}'; a bias and a Relu have", n.op, n.name));
  if (fn.outputs.size() != 1 || fn.outputs[0].value != v)
    return no("multi-use", "has an inner value that is read outside");
  return p;
}

}  // namespace

Attempt lower_tiled_contraction(const Graph& fn, const Target& t) {
  const std::vector<uint32_t> nodes = nodes_of(fn, OpKind::contraction);
  if (nodes.empty() || t.mma.acc == Mem::reg) return {};
  const Graph split = split_bias(fn, nodes[0]);
  auto matched = match(split, nodes_of(split, OpKind::contraction)[0]);
  if (auto* why = std::get_if<Verdict>(&matched)) return std::move(*why);
  const Shape& p = std::get<Shape>(matched);

  auto bytes_of = [&](Mem m) { return t.memory(m) ? t.memory(m)->bytes : 0; };
  std::optional<Candidate> best, smallest;
  Tiles chosen{};
  for (const int64_t m : tile_sizes(p.m, t.mma.m, kMostTile))
    for (const int64_t n : tile_sizes(p.n, t.mma.n, kMostTile)) {
      const int64_t acc = m * n * 4;
      const int slots = 2 * acc <= bytes_of(t.mma.acc) && 2 * n * 4 <= bytes_of(Mem::bt) ? 2 : 1;
      // two slots of each operand
      const int64_t room = std::min(bytes_of(t.mma.a[0]) / (4 * m), bytes_of(t.mma.b[0]) / (4 * n));
      const int64_t deepest = std::min(room / t.mma.k * t.mma.k, kMostDepth);
      if (deepest < t.mma.k) continue;
      const int64_t steps = (p.k + deepest - 1) / deepest;
      const Tiles s{m, n, round_up((p.k + steps - 1) / steps, t.mma.k), slots};
      Candidate c = price_candidate(Writer(split, t, p, s).write(nullptr), t,
                                    {static_cast<double>((p.k + s.k - 1) / s.k), slots == 1});
      if (!smallest) smallest = c;
      if (fits(c, t, t.budget) && (!best || c.us < best->us)) best = std::move(c), chosen = s;
    }
  if (!best)
    return Verdict::no("resource-local-memory", fmt::format("{} '{}': the smallest tile of a [{}, {}, {}] product {}",
                                                            fn.nodes[nodes[0]].op, fn.nodes[nodes[0]].name, p.m, p.k,
                                                            p.n, smallest ? overfill(*smallest, t) : "fits nowhere"));
  std::vector<KernelArg> args;
  kir::Kernel k = Writer(split, t, p, chosen).write(&args);
  return Lowered{std::move(k), std::move(args), {}, "contraction"};
}

}  // namespace gaf
