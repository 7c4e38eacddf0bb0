// Results of comparing and timing as the JSON documents of CONTRACT 1.3; one place, used by the command line and Python.
#pragma once
#include "base/json.h"
#include "compile.h"

namespace gaf {

Json output_json(const OutputDifference& d);
Json compare_json(const CompareResult& c);                                          // gaf.compare/1
Json bench_json(const BenchResult& b, const std::string& model, const Settings& s); // gaf.bench/1

}  // namespace gaf
