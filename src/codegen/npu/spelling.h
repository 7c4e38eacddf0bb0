// The words of each language for the scalar-op table: one row an op and language, in the order of kir::S, so a new op
// stops the build until each language has answered. An empty word means that the language cannot say that form.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "codegen/npu/npu.h"

namespace gaf::npu {

// How a map statement uses its operands; what a back end needs to choose the instruction.
enum class Form : uint8_t {
  unary,   // d = op(a)
  binary,  // d = op(a, b), equal extents
  column,  // d = op(a, m) with m one value a row, [R, 1]
  scalar,  // d = op(a, number)
  fill,    // d = number
};
inline constexpr std::string_view kFormName[] = {"of one tile", "of two tiles", "with a column", "with a number",
                                                 "of a number"};

struct Word {
  std::string_view name;
  bool integers = false;  // also in i16 and i32; every word here works in f16 and f32
};
Word word(NpuLanguage l, kir::S op, Form f);
Word reduction_word(NpuLanguage l, kir::S op);  // along a row

// A map statement taken apart; `number` is already turned to suit the word (x - c is x + -c, x / c is x * 1/c where
// exact).
struct MapForm {
  Form form = Form::unary;
  kir::S op{};
  const kir::Ref* a = nullptr;  // none for fill
  const kir::Ref* b = nullptr;  // second tile, or the column
  double number = 0;
};
// No value: operands that no form fits (a number on the left of `-`, a row that is broadcast, three operands, ...).
// columns: which operands are [R, 1] where the result is wider.
std::optional<MapForm> map_form(const kir::Map& m, const std::function<bool(const kir::Ref&)>& is_column);

std::string_view c_type(DType t);  // "half"
std::string c_number(DType t, double v);

}  // namespace gaf::npu
