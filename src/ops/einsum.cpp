// Einsum: products of operands summed over the letters that the result does not have. Evaluation walks all letters at
// once.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"

namespace gaf {

namespace {

// Letters of each operand and of the result; an ellipsis of k dims becomes k letters '0', '1', ...
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

std::string spread(const std::string& term, size_t dims) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  std::string letters;
  for (size_t i = 0; i < dims; i++) letters += static_cast<char>('0' + i);
  return term.substr(0, at) + letters + term.substr(at + 3);
}

Equation equation_of(const Node& n, const std::vector<size_t>& ranks) {
  auto bad = [&](const std::string& why) { throw UserError("GAF3101", why).at(n.name, n.op); };
  std::string text;
  for (char ch : attr_str(n, "equation", ""))
    if (ch != ' ') text += ch;
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  Equation e;
  size_t start = 0;
  for (size_t i = 0; i <= left.size(); i++)
    if (i == left.size() || left[i] == ',') {
      e.operands.push_back(left.substr(start, i - start));
      start = i + 1;
    }
  if (e.operands.size() != ranks.size())
    bad(fmt::format("equation '{}' has {} operands, {} are given", text, e.operands.size(), ranks.size()));
  size_t wide = 0;  // dims of the ellipsis
  for (size_t i = 0; i < ranks.size(); i++) {
    const bool open = e.operands[i].find("...") != std::string::npos;
    const size_t named = e.operands[i].size() - (open ? 3 : 0);
    if (named > ranks[i] || (!open && named != ranks[i]))
      bad(fmt::format("term '{}' does not fit a tensor of rank {}", e.operands[i], ranks[i]));
    if (open) wide = ranks[i] - named;
  }
  std::map<char, int> count;
  for (std::string& term : e.operands) {
    term = spread(term, wide);
    for (char ch : term) count[ch]++;
  }
  if (arrow != std::string::npos) {
    e.result = spread(text.substr(arrow + 2), wide);
  } else {
    for (size_t i = 0; i < wide; i++) e.result += static_cast<char>('0' + i);
    for (auto [ch, k] : count)
      if (k == 1 && std::isalpha(static_cast<unsigned char>(ch))) e.result += ch;
  }
  for (char ch : e.result)
    if (!count.contains(ch)) bad(fmt::format("equation '{}': '{}' is in the result only", text, ch));
  return e;
}

void infer_einsum(InferContext& c) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.args.size(); i++) ranks.push_back(c.arg(i).dims.size());
  const Equation e = equation_of(c.node, ranks);
  std::map<char, Dim> dims;
  for (size_t i = 0; i < e.operands.size(); i++)
    for (size_t k = 0; k < e.operands[i].size(); k++) {
      const Dim& d = c.arg(i).dims[k];
      auto [it, fresh] = dims.emplace(e.operands[i][k], d);
      if (fresh) continue;
      const auto both = broadcast_dim(it->second, d);
      if (!both)
        c.fail("GAF3101",
               fmt::format("'{}' stands for dimensions {} and {}", e.operands[i][k], it->second.num(), d.num()));
      it->second = *both;
    }
  Type out{c.arg(0).dtype, {}};
  for (char ch : e.result) out.dims.push_back(dims.at(ch));
  c.types = {out};
}

void eval_einsum(EvalContext& c) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.args.size(); i++) ranks.push_back(arg(c, i).dims.size());
  const Equation e = equation_of(c.node, ranks);
  std::string letters = e.result;
  std::map<char, int64_t> size;
  for (size_t i = 0; i < e.operands.size(); i++)
    for (size_t k = 0; k < e.operands[i].size(); k++) {
      const char ch = e.operands[i][k];
      if (letters.find(ch) == std::string::npos) letters += ch;
      int64_t& n = size.emplace(ch, 1).first->second;
      const int64_t d = arg(c, i).dims[k];
      if (n != 1 && d != 1 && n != d) fail(c, "GAF3101", fmt::format("'{}' stands for dimensions {} and {}", ch, n, d));
      n = std::max(n, d);
    }
  Ints dims, out_dims;
  for (char ch : letters) dims.push_back(size.at(ch));
  for (char ch : e.result) out_dims.push_back(size.at(ch));
  // strides of each operand over all letters
  std::vector<Ints> strides;
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < e.operands.size(); i++) {
    const Ints own = strides_of(arg(c, i).dims);
    Ints s(letters.size(), 0);
    for (size_t k = 0; k < e.operands[i].size(); k++)
      if (arg(c, i).dims[k] != 1) s[letters.find(e.operands[i][k])] += own[k];
    strides.push_back(s);
    values.push_back(elements<double>(arg(c, i)));
  }
  const Ints out_own = strides_of(out_dims);
  Ints out_strides(letters.size(), 0);
  std::copy(out_own.begin(), out_own.end(), out_strides.begin());
  std::vector<double> out(static_cast<size_t>(numel(out_dims)), 0.0);
  if (e.operands.size() == 2) {
    walk<3>(dims, {out_strides, strides[0], strides[1]}, [&](auto& at) {
      out[static_cast<size_t>(at[0])] += values[0][static_cast<size_t>(at[1])] * values[1][static_cast<size_t>(at[2])];
    });
  } else {
    const Ints all = strides_of(dims);
    for (int64_t i = 0; i < numel(dims); i++) {
      double p = 1;
      int64_t to = 0;
      for (size_t d = 0; d < dims.size(); d++) to += i / all[d] % dims[d] * out_strides[d];
      for (size_t k = 0; k < values.size(); k++) {
        int64_t from = 0;
        for (size_t d = 0; d < dims.size(); d++) from += i / all[d] % dims[d] * strides[k][d];
        p *= values[k][static_cast<size_t>(from)];
      }
      out[static_cast<size_t>(to)] += p;
    }
  }
  c.results = {tensor_of(c.types[0].dtype, out_dims, out)};
}

const OpRow kRows[] = {
    {.name = "Einsum",
     .friendly = "Einsum",
     .kind = OpKind::other,
     .min_args = 1,
     .max_args = -1,
     .infer = infer_einsum,
     .eval = eval_einsum,
     .ulp = 32,
     .cheap = false},
};

}  // namespace

std::span<const OpRow> einsum_rows() { return kRows; }

}  // namespace gaf
