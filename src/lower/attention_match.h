// Attention as a graph shape: softmax(q k^T, perhaps scaled and masked) v. Knows graphs only.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace gaf {

// The function with its softmax as an Identity (the template computes it itself) and with factors on the way to q and k
// moved behind their product; the first of its two contractions gives the scores. Nothing if it is no attention.
std::optional<Graph> match_attention(const Graph& fn);

}  // namespace gaf
