#pragma once
// The masked objective of BERT (arXiv:1810.04805, section 3.1): chance chooses some tokens of each
// window, and the model answers those. 80 % of the chosen ones read as the mask, 10 % as a token by
// chance, and 10 % as they are.
//
// Chance is a function of a stream and a column, so that a window is hidden in the same way
// wherever, and however often, it is made.
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::data {

struct HiddenTokens {
  std::int32_t mask = 0;        // the token that stands in the place of a hidden one
  std::int64_t vocabulary = 0;  // tokens by chance are below it
  double share = 0.15;          // of all tokens, that are chosen

  bool chooses(std::uint64_t stream, std::int64_t column) const;
  // What the model reads in the place of the chosen `token`.
  std::int32_t shown(std::uint64_t stream, std::int64_t column, std::int32_t token) const;
};

}  // namespace sluice::data
