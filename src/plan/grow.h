// Growth of groups: the state that grow.cpp drives and that plan.cpp turns into a graph and a report.
#pragma once
#include <map>
#include <optional>

#include "plan/groups.h"

namespace gaf {

class Growth {
 public:
  Growth(const Graph& g, const Target& t, const FusionConfig& config, const PlanServices& services);
  void run();
  Groups groups;
  const std::variant<Price, Verdict>& price(const std::vector<uint32_t>& nodes);  // memoised by the function's text
  double cost(int group);                                                         // us; alias views cost nothing
  double activations(int group);                                                  // bytes; alias views move none
  double alone(const std::vector<uint32_t>& nodes);                               // us of the nodes as kernels of their own
  // One node as a kernel of its own, or as launch_price has it.
  std::optional<Price> apart(uint32_t node);
  const std::map<std::pair<uint32_t, uint32_t>, Verdict>& refused() const { return refused_; }  // last refusal of an edge
  Verdict legal(int a, int b);
  Verdict worth(int a, int b, double slack);

 private:
  struct Parts {
    double us = 0, activation_bytes = 0;
    int kernels = 0;
  };
  // May the nodes be one kernel in place of `parts`? Up to `slack` us more are allowed.
  Verdict pays(const std::vector<uint32_t>& nodes, const Parts& parts, double slack);
  Parts without_attention(const std::vector<uint32_t>& nodes);
  void grow();
  bool take_back_attention();
  bool try_merge(uint32_t from, uint32_t to);
  void attention();
  void note_output_between(uint32_t softmax);
  const Target& t_;
  const FusionConfig& config_;
  const PlanServices& services_;
  std::map<std::string, std::variant<Price, Verdict>> prices_;
  std::map<std::pair<uint32_t, uint32_t>, Verdict> refused_;
  std::set<std::pair<uint32_t, uint32_t>> settled_;  // edges whose refusal says why there is no attention
  std::vector<uint32_t> attentions_;                 // their Softmax nodes
};

}  // namespace gaf
