// Small models for the tests of the public interface, written as graph text, and numbers whose products and sums are
// exact in float32. Includes nothing of the library but its public header.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gaf/gaf.h"

// A folder of the test, removed at the end.
struct Folder {
  std::string path;
  Folder() {
    static int count = 0;
    path = (std::filesystem::temp_directory_path() /
            ("gaf_api_" + std::to_string(getpid()) + "_" + std::to_string(count++)))
               .string();
    std::filesystem::create_directory(path);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
    return path + "/" + name;
  }
};

inline gaf::Graph load_text(const std::string& text, const std::map<std::string, gaf::Shape>& shapes = {}) {
  const Folder f;
  return gaf::load_model(f.write("model.gaf", text), shapes);
}

// Multiples of a quarter from -2 to 2.
inline std::vector<float> quarters(size_t n, unsigned seed) {
  std::vector<float> v;
  unsigned state = seed * 2654435761u + 1;
  for (size_t i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    v.push_back(static_cast<float>((state >> 16) % 17) / 4 - 2);
  }
  return v;
}

// y = max(0, x w + b) by definition.
inline std::vector<float> mlp(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& b,
                              size_t m) {
  const size_t n = b.size(), k = w.size() / n;
  std::vector<float> y(m * n);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = b[j];
      for (size_t l = 0; l < k; l++) sum += static_cast<double>(x[i * k + l]) * w[l * n + j];
      y[i * n + j] = static_cast<float>(sum > 0 ? sum : 0);
    }
  return y;
}

inline const char* const kMlp = R"(
graph @mlp(size batch, %0 "x": f32[batch,48], %1 "w": f32[48,40], %2 "b": f32[40]) -> (%5 "y") {
  %3 = MatMul(%0, %1) : f32[batch,40]  # "mm"
  %4 = Add(%3, %2) : f32[batch,40]  # "bias"
  %5 = Relu(%4) : f32[batch,40]  # "act"
}
)";
// The same with weights that belong to the model.
inline const char* const kMlpWeights = R"(
graph @mlp(size batch, %0 "x": f32[batch,48]) -> (%5 "y") {
  %1 = constant #0000000000000001 : f32[48,40]  # "w"
  %2 = constant #0000000000000002 : f32[40]  # "b"
  %3 = MatMul(%0, %1) : f32[batch,40]  # "mm"
  %4 = Add(%3, %2) : f32[batch,40]  # "bias"
  %5 = Relu(%4) : f32[batch,40]  # "act"
}
)";
inline const char* const kConv = R"(
graph @conv(%0 "x": f32[1,3,20,24]) -> (%8 "y") {
  %1 = constant #0000000000000001 : f32[8,3,3,3]  # "w"
  %2 = constant {value=[0.5,1.0,1.5,2.0,0.25,1.0,1.0,0.75]} : f32[8]  # "scale"
  %3 = constant {value=[0.1,-0.2,0.3,0.0,0.5,-0.5,1.0,0.0]} : f32[8]  # "shift"
  %4 = constant {value=[0.0,0.1,-0.1,0.2,0.0,0.3,0.0,-0.2]} : f32[8]  # "mean"
  %5 = constant {value=[1.0,0.5,2.0,1.0,0.25,1.0,4.0,1.0]} : f32[8]  # "var"
  %6 = Conv(%0, %1) {pads=[1,1,1,1]} : f32[1,8,20,24]  # "conv"
  %7 = BatchNormalization(%6, %2, %3, %4, %5) {epsilon=1e-05} : f32[1,8,20,24]  # "bn"
  %8 = Relu(%7) : f32[1,8,20,24]  # "relu"
}
)";
inline const char* const kNorm = R"(
graph @norm(%0 "x": f32[10,96], %1 "scale": f32[96], %2 "shift": f32[96]) -> (%4 "y") {
  %3 = LayerNormalization(%0, %1, %2) {axis=-1, epsilon=1e-05} : f32[10,96]  # "ln"
  %4 = Gelu(%3) : f32[10,96]  # "gelu"
}
)";
