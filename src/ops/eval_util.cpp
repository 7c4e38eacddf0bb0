// Shared parts of the reference evaluation: see eval_util.h.
#include "ops/eval_util.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ops/infer_util.h"

namespace gaf {

namespace {

// Calls f with a null pointer of the element type in memory; f16 and bf16 are handled by the callers.
template <class F>
void with_storage(DType t, F f) {
  switch (t) {
    case DType::f32: return f(static_cast<float*>(nullptr));
    case DType::f64: return f(static_cast<double*>(nullptr));
    case DType::i8: return f(static_cast<int8_t*>(nullptr));
    case DType::u8: return f(static_cast<uint8_t*>(nullptr));
    case DType::i16: return f(static_cast<int16_t*>(nullptr));
    case DType::u16: return f(static_cast<uint16_t*>(nullptr));
    case DType::i32: return f(static_cast<int32_t*>(nullptr));
    case DType::u32: return f(static_cast<uint32_t*>(nullptr));
    case DType::i64: return f(static_cast<int64_t*>(nullptr));
    case DType::u64: return f(static_cast<uint64_t*>(nullptr));
    case DType::b1: return f(static_cast<bool*>(nullptr));
    case DType::f16:
    case DType::bf16: break;
  }
  GAF_CHECK(false) << "halves are converted by the callers";
}

float half(DType t, uint16_t bits) { return t == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits); }
bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }

// Copies blocks of `size` bytes; the switch lets the compiler use plain moves.
void copy_element(char* dst, const char* src, int size) {
  switch (size) {
    case 1: *dst = *src; break;
    case 2: std::memcpy(dst, src, 2); break;
    case 4: std::memcpy(dst, src, 4); break;
    default: std::memcpy(dst, src, 8);
  }
}

}  // namespace

template <class T>
std::vector<T> elements(const Tensor& t) {
  std::vector<T> out(static_cast<size_t>(t.numel()));
  if (is_half(t.dtype)) {
    const auto* p = t.as<uint16_t>();
    for (size_t i = 0; i < out.size(); i++) out[i] = static_cast<T>(half(t.dtype, p[i]));
    return out;
  }
  with_storage(t.dtype, [&]<class U>(U*) {
    const U* p = t.as<U>();
    for (size_t i = 0; i < out.size(); i++) out[i] = static_cast<T>(p[i]);
  });
  return out;
}

template <class T>
std::vector<T> elements(const Tensor& t, const Ints& dims) {
  std::vector<T> all = elements<T>(t);
  if (t.dims == dims) return all;
  std::vector<T> out(static_cast<size_t>(numel(dims)));
  size_t i = 0;
  walk<1>(dims, {broadcast_strides(t.dims, dims)}, [&](auto& at) { out[i++] = all[static_cast<size_t>(at[0])]; });
  return out;
}

template <class T>
Tensor tensor_of(DType t, const Ints& dims, std::span<const T> values) {
  Tensor out = Tensor::make(t, dims);
  GAF_CHECK(out.numel() == static_cast<int64_t>(values.size())) << values.size() << " elements for " << out.numel();
  if (is_half(t)) {
    auto* p = out.mut<uint16_t>();
    for (size_t i = 0; i < values.size(); i++) {
      auto f = static_cast<float>(values[i]);
      p[i] = t == DType::f16 ? f32_to_f16(f) : f32_to_bf16(f);
    }
    return out;
  }
  with_storage(t, [&]<class U>(U*) {
    U* p = out.mut<U>();
    if constexpr (std::is_floating_point_v<T> && std::is_integral_v<U> && !std::is_same_v<U, bool>) {
      for (size_t i = 0; i < values.size(); i++) out.set(static_cast<int64_t>(i), values[i]);  // saturates
    } else {
      for (size_t i = 0; i < values.size(); i++) p[i] = static_cast<U>(values[i]);
    }
  });
  return out;
}

template std::vector<double> elements<double>(const Tensor&);
template std::vector<int64_t> elements<int64_t>(const Tensor&);
template std::vector<uint64_t> elements<uint64_t>(const Tensor&);
template std::vector<double> elements<double>(const Tensor&, const Ints&);
template std::vector<int64_t> elements<int64_t>(const Tensor&, const Ints&);
template std::vector<uint64_t> elements<uint64_t>(const Tensor&, const Ints&);
template Tensor tensor_of<double>(DType, const Ints&, std::span<const double>);
template Tensor tensor_of<int64_t>(DType, const Ints&, std::span<const int64_t>);
template Tensor tensor_of<uint64_t>(DType, const Ints&, std::span<const uint64_t>);

int64_t numel(const Ints& dims) {
  constexpr int64_t most = int64_t{1} << 46;  // as Tensor::make: beyond any memory
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d < 0 || (d != 0 && n > most / d))
      throw UserError("GAF3106", fmt::format("a tensor of [{}] elements", fmt::join(dims, ",")));
    n *= d;
  }
  return n;
}

Ints strides_of(const Ints& dims) {
  Ints s(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) s[i - 1] = s[i] * dims[i];
  return s;
}

Ints broadcast_shape(const Node& n, std::span<const Ints> all) {
  size_t rank = 0;
  for (const Ints& d : all) rank = std::max(rank, d.size());
  Ints out(rank, 1);
  for (const Ints& d : all)
    for (size_t i = 0; i < d.size(); i++) {
      int64_t& o = out[rank - d.size() + i];
      if (o != d[i] && o != 1 && d[i] != 1)
        throw UserError("GAF3101", fmt::format("dimensions {} and {} cannot be broadcast together", o, d[i]))
            .at(n.name, n.op);
      if (o == 1) o = d[i];
    }
  return out;
}

Ints broadcast_strides(const Ints& from, const Ints& to) {
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); i++) fits = from[i] == 1 || from[i] == to[to.size() - from.size() + i];
  if (!fits)
    throw UserError("GAF3101",
                    fmt::format("[{}] does not broadcast to [{}]", fmt::join(from, ","), fmt::join(to, ",")));
  Ints own = strides_of(from), out(to.size(), 0);
  const size_t skip = to.size() - from.size();
  for (size_t i = 0; i < from.size(); i++) out[skip + i] = from[i] == 1 ? 0 : own[i];
  return out;
}

Tensor strided_copy(const Tensor& src, const Ints& dims, const Ints& strides, int64_t offset) {
  Tensor out = Tensor::make(src.dtype, dims);
  const int size = bytes(src.dtype);
  char* to = out.mut<char>();
  const char* from = src.as<char>() + offset * size;
  walk<1>(dims, {strides}, [&](auto& at) {
    copy_element(to, from + at[0] * size, size);
    to += size;
  });
  return out;
}

void strided_store(Tensor& dst, const Tensor& src, const Ints& strides, int64_t offset) {
  const int size = bytes(src.dtype);
  char* to = dst.mut<char>() + offset * size;
  const char* from = src.as<char>();
  walk<1>(src.dims, {strides}, [&](auto& at) {
    copy_element(to + at[0] * size, from, size);
    from += size;
  });
}

Tensor transposed(const Tensor& src, const Ints& perm) {
  Ints own = strides_of(src.dims), dims, strides;
  for (int64_t p : perm) {
    dims.push_back(src.dims[static_cast<size_t>(p)]);
    strides.push_back(own[static_cast<size_t>(p)]);
  }
  return strided_copy(src, dims, strides, 0);
}

Tensor reshaped(const Tensor& src, Ints dims) {
  Tensor out = src;
  out.dims = std::move(dims);
  if (out.numel() != src.numel())
    throw UserError("GAF3101",
                    fmt::format("{} elements cannot be reshaped to [{}]", src.numel(), fmt::join(out.dims, ",")));
  return out;
}

Ints channels_first_perm(size_t rank) {
  Ints perm{0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 1; i + 1 < rank; i++) perm.push_back(static_cast<int64_t>(i));
  return perm;
}

Ints channels_last_perm(size_t rank) {
  Ints perm{0};
  for (size_t i = 2; i < rank; i++) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  return perm;
}

bool has(const EvalContext& c, size_t i) { return i < c.args.size() && c.args[i] != nullptr; }

const Tensor& arg(const EvalContext& c, size_t i) {
  if (!has(c, i)) fail(c, "GAF3101", fmt::format("operand {} is missing", i));
  return *c.args[i];
}

bool given(const EvalContext& c, const std::string& attr, size_t i) { return c.node.attrs.contains(attr) || has(c, i); }

const Tensor& arg_of(const EvalContext& c, size_t i, int64_t n) {
  const Tensor& t = arg(c, i);
  if (t.numel() != n) fail(c, "GAF3101", fmt::format("operand {} has {} elements, {} are needed", i, t.numel(), n));
  return t;
}

Ints list_of(const EvalContext& c, const std::string& attr, size_t i) {
  auto it = c.node.attrs.find(attr);
  if (it == c.node.attrs.end()) return has(c, i) ? elements<int64_t>(*c.args[i]) : Ints{};
  if (const auto* one = std::get_if<int64_t>(&it->second)) return {*one};
  Ints out;
  for (const Expr& e : attr_exprs(c.node, attr)) {
    GAF_CHECK(e.is_num()) << "attribute " << attr << " of '" << c.node.name << "' is not bound to a number";
    out.push_back(e.num());
  }
  return out;
}

int64_t normal_axis(const EvalContext& c, int64_t axis, size_t rank) {
  auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) fail(c, "GAF3101", fmt::format("axis {} is outside a tensor of rank {}", axis, r));
  return axis < 0 ? axis + r : axis;
}

void fail(const EvalContext& c, std::string code, std::string message) {
  throw UserError(std::move(code), std::move(message)).at(c.node.name, c.node.op);
}

}  // namespace gaf
