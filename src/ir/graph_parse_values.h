// Graph text, reading: the parts of a line that hold numbers. See ir/graph.h for the form.
#pragma once
#include "ir/graph.h"
#include "ir/graph_scan.h"

namespace gaf::graph_text {

class ValueParser {
 public:
  ValueParser(std::string_view text, std::string_view file, const ConstantSource& source)
      : s_(text, file), source_(source) {}

 protected:
  // The elements of `value` of a constant, which get their dtype only from the type behind it.
  struct RawValue {
    bool present = false;
    size_t pos = 0;
    std::vector<std::string_view> elements;
  };

  Type type();
  Attrs attrs(RawValue* constant_value);
  void constant(Node& n, const RawValue& raw, bool by_hash, uint64_t hash, size_t at);

  Scanner s_;
  std::vector<Sym> syms_;  // of the graph; kernels and regions use them too

 private:
  Expr expr();
  Dims dims(std::string_view close);
  Attr attr();
  Attr list();
  Tensor tensor();
  int64_t integer(std::string_view w);
  double real(std::string_view w);  // float32 unless marked `d`
  template <class F>
  F real_as(std::string_view w);
  std::vector<std::string_view> raw_elements(size_t* pos);
  void element(Tensor& t, int64_t i, std::string_view w);
  Tensor filled(DType dtype, const std::vector<int64_t>& sizes, const std::vector<std::string_view>& elements,
                size_t at);
  std::vector<int64_t> numbers(const Dims& dims, size_t at);
  int64_t element_count(const std::vector<int64_t>& sizes, size_t at);
  Tensor data_for(uint64_t hash, DType dtype, const std::vector<int64_t>& sizes, size_t at);

  const ConstantSource& source_;
};

}  // namespace gaf::graph_text
