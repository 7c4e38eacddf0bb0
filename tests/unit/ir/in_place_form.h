// What a kernel does where one of its inputs has the memory of one of its outputs, as the interpreter sees it.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ir/in_place.h"

namespace gaf::kir {

// The kernel with the input (position `in`) as another shape of the output (position `out`), which becomes `inout`. So
// the interpreter's check of par iterations holds reads of the one against writes of the other. One parameter less.
inline Kernel in_place_form(Kernel k, int out, int in) {
  const std::vector<int> all = parameters(k);
  const int o = all[static_cast<size_t>(out)], i = all[static_cast<size_t>(in)];
  k.bufs[static_cast<size_t>(o)].role = Role::inout;
  Buf& b = k.bufs[static_cast<size_t>(i)];
  b.role = Role::view, b.base = o, b.strides = row_major(b.shape), b.offset = 0;
  for (Buf& x : k.bufs)
    if (x.role == Role::view && x.base == i) x.base = o;
  return k;
}

// Runs the kernel on copies of the buffers, as it is and in place. "" if all other parameters come out with the same
// bytes, else what is wrong. Memory of two dtypes is no view: then the text runs with one address for both, unchecked.
inline std::string run_in_place(const Kernel& k, const Target& t, const std::vector<Tensor>& buffers,
                                std::span<const int64_t> sizes, int out, int in) {
  std::vector<Tensor> want, got;
  for (const Tensor& b : buffers)
    for (std::vector<Tensor>* to : {&want, &got}) {
      to->push_back(Tensor::make(b.dtype, b.dims));
      if (b.size_bytes() > 0) std::memcpy(to->back().mut<char>(), b.data.get(), static_cast<size_t>(b.size_bytes()));
    }
  const auto o = static_cast<size_t>(out), i = static_cast<size_t>(in);
  const bool one_type = buffers[o].dtype == buffers[i].dtype;
  std::vector<void*> plain, shared;
  for (size_t p = 0; p < buffers.size(); p++) {
    plain.push_back(want[p].mut<char>());
    if (p != i || !one_type) shared.push_back(got[p == o ? i : p].mut<char>());
  }
  interpret(k, t, plain, sizes);
  try {
    interpret(one_type ? in_place_form(k, out, in) : k, t, shared, sizes);
  } catch (const std::exception& e) {
    return e.what();
  }
  for (size_t p = 0; p < buffers.size(); p++) {
    const Tensor& x = got[p == o ? i : p];
    if (p != i && want[p].size_bytes() > 0 &&
        std::memcmp(want[p].data.get(), x.data.get(), static_cast<size_t>(want[p].size_bytes())) != 0)
      return "parameter " + std::to_string(p) + " differs";
  }
  return "";
}

}  // namespace gaf::kir
