// Column loops, tails and units of work. The cut never depends on the number of threads, so results do not either.
#include "lower/nest.h"

#include <algorithm>

namespace gaf {

int64_t row_width(const Target& t, int widest_bytes) {
  return std::max<int64_t>(t.lanes, t.row_lanes * 4 / std::max(4, widest_bytes));
}

int64_t column_step(const Expr& n, int64_t lanes, int64_t vector) {
  if (!n.is_num()) return lanes;
  const int64_t size = n.num();
  if (size <= lanes) return std::max<int64_t>(size, 1);
  if (size % lanes == 0) return lanes;
  for (const int64_t unit : {vector, std::max<int64_t>(vector / 2, 1)})
    for (int64_t d = lanes / unit * unit; d * 2 >= lanes; d -= unit)
      if (size % d == 0) return d;
  return lanes;
}

void columns(Lowering& l, const Expr& n, int64_t step, const ColumnBody& body) {
  auto tile = [&](const Expr& c) { body({c, Expr(step)}, step); };
  if (n.is_num()) {
    const int64_t whole = n.num() / step;
    if (whole == 1)
      tile(0);
    else if (whole > 1)
      l.b.loop("c", 0, whole * step, step, kir::LoopKind::seq, tile);
    if (const int64_t rest = n.num() % step) body({whole * step, Expr(rest)}, rest);
    return;
  }
  l.b.loop("c", 0, n - (step - 1), step, kir::LoopKind::seq, tile);
  l.b.loop("c", floordiv(n, step) * step, n, step, kir::LoopKind::seq, [&](const Expr& c) {
    body({c, min(Expr(step), n - c)}, step);
  });
}

void column_block(Lowering& l, const Expr& n, int64_t step, int64_t block, const Expr& u, const ColumnBody& body) {
  const bool number = n.is_num();
  if (number && n.num() % block == 0) {
    l.b.loop("c", 0, block / step, 1, kir::LoopKind::seq, [&](const Expr& i) {
      body({(u * (block / step) + i) * step, Expr(step)}, step);
    });
    return;
  }
  if (number) {
    const int64_t tiles = block / step;
    l.b.loop("c", u * tiles, min(Expr(n.num() / step), u * tiles + tiles), 1, kir::LoopKind::seq, [&](const Expr& i) {
      body({i * step, Expr(step)}, step);
    });
    if (n.num() % step == 0) return;
  } else {
    l.b.loop("c", u * block, min(n - (step - 1), u * block + block), step, kir::LoopKind::seq, [&](const Expr& c) {
      body({c, Expr(step)}, step);
    });
  }
  // the tail belongs to the unit it falls into: a loop that is empty for all others
  l.b.loop("c", max(u * block, floordiv(n, step) * step), min(n, u * block + block), step, kir::LoopKind::seq,
           [&](const Expr& c) {
             body({c, min(Expr(step), n - c)}, step);
           });
}

namespace {

enum class How : uint8_t { par, seq, blocked };
struct Plan {
  How how = How::par;
  int64_t block = 1;
};

int64_t block_of(const Expr& extent, int64_t wanted) {
  if (!extent.is_num()) return wanted;
  for (int64_t b = wanted; b <= 2 * wanted; b++)  // a divisor leaves no short block
    if (extent.num() % b == 0) return b;
  return wanted;
}

}  // namespace

void nest(Lowering& l, const Dims& extents, int64_t work, const std::function<void(std::vector<Expr>)>& body) {
  std::vector<Plan> plan(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    const int64_t n = std::max<int64_t>(1, l.expect(extents[d]));
    if (work * 2 >= kUnitElements) continue;
    if (n <= 2 || work * n < 2 * kUnitElements) {
      plan[d] = {How::seq};
      work *= n;
    } else {
      plan[d] = {How::blocked, block_of(extents[d], (kUnitElements + work - 1) / work)};
      work = kUnitElements;
    }
  }
  std::vector<std::pair<Expr, Expr>> ranges;
  for (size_t d = 0; d < extents.size(); d++)
    if (plan[d].how == How::par)
      ranges.emplace_back(0, extents[d]);
    else if (plan[d].how == How::blocked)
      ranges.emplace_back(0, ceildiv(extents[d], plan[d].block));
  if (ranges.empty()) ranges.emplace_back(0, 1);
  l.b.par(ranges, [&](const std::vector<Expr>& units) {
    std::vector<Expr> at(extents.size(), Expr(0));
    std::function<void(size_t, size_t)> open = [&](size_t d, size_t unit) {
      if (d == extents.size()) return body(at);
      auto inner = [&, unit](const Expr& i) {
        at[d] = i;
        open(d + 1, unit);
      };
      if (plan[d].how == How::par) {
        at[d] = units[unit];
        open(d + 1, unit + 1);
      } else if (plan[d].how == How::blocked) {
        const int64_t block = plan[d].block;
        const Expr u = units[unit++];
        if (extents[d].is_num() && extents[d].num() % block == 0)
          l.b.loop("i", 0, block, 1, kir::LoopKind::seq, [&, u, unit, block](const Expr& i) {
            at[d] = u * block + i;
            open(d + 1, unit);
          });
        else
          l.b.loop("i", u * block, min(extents[d], u * block + block), 1, kir::LoopKind::seq, [&, unit](const Expr& i) {
            at[d] = i;
            open(d + 1, unit);
          });
      } else if (extents[d].is(1)) {
        inner(0);
      } else {
        l.b.loop("i", 0, extents[d], 1, kir::LoopKind::seq, inner);
      }
    };
    open(0, 0);
  });
}

}  // namespace gaf
