// Stub of the Ascend C names that our emitter may print: a name that is missing here does not compile, so these headers
// are the closed list. Written from the public API documentation (CANN 8.x, Atlas A2: "Basic API" and "ISASI"); every
// limit that is documented is checked and every call becomes an operation of the engine. A text that passes is right
// under this reading of the documents; it has not run on a device.
//
// Readings where the documents leave something open:
//   * DataCopyPad without padding leaves the rest of its last 32 B block unspecified.
//   * Mmad uses m, k, n as given: what else the fractals hold does not enter the result. With m = 1 it works as GEMV
//   and reads
//     the left operand as one plain row.
//   * The block length of the copy to the bias table counts the destination.
#pragma once
#include "cube.h"
#include "move.h"
#include "tensor.h"
#include "vector.h"
