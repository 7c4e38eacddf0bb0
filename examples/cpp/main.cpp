// example MODEL [ROWS]: fuses a model, says what became of it, and runs it once on ones; a free dimension is ROWS
// (default 4).
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "gaf/gaf.h"

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "example MODEL [ROWS]\n"), 2;
  const int64_t rows = argc > 2 ? std::atoll(argv[2]) : 4;
  const gaf::Graph model = gaf::load_model(argv[1]);
  const gaf::CompiledModel compiled = gaf::compile(model);
  std::printf("%d kernels before, %d after\n", model.num_kernels(), compiled.graph().num_kernels());

  std::vector<gaf::Tensor> inputs;
  for (gaf::ValueInfo info : model.inputs()) {
    std::replace(info.shape.begin(), info.shape.end(), int64_t{-1}, rows);
    inputs.emplace_back(info.dtype, info.shape);
    if (info.dtype == gaf::DT_FLOAT) std::fill_n(inputs.back().as<float>(), inputs.back().size(), 1.0f);
  }
  const std::vector<std::string> names = compiled.output_names();
  const std::vector<gaf::Tensor> outputs = compiled.run({inputs.begin(), inputs.end()});
  for (size_t i = 0; i < outputs.size(); i++)
    std::printf("%s: %s, %lld elements, first %g\n", names[i].c_str(), gaf::to_string(outputs[i].dtype()).c_str(),
                static_cast<long long>(outputs[i].size()),
                outputs[i].dtype() == gaf::DT_FLOAT ? outputs[i].as<float>()[0] : 0.0);
} catch (const gaf::Error& e) {
  std::fprintf(stderr, "%s\n    remedy: %s\n", e.what(), e.remedy().c_str());
  return 1;
}
