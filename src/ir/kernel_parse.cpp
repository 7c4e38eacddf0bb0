// Reads the text form of a kernel. Recursive descent, one pass; knows names and syntax, not meaning (that is the
// verifier's). A fault is a UserError GAF5001 with line and column.
#include <set>

#include "ir/kernel.h"
#include "ir/kernel_lexer.h"

namespace gaf::kir {
namespace {

constexpr std::string_view kKeywords[] = {"tile", "view", "copy",     "read", "for", "if",   "else", "barrier",
                                          "set",  "wait", "fence",    "size", "in",  "step", "par",  "unroll",
                                          "post", "tmp",  "prefetch", "inf",  "nan", "min",  "max"};

class Parser : KernelLexer {
 public:
  using KernelLexer::KernelLexer;

  Kernel kernel() {
    need("kernel"), need("@");
    k_.name = word("the kernel's name");
    need("target");
    k_.target = target_name();
    list("(", ")", [&] { parameter(); });
    k_.body = block();
    space();
    if (pos_ < text_.size()) die("text after the kernel");
    return std::move(k_);
  }

 private:
  Kernel k_;
  std::set<std::string, std::less<>> names_;

  // A name being declared: once in a kernel, no keyword.
  std::string fresh(std::string_view what) {
    space();
    size_t at = pos_;
    std::string w = word(what);
    for (std::string_view key : kKeywords)
      if (w == key) die_at(at, "'" + w + "' is a keyword");
    if (std::isdigit(static_cast<unsigned char>(w[0]))) die_at(at, "expected " + std::string(what));
    if (!names_.insert(w).second) die_at(at, "'" + w + "' is declared twice");
    return w;
  }
  template <class F>
  void list(std::string_view open, std::string_view close, F each) {
    need(open);
    if (eat(close)) return;
    do each();
    while (eat(","));
    need(close);
  }
  template <class T, size_t N>
  T choose(const std::string_view (&names)[N], std::string_view what) {
    space();
    size_t at = pos_;
    std::string w = word(what);
    for (size_t i = 0; i < N; i++)
      if (names[i] == w) return static_cast<T>(i);
    die_at(at, "unknown " + std::string(what) + " '" + w + "'");
  }
  DType dtype() {
    space();
    size_t at = pos_;
    std::string w = word("dtype");
    for (int i = 0; i < kDTypes; i++)
      if (kDType[i].name == w) return static_cast<DType>(i);
    die_at(at, "unknown dtype '" + w + "'");
  }

  // ---- expressions, references ----
  Expr expr() {
    space();
    size_t at = pos_;
    try {
      return parse_expr(text_, pos_, [&](std::string_view name) {
        for (size_t i = k_.syms.size(); i-- > 0;)
          if (k_.syms[i].name == name) return static_cast<int>(i);
        die_at(at, "unknown size or loop variable '" + std::string(name) + "'");
      });
    } catch (const UserError& e) {
      if (e.info().line) throw;
      die(e.info().message);
    }
  }
  int tile_named(std::string_view n) const {
    for (size_t i = 0; i < k_.tiles.size(); i++)
      if (k_.tiles[i].name == n) return static_cast<int>(i);
    return -1;
  }
  int buf_named(std::string_view n) const {
    for (size_t i = 0; i < k_.bufs.size(); i++)
      if (k_.bufs[i].name == n) return static_cast<int>(i);
    return -1;
  }
  Ref ref() {
    space();
    size_t at = pos_;
    std::string n = word("a tile or buffer");
    Ref r;
    r.id = tile_named(n);
    r.tile = r.id >= 0;
    if (!r.tile) r.id = buf_named(n);
    if (r.id < 0) die_at(at, "unknown tile or buffer '" + n + "'");
    if (space(), pos_ < text_.size() && text_[pos_] == '[') {
      list("[", "]", [&] {
        Slice s;
        s.at = expr();
        if (eat(":")) s.n = expr();
        if (eat(":")) s.step = integer();
        r.at.push_back(std::move(s));
      });
    }
    r.transposed = eat("^T");
    return r;
  }
  int tmp() {
    if (!eat("tmp")) return -1;
    space();
    size_t at = pos_;
    std::string n = word("a tile");
    int id = tile_named(n);
    if (id < 0) die_at(at, "unknown tile '" + n + "'");
    return id;
  }
  Arg arg() {
    space();
    char c = pos_ < text_.size() ? text_[pos_] : '\0';
    bool words = text_.substr(pos_, 3) == "inf" || text_.substr(pos_, 3) == "nan";
    if (words && pos_ + 3 < text_.size() && letter(text_[pos_ + 3])) words = false;
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '-' || words) return real();
    return ref();
  }
  Dims shape() {
    Dims d;
    list("[", "]", [&] { d.push_back(expr()); });
    return d;
  }

  // ---- declarations ----
  void parameter() {
    if (eat("size")) {
      Symbol s;
      s.name = fresh("a size's name");
      s.kind = SymKind::size;
      need("in");
      s.lo = integer();
      need("..");
      s.hi = integer();
      if (eat("mult")) s.mult = integer();
      k_.syms.push_back(std::move(s));
      return;
    }
    space();
    size_t at = pos_;
    Buf b;
    b.role = choose<Role>(kRoleName, "role");
    if (b.role == Role::view) die_at(at, "a parameter cannot be a view");
    size_t name_at = (space(), pos_);
    b.name = fresh("a buffer");
    if (b.name != "%" + std::to_string(k_.bufs.size()))
      die_at(name_at, "buffers are numbered in order: expected '%" + std::to_string(k_.bufs.size()) + "'");
    need(":");
    b.type = dtype();
    b.shape = shape();
    k_.bufs.push_back(std::move(b));
  }
  Declare tile() {
    Tile t;
    t.name = fresh("a tile's name");
    need(":");
    t.type = dtype();
    need("[");
    t.rows = integer();
    need(",");
    t.cols = integer();
    need("]"), need("@");
    t.mem = choose<Mem>(kMemName, "memory");
    if (eat("+")) t.at = integer();
    if (eat("ring")) t.ring = static_cast<int>(integer());
    k_.tiles.push_back(std::move(t));
    return {static_cast<int>(k_.tiles.size()) - 1};
  }
  View view() {
    Buf b;
    b.role = Role::view;
    b.name = fresh("a view's name");
    need("=");
    size_t at = (space(), pos_);
    std::string base = word("a buffer");
    b.base = buf_named(base);
    if (b.base < 0) die_at(at, "unknown buffer '" + base + "'");
    if (k_.bufs[static_cast<size_t>(b.base)].role == Role::view) die_at(at, "a view of the view '" + base + "'");
    need(":");
    b.type = dtype();
    b.shape = shape();
    need("strides");
    list("(", ")", [&] { b.strides.push_back(expr()); });
    need("at");
    b.offset = expr();
    k_.bufs.push_back(std::move(b));
    return {static_cast<int>(k_.bufs.size()) - 1};
  }
  int new_symbol(SymKind kind, std::string_view what) {
    k_.syms.push_back({fresh(what), kind});
    return static_cast<int>(k_.syms.size()) - 1;
  }

  // ---- statements ----
  Body block() {
    Body b;
    for (need("{"); !eat("}");) {
      if (pos_ >= text_.size()) die("expected '}'");
      int line = line_here();
      Stmt s = stmt();
      s.line = line;
      b.push_back(std::move(s));
    }
    return b;
  }
  Stmt stmt() {
    if (eat("tile")) return {tile()};
    if (eat("view")) return {view()};
    if (eat("copy")) return {copy()};
    if (eat("read")) return {read()};
    if (eat("for")) return {loop()};
    if (eat("if")) return {branch()};
    if (eat("barrier")) return {Barrier{}};
    if (eat("set")) return {sync(SyncKind::set)};
    if (eat("wait")) return {sync(SyncKind::wait)};
    if (eat("fence")) return {sync(SyncKind::fence)};
    return compute();
  }
  Copy copy() {
    Copy c;
    c.dst = ref();
    need("=");
    c.src = ref();
    if (eat("else")) c.pad = real();
    if (eat("post")) need("relu"), c.relu = true;
    return c;
  }
  Read read() {
    int sym = new_symbol(SymKind::read, "an index name");
    need("=");
    Ref src = ref();
    need("in");
    Expr lo = expr();
    need("..");
    return {sym, std::move(src), std::move(lo), expr()};
  }
  For loop() {
    For f{{}, LoopKind::seq, {}};
    do {
      int sym = new_symbol(SymKind::loop, "a loop variable");
      need("in");
      Expr lo = expr();
      need("..");
      Axis a{sym, std::move(lo), expr(), 1};
      if (eat("step")) a.step = integer();
      f.axes.push_back(std::move(a));
    } while (eat(","));
    f.kind = eat("par") ? LoopKind::par : eat("unroll") ? LoopKind::unroll : LoopKind::seq;
    if (f.axes.size() > 1 && f.kind != LoopKind::par) die("only a par loop has several axes");
    f.body = block();
    return f;
  }
  If branch() {
    If f{Cmp::lt, expr(), 0, {}, {}};
    f.cmp = eat("<=") ? Cmp::le : eat("<") ? Cmp::lt : eat("==") ? Cmp::eq : (need("!="), Cmp::ne);
    f.b = expr();
    f.yes = block();
    if (eat("else")) f.no = block();
    return f;
  }
  Sync sync(SyncKind kind) {
    Pipe from = choose<Pipe>(kPipeName, "pipe");
    if (kind == SyncKind::fence) return {kind, from, from, 0};
    Pipe to = choose<Pipe>(kPipeName, "pipe");
    return {kind, from, to, expr()};
  }
  Stmt compute() {
    Ref dst = ref();
    bool add = eat("+=");
    if (!add) need("=");
    space();
    size_t at = pos_;
    std::string op = word("an operation");
    if (add && op != "mma") die_at(at, "only mma accumulates with +=");
    if (op == "mma") {
      Mma m;
      m.dst = std::move(dst);
      m.add = add;
      need("(");
      m.a = ref();
      need(",");
      m.b = ref();
      if (eat(",")) m.bias = ref();
      need(")");
      if (eat("prefetch")) do
          m.prefetch.push_back(ref());
        while (eat(","));
      return {std::move(m)};
    }
    if (op == "reduce") {
      need("(");
      S s = scalar();
      need(",");
      int axis = static_cast<int>(integer());
      need(",");
      Ref src = ref();
      need(")");
      return {Reduce{std::move(dst), s, axis, std::move(src), tmp()}};
    }
    if (op == "iota") {
      need("(");
      int axis = static_cast<int>(integer());
      need(",");
      Expr base = expr();
      need(")");
      return {Iota{std::move(dst), std::move(base), axis}};
    }
    if (op == "gather") {
      need("(");
      Ref src = ref();
      need(",");
      Ref index = ref();
      need(")");
      return {Gather{std::move(dst), std::move(src), std::move(index)}};
    }
    auto s = scalar_named(op);
    if (!s) die_at(at, "unknown scalar op '" + op + "'");
    Map m{std::move(dst), *s, {}, -1};
    list("(", ")", [&] { m.args.push_back(arg()); });
    m.tmp = tmp();
    return {std::move(m)};
  }
  S scalar() {
    space();
    size_t at = pos_;
    std::string w = word("a scalar op");
    auto s = scalar_named(w);
    if (!s) die_at(at, "unknown scalar op '" + w + "'");
    return *s;
  }
};

}  // namespace

Kernel parse_kernel(std::string_view text, std::string_view file) { return Parser(text, file).kernel(); }

}  // namespace gaf::kir
