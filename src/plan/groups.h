// The state of planning: a partition of the graph's nodes into groups, questions about it, and a group as a function.
#pragma once
#include <set>
#include <vector>

#include "ops/op.h"
#include "plan/plan.h"

namespace gaf {

// What a node is to the planner.
enum class Role : uint8_t { leaf, fusable, view, host };  // leaf: input, constant; view: no kernel of its own; host: extern

class Groups {
 public:
  Groups(const Graph& g, const FusionConfig& config);
  const Graph& g;
  bool part_of_graph = false;  // g is a group's function: its inputs that are marked const are constants
  Role role(uint32_t node) const { return role_[node]; }
  const std::string& refusal(uint32_t node) const { return refusal_[node]; }  // why a host node is no kernel
  int of(uint32_t node) const { return of_[node]; }                           // -1 for leaves
  const std::vector<uint32_t>& nodes(int group) const { return members_[static_cast<size_t>(group)]; }
  std::vector<int> all() const;                                               // live groups by first node
  std::vector<uint32_t> united(int a, int b) const;                           // their nodes, in order
  void merge(int a, int b);                                                   // into a
  void dissolve(int group);                                                   // every node on its own again

  bool makes_cycle(int a, int b) const;      // would the union depend on itself through a node outside?
  int depth(const std::vector<uint32_t>& nodes) const;  // longest data path in ops
  int ops(const std::vector<uint32_t>& nodes) const;    // without views
  bool has_anchor(int group) const;          // a contraction, convolution or pool
  // Values made in the group that are read outside, and values it reads from outside, both in order.
  std::vector<Value> outputs(const std::vector<uint32_t>& nodes) const;
  std::vector<Value> inputs(const std::vector<uint32_t>& nodes) const;
  // The group as a kernel function: one-element constants stand inside, others are inputs marked const.
  Graph function(const std::vector<uint32_t>& nodes, const std::string& name) const;

 private:
  std::vector<Role> role_;
  std::vector<std::string> refusal_;
  std::vector<int> of_;
  std::vector<std::vector<uint32_t>> members_;
  std::vector<std::vector<uint32_t>> readers_;
};

// Is the view a new name for the same bytes (Reshape), so that it needs no kernel even alone?
bool alias_view(const Node& n);
bool inner_constant(const Graph& g, Value v);  // stands inside kernel functions

// ---- names.cpp ----
std::string without_names(std::string verdict);  // functions are priced without names, so that equal ones are priced once
std::string friendly_name(const Graph& g, const Node& n);                      // BiasAdd, ReLU, LayerNorm, ...
std::string kernel_label(const Graph& g, const std::vector<uint32_t>& nodes);  // matmul_bias_relu_fused
std::string group_kind(const Graph& g, const std::vector<uint32_t>& nodes);    // elementwise reduction matmul conv attention mixed

}  // namespace gaf
