// Elementary functions as straight-line vector code: polynomials and rational functions, no branch, no table, no call.
// Written over Ir, at whatever width the value has.
#pragma once
#include "codegen/cpu/ir.h"
#include "ir/scalar.h"

namespace gaf::cpu {

// exp expn expm1 log log1p pow tanh sigmoid erf sin cos; b: second operand of pow.
Val math_f32(Ir& ir, kir::S op, Val a, Val b);
Val math_f64(Ir& ir, kir::S op, Val a, Val b);

}  // namespace gaf::cpu
