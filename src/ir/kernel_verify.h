// Checks of a kernel that need no execution. Everything found is reported, anchored to its line. The rules:
//
//  names       1 names are declared once and known (the reader's part); symbols are used inside their loop
//              2 a tile is used only inside the block that declares it
//              3 a tile's memory exists on the target; 4 the tile fits it, its offset and ring slots are aligned
//  references  5 as many indices as dims; 6 every index in bounds for all sizes of the class, except the source of
//                `copy ... else` and a prefetch; a view stays inside its buffer; extents are >= 0, known ones >= 1
//              7 an `in` parameter is not written; 22 ^T stands in copy and mma only
//             23 the columns of a view that map and mma read have stride 0 or 1 (^T otherwise)
//  parallel    8 what is written to memory beside par loops is written by every worker: refused
//              9 no par iteration writes what another one of the phase reads or writes (per buffer or view)
//             15 par loops and barriers are outermost; 27 a tile from outside a par loop is not written inside
//  statements 10 the copy edge exists, dtypes agree (or it casts), `post` is offered, shapes agree
//             11 map: arity, dtypes, b1 results, broadcast, memories; 12 the op is an instruction of the target
//             13 reduce: op, shape, memories; 14 mma: memories, inner size, shape, dtypes, limits and multiples
//             18 read: one integer; 19 gather: i32 or i64 index; 20 valid extents of operands agree and are known
//             21 no tile is read that nothing has written; 24 `tmp` is large enough and no operand
//  loops      16 steps are > 0; 17 set, wait, fence only on targets with pipes, events in range
//  pipes      10 copies neither fill (`else`) nor turn (^T); 28 each block sets an event as often as it waits for it
//  resources  26 peak bytes of each memory within the target's
//  warnings   30 max(x, constant): a NaN in x is lost, write max(constant, x)
//
// Not here: registers (25: analyse), whether events suffice (the interpreter: check_races), copy sizes (29), `mult` promises (32,
// used as facts by the bounds).
#pragma once
#include "ir/kernel.h"
#include "ir/kernel_bounds.h"
#include "ir/kernel_extents.h"

namespace gaf::kir {

class Verifier {
 public:
  Verifier(const Kernel& k, const Target& t) : k_(k), t_(t), bounds_(k), tiles_(k.tiles.size()) {}
  std::vector<KernelProblem> run();

 private:
  const Kernel& k_;
  const Target& t_;
  Bounds bounds_;
  std::vector<TileState> tiles_;
  std::vector<KernelProblem> problems_;
  int line_ = 0, depth_ = 0;
  bool has_par_ = false;

  // A read or write of memory inside a par loop, with the loops around it, for rule 9.
  struct Touch {
    Ref ref;
    bool write;
    int line;
    const For* par;
    std::vector<int> outer;  // `read` symbols from beside the par loop: the same in all its iterations
    std::vector<int> inner;  // loop and read symbols between the par loop and the statement
  };
  std::vector<Touch> touches_;
  std::vector<int> inner_, outer_;
  std::map<int, std::pair<Expr, Expr>> reach_;  // first and last value of each loop and read symbol
  const For* par_loop_ = nullptr;

  void complain(std::string text, bool warning = false) { problems_.push_back({line_, std::move(text), warning}); }
  std::string show(const Ref& r) const { return print_ref(k_, r); }
  TileState& state(const Ref& r) { return tiles_[static_cast<size_t>(r.id)]; }

  // kernel_verify.cpp: blocks, loops, references
  void body(const Body& b);
  void balance(const Body& b);
  void check(const Declare& d);
  void check(const View& v);
  void check(const For& f);
  void check(const If& f);
  void check(const Barrier&);
  void check(const Sync& s);
  void check(const Read& r);
  void symbols(const Expr& x);
  enum class Access : uint8_t { read, write, loose, hint };  // loose: a read that may leave the buffer; hint: prefetch
  Shape reference(const Ref& r, Access a);
  void touch(const Ref& r, bool write);
  bool equal(const Expr& a, const Expr& b) {
    return a == b || (bounds_.at_most(a - b, 0) && bounds_.at_most(b - a, 0));
  }

  // kernel_verify_stmt.cpp: what each statement demands
  void check(const Copy& c);
  void check(const Map& m);
  void check(const Reduce& r);
  void check(const Mma& m);
  void check(const Iota& i);
  void check(const Gather& g);
  void result(const Ref& d, const Shape& s, std::string_view what);  // writes s to d: fits, extents taken over
  void vector_source(const Ref& r);
  void vector_result(const Ref& d, std::string_view what, bool fill = false);
  void scratch(int tmp, const Ref& dst, const std::vector<const Ref*>& operands, const Stmt& s);
  void instruction(S op, DType t);
  float cycles(S op) const;

  // kernel_verify_par.cpp: rule 9
  void independent();
  bool disjoint(const Touch& a, const Touch& b);
  bool separate(const Touch& a, const Touch& b, const std::vector<int>& order, size_t differs);
};

}  // namespace gaf::kir
