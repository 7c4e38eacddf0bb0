// Reading a TensorProto file, see tensor_file.h. Must not know of graphs.
#include "frontend/tensor_file.h"

#include "frontend/mapped_file.h"
#include "frontend/onnx_proto.h"
#include "frontend/onnx_tensor.h"

namespace gaf {

Tensor read_tensor_pb(const std::string& path) {
  const FileBytes file = map_file(path);
  onnx::ExternalData nothing_outside("", false);
  return onnx::load_tensor(onnx::parse_tensor(file.bytes), file, nothing_outside);
}

}  // namespace gaf
