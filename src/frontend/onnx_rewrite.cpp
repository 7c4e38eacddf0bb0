// Edits ONNX messages on the wire; see onnx_rewrite.h. Field numbers are those of onnx.proto.
#include "frontend/onnx_rewrite.h"

#include <protozero/pbf_writer.hpp>

#include "frontend/onnx_cursor.h"

namespace gaf::onnx {
namespace {

// Which fields of a message hold messages that may hold tensors.
std::optional<Message> inner(Message kind, uint32_t field) {
  struct Row {
    Message kind;
    uint32_t field;
    Message inner;
  };
  static constexpr Row kRows[] = {
      {Message::graph, 1, Message::node},        {Message::graph, 5, Message::tensor},
      {Message::graph, 15, Message::sparse},     {Message::node, 5, Message::attribute},
      {Message::attribute, 5, Message::tensor},  {Message::attribute, 6, Message::graph},
      {Message::attribute, 10, Message::tensor}, {Message::attribute, 11, Message::graph},
      {Message::attribute, 22, Message::sparse}, {Message::attribute, 23, Message::sparse},
      {Message::sparse, 1, Message::tensor},     {Message::sparse, 2, Message::tensor},
      {Message::function, 7, Message::node},     {Message::function, 11, Message::attribute},
  };
  for (const Row& r : kRows)
    if (r.kind == kind && r.field == field) return r.inner;
  return std::nullopt;
}

std::optional<std::string> place_tensor(View message, const Place& place) {
  Tensor t = parse_tensor(message);
  if (!t.external) return std::nullopt;
  Placed placed = place(t);
  std::string out;
  for (Cursor c(message, message); c.next();) {
    bool data = c.field() == 13 || c.field() == 14;
    View raw = c.skip_raw();
    if (!data) out += raw;
  }
  protozero::pbf_writer w(out);
  if (placed.raw_data) w.add_bytes(9, placed.raw_data->data(), placed.raw_data->size());
  for (const auto& [key, value] : placed.external_data) {
    protozero::pbf_writer entry(w, 13);
    entry.add_string(1, key);
    entry.add_string(2, value);
  }
  if (!placed.external_data.empty()) w.add_enum(14, 1);
  return out;
}

}  // namespace

std::string renamed_node(View node, const std::string& name) {
  std::string out;
  for (Cursor c(node, node); c.next();) {
    bool is_name = c.field() == 3;
    View raw = c.skip_raw();
    if (!is_name) out += raw;
  }
  protozero::pbf_writer(out).add_string(3, name);
  return out;
}

std::optional<std::string> place_tensors(View message, Message kind, const Place& place) {
  if (kind == Message::tensor) return place_tensor(message, place);
  std::string out;
  bool changed = false;
  for (Cursor c(message, message); c.next();) {
    std::optional<Message> in = inner(kind, c.field());
    if (!in) {
      out += c.skip_raw();
      continue;
    }
    uint32_t field = c.field();
    View part = c.view();
    std::optional<std::string> fresh = place_tensors(part, *in, place);
    changed = changed || fresh;
    protozero::pbf_writer(out).add_message(field, fresh ? View(*fresh).data() : part.data(),
                                           fresh ? fresh->size() : part.size());
  }
  if (!changed) return std::nullopt;
  return out;
}

}  // namespace gaf::onnx
