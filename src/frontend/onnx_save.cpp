// Fused ONNX on disk, and the groups that the metadata of a fused file tells. What the file holds is onnx_write.cpp's.
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "frontend/onnx.h"

namespace gaf {

std::vector<std::string> save_fused_onnx(const std::string& path, const FileBytes& original, const std::string& folder,
                                         std::span<const FusedGroup> groups,
                                         const std::map<std::string, std::string>& metadata) {
  std::string data_path = path + ".data";
  FusedOnnx fused =
      write_fused_onnx(original, folder, groups, metadata, std::filesystem::path(data_path).filename().string());
  if (!fused.data.empty()) {
    std::vector<std::string_view> parts;
    for (const FileBytes& p : fused.data) parts.push_back(p.bytes);
    write_file(data_path, parts);
  }
  write_file(path, fused.bytes);
  return std::move(fused.warnings);
}

std::vector<FusedGroup> fused_groups(const Graph& g) {
  auto it = g.metadata.find("gaf.groups");
  if (it == g.metadata.end()) return {};
  std::vector<FusedGroup> out;
  try {
    Json table = parse_json(it->second, "gaf.groups", "GAF3001");
    if (!table.is_object()) return {};
    for (const auto& [name, value] : table.members()) {
      FusedGroup group{name, {}, "", 0};
      if (const Json* nodes = value.find("nodes"); nodes && nodes->is_array())
        for (const Json& n : nodes->items())
          if (n.is_string()) group.nodes.push_back(n.str());
      if (value["reason"].is_string()) group.reason = value["reason"].str();
      if (value["gain_us"].is_number()) group.gain_us = value["gain_us"].number();
      out.push_back(std::move(group));
    }
  } catch (const UserError&) {
    return {};
  }
  return out;
}

}  // namespace gaf
