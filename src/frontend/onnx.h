// ONNX files in and out. Reading makes a Graph whose node names are the file's; writing groups nodes of the original
// file into model-local functions and leaves the rest of it as it was.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/mapped_file.h"
#include "ir/graph.h"

namespace gaf {

struct ReadOptions {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;  // input -> dims, -1 stays free
  std::vector<std::pair<std::string, int64_t>> dims;                 // size, by the model's name or ours -> number
  std::vector<std::string>
      overridden;  // initializers that are graph inputs too, and become inputs; others are constants
};

// The graph as the file has it: operands stay operands, attributes get plain types, model-local functions are inlined,
// If and Loop bodies become regions, whose captured values are the last `captures` operands of the node (captured
// constants are copied into the region). Types are known of inputs and constants only: infer() (ops/op.h) does the
// rest. Weights share the mapped bytes. `folder` holds external data; "" = none allowed (bytes without a file).
// Warnings are appended.
Graph read_onnx(const std::string& path, const ReadOptions& o = {}, std::vector<std::string>* warnings = nullptr);
Graph read_onnx(const FileBytes& file, const std::string& folder, const ReadOptions& o = {},
                std::vector<std::string>* warnings = nullptr);

// Nodes of the original model that became one kernel.
struct FusedGroup {
  std::string name;                // of the kernel
  std::vector<std::string> nodes;  // Node::name or origins of the graph that read_onnx gave
  std::string reason;
  double gain_us = 0;
};

struct FusedOnnx {
  std::string bytes;                  // of the .onnx file
  std::vector<FileBytes> data;        // content of the file beside it, piece by piece; empty if there is none
  std::vector<std::string> warnings;  // groups that could not be written as they are, and why
};

// The original model with every group as a call of a function of domain gaf.fused, whose body is the original nodes
// (CONTRACT 1.4), and the groups as metadata `gaf.groups`. Functions that an earlier call wrote are taken apart first,
// so writing the same groups again gives the same bytes. Nodes that no group has but that lie between nodes of one
// (shape arithmetic that folding removed) come into its function. A group that would still make a cycle becomes several
// functions; control flow and nodes of the model's own functions stay outside: with a warning each. External data moves
// into the file, or, where that would pass `limit` bytes, into `data_file`.
FusedOnnx write_fused_onnx(const FileBytes& original, const std::string& folder, std::span<const FusedGroup> groups,
                           const std::map<std::string, std::string>& metadata,
                           const std::string& data_file = "model.onnx.data", int64_t limit = int64_t{2000} << 20);
// The same into a file (and its data file, named after it). Returns the warnings.
std::vector<std::string> save_fused_onnx(const std::string& path, const FileBytes& original, const std::string& folder,
                                         std::span<const FusedGroup> groups,
                                         const std::map<std::string, std::string>& metadata);

// Groups as metadata "gaf.groups" of a fused file tells them; empty if the graph has none or the text is damaged.
std::vector<FusedGroup> fused_groups(const Graph& g);

}  // namespace gaf
