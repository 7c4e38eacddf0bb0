// Walks a kernel with the extents that kernel_extents.h follows, and resolves references.
#include "codegen/npu/walk.h"

namespace gaf::npu {

using namespace kir;

const Ref* written(const Stmt& s) {
  const Ref* d = nullptr;
  for_each_ref(s, [&](const Ref& r, bool write) {
    if (write) d = &r;
  });
  return d;
}

void Walk::body(const Body& b) {
  for (const Stmt& s : b) {
    statement(s);
    if (const For* f = std::get_if<For>(&s.alt)) {
      enter_loop(k_, *f, tiles_);
      nest_.push_back(f);
      body(f->body);
      nest_.pop_back();
      drop_symbols(*f, tiles_);
      close(s);
    } else if (const If* i = std::get_if<If>(&s.alt)) {
      std::vector<TileState> before = tiles_;
      body(i->yes);
      std::swap(before, tiles_);
      if (!i->no.empty()) otherwise();
      body(i->no);
      merge(tiles_, before);
      close(s);
    } else {
      apply(k_, s, tiles_);
    }
  }
}

TileUse Walk::use(const Ref& r) const {
  const Shape s = shape_of(k_, tiles_, r);
  return {&tile(r.id), s.rows, s.cols};
}
TileUse Walk::result(const Stmt& s) const {
  const Ref* d = written(s);
  const Shape x = result_shape(k_, tiles_, s);
  return {&tile(d->id), x.rows, x.cols};
}
bool Walk::is_column(const Ref& r) const { return tile(r.id).cols == 1; }

MemoryUse Walk::memory(const Ref& r) const {
  const Buf* b = &k_.bufs[static_cast<size_t>(r.id)];
  MemoryUse u;
  u.type = b->type;
  std::vector<Expr> strides = b->role == Role::view ? b->strides : row_major(b->shape);
  if (b->role == Role::view) u.offset = b->offset;
  size_t ranged = 0;
  for (size_t i = r.at.size(); i-- > 0;) {
    u.offset += r.at[i].at * strides[i];
    if (!r.at[i].n) continue;
    if (ranged == 0)
      u.cols = *r.at[i].n;
    else if (ranged == 1)
      u.rows = *r.at[i].n, u.stride = strides[i] * Expr(r.at[i].step);
    ranged++;
  }
  if (ranged < 2 || u.rows.is(1)) u.stride = u.cols;
  const int base = b->role == Role::view ? b->base : r.id;
  u.size = product(k_.bufs[static_cast<size_t>(base)].shape);
  for (int p : parameters(k_)) {
    if (p == base) break;
    u.parameter++;
  }
  return u;
}

}  // namespace gaf::npu
