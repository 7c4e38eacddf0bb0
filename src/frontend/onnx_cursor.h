// One protobuf message, field by field, with errors that say at which byte of the file they are. The only place that
// calls protozero's reader: wire types are checked here, because protozero only asserts them.
#pragma once
#include <fmt/format.h>

#include <protozero/pbf_reader.hpp>
#include <string_view>

#include "base/error.h"

namespace gaf::onnx {

class Cursor {
 public:
  Cursor(std::string_view file, std::string_view message) : file_(file), r_(message.data(), message.size()) {}

  bool next() {
    start_ = r_.data().data();
    return guarded([&] { return r_.next(); });
  }
  uint32_t field() const { return r_.tag(); }
  void skip() {
    guarded([&] { return r_.skip(), 0; });
  }
  // The current field with its tag, as it stands in the file.
  std::string_view skip_raw() {
    skip();
    return {start_, static_cast<size_t>(r_.data().data() - start_)};
  }
  std::string_view view() {
    wire(protozero::pbf_wire_type::length_delimited);
    return guarded([&] {
      auto v = r_.get_view();
      return std::string_view(v.data(), v.size());
    });
  }
  int64_t integer() {
    wire(protozero::pbf_wire_type::varint);
    return guarded([&] { return r_.get_int64(); });
  }
  float fixed32() {
    wire(protozero::pbf_wire_type::fixed32);
    return guarded([&] { return r_.get_float(); });
  }
  // Repeated numbers come packed or one by one.
  template <class F>
  void integers(F each) {
    if (r_.wire_type() != protozero::pbf_wire_type::length_delimited) return each(integer());
    guarded([&] {
      for (int64_t v : r_.get_packed_int64()) each(v);
      return 0;
    });
  }
  template <class F>
  void floats(F each) {
    if (r_.wire_type() != protozero::pbf_wire_type::length_delimited) return each(fixed32());
    guarded([&] {
      for (float v : r_.get_packed_float()) each(v);
      return 0;
    });
  }
  // Bytes of fixed-width numbers, one or many.
  std::string_view fixed_bytes(size_t width) {
    if (r_.wire_type() == protozero::pbf_wire_type::length_delimited) return view();
    wire(width == 4 ? protozero::pbf_wire_type::fixed32 : protozero::pbf_wire_type::fixed64);
    const char* at = r_.data().data();
    skip();
    return {at, width};
  }

  [[noreturn]] void damaged() const {
    auto rest = r_.data();
    bool at_end = rest.data() + rest.size() == file_.data() + file_.size();
    size_t at = at_end ? file_.size() : static_cast<size_t>(rest.data() - file_.data());
    throw UserError("GAF3001", fmt::format("not an ONNX file ({} at byte {})", at_end ? "truncated" : "damaged", at));
  }

 private:
  void wire(protozero::pbf_wire_type wanted) const {
    if (r_.wire_type() != wanted) damaged();
  }
  template <class F>
  auto guarded(F f) -> decltype(f()) {
    try {
      return f();
    } catch (const protozero::exception&) {
      damaged();
    }
  }

  std::string_view file_;
  protozero::pbf_reader r_;
  const char* start_ = nullptr;  // of the current field
};

}  // namespace gaf::onnx
