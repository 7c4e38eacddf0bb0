// Element types of tensors, tiles and buffers, with the facts that every stage needs: name, size, class.
// Knows nothing of ONNX codes (frontend/) or LLVM types (codegen/cpu/).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace gaf {

enum class DType : uint8_t { f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, b1 };
inline constexpr int kDTypes = 13;

struct DTypeRow {
  std::string_view name;       // in graph and kernel text
  std::string_view long_name;  // what users and numpy say
  int bytes;                   // in memory; b1 is one byte, 0 or 1
  bool floating, is_signed;
};
inline constexpr DTypeRow kDType[kDTypes] = {
    {"f32", "float32", 4, true, true},   {"f16", "float16", 2, true, true},  {"bf16", "bfloat16", 2, true, true},
    {"f64", "float64", 8, true, true},   {"i8", "int8", 1, false, true},     {"u8", "uint8", 1, false, false},
    {"i16", "int16", 2, false, true},    {"u16", "uint16", 2, false, false}, {"i32", "int32", 4, false, true},
    {"u32", "uint32", 4, false, false},  {"i64", "int64", 8, false, true},   {"u64", "uint64", 8, false, false},
    {"b1", "bool", 1, false, false},
};

constexpr const DTypeRow& row(DType t) { return kDType[static_cast<int>(t)]; }
constexpr std::string_view name(DType t) { return row(t).name; }
constexpr std::string_view long_name(DType t) { return row(t).long_name; }
constexpr int bytes(DType t) { return row(t).bytes; }
constexpr bool is_float(DType t) { return row(t).floating; }
constexpr bool is_int(DType t) { return !row(t).floating && t != DType::b1; }

// By short or long name; nothing if unknown.
constexpr std::optional<DType> dtype_named(std::string_view s) {
  for (int i = 0; i < kDTypes; i++)
    if (kDType[i].name == s || kDType[i].long_name == s) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace gaf
