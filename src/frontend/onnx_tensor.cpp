// Turns the tensors of an ONNX file into ours without copying weights; see onnx_tensor.h.
#include "frontend/onnx_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"

namespace gaf::onnx {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 47;  // beyond any machine's memory

struct DataTypeRow {
  std::string_view name;
  std::optional<DType> dtype;
  uint32_t field;  // of TensorProto that holds it when raw_data does not
};
constexpr DataTypeRow kDataTypes[] = {
    {"undefined", std::nullopt, 0},
    {"float32", DType::f32, 4},
    {"uint8", DType::u8, 5},
    {"int8", DType::i8, 5},
    {"uint16", DType::u16, 5},
    {"int16", DType::i16, 5},
    {"int32", DType::i32, 5},
    {"int64", DType::i64, 7},
    {"string", std::nullopt, 6},
    {"bool", DType::b1, 5},
    {"float16", DType::f16, 5},
    {"float64", DType::f64, 10},
    {"uint32", DType::u32, 11},
    {"uint64", DType::u64, 11},
    {"complex64", std::nullopt, 4},
    {"complex128", std::nullopt, 10},
    {"bfloat16", DType::bf16, 5},
    {"float8e4m3fn", std::nullopt, 5},
    {"float8e4m3fnuz", std::nullopt, 5},
    {"float8e5m2", std::nullopt, 5},
    {"float8e5m2fnuz", std::nullopt, 5},
    {"uint4", std::nullopt, 5},
    {"int4", std::nullopt, 5},
    {"float4e2m1", std::nullopt, 5},
};

const DataTypeRow* data_type_row(int32_t t) {
  return t >= 0 && static_cast<size_t>(t) < std::size(kDataTypes) ? &kDataTypes[t] : nullptr;
}

UserError wrong_size(const Tensor& t, int64_t have, int64_t need) {
  return UserError("GAF3001", fmt::format("tensor '{}' has {} bytes of data, its shape needs {}", t.name, have, need));
}

int64_t number_of(const Tensor& t, View key, View text) {
  int64_t v = 0;
  auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || v < 0)
    throw UserError("GAF3001", fmt::format("tensor '{}': {} of its external data is '{}'", t.name, key, text));
  return v;
}

void set_elements(gaf::Tensor& out, const std::vector<int64_t>& values) {
  int width = bytes(out.dtype);
  char* to = out.mut<char>();
  for (size_t i = 0; i < values.size(); i++)
    std::memcpy(to + i * width, &values[i], width);  // little endian: the low bytes
}

bool bools_are_clean(View data) {
  for (char c : data)
    if (static_cast<unsigned char>(c) > 1) return false;
  return true;
}

// Shares the bytes if a pointer of the dtype may point there, else copies them.
gaf::Tensor adopt(DType dtype, const std::vector<int64_t>& dims, const FileBytes& data) {
  bool aligned = reinterpret_cast<uintptr_t>(data.bytes.data()) % bytes(dtype) == 0;
  if (aligned && (dtype != DType::b1 || bools_are_clean(data.bytes)))
    return {dtype, dims, std::shared_ptr<const void>(data.owner, data.bytes.data())};
  gaf::Tensor out = gaf::Tensor::make(dtype, dims);
  if (!data.bytes.empty()) std::memcpy(out.mut<char>(), data.bytes.data(), data.bytes.size());
  if (dtype == DType::b1)
    for (int64_t i = 0; i < out.numel(); i++) out.mut<char>()[i] = out.mut<char>()[i] != 0;
  return out;
}

}  // namespace

std::optional<DType> dtype_of(int32_t data_type) {
  const DataTypeRow* r = data_type_row(data_type);
  return r ? r->dtype : std::nullopt;
}

std::string data_type_name(int32_t data_type) {
  const DataTypeRow* r = data_type_row(data_type);
  return r ? std::string(r->name) : fmt::format("type {}", data_type);
}

int64_t element_count(const Tensor& t) {
  int64_t n = 1;
  for (int64_t d : t.dims) {
    if (d < 0) throw UserError("GAF3001", fmt::format("tensor '{}' has a dimension of {}", t.name, d));
    if (__builtin_mul_overflow(n, d, &n) || n > kMaxElements)
      throw UserError("GAF3106", fmt::format("tensor '{}' would have more than 2^47 elements", t.name));
  }
  return n;
}

FileBytes ExternalData::bytes(const Tensor& t, int64_t need) {
  View location;
  int64_t offset = 0, length = -1;
  for (const KeyValue& kv : t.external_data) {
    if (kv.key == "location") location = kv.value;
    if (kv.key == "offset") offset = number_of(t, kv.key, kv.value);
    if (kv.key == "length") length = number_of(t, kv.key, kv.value);
  }
  if (!has_folder_)
    throw UserError(
        "GAF3005",
        fmt::format("tensor '{}' lies in external data '{}', but the model came without a folder", t.name, location),
        "load the model from its file");
  auto it = files_.find(location);
  if (it == files_.end()) it = files_.emplace(std::string(location), map_file_below(folder_, location)).first;
  const FileBytes& file = it->second;
  auto size = static_cast<int64_t>(file.bytes.size());
  if (need < 0) need = length >= 0 ? length : size - std::min(offset, size);
  if (length >= 0 && length != need) throw wrong_size(t, length, need);
  if (offset > size || need > size - offset)
    throw UserError("GAF3001", fmt::format("tensor '{}' needs bytes {} to {} of external data '{}', which has {}",
                                           t.name, offset, static_cast<uint64_t>(offset) + static_cast<uint64_t>(need), location, size));
  return {file.bytes.substr(offset, need), file.owner};
}

gaf::Tensor load_tensor(const Tensor& t, const FileBytes& file, ExternalData& outside) {
  const DataTypeRow* row = data_type_row(t.data_type);
  if (!row || !row->dtype)
    throw UserError("GAF4002",
                    fmt::format("tensor '{}' is of {}, which is not supported", t.name, data_type_name(t.data_type)));
  DType dtype = *row->dtype;
  int64_t count = element_count(t), need = count * gaf::bytes(dtype);
  if (t.external) return adopt(dtype, t.dims, outside.bytes(t, need));
  if (t.raw_data) {
    if (static_cast<int64_t>(t.raw_data->size()) != need) throw wrong_size(t, t.raw_data->size(), need);
    return adopt(dtype, t.dims, {*t.raw_data, file.owner});
  }
  if (row->field == 4 || row->field == 10) {
    std::vector<View> pieces = fixed_data(t, row->field);
    int64_t have = 0;
    for (View p : pieces) have += static_cast<int64_t>(p.size());
    if (have != need) throw wrong_size(t, have, need);
    if (pieces.size() == 1) return adopt(dtype, t.dims, {pieces[0], file.owner});
    gaf::Tensor out = gaf::Tensor::make(dtype, t.dims);
    char* to = out.mut<char>();
    for (View p : pieces) to = std::copy(p.begin(), p.end(), to);
    return out;
  }
  std::vector<int64_t> values = varint_data(t, row->field, count);
  if (static_cast<int64_t>(values.size()) != count)
    throw wrong_size(t, static_cast<int64_t>(values.size()) * gaf::bytes(dtype), need);
  if (dtype == DType::b1)
    for (int64_t& v : values) v = v != 0;
  gaf::Tensor out = gaf::Tensor::make(dtype, t.dims);
  set_elements(out, values);
  return out;
}

}  // namespace gaf::onnx
