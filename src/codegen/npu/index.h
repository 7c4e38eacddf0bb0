// Names and index expressions as C text: 64-bit, `/` and `%` on values that are never negative (checked), least() and
// most() for min and max.
#pragma once
#include <string>

#include "ir/kernel.h"

namespace gaf::npu {

std::string c_index(const kir::Kernel& k, const Expr& x);
// As an operand of `*`, `/` or `%`: sums are put in parentheses.
std::string c_factor(const kir::Kernel& k, const Expr& x);
bool calls(const Expr& x, ExprOp op);  // does min (max) occur in it?

// Is the name a word of the languages, or of the text around the kernel?
bool taken(const std::string& name);
// The kernel with tiles and loops renamed where their names are taken.
kir::Kernel with_free_names(kir::Kernel k);

}  // namespace gaf::npu
