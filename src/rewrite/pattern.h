// Patterns over a graph, as text: "Mul(x, Sigmoid(x))". Op names match op types ("A|B" alternatives), a lower-case name binds
// a value (twice the same name: the same value), "$c" binds a constant, a number matches a constant whose elements all equal
// it (relative 1e-5). Add, Mul, Max, Min, Sum match in any operand order. Trailing operands that the pattern leaves out must
// be absent in the node. Views that only add or drop unit dims are looked through where the pattern says "~Op(...)".
#pragma once
#include <map>
#include <string>
#include <vector>

#include "rewrite/rebuild.h"

namespace gaf {

struct PatternNode;

class Pattern {
 public:
  explicit Pattern(std::string_view text);
  struct Match {
    std::map<std::string, Value> at;    // names -> values
    std::vector<Value> inner;           // matched op nodes, root last
  };
  // Matches with its root at `n`, a node whose operands are in b.g(); inner values (not the root) must have one reader.
  std::optional<Match> match(const Rebuild& b, const Node& n) const;

 private:
  std::shared_ptr<const PatternNode> root_;
};

}  // namespace gaf
