// Saves and loads graph text with the data of its constants; see gaf_text.h. Knows the file's layout; the text is the
// IR's.
#include "frontend/gaf_text.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"

namespace gaf {
namespace {

constexpr std::string_view kMark = "---- constants\n";
constexpr size_t kAlign = 64;  // of data in the file, so that tensors can point into the mapped file

using Table = std::map<uint64_t, Tensor>;

void collect(uint64_t hash, const Tensor& t, Table& out) {
  if (t.numel() <= kInlineElements) return;
  auto [it, fresh] = out.emplace(hash, t);
  GAF_CHECK(fresh || it->second.equal(t)) << fmt::format("two constants are called #{:016x}", hash);
}

// Every constant that the text writes by hash.
void collect(const Graph& g, Table& out) {
  for (const Node& n : g.nodes) {
    if (n.op == "constant") collect(constant_hash(n), *attr_tensor(n, "value"), out);
    for (const auto& region : n.regions) collect(*region, out);
  }
  for (const Graph& k : g.kernels) collect(k, out);
}

[[noreturn]] void damaged(const std::string& file, size_t at) {
  ErrorInfo e;
  e.code = "GAF3001";
  e.message = fmt::format("the constants behind the graph text are damaged at byte {}", at);
  e.file = file;
  throw UserError(std::move(e));
}

// hash -> bytes, from the part of the file behind the mark.
std::unordered_map<uint64_t, std::string_view> read_data(std::string_view file, size_t at, const std::string& name) {
  std::unordered_map<uint64_t, std::string_view> out;
  while (at < file.size()) {
    size_t end = file.find('\n', at);
    if (file[at] != '#' || end == file.npos) damaged(name, at);
    uint64_t hash = 0, size = 0;
    const char* stop = file.data() + end;
    auto r = std::from_chars(file.data() + at + 1, stop, hash, 16);
    if (r.ec != std::errc() || r.ptr == stop || *r.ptr != ' ') damaged(name, at);
    r = std::from_chars(r.ptr + 1, stop, size);
    if (r.ec != std::errc() || size > file.size() - end - 1) damaged(name, at);
    out[hash] = file.substr(end + 1, size);
    at = end + 1 + size + 1;
  }
  return out;
}

}  // namespace

void write_gaf_text(const Graph& g, const std::string& path) {
  Table table;
  collect(g, table);
  std::string text = print_graph(g);
  if (!table.empty()) text += kMark;
  std::vector<std::string> heads;
  size_t at = text.size();
  for (const auto& [hash, t] : table) {
    std::string head = fmt::format("#{:016x} {}", hash, t.size_bytes());
    at += head.size() + 1;
    size_t pad = (kAlign - at % kAlign) % kAlign;
    heads.push_back(head + std::string(pad, ' ') + "\n");
    at += pad + static_cast<size_t>(t.size_bytes()) + 1;
  }
  std::vector<std::string_view> parts = {text};
  size_t i = 0;
  for (const auto& [hash, t] : table) {
    parts.push_back(heads[i++]);
    parts.emplace_back(static_cast<const char*>(t.data.get()), static_cast<size_t>(t.size_bytes()));
    parts.emplace_back("\n");
  }
  write_file(path, parts);
}

Graph read_gaf_text(const FileBytes& file, const std::string& name, const ReadOptions& o) {
  std::string_view text = file.bytes;
  std::unordered_map<uint64_t, std::string_view> data;
  size_t mark = text.starts_with(kMark) ? 0 : text.find("\n" + std::string(kMark));
  if (mark != text.npos) {
    if (mark > 0) mark++;
    data = read_data(text, mark + kMark.size(), name);
    text = text.substr(0, mark);
  }
  auto source = [&](uint64_t hash, DType dtype, const std::vector<int64_t>& dims) -> Tensor {
    auto it = data.find(hash);
    if (it == data.end()) return {};
    Tensor t{dtype, dims, nullptr};
    if (t.size_bytes() != static_cast<int64_t>(it->second.size()))
      damaged(name, static_cast<size_t>(it->second.data() - file.bytes.data()));
    if (reinterpret_cast<uintptr_t>(it->second.data()) % bytes(dtype) == 0) {
      t.data = std::shared_ptr<const void>(file.owner, it->second.data());
      return t;
    }
    t = Tensor::make(dtype, dims);
    std::memcpy(t.mut<char>(), it->second.data(), it->second.size());
    return t;
  };
  return bind_sizes(parse_graph(text, name, source), o);
}

Graph read_gaf_text(const std::string& path, const ReadOptions& o) { return read_gaf_text(map_file(path), path, o); }

}  // namespace gaf
