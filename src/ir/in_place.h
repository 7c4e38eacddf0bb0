// Which outputs of a kernel may lie where one of its inputs lies. A pair is found from the text alone, whatever
// template wrote it, for every size of the class, any order of the par iterations and any number of workers. The rule:
// no element of the input is read once the element at its address in the output may have been written. So every read is
// compared with every write, and one of these must hold:
//
//   phases   the read's phase ends before the write's begins (barrier)
//   order    in one iteration of the loops around both, the read is the earlier statement; or one copy moves a
//            rectangle onto itself
//   place    the two rectangles have no address in common: where they lie in different par iterations, or in different
//            loops that run side by side, whichever comes first; where a sequential loop comes round, if the read is in
//            the later iteration
//
// Addresses are compared dimension by dimension in one dense system of strides that both references share. Where there
// is none (turned, flipped, repeated or overlapping views) they count as equal, and so does everything a `read` index
// or a `gather` may reach. A kernel may hold both addresses in two parameters: the code generator must not promise that
// they differ. Must not know targets or templates.
#pragma once
#include <utility>
#include <vector>

#include "ir/kernel.h"

namespace gaf::kir {

// (position of an `out` parameter, position of an `in` parameter) in call order: equal numbers of elements, of one
// width.
std::vector<std::pair<int, int>> in_place_pairs(const Kernel& k);

}  // namespace gaf::kir
