// The record of what the planner decided and why: one tree, read by log, `explain`, JSON and tests (CONTRACT 6). Times in
// microseconds, sizes in bytes; NaN where a number is not known (printed as null).
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/json.h"

namespace gaf {

struct BeforeAfter {
  double before = NAN, after = NAN;
};

struct GroupReport {
  std::string id, kernel;                    // g0, matmul_bias_relu_fused
  std::vector<std::string> nodes;            // friendly op names in order (MatMul BiasAdd ReLU)
  std::vector<std::string> original_nodes;   // model node names
  std::string kind;                          // elementwise reduction matmul conv attention mixed
  std::string rule, why;
  double gain = 0;                           // per cent of its unfused predicted time
  BeforeAfter bytes, predicted_us, measured_us;
  int launches_saved = 0;
  double reg = 0, ub = 0;                    // fractions of the full resource
  int64_t ub_bytes = 0;
  std::vector<std::string> budget_steps;
  double compile_ms = NAN;
  bool cached = false, simulated = false;
  std::string status = "fused";              // fused rolled_back failed
};

struct EdgeReport {                          // an edge between two ops that is not inside a group
  std::string from, to, value;               // node names
  double bytes = 0;
  std::string reason, text;                  // reason: an id of CONTRACT 6.2
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::string> other_reasons;
  double could_save_us = NAN;
  std::vector<std::pair<std::string, std::string>> edges;  // of the model, that it stands for; of its nodes as loaded
};

struct NodeReport {
  std::string op, fate, group, reason;       // fate: group alone extern eliminated folded view
  double predicted_us = 0, bytes = 0;
  std::string part_of = "";                    // eliminated: the kernel of its own, or the extern op, that stands for it too
};

struct RewriteReport {
  std::string name, effect;
  std::vector<std::string> nodes;
};

struct WarningReport {
  std::string code, text, node;
};

struct Totals {
  int ops_before = 0, ops_after = 0, kernels_before = 0, kernels_after = 0;
  double bytes_before = 0, bytes_after = 0, predicted_us_before = 0, predicted_us_after = 0;
  double measured_us_before = NAN, measured_us_after = NAN, plan_gap = NAN, compile_ms = NAN;
  int compiled = 0, cache_hits = 0, allocations = 0, externs = 0;
};

struct Report {
  std::string model, graph_hash, target;
  int threads = 0;                           // cores of a simulated target
  bool simulated = false;                    // times come from the target's file alone: an NPU
  std::map<std::string, Setting> settings;
  Totals totals;
  std::vector<GroupReport> groups;
  std::vector<EdgeReport> not_fused;
  std::vector<std::pair<std::string, NodeReport>> nodes;  // in order of the model
  std::vector<RewriteReport> rewrites;
  std::vector<std::pair<std::string, std::string>> guards;
  std::vector<WarningReport> warnings;

  std::string text() const;                  // CONTRACT 6.1
  Json json() const;                         // gaf.report/1, CONTRACT 6.2
  std::string why(const std::string& a, const std::string& b = "") const;  // a node, or an edge; UserError if unknown
};

}  // namespace gaf
