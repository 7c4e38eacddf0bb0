// Scratch that statements need on a target whose file says so under "tmp".
#pragma once
#include <optional>

#include "ir/kernel.h"

namespace gaf::kir {

// The tile (without a name) that the statement needs as `tmp` at least; nothing if none.
std::optional<Tile> scratch_of(const Kernel& k, const Target& t, const Stmt& s);
// Gives each statement that needs scratch and has none a tile for it.
void add_scratch(Kernel& k, const Target& t);

}  // namespace gaf::kir
