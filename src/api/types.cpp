// Data types, tensors and errors of the public interface in terms of the library's own.
#include <functional>

#include "api/internal.h"
#include "base/catalogue.h"
#include "runtime/binding.h"
#include "base/memory.h"

namespace gaf {
namespace {

struct TypePair {
  v0::DataType outside;
  DType inside;
};
constexpr TypePair kTypes[] = {
    {v0::DT_FLOAT, DType::f32}, {v0::DT_FLOAT16, DType::f16}, {v0::DT_INT8, DType::i8},    {v0::DT_INT32, DType::i32},
    {v0::DT_UINT8, DType::u8},  {v0::DT_INT16, DType::i16},   {v0::DT_UINT16, DType::u16}, {v0::DT_UINT32, DType::u32},
    {v0::DT_INT64, DType::i64}, {v0::DT_UINT64, DType::u64},  {v0::DT_DOUBLE, DType::f64}, {v0::DT_BOOL, DType::b1},
    {v0::DT_BF16, DType::bf16},
};

template <class E>
[[noreturn]] void raise(const std::string& what, std::vector<v0::Error::Fault> faults) {
  throw E(what, std::move(faults));
}
struct ClassRow {
  std::string_view name;  // as the catalogue has it
  void (*raise)(const std::string& what, std::vector<v0::Error::Fault> faults);
};
constexpr ClassRow kClasses[] = {
    {"UsageError", raise<v0::UsageError>},
    {"ConfigError", raise<v0::ConfigError>},
    {"TargetError", raise<v0::TargetError>},
    {"ModelError", raise<v0::ModelError>},
    {"ShapeError", raise<v0::ShapeError>},
    {"DTypeError", raise<v0::DTypeError>},
    {"UnsupportedError", raise<v0::UnsupportedError>},
    {"CompileError", raise<v0::CompileError>},
    {"ExecutionError", raise<v0::ExecutionError>},
    {"AccuracyError", raise<v0::AccuracyError>},
    {"CacheError", raise<v0::CacheError>},
    {"InternalError", raise<v0::InternalError>},
};

[[noreturn]] void throw_all(const std::string& what, const std::vector<ErrorInfo>& all) {
  std::vector<v0::Error::Fault> faults;
  for (const ErrorInfo& i : all) {
    const ErrorInfo e = with_catalogue(i);
    faults.push_back({e.code, e.message, e.node, e.op_type, e.file, e.line, e.column, e.cause, e.remedy});
  }
  const CatalogueRow* row = catalogue_row(all.front().code);
  for (const ClassRow& c : kClasses)
    if (row && row->type == c.name) c.raise(what, std::move(faults));
  throw v0::Error(what, std::move(faults));
}

template <class View>
std::vector<Tensor> views_of(const std::vector<View>& views) {
  std::vector<Tensor> all;
  for (const View& v : views) {
    Tensor t;
    t.dtype = own_dtype(v.dtype);
    t.dims = v.shape;
    const int64_t size = checked_bytes(t.dims, t.dtype, "argument " + std::to_string(all.size()));
    if (!v.data && size > 0)
      throw UserError("GAF1102", "argument " + std::to_string(all.size()) + " has no data", "give its address");
    static const char nothing = 0;
    t.data = std::shared_ptr<const void>(std::shared_ptr<const void>(), v.data ? v.data : &nothing);
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace

void throw_public(const UserError& e) { throw_all(e.what(), e.all()); }
void throw_public(const InternalError& e) { throw_all(e.what(), {ErrorInfo{.code = "GAF9001", .message = e.what()}}); }

v0::DataType public_dtype(DType t) {
  for (const TypePair& p : kTypes)
    if (p.inside == t) return p.outside;
  throw InternalError("a dtype without a public name");
}
DType own_dtype(v0::DataType t) {
  for (const TypePair& p : kTypes)
    if (p.outside == t) return p.inside;
  throw UserError("GAF3107", "there is no data type " + std::to_string(static_cast<int>(t)));
}

v0::ValueInfo value_info(const std::string& name, DType t, const Dims& dims,
                         const std::function<std::string(int)>& symbol) {
  v0::ValueInfo v;
  v.name = name, v.dtype = public_dtype(t);
  for (const Dim& d : dims) {
    v.shape.push_back(d.is_num() ? d.num() : -1);
    v.dim_names.push_back(d.is_num() ? "" : d.str(symbol));
  }
  return v;
}
v0::ValueInfo value_info(const std::string& name, const Type& t, const Graph& g) {
  return value_info(name, t.dtype, t.dims, [&](int s) { return g.syms[static_cast<size_t>(s)].name; });
}

std::vector<Tensor> own_views(const std::vector<v0::ConstTensorView>& views) { return views_of(views); }
std::vector<Tensor> own_views(const std::vector<v0::TensorView>& views) { return views_of(views); }

v0::RunInfo public_info(const RunInfo& i) {
  return {.latency_us = i.latency_us, .copies = i.copies, .kernels = i.kernels, .fallbacks = i.fallbacks};
}

namespace v0 {

size_t size_of(DataType t) {
  return guarded([&] { return static_cast<size_t>(bytes(own_dtype(t))); });
}
std::string to_string(DataType t) {
  return guarded([&] { return std::string(long_name(own_dtype(t))); });
}

Tensor::Tensor(DataType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  guarded([&] {
    const DType t = own_dtype(dtype);
    const int64_t size = checked_bytes(shape_, t, "tensor");
    data_ = allocate_block(size);
    std::memset(data_.get(), 0, static_cast<size_t>(size));
  });
}
int64_t Tensor::size() const {
  int64_t n = data_ ? 1 : 0;
  for (int64_t d : shape_) n *= d;
  return n;
}
Tensor Access::make_tensor(const gaf::Tensor& t) {
  Tensor out;
  out.dtype_ = public_dtype(t.dtype), out.shape_ = t.dims;
  out.data_ = std::const_pointer_cast<void>(t.data);
  return out;
}

Error::Error(const std::string& what, std::vector<Fault> faults)
    : std::runtime_error(what), faults_(std::make_shared<const std::vector<Fault>>(std::move(faults))) {}
Error::~Error() = default;

}  // namespace v0
}  // namespace gaf
