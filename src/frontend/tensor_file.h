// A single tensor in a file of its own (.pb, an ONNX TensorProto), as the ONNX test data has them.
#pragma once
#include <string>

#include "base/tensor.h"

namespace gaf {

Tensor read_tensor_pb(const std::string& path);  // UserError GAF8001, GAF3001, GAF4002

}  // namespace gaf
