// Edits ONNX messages on the wire: copies fields as they stand and changes single ones.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "frontend/onnx_proto.h"

namespace gaf::onnx {

// The node with `name` as its name, all else as it was.
std::string renamed_node(View node, const std::string& name);

// Where the data of a tensor that lies outside goes: the fields to write instead of its external data.
struct Placed {
  std::optional<View> raw_data;
  std::vector<std::pair<std::string, std::string>> external_data;
};
using Place = std::function<Placed(const Tensor&)>;

enum class Message { graph, node, attribute, tensor, sparse, function };
// The message with every outside tensor in it, however deep, placed anew; nothing if there is none.
std::optional<std::string> place_tensors(View message, Message kind, const Place& place);

}  // namespace gaf::onnx
