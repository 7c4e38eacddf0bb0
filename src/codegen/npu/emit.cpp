// emit_npu: numbers the kernel's lines, runs the checker, then walks the statements and hands each to the language.
#include "base/error.h"
#include "codegen/npu/check.h"
#include "codegen/npu/index.h"
#include "codegen/npu/walk.h"

namespace gaf {

using namespace kir;

namespace npu {
namespace {

// Gathers what Facts holds.
class Gather final : public Walk {
 public:
  Gather(const Kernel& k, Facts& f) : Walk(k), f_(f) {}

 private:
  Facts& f_;
  void statement(const Stmt& s) override {
    if (const Copy* c = std::get_if<Copy>(&s.alt); c && c->src.tile && tile(c->src.id).mem == Mem::l1)
      f_.l1_goes_to[static_cast<size_t>(c->src.id)] = mem_of(k_, c->dst);
    const Ref* d = written(s);
    if (!d || !d->tile) return;
    const auto id = static_cast<size_t>(d->id);
    const TileUse u = result(s);
    TileUse& w = f_.whole[id];
    if (!w.tile)
      w = u;
    else if (!(w.rows == u.rows) || !(w.cols == u.cols))
      f_.one_extent[id] = 0;
  }
};

class Emitter final : public Walk {
 public:
  Emitter(const Facts& f, Language& l) : Walk(f.k), f_(f), to_(l) {}

 private:
  const Facts& f_;
  Language& to_;

  void statement(const Stmt& s) override {
    std::visit(Match{[&](const Declare& d) { declare(d.tile); },
                     [&](const Copy& c) {
                       if (!c.src.tile)
                         to_.load(result(s), memory(c.src));
                       else if (!c.dst.tile)
                         to_.store(memory(c.dst), use(c.src), c.relu);
                       else
                         to_.move(result(s), use(c.src));
                     },
                     [&](const Map& m) { map(m, s); },
                     [&](const Reduce& r) { to_.reduce(r.op, result(s), use(r.src), tile(r.tmp)); },
                     [&](const Mma& m) {
                       TileUse bias;
                       if (m.bias) bias = use(*m.bias);
                       to_.mma(result(s), use(m.a), use(m.b), m.bias ? &bias : nullptr, m.add);
                     },
                     [&](const For& f) {
                       if (f.kind == LoopKind::par) {
                         Expr trips = 1;
                         for (const Axis& a : f.axes) trips *= ceildiv(a.hi - a.lo, a.step);
                         to_.split(f, trips);
                       } else {
                         to_.loop(f.axes[0]);
                       }
                     },
                     [&](const If& i) { to_.branch(i); }, [&](const Sync& y) { to_.sync(y); }, [](const auto&) {}},
               s.alt);
  }
  void otherwise() override { to_.otherwise(); }
  void close(const Stmt&) override { to_.close(); }

  void declare(int id) {
    const Tile& t = tile(id);
    TileUse u = f_.whole[static_cast<size_t>(id)];
    if (!u.tile) u = {&t, t.rows, t.cols};  // scratch only
    Expr at = t.at;
    if (t.ring > 1) at += ring_slot(k_, nest_, t.ring) * slot_bytes(t, f_.t);
    to_.declare(u, at);
  }
  void map(const Map& m, const Stmt& s) {
    const MapForm f = *map_form(m, [&](const Ref& r) { return is_column(r) && !is_column(m.dst); });
    MapUse u{m.op, f.form, result(s)};
    if (f.a) u.a = use(*f.a);
    if (f.b) u.b = use(*f.b);
    u.number = f.number;
    if (m.tmp >= 0) u.tmp = &tile(m.tmp);
    to_.map(u);
  }
};

}  // namespace

Facts::Facts(const Kernel& k, const Target& t)
    : k(k),
      t(t),
      l1_goes_to(k.tiles.size(), Mem::gm),
      whole(k.tiles.size()),
      one_extent(k.tiles.size(), 1),
      peak(peak_bytes(k, t)) {
  Gather(k, *this).run();
}

}  // namespace npu

std::string emit_npu(const Kernel& built, const Target& t, NpuLanguage l) {
  if (const std::vector<NpuProblem> found = check_npu(built, t, l); !found.empty()) {
    const NpuProblem& p = found.front();
    throw UserError(p.unsupported ? "GAF4002" : "GAF5004",
                    "kernel " + built.name + ", line " + std::to_string(p.line) + ": `" + p.statement + "`: " + p.text);
  }
  const Kernel k = npu::with_free_names(number_symbols(built));
  const npu::Facts facts(k, t);
  const std::unique_ptr<npu::Language> to = l == NpuLanguage::ascendc ? npu::ascendc(facts)
                                            : l == NpuLanguage::pto   ? npu::pto(facts)
                                                                      : npu::pto_text(facts);
  npu::Emitter(facts, *to).run();
  return to->file();
}

int64_t npu_blocks(const Kernel& k, const Target& t) {
  int64_t trips = 1;
  for_each_stmt(k.body, [&](const Stmt& s) {
    const For* f = std::get_if<For>(&s.alt);
    if (!f || f->kind != LoopKind::par) return;
    Expr n = 1;
    for (const Axis& a : f->axes) n *= ceildiv(a.hi - a.lo, a.step);
    if (n.is_num()) trips = n.num();
  });
  return std::min<int64_t>(trips, workers_of(k, t));
}

}  // namespace gaf
