// ONNX Runtime as a yardstick, in a Python process of its own, so that its threads and libraries never meet ours.
// Absent, with the reason, where it is not installed.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"

namespace gaf {

struct BaselineTimes {
  Quantiles us;
  std::string version;
};

// Times `model` (an .onnx path) on the inputs; nothing, with a warning, where that is not possible.
std::optional<BaselineTimes> time_onnxruntime(const Session& s, const Model& m, const std::vector<Tensor>& inputs,
                                              int runs, int warmup);
// The outputs. UserError GAF4009 where it is not installed: here they are the reference.
std::vector<Tensor> run_onnxruntime(const Session& s, const Model& m, const std::vector<Tensor>& inputs);

}  // namespace gaf
