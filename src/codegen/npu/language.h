// What a text language must be able to say, one function a statement kind. The walker resolves operands (valid extents,
// addresses, ring slots) and calls these in the order of the kernel's text.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "codegen/npu/spelling.h"

namespace gaf::npu {

// A whole tile with its valid extents at this statement.
struct TileUse {
  const kir::Tile* tile = nullptr;
  Expr rows = 1, cols = 1;
  const std::string& name() const { return tile->name; }
  bool column() const { return tile->cols == 1; }  // packed: one element a row, no gaps
};
// A rectangle of a parameter in global memory: element (r, c) lies at offset + r * stride + c.
struct MemoryUse {
  int parameter = 0;  // its place in the call
  DType type = DType::f32;
  Expr offset = 0, rows = 1, cols = 1, stride = 0;
  Expr size = 0;  // elements of the parameter
};
struct MapUse {
  kir::S op{};
  Form form{};
  TileUse dst, a, b;  // b: second tile or column
  double number = 0;
  const kir::Tile* tmp = nullptr;
};
// What every language may want to know of the kernel before it writes.
struct Facts {
  const kir::Kernel& k;
  const Target& t;
  std::vector<Mem> l1_goes_to;      // of each tile: where copies take an l1 tile (gm: nowhere)
  std::vector<TileUse> whole;       // of each tile: the extents it is written with
  std::vector<uint8_t> one_extent;  // ... the same in all statements that write it
  std::map<Mem, int64_t> peak;
  explicit Facts(const kir::Kernel& k, const Target& t);
  Mem goes_to(const TileUse& u) const { return l1_goes_to[static_cast<size_t>(u.tile - k.tiles.data())]; }
};

class Language {
 public:
  explicit Language(const Facts& f) : f_(f), k_(f.k) {}
  virtual ~Language() = default;

  virtual void declare(const TileUse& tile, const Expr& at) = 0;  // at: byte offset, ring slot included
  virtual void load(const TileUse& dst, const MemoryUse& src) = 0;
  virtual void store(const MemoryUse& dst, const TileUse& src, bool relu) = 0;
  virtual void move(const TileUse& dst, const TileUse& src) = 0;  // between local memories
  virtual void map(const MapUse& m) = 0;
  virtual void reduce(kir::S op, const TileUse& dst, const TileUse& src, const kir::Tile& tmp) = 0;  // along rows
  virtual void mma(const TileUse& dst, const TileUse& a, const TileUse& b, const TileUse* bias, bool add) = 0;
  virtual void sync(const kir::Sync& s) = 0;
  virtual void split(const kir::For& f, const Expr& trips) = 0;  // a par loop: this block's share
  virtual void loop(const kir::Axis& a) = 0;
  virtual void branch(const kir::If& i) = 0;
  virtual void otherwise() = 0;
  virtual void close() = 0;        // of split, loop, branch
  virtual std::string file() = 0;  // everything, header first

 protected:
  const Facts& f_;
  const kir::Kernel& k_;
  std::string body_;
  int depth_ = 1;
  void line(const std::string& s) { body_ += std::string(static_cast<size_t>(2 * depth_), ' ') + s + "\n"; }
};

std::unique_ptr<Language> ascendc(const Facts& f);
std::unique_ptr<Language> pto(const Facts& f);
std::unique_ptr<Language> pto_text(const Facts& f);

// The languages that are C: loops, branches and index arithmetic. idx: what the block index and count are called.
class CLanguage : public Language {
 public:
  using Language::Language;
  void split(const kir::For& f, const Expr& trips) override;
  void loop(const kir::Axis& a) override;
  void branch(const kir::If& i) override;
  void otherwise() override;
  void close() override;

 protected:
  virtual std::string_view block_index() const = 0;
  virtual std::string_view block_count() const = 0;
  std::string index(const Expr& x);
  bool least_ = false, most_ = false;  // used in an index expression
};

// The comment that opens each file: kernel, shapes, versions, sync mode, memory, events, launch. Each line after
// `mark`.
std::string header(const Facts& f, NpuLanguage l, std::string_view mark);

}  // namespace gaf::npu
