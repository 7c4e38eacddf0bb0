// Tensors of an ONNX file: dtypes, and where the bytes are (raw, typed fields, outside files).
#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/tensor.h"
#include "frontend/mapped_file.h"
#include "frontend/onnx_proto.h"

namespace gaf::onnx {

std::optional<DType> dtype_of(int32_t data_type);  // nothing: strings, complex, float8, 4-bit types ...
std::string data_type_name(int32_t data_type);     // "string", "float8e4m3fn", "type 99"

// Outside files of one model, each mapped once.
class ExternalData {
 public:
  explicit ExternalData(std::string folder, bool has_folder = true)
      : folder_(std::move(folder)), has_folder_(has_folder) {}
  // The bytes of a tensor whose data lies outside; `need` bytes must be there (-1: as many as the file says, or all
  // that follow). GAF3005, GAF8001, GAF3001.
  FileBytes bytes(const Tensor& t, int64_t need);

 private:
  std::string folder_;
  bool has_folder_;
  std::map<std::string, FileBytes, std::less<>> files_;
};

// The tensor, sharing the bytes of `file` (or of the outside file) where they are aligned for the dtype. UserError
// GAF4002 if the dtype is not supported, GAF3001 if dims and data do not agree.
gaf::Tensor load_tensor(const Tensor& t, const FileBytes& file, ExternalData& outside);
int64_t element_count(const Tensor& t);  // UserError GAF3106 beyond 2^47 elements, GAF3001 for negative dims

}  // namespace gaf::onnx
