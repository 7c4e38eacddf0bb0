// Types of a model's inputs: declared dims become numbers and sizes, the user's shapes and dims fill them in.
#pragma once
#include <unordered_map>

#include "frontend/onnx.h"
#include "frontend/onnx_proto.h"

namespace gaf::onnx {

class InputTypes {
 public:
  // `inputs`: the graph's inputs without the initializers among them. Checks that all names in the options exist
  // (GAF3104) and that given shapes agree with declared ones and with one another (GAF3102).
  InputTypes(const std::vector<const ValueInfo*>& inputs, const ReadOptions& options);
  const std::vector<Type>& types() const { return types_; }
  const std::vector<Sym>& syms() const { return syms_; }

 private:
  Type type(const ValueInfo& v, const ReadOptions& options);
  Dim dim(const ValueInfo& v, size_t axis, const Dimension& d);
  void bind(const std::string& key, int64_t value, const std::string& why);

  std::unordered_map<std::string, int64_t> bound_;  // size, by the model's name or ours
  std::unordered_map<std::string, int> sizes_;      // the model's name -> symbol
  std::vector<std::string> known_;                  // every name that a size could be bound by
  std::vector<Sym> syms_;
  std::vector<Type> types_;
};

}  // namespace gaf::onnx
