// The static checker that every kernel passes before it is printed. Nothing public catches these faults in generated
// text before a device does, so they are refused here, each with the statement and its line. The rules:
//
//  target      1 the target has pipes; sizes are static; a kernel is for the cube or for the vector unit, not both
//  statements  2 only copy, map, reduce along rows, mma, for, if and sync; whole tiles; no ^T, no `else`, no parts
//              3 each form has a word in the language; dtypes that the unit computes in (no bf16 vector arithmetic)
//              4 operands of a vector statement have rows of equal length; a column operand and a reduction have a
//              `tmp`
//                that is large enough
//              5 indices stay clear of negative numbers under / and %; the kernel's name is none of the language's own
//  memory      6 every tile has an offset; offset and ring slots are aligned; the last slot ends inside the memory
//              7 no two tiles share bytes: events order the uses of one tile only
//              8 rows are whole 32 B blocks (ub), fractals are whole (l1, l0), bias rows whole 64 B units (bt)
//  limits      9 those that the instructions' documents state: see kLimit in check_statement.cpp
//  PTO        10 one valid shape a tile, known where the tile is declared
//  events     11 ids that the target has; each set is waited for before the next; nothing waits for what is not set;
//  all waited for at
//                the end (by running the sync statements)
//             12 one id of a source pipe belongs to one destination pipe, which is right under both documented readings
//             13 a fence is on a pipe that has one
//             14 what a statement reads has been written, and what it overwrites has been read: by an event where
//             another
//                pipe did it, by a fence of its own pipe where the target's file says so (its open rules too if strict)
#pragma once
#include "codegen/npu/walk.h"

namespace gaf::npu {

using Report = std::function<void(const kir::Stmt& s, std::string text, bool unsupported)>;
void check_memory(const kir::Kernel& k, const Target& t, const Report& r);                     // 6 to 8
void check_statements(const kir::Kernel& k, const Target& t, NpuLanguage l, const Report& r);  // 1 to 5, 9, 10
void check_events(const kir::Kernel& k, const Target& t, const Report& r);                     // 11 to 14

}  // namespace gaf::npu
