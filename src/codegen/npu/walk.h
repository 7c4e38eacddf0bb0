// The one walk over a kernel's statements that the languages and the checker share: valid extents, loops around, ring
// slots, addresses. Knows no language.
#pragma once
#include "codegen/npu/language.h"
#include "ir/kernel_extents.h"

namespace gaf::npu {

class Walk {
 public:
  explicit Walk(const kir::Kernel& k) : k_(k), tiles_(k.tiles.size()) {}
  virtual ~Walk() = default;
  void run() { body(k_.body); }

 protected:
  const kir::Kernel& k_;
  std::vector<kir::TileState> tiles_;  // extents before the statement at hand
  std::vector<const kir::For*> nest_;  // loops around it

  // Called before the state moves on; for loops and branches before, between and after their bodies.
  virtual void statement(const kir::Stmt& s) = 0;
  virtual void otherwise() {}
  virtual void close(const kir::Stmt&) {}

  TileUse use(const kir::Ref& r) const;      // of a whole tile
  TileUse result(const kir::Stmt& s) const;  // of the tile that s writes, with the extents it gets
  MemoryUse memory(const kir::Ref& r) const;
  bool is_column(const kir::Ref& r) const;  // one value a row
  const kir::Tile& tile(int id) const { return k_.tiles[static_cast<size_t>(id)]; }

 private:
  void body(const kir::Body& b);
};

const kir::Ref* written(const kir::Stmt& s);  // the destination of a leaf statement

}  // namespace gaf::npu
