// Stub of the PTO C++ names that our emitter may print: a name that is missing here does not compile, so these headers
// are the closed list. Written from the public PTO ISA pages (A2/A3 constraints); every limit that is documented is
// checked and every instruction becomes an operation of the engine. A text that passes is right under this reading of
// the documents; it has not run on a device.
//
// Readings where the documents leave something open:
//   * Values outside a tile's valid region are unspecified after every instruction that writes the tile.
//   * TMATMUL with one valid row reads the left tile in its own layout, as for any other size.
//   * A load to the NZ layout has the limits of the copy that does it (rows, 16 bit row stride); the pages state none.
//   * A relu on the store of an accumulator is a template argument of TSTORE; not every edition of the pages shows it.
#pragma once
#include "instructions.hpp"
#include "tile.hpp"
