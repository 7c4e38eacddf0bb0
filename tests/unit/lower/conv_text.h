// Graph texts of convolution and pooling kernels for the tests of their templates.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "base/expr.h"

namespace gaf {

struct ConvShape {
  int64_t n = 1;
  std::vector<int64_t> in;  // spatial
  int64_t channels = 4, outputs = 8, group = 1;
  std::vector<int64_t> kernel, stride, dilation, pads;

  std::vector<int64_t> out() const {
    std::vector<int64_t> o;
    for (size_t d = 0; d < in.size(); d++)
      o.push_back((in[d] + pads[d] + pads[d + in.size()] - (kernel[d] - 1) * dilation[d] - 1) / stride[d] + 1);
    return o;
  }
};

inline std::string list(const std::vector<int64_t>& v) {
  std::string s;
  for (int64_t x : v) s += (s.empty() ? "" : ",") + std::to_string(x);
  return s;
}

inline std::string attributes(const ConvShape& c) {
  return "dilations=[" + list(c.dilation) + "], kernel_shape=[" + list(c.kernel) + "], layout=\"NHWC\", pads=[" +
         list(c.pads) + "], strides=[" + list(c.stride) + "]";
}

// Conv with bias, channels last; `space`: nodes behind it that read %c and the bias %2, ending in %y.
inline std::string conv_text(const ConvShape& c, bool relu) {
  std::string o = "f32[" + std::to_string(c.n) + "," + list(c.out()) + "," + std::to_string(c.outputs) + "]";
  std::string s = "graph @k(%0: f32[" + std::to_string(c.n) + "," + list(c.in) + "," + std::to_string(c.channels) +
                  "], %1: f32[" + std::to_string(c.outputs) + "," + std::to_string(c.channels / c.group) + "," +
                  list(c.kernel) + "] const, %2: f32[" + std::to_string(c.outputs) + "]" + (relu ? ", %3: " + o : "") +
                  ") -> (%" + (relu ? "6" : "3") + ") {\n";
  std::string at = relu ? "4" : "3";
  s += "  %" + at + " = Conv(%0, %1, %2) {" +
       attributes(c).insert(attributes(c).find("kernel_shape"), "group=" + std::to_string(c.group) + ", ") +
       "} : " + o + "\n";
  if (relu) s += "  %5 = Add(%4, %3) : " + o + "\n  %6 = Relu(%5) : " + o + "\n";
  return s + "}\n";
}

inline std::string pool_text(const ConvShape& c, const std::string& op, bool ceil, bool count) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < c.in.size(); d++) {
    int64_t room = c.in[d] + c.pads[d] + c.pads[d + c.in.size()] - (c.kernel[d] - 1) * c.dilation[d] - 1;
    int64_t o = (ceil ? (room + c.stride[d] - 1) / c.stride[d] : room / c.stride[d]) + 1;
    if (ceil && (o - 1) * c.stride[d] >= c.in[d] + c.pads[d]) o--;
    out.push_back(o);
  }
  std::string type = "[" + std::to_string(c.n) + "," + list(out) + "," + std::to_string(c.channels) + "]";
  return "graph @k(%0: f32[" + std::to_string(c.n) + "," + list(c.in) + "," + std::to_string(c.channels) +
         "]) -> (%1) {\n  %1" + std::string(op == "MaxPool" ? ", %2" : "") + " = " + op +
         "(%0) {ceil_mode=" + (ceil ? "1" : "0") + ", " +
         (op == "AveragePool" ? "count_include_pad=" + std::string(count ? "1" : "0") + ", " : "") + attributes(c) +
         "} : f32" + type + (op == "MaxPool" ? ", i64" + type : "") + "\n}\n";
}

inline ConvShape random_shape(std::mt19937& g, size_t dims, bool depthwise) {
  auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(g); };
  ConvShape c;
  c.n = pick(1, 2);
  for (size_t d = 0; d < dims; d++) {
    c.kernel.push_back(pick(1, 4));
    c.stride.push_back(pick(1, 3));
    c.dilation.push_back(pick(1, 4) == 1 ? 2 : 1);
  }
  int64_t most[] = {40, 18, 6};
  for (size_t d = 0; d < dims; d++) c.in.push_back(pick((c.kernel[d] - 1) * c.dilation[d] + 1, most[dims - 1] + 4));
  c.pads.resize(2 * dims);
  for (size_t d = 0; d < dims; d++)
    for (size_t side : {d, d + dims}) c.pads[side] = pick(0, std::min<int64_t>(2, (c.kernel[d] - 1) * c.dilation[d]));
  int64_t channels[] = {1, 2, 3, 5, 8, 16, 20, 33};
  if (depthwise) {
    c.channels = c.outputs = c.group = pick(2, 70);
  } else {
    c.group = pick(1, 5) == 1 ? pick(2, 3) : 1;
    c.channels = channels[pick(0, 7)] * c.group;
    c.outputs = pick(1, 40) * c.group;
    if (c.group > 1 && c.channels == c.group && c.outputs == c.group) c.channels *= 2;  // that is depthwise
  }
  return c;
}

}  // namespace gaf
