// The short templates that an Ascend C file opens with: only those that the kernel uses. Each spells one statement of
// the kernel through public basic-API calls, keeps their limits (repeat counts, strides in blocks of 32 bytes) and
// touches valid elements only.
#pragma once
#include <map>
#include <string>

namespace gaf::npu {

class AscendcPrelude {
 public:
  // Asks for a helper; `word` fills the pattern of those that are written once an instruction ("Exp"). Returns the
  // helper's name.
  std::string need(const std::string& helper, const std::string& word = "");
  std::string text() const;

 private:
  std::map<std::pair<int, std::string>, std::string> texts_;  // in the order of the table
};

}  // namespace gaf::npu
