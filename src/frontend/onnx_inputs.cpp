// Types of a model's inputs; see onnx_inputs.h. A named dim is one size wherever its name stands; a dim that is
// nameless, negative or named `?` is a size of its own, called `<input>_d<axis>`.
#include "frontend/onnx_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/catalogue.h"
#include "base/error.h"
#include "frontend/onnx_tensor.h"

namespace gaf::onnx {
namespace {

// A name that graph text can hold.
std::string word(View s) {
  std::string out;
  for (char c : s) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "d" + out;
  return out;
}

bool is_name(View s) { return s.find_first_not_of("?-0123456789 ") != s.npos; }

// What a dim is called: the model's name, or the one we make.
std::string key_of(const ValueInfo& v, size_t axis, const Dimension& d) {
  return is_name(d.param) ? std::string(d.param) : fmt::format("{}_d{}", word(v.name), axis);
}

bool is_free(const Dimension& d) { return !d.value || *d.value < 0; }

template <class T>
const T* given(const std::vector<std::pair<std::string, T>>& list, View name) {
  for (const auto& [key, value] : list)
    if (key == name) return &value;
  return nullptr;
}

}  // namespace

InputTypes::InputTypes(const std::vector<const ValueInfo*>& inputs, const ReadOptions& options) {
  std::vector<std::string> names;
  for (const ValueInfo* v : inputs) {
    names.emplace_back(v->name);
    if (v->shape)
      for (size_t i = 0; i < v->shape->size(); i++)
        if (const Dimension& d = (*v->shape)[i]; is_free(d)) known_.push_back(key_of(*v, i, d));
  }
  for (const auto& [name, dims] : options.shapes)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UserError("GAF3104", fmt::format("unknown input '{}'{}", name, did_you_mean(name, names)));
  for (const auto& [name, value] : options.dims) {
    auto same = [&](const std::string& k) { return k == name || word(k) == name; };
    auto it = std::find_if(known_.begin(), known_.end(), same);
    if (it == known_.end())
      throw UserError("GAF3104", fmt::format("unknown dimension '{}'{}; the model's are: {}", name,
                                             did_you_mean(name, known_), fmt::join(known_, ", ")),
                      "name one of the model's free dimensions");
    bind(*it, value, fmt::format("dimension '{}'", name));
  }
  for (const ValueInfo* v : inputs) {  // shapes first: a size that one input fixes is fixed for all
    const std::vector<int64_t>* shape = given(options.shapes, v->name);
    if (!shape || !v->shape) continue;
    bool fits = shape->size() == v->shape->size();
    for (size_t i = 0; fits && i < shape->size(); i++) {
      const Dimension& d = (*v->shape)[i];
      if ((*shape)[i] < 0) continue;
      if (is_free(d))
        bind(key_of(*v, i, d), (*shape)[i], fmt::format("input '{}'", v->name));
      else
        fits = *d.value == (*shape)[i];
    }
    if (fits) continue;
    std::vector<std::string> want;
    for (const Dimension& d : *v->shape)
      want.push_back(!is_free(d) ? fmt::format("{}", *d.value) : is_name(d.param) ? std::string(d.param) : "?");
    throw UserError("GAF3102", fmt::format("input '{}': expected {} [{}], got [{}]", v->name,
                                           data_type_name(v->elem_type), fmt::join(want, ","), fmt::join(*shape, ",")));
  }
  for (const ValueInfo* v : inputs) types_.push_back(type(*v, options));
}

void InputTypes::bind(const std::string& key, int64_t value, const std::string& why) {
  if (value < 0) throw UserError("GAF3102", fmt::format("{}: a dimension cannot be {}", why, value));
  auto [it, fresh] = bound_.emplace(key, value);
  if (!fresh && it->second != value)
    throw UserError("GAF3102",
                    fmt::format("{} makes dimension '{}' {}, but it is {} elsewhere", why, key, value, it->second));
}

Type InputTypes::type(const ValueInfo& v, const ReadOptions& options) {
  if (!v.is_tensor)
    throw UserError("GAF4002",
                    fmt::format("input '{}' is no tensor; sequences, maps and optionals are not supported", v.name));
  auto dtype = dtype_of(v.elem_type);
  if (!dtype)
    throw UserError("GAF4002",
                    fmt::format("input '{}' is of {}, which is not supported", v.name, data_type_name(v.elem_type)));
  Type t;
  t.dtype = *dtype;
  if (v.shape) {
    for (size_t i = 0; i < v.shape->size(); i++) t.dims.push_back(dim(v, i, (*v.shape)[i]));
    return t;
  }
  const std::vector<int64_t>* shape = given(options.shapes, v.name);
  if (!shape)
    throw UserError("GAF3105", fmt::format("input '{}' declares no shape, not even a rank", v.name),
                    fmt::format("give --shape {}:D0,D1,... (-1 for a dimension that varies)", v.name));
  for (size_t i = 0; i < shape->size(); i++) {
    Dimension d;
    if ((*shape)[i] >= 0) d.value = (*shape)[i];
    t.dims.push_back(dim(v, i, d));
  }
  return t;
}

Dim InputTypes::dim(const ValueInfo& v, size_t axis, const Dimension& d) {
  if (!is_free(d)) return *d.value;
  std::string key = key_of(v, axis, d);
  if (auto it = bound_.find(key); it != bound_.end()) return it->second;
  auto [it, fresh] = sizes_.emplace(key, static_cast<int>(syms_.size()));
  if (fresh) {
    Sym sym;
    sym.name = word(key);
    auto taken = [&](const std::string& n) {
      return std::any_of(syms_.begin(), syms_.end(), [&](const Sym& s) { return s.name == n; });
    };
    for (int k = 2; taken(sym.name); k++) sym.name = fmt::format("{}_{}", word(key), k);
    syms_.push_back(std::move(sym));
  }
  return Expr::sym(it->second);
}

}  // namespace gaf::onnx
