// Rows fetched ahead. A kernel that sweeps over each row more than once (softmax, a norm) reads memory in bursts: the
// first sweep waits for its row, the others leave the memory idle. So the sweep that reads an input first also fetches
// the same place of the next row. Plain streams are left to the hardware, which finds them by itself.
#include <algorithm>

#include "codegen/cpu/emitter.h"

namespace gaf::cpu {

using namespace kir;

namespace {

constexpr int64_t kNear = 8 << 10;   // rows up to here go to the first cache: with two operands, a quarter of 32 KiB
constexpr int64_t kFar = 128 << 10;  // up to here to the second; longer rows are streams of their own

// A row of memory that a loop over columns walks without gaps.
struct Row {
  Expr first;        // byte offset in the parameter, at column 0
  int64_t next = 0;  // bytes to the same place one iteration of the outer loop later
};

std::optional<Row> row_of(const Kernel& k, const Ref& r, const Axis& outer, const Axis& column) {
  const Buf& b = k.bufs[static_cast<size_t>(r.id)];
  const bool view = b.role == Role::view;
  const std::vector<Expr> strides = view ? b.strides : row_major(b.shape);
  Expr at = view ? b.offset : Expr(0);
  for (size_t i = 0; i < r.at.size(); i++) {
    at += r.at[i].at * strides[i];
    if (r.at[i].n && !r.at[i].n->is(i + 1 == r.at.size() ? column.step : 1)) return std::nullopt;
  }
  const int64_t size = gaf::bytes(b.type);
  auto step_along = [&](int sym) -> std::optional<int64_t> {
    const Expr d = at.substitute([&](int s) { return s == sym ? Expr::sym(s) + 1 : Expr::sym(s); }) - at;
    return d.is_num() ? std::optional(d.num() * size) : std::nullopt;
  };
  const std::optional<int64_t> next = step_along(outer.sym);
  if (step_along(column.sym) != size || !next || *next < kLine) return std::nullopt;
  return Row{at.substitute([&](int s) { return s == column.sym ? Expr(0) : Expr::sym(s); }) * Expr(size), *next};
}

}  // namespace

void Emitter::find_rows_ahead(const For& outer) {
  std::vector<const For*> sweeps;
  for (const Stmt& s : outer.body)
    if (const auto* f = std::get_if<For>(&s.alt); f && f->kind == LoopKind::seq) sweeps.push_back(f);
  if (sweeps.size() < 2) return;
  std::vector<std::pair<int, Expr>> seen;
  for (const For* sweep : sweeps)
    for (const Stmt& s : sweep->body)
      for_each_ref(s, [&](const Ref& r, bool write) {
        if (r.tile || write || r.transposed || k_.bufs[static_cast<size_t>(parameter_of(k_, r.id))].role != Role::in)
          return;
        const std::optional<Row> row = row_of(k_, r, outer.axes.back(), sweep->axes[0]);
        if (!row || row->next > kFar) return;
        const std::pair<int, Expr> key{parameter_of(k_, r.id), row->first};
        if (std::ranges::find(seen, key) != seen.end()) return;
        seen.push_back(key);
        ahead_[sweep].push_back({&r, row->next});
      });
}

void Emitter::fetch_ahead(const For& sweep) {
  const auto it = ahead_.find(&sweep);
  if (it == ahead_.end()) return;
  for (const Ahead& a : it->second) {
    const Window w = window(*a.row);
    const int64_t bytes = w.cols * gaf::bytes(w.type);
    for (int64_t line = 0; line < bytes; line += kLine)
      ir_.prefetch(ir_.offset(address(w, 0, 0), a.next + line), a.next > kNear ? Cache::l2 : Cache::l1);
  }
}

}  // namespace gaf::cpu
