// Softmax over the last axis for targets that work on tiles: blocks of whole rows in the local memory, computed in f32.
// One pass: a row that does not fit is refused. The number of rows of a block is searched for: as many copies and
// vector statements as the price of the text asks for, loads and stores in turn with computing where two slots fit.
#include <fmt/format.h>

#include <algorithm>

#include "lower/npu_tiles.h"

namespace gaf {
namespace {

using kir::Builder;
using kir::Ref;

// A reduction of each row is one instruction that repeats at most this often (TARGETS.md); a copy takes more rows.
constexpr int64_t kMostRows = 255;
// Rows of a tile and of a column of results are whole blocks of the local memory.
constexpr int64_t kBlockBytes = 32;

// How generous the tiles are; tried in order, the first that fits wins.
struct Slots {
  int ring;       // slots of what is loaded and stored
  bool in_place;  // results are stored from the tile that was loaded
};
constexpr Slots kSlots[] = {{2, false}, {1, false}, {1, true}};

struct Softmax {
  int64_t rows, cols;
  DType in, out;  // f16 or f32; computed in f32

  kir::Kernel kernel(const Graph& fn, const Target& t, int64_t block_rows, Slots slots) const {
    Builder b;
    b.k.name = fn.name, b.k.target = t.name;
    const int from = b.buf(kir::Role::in, in, {rows, cols}), to = b.buf(kir::Role::out, out, {rows, cols});
    const int64_t capacity = round_up(cols, kBlockBytes / bytes(DType::f16));
    const int64_t blocks = (rows + block_rows - 1) / block_rows;
    const int ring = blocks > 1 ? slots.ring : 1;
    b.loop("i", 0, blocks, 1, kir::LoopKind::par, [&](const Expr& i) {
      const Expr at = i * Expr(block_rows), n = tile_extent(i, block_rows, rows);
      auto tile = [&](const char* stem, DType dtype, int ring) {
        const Ref r = b.tile(stem, dtype, block_rows, capacity, t.map_dst);
        b.k.tiles[static_cast<size_t>(r.id)].ring = ring;
        return r;
      };
      // f32 is loaded into, and stored from, the tile that is computed in
      const bool narrow_in = in != DType::f32, narrow_out = out != DType::f32;
      const Ref loaded = narrow_in ? tile("h", in, ring) : Ref{};
      const Ref x = tile("x", DType::f32, narrow_in && narrow_out ? 1 : ring);
      const Ref m = b.tile("m", DType::f32, round_up(block_rows, kBlockBytes / bytes(DType::f32)), 1, t.map_dst);
      const Ref stored = !narrow_out ? x : slots.in_place && narrow_in ? loaded : tile("y", out, ring);
      b.copy(narrow_in ? loaded : x, block(from, at, n, 0, cols));
      if (narrow_in) b.map(x, kir::S::cast, {loaded});
      b.reduce(m, kir::S::max, 1, x);
      b.map(x, kir::S::sub, {x, m});
      b.map(x, kir::S::exp, {x});
      b.reduce(m, kir::S::add, 1, x);
      b.map(x, kir::S::div, {x, m});
      if (narrow_out) b.map(stored, kir::S::cast, {x});
      b.copy(block(to, at, n, 0, cols), stored);
    });
    return std::move(b.k);
  }
};

// The Softmax that the function is, perhaps between casts, or why it is none that is written here.
std::variant<Softmax, Verdict> match(const Graph& fn, uint32_t anchor) {
  const Node& n = fn.nodes[anchor];
  auto no = [&](std::string reason, std::string_view why) {
    return Verdict::no(std::move(reason), fmt::format("{} '{}' {}", n.op, n.name, why));
  };
  auto is_cast = [&](Value v) { return fn.nodes[v.node].op == "Cast"; };
  Value first = n.args[0], last{anchor, 0};
  size_t casts = 0;
  if (is_cast(first)) first = fn.nodes[first.node].args[0], casts++;
  if (is_cast(fn.outputs[0].value) && fn.nodes[fn.outputs[0].value.node].args[0] == last)
    last = fn.outputs[0].value, casts++;
  for (const Node& other : fn.nodes)
    if (&other != &n && other.op != "input" && (other.op != "Cast" || casts-- == 0))
      return no("backend-limit", fmt::format("has no kernel together with {} '{}'", other.op, other.name));
  if (fn.outputs.size() != 1 || fn.outputs[0].value != last || fn.nodes[first.node].op != "input")
    return no("multi-use", "has an inner value that is read outside");
  for (const DType d : {fn.type(first).dtype, n.types[0].dtype, fn.type(last).dtype})
    if (d != DType::f16 && d != DType::f32)
      return no("unsupported-dtype", fmt::format("of {} has no kernel; float16 and float32 have", long_name(d)));
  const std::optional<std::vector<int64_t>> dims = static_dims(n.types[0].dims);
  if (!dims) return no("dynamic-shape", "has a free dimension; bind it with --shape or --dim");
  const auto rank = static_cast<int64_t>(dims->size());
  if (rank == 0) return no("iteration-mismatch", "works on a single number");
  int64_t axis = attr_int(n, "axis", fn.opset < 13 ? 1 : -1);
  if (axis < 0) axis += rank;
  const bool flat = n.attrs.contains("flatten") ? attr_int(n, "flatten", 0) != 0 : fn.opset < 13;
  if (axis != rank - 1 && !flat)
    return no("layout", fmt::format("works along axis {} of {}; only the last has a kernel", axis, rank));
  Softmax s{1, 1, fn.type(first).dtype, fn.type(last).dtype};
  for (int64_t d = 0; d < rank; d++) (d < axis ? s.rows : s.cols) *= (*dims)[static_cast<size_t>(d)];
  if (s.cols == 1) return no("backend-limit", "works along an axis of one element; its result is 1");
  return s;
}

}  // namespace

Attempt lower_tiled_row(const Graph& fn, const Target& t) {
  const auto anchor = std::find_if(fn.nodes.begin(), fn.nodes.end(), [](const Node& n) { return n.op == "Softmax"; });
  if (anchor == fn.nodes.end() || !t.edge(Mem::gm, t.map_dst) || !t.edge(t.map_dst, Mem::gm)) return {};
  auto matched = match(fn, static_cast<uint32_t>(anchor - fn.nodes.begin()));
  if (auto* why = std::get_if<Verdict>(&matched)) return std::move(*why);
  const Softmax& s = std::get<Softmax>(matched);

  std::optional<Candidate> best, smallest;
  for (const double share : {t.budget, 1.0})  // beyond the budget only what fits no other way
    for (const Slots& slots : kSlots) {
      for (const int64_t rows : tile_sizes(s.rows, 1, kMostRows)) {
        Candidate c = price_candidate(s.kernel(fn, t, rows, slots), t, {1, slots.ring == 1});
        if (!fits(c, t, share)) {
          if (rows == 1) smallest = std::move(c);
          break;  // more rows need more
        }
        if (!best || c.us < best->us) best = std::move(c);
      }
      if (best) return Lowered{std::move(best->kernel), {{KernelArg::input, 0}, {KernelArg::output, 0}}, {}, "row"};
    }
  return Verdict::no("resource-local-memory", fmt::format("{} '{}': one row of {} elements {}", anchor->op,
                                                          anchor->name, s.cols, overfill(*smallest, t)));
}

}  // namespace gaf
