// Builder: what `lower` calls to write a kernel statement by statement. Invents names, keeps the stack of open blocks;
// checks nothing (that is the verifier's part).
#include <cctype>

#include "ir/kernel.h"

namespace gaf::kir {

std::string Builder::fresh(std::string stem) {
  // "a1" + "2" and "a" + "12" must not be one name
  if (!stem.empty() && std::isdigit(static_cast<unsigned char>(stem.back()))) stem += '_';
  return stem + std::to_string(unique_++);
}

int Builder::size(std::string name, int64_t lo, int64_t hi, int64_t mult) {
  k.syms.push_back({std::move(name), SymKind::size, lo, hi, mult});
  return static_cast<int>(k.syms.size()) - 1;
}

int Builder::buf(Role r, DType t, Dims shape) {
  Buf b;
  b.name = "%" + std::to_string(parameters(k).size());
  b.role = r;
  b.type = t;
  b.shape = std::move(shape);
  k.bufs.push_back(std::move(b));
  return static_cast<int>(k.bufs.size()) - 1;
}

int Builder::view(int base, Dims shape, Dims strides, Expr offset, DType t) {
  Buf b;
  b.name = fresh("v");
  b.role = Role::view;
  b.type = t;
  b.shape = std::move(shape);
  b.base = base;
  b.strides = std::move(strides);
  b.offset = std::move(offset);
  k.bufs.push_back(std::move(b));
  int id = static_cast<int>(k.bufs.size()) - 1;
  put({View{id}});
  return id;
}

Ref Builder::tile(std::string stem, DType t, int64_t rows, int64_t cols, Mem m) {
  Tile x;
  x.name = fresh(std::move(stem));
  x.type = t;
  x.rows = rows;
  x.cols = cols;
  x.mem = m;
  k.tiles.push_back(std::move(x));
  int id = static_cast<int>(k.tiles.size()) - 1;
  put({Declare{id}});
  return {true, id, {}, false};
}

Ref Builder::part(const Ref& tile, Expr r, Expr nr, Expr c, Expr nc) {
  return {true, tile.id, {{std::move(r), std::move(nr), 1}, {std::move(c), std::move(nc), 1}}, false};
}

void Builder::copy(Ref dst, Ref src, std::optional<double> pad) {
  put({Copy{std::move(dst), std::move(src), pad, false}});
}
void Builder::map(Ref dst, S op, std::vector<Arg> args) { put({Map{std::move(dst), op, std::move(args), -1}}); }
void Builder::reduce(Ref dst, S op, int axis, Ref src) { put({Reduce{std::move(dst), op, axis, std::move(src), -1}}); }
void Builder::mma(Ref dst, Ref a, Ref b, std::vector<Ref> prefetch) {
  put({Mma{std::move(dst), std::move(a), std::move(b), {}, true, std::move(prefetch)}});
}

void Builder::loop(std::string stem, Expr lo, Expr hi, int64_t step, LoopKind kind,
                   const std::function<void(Expr)>& body) {
  int sym = static_cast<int>(k.syms.size());
  k.syms.push_back({fresh(std::move(stem)), SymKind::loop});
  Body inner;
  open.push_back(&inner);
  body(Expr::sym(sym));
  open.pop_back();
  put({For{{{sym, std::move(lo), std::move(hi), step}}, kind, std::move(inner)}});
}

void Builder::par(std::vector<std::pair<Expr, Expr>> ranges, const std::function<void(std::vector<Expr>)>& body) {
  For f{{}, LoopKind::par, {}};
  std::vector<Expr> at;
  for (auto& [lo, hi] : ranges) {
    int sym = static_cast<int>(k.syms.size());
    k.syms.push_back({fresh("p"), SymKind::loop});
    f.axes.push_back({sym, std::move(lo), std::move(hi), 1});
    at.push_back(Expr::sym(sym));
  }
  open.push_back(&f.body);
  body(std::move(at));
  open.pop_back();
  put({std::move(f)});
}

void Builder::when(Cmp c, Expr a, Expr b, const std::function<void()>& yes, const std::function<void()>& no) {
  If f{c, std::move(a), std::move(b), {}, {}};
  open.push_back(&f.yes);
  yes();
  open.back() = &f.no;
  if (no) no();
  open.pop_back();
  put({std::move(f)});
}

Expr Builder::read(Ref src, Expr lo, Expr hi) {
  int sym = static_cast<int>(k.syms.size());
  k.syms.push_back({fresh("r"), SymKind::read});
  put({Read{sym, std::move(src), std::move(lo), std::move(hi)}});
  return Expr::sym(sym);
}

}  // namespace gaf::kir
