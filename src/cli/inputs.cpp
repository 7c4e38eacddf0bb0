// Gathering a model's inputs (CONTRACT 1.1): files by name, an archive, and random numbers for what nobody gave. Part
// of session.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/catalogue.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/npy.h"
#include "cli/session.h"
#include "frontend/tensor_file.h"
#include "random.h"

namespace gaf {
namespace {

using Ranges = std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>>;

std::vector<std::string> names_of(const Model& m) {
  std::vector<std::string> names;
  for (size_t i = 0; i < m.graph.num_inputs(); i++) names.push_back(m.graph.nodes[i].name);
  return names;
}

size_t position(const std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end())
    throw UserError("GAF3104", "unknown input '" + name + "'" + did_you_mean(name, names),
                    "the model's inputs are " + fmt::format("{}", fmt::join(names, ", ")));
  return static_cast<size_t>(at - names.begin());
}

// FILE.npy, FILE.npz#key, FILE.pb
Tensor read_tensor(const std::string& file) {
  if (file.ends_with(".pb")) return read_tensor_pb(file);
  const size_t hash = file.rfind(".npz#");
  if (hash == std::string::npos) {
    if (file.ends_with(".npz"))
      throw UserError("GAF1102", "'" + file + "' holds several arrays",
                      "name one, as in " + file + "#key, or give the archive to --inputs");
    return read_npy(read_file(file), file);
  }
  const std::string path = file.substr(0, hash + 4), key = file.substr(hash + 5);
  std::vector<std::string> keys;
  for (auto& [name, tensor] : read_npz(read_file(path), path)) {
    if (name == key) return tensor;
    keys.push_back(name);
  }
  throw UserError("GAF8001",
                  "cannot read " + file + ": the archive has no array '" + key + "'" + did_you_mean(key, keys));
}

Ranges range_options(const CommandLine& line) {
  Ranges ranges;
  for (const std::string& text : line.all("range")) {
    const size_t colon = text.rfind(':'), comma = text.find(',', colon == std::string::npos ? 0 : colon);
    char *end_lo = nullptr, *end_hi = nullptr;
    if (colon == std::string::npos || colon == 0 || comma == std::string::npos) bad_value("range", "NAME:LO,HI", text);
    const long long lo = std::strtoll(text.c_str() + colon + 1, &end_lo, 10),
                    hi = std::strtoll(text.c_str() + comma + 1, &end_hi, 10);
    if (*end_lo != ',' || end_lo == text.c_str() + colon + 1 || *end_hi || end_hi == text.c_str() + comma + 1)
      bad_value("range", "NAME:LO,HI of whole numbers", text);
    ranges.push_back({text.substr(0, colon), {lo, hi}});
  }
  return ranges;
}

// Files hold bfloat16 as its bits, and nothing else is converted silently.
Tensor as_declared(Tensor t, DType declared) {
  if (declared == DType::bf16 && t.dtype == DType::u16) t.dtype = DType::bf16;
  return t;
}

using Given = std::vector<std::optional<Tensor>>;

Given given_inputs(const CommandLine& line, const NamedTensors& archive, const Model& m,
                   const std::vector<std::string>& names) {
  Given given(names.size());
  auto set = [&](size_t i, Tensor t) { given[i] = as_declared(std::move(t), m.graph.nodes[i].types[0].dtype); };
  for (const auto& [name, tensor] : archive) set(position(names, name), tensor);
  for (const std::string& text : line.all("input")) {
    const size_t equals = text.find('=');
    // A path may hold '=': with one input, the part before it is a name unless there is such a file.
    const bool named = equals != std::string::npos && (names.size() != 1 || text.substr(0, equals) == names[0] ||
                                                       !std::filesystem::exists(text.substr(0, text.rfind(".npz#"))));
    if (!named && names.size() != 1)
      bad_value("input", "NAME=FILE (the model has " + std::to_string(names.size()) + " inputs)", text);
    set(named ? position(names, text.substr(0, equals)) : 0, read_tensor(named ? text.substr(equals + 1) : text));
  }
  return given;
}

// Sizes that given inputs show, so that the random ones fit them.
Model with_sizes_of(Model m, const Given& given) {
  std::vector<Expr> value;
  for (size_t s = 0; s < m.graph.syms.size(); s++) value.push_back(Expr::sym(static_cast<int>(s)));
  for (size_t i = 0; i < given.size(); i++) {
    const Dims& dims = m.graph.nodes[i].types[0].dims;
    for (size_t d = 0; given[i] && d < dims.size() && d < given[i]->dims.size(); d++)
      if (dims[d].op() == ExprOp::sym) value[static_cast<size_t>(dims[d].sym_id())] = given[i]->dims[d];
  }
  for (size_t i = 0; i < given.size(); i++)
    for (Expr& e : m.graph.nodes[i].types[0].dims)
      e = e.substitute([&](int s) { return value[static_cast<size_t>(s)]; });
  return m;
}

}  // namespace

const NamedTensors& Session::archive() const {
  if (archive_) return *archive_;
  const std::string path = line.text("inputs", "");
  archive_ = line.has("inputs") ? read_npz(read_file(path), path) : NamedTensors{};
  return *archive_;
}

std::vector<std::string> Session::given_names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : archive()) names.push_back(name);
  for (const std::string& text : line.all("input"))
    if (const size_t equals = text.find('='); equals != std::string::npos) names.push_back(text.substr(0, equals));
  return names;
}

std::vector<Tensor> Session::inputs(const Model& m, uint64_t seed) const {
  const std::vector<std::string> names = names_of(m);
  Given given = given_inputs(line, archive(), m, names);
  const auto there =
      static_cast<size_t>(std::count_if(given.begin(), given.end(), [](const auto& t) { return t.has_value(); }));
  if (there > 0 && there < names.size() && !line.has("random")) {
    const auto missing = static_cast<size_t>(std::find(given.begin(), given.end(), std::nullopt) - given.begin());
    throw UserError("GAF3103",
                    fmt::format("input '{}' missing; model needs {}", names[missing], fmt::join(names, ", ")),
                    "give it, or fill it with --random N");
  }
  std::vector<Tensor> all(names.size());
  if (there < names.size()) {
    Model shapes;
    shapes.graph.syms = m.graph.syms;
    shapes.graph.nodes.assign(m.graph.nodes.begin(), m.graph.nodes.begin() + static_cast<std::ptrdiff_t>(names.size()));
    shapes = with_sizes_of(std::move(shapes), given);
    for (size_t i = 0; i < names.size(); i++)
      if (given[i]) shapes.graph.nodes[i].types[0].dims = {};  // not to be filled
    all = random_inputs(shapes, seed, range_options(line));
  }
  for (size_t i = 0; i < names.size(); i++)
    if (given[i]) all[i] = *std::move(given[i]);
  return all;
}

}  // namespace gaf
