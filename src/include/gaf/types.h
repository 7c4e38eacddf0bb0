// Data types, tensors and errors of the public C++ interface. No type of the library's inside appears here; what this
// header declares is binary compatible within one version namespace.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define GAF_API __attribute__((visibility("default")))
// Users write gaf::Graph; the symbols are gaf::v0::Graph, so that two versions can live in one process. The library's
// own sources define GAF_IMPLEMENTATION, because inside it gaf::Graph is another type.
#ifdef GAF_IMPLEMENTATION
#define GAF_NAMESPACE_BEGIN \
  namespace gaf {           \
  namespace v0 {
#else
#define GAF_NAMESPACE_BEGIN \
  namespace gaf {           \
  inline namespace v0 {
#endif
#define GAF_NAMESPACE_END \
  }                       \
  }

GAF_NAMESPACE_BEGIN

// Numbers and names as in CANN. float16 and bfloat16 are passed as their 16 bits, bool as one byte, 0 or 1.
enum DataType : int {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_DOUBLE = 11,
  DT_BOOL = 12,
  DT_BF16 = 27,
  ACL_FLOAT = DT_FLOAT,
  ACL_FLOAT16 = DT_FLOAT16,
  ACL_INT8 = DT_INT8,
  ACL_INT32 = DT_INT32,
  ACL_UINT8 = DT_UINT8,
  ACL_INT16 = DT_INT16,
  ACL_UINT16 = DT_UINT16,
  ACL_UINT32 = DT_UINT32,
  ACL_INT64 = DT_INT64,
  ACL_UINT64 = DT_UINT64,
  ACL_DOUBLE = DT_DOUBLE,
  ACL_BOOL = DT_BOOL,
  ACL_BF16 = DT_BF16,
};
GAF_API size_t size_of(DataType t);         // bytes of one element; DTypeError for a number that is no DataType
GAF_API std::string to_string(DataType t);  // "float32"

// The DataType of a C++ type; float16 and bfloat16 have none and are always given in words.
template <class T>
constexpr DataType data_type_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>)
    return DT_FLOAT;
  else if constexpr (std::is_same_v<U, double>)
    return DT_DOUBLE;
  else if constexpr (std::is_same_v<U, bool>)
    return DT_BOOL;
  else {
    static_assert(std::is_integral_v<U>, "give the DataType of float16 and bfloat16 data");
    if constexpr (std::is_signed_v<U>)
      return sizeof(U) == 1 ? DT_INT8 : sizeof(U) == 2 ? DT_INT16 : sizeof(U) == 4 ? DT_INT32 : DT_INT64;
    else
      return sizeof(U) == 1 ? DT_UINT8 : sizeof(U) == 2 ? DT_UINT16 : sizeof(U) == 4 ? DT_UINT32 : DT_UINT64;
  }
}

// Dimensions, outermost first, in elements; -1 is a free dimension where one may be free. {} is a scalar.
using Shape = std::vector<int64_t>;

class Tensor;

// Somebody's memory as a tensor: dense, row-major, aligned as the element type asks. It owns nothing.
struct TensorView {
  DataType dtype = DT_FLOAT;
  Shape shape;
  void* data = nullptr;

  TensorView() = default;
  TensorView(DataType t, Shape s, void* p) : dtype(t), shape(std::move(s)), data(p) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> && !std::is_const_v<T>>>
  TensorView(T* p, Shape s) : dtype(data_type_of<T>()), shape(std::move(s)), data(p) {}
  TensorView(Tensor& t);  // NOLINT: a view of it
};
struct ConstTensorView {
  DataType dtype = DT_FLOAT;
  Shape shape;
  const void* data = nullptr;

  ConstTensorView() = default;
  ConstTensorView(DataType t, Shape s, const void* p) : dtype(t), shape(std::move(s)), data(p) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  ConstTensorView(const T* p, Shape s) : dtype(data_type_of<T>()), shape(std::move(s)), data(p) {}
  ConstTensorView(const TensorView& v) : dtype(v.dtype), shape(v.shape), data(v.data) {}  // NOLINT: a view of the same
  ConstTensorView(const Tensor& t);                                                       // NOLINT
};

// A tensor with memory of its own, 64-byte aligned. Copies share the memory.
class GAF_API Tensor {
 public:
  Tensor() = default;
  Tensor(DataType dtype, Shape shape);  // all zero; ShapeError for a negative dimension
  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const;  // elements
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  template <class T>
  T* as() {
    return static_cast<T*>(data_.get());
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_.get());
  }

 private:
  friend struct Access;
  DataType dtype_ = DT_FLOAT;
  Shape shape_;
  std::shared_ptr<void> data_;
};

inline TensorView::TensorView(Tensor& t) : dtype(t.dtype()), shape(t.shape()), data(t.data()) {}
inline ConstTensorView::ConstTensorView(const Tensor& t) : dtype(t.dtype()), shape(t.shape()), data(t.data()) {}

// What every function of the library throws, besides std::bad_alloc. Faults found together are reported together; the
// accessors speak of the first. what() is all of it as text.
class GAF_API Error : public std::runtime_error {
 public:
  struct Fault {
    std::string code;  // "GAF3102"
    std::string message;
    std::string node, op_type;  // as in the user's model; empty where no node is to blame
    std::string file;           // where text is to blame, with line and column from 1; 0: not known
    int line = 0, column = 0;
    std::string cause, remedy;
  };
  Error(const std::string& what, std::vector<Fault> faults);
  ~Error() override;
  const std::vector<Fault>& faults() const { return *faults_; }  // at least one
  const std::string& code() const { return faults().front().code; }
  const std::string& message() const { return faults().front().message; }
  const std::string& node() const { return faults().front().node; }
  const std::string& op_type() const { return faults().front().op_type; }
  const std::string& file() const { return faults().front().file; }
  int line() const { return faults().front().line; }
  int column() const { return faults().front().column; }
  const std::string& cause() const { return faults().front().cause; }
  const std::string& remedy() const { return faults().front().remedy; }

 private:
  std::shared_ptr<const std::vector<Fault>> faults_;  // shared: copying an exception must not throw
};

// A call that cannot be meant.
class GAF_API UsageError : public Error {
  using Error::Error;
};
// A setting's value, also from the environment.
class GAF_API ConfigError : public Error {
  using Error::Error;
};
// Unknown target, bad target file.
class GAF_API TargetError : public Error {
  using Error::Error;
};
// Not a model, damaged, names that are not there.
class GAF_API ModelError : public Error {
  using Error::Error;
};
// Shapes that do not fit.
class GAF_API ShapeError : public Error {
  using Error::Error;
};
// Data of another type; there are no silent casts.
class GAF_API DTypeError : public Error {
  using Error::Error;
};
// Not in this version, not on this target.
class GAF_API UnsupportedError : public Error {
  using Error::Error;
};
// Not one kernel, or text that is no kernel.
class GAF_API CompileError : public Error {
  using Error::Error;
};
// During a run: an index out of range, no memory.
class GAF_API ExecutionError : public Error {
  using Error::Error;
};
// Results differ from the reference.
class GAF_API AccuracyError : public Error {
  using Error::Error;
};
// Files that cannot be read or written.
class GAF_API CacheError : public Error {
  using Error::Error;
};
// A fault of the library: please report it.
class GAF_API InternalError : public Error {
  using Error::Error;
};

GAF_NAMESPACE_END
