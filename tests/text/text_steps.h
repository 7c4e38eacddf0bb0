// What a text test runs. A step turns input text into named sections of output text, and says what is wrong with the input,
// line by line. Steps named one after the other in a header feed the first section to the next.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gaf::text {

using Options = std::map<std::string, std::string>;  // target=... and the like from the header

struct Section {
  std::string name, text;
};
struct Problem {
  int line = 0;  // of the input; 0: of no line
  std::string text;
  bool warning = false;
};
struct Result {
  std::vector<Section> sections;
  std::vector<Problem> problems;
};
// A UserError thrown by a step becomes a problem on its line.
using Step = std::function<Result(const std::string& input, const Options&)>;
using Steps = std::map<std::string, Step>;

void add_steps_ir(Steps&);
void add_steps_core(Steps&);

}  // namespace gaf::text
