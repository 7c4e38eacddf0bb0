// NumPy's array files: .npy and .npz (a zip archive of .npy files). bfloat16 is stored as uint16 bits, as NumPy has no
// such type. Anything that is damaged, hostile or of an unknown type is UserError GAF8001 naming the file.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor.h"

namespace gaf {

// `file` is for messages.
Tensor read_npy(std::string_view bytes, const std::string& file);
std::string write_npy(const Tensor& t);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;  // in order of the archive, without ".npy"
NamedTensors read_npz(std::string_view bytes, const std::string& file);
// Entries are stored, not compressed. UserError GAF8002 where the archive would pass 4 GiB.
std::string write_npz(const NamedTensors& tensors);

}  // namespace gaf
