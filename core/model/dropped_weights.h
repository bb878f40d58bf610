#pragma once
// How many weights of an attention that drops some of them are there at once
// (core/model/torch/dropped_attention.cpp): plans know it without libtorch.
//
// Thread contract: free functions, any thread.

#include <algorithm>
#include <cstdint>

namespace sluice::model {

// Heads of a window whose weights are there together: as many as 16 MiB in fp32 have room for, at
// least one.
inline constexpr std::int64_t dropped_heads(std::int64_t sequence, std::int64_t heads) {
  constexpr std::int64_t kWeights = std::int64_t{4} << 20;
  return std::clamp<std::int64_t>(kWeights / (sequence * sequence), 1, heads);
}

// Backward has the weights, their factors, the two's product and the gradient, in fp32, and what
// stays as bools; forward has fewer.
inline constexpr std::int64_t dropped_attention_bytes(std::int64_t sequence, std::int64_t heads) {
  return dropped_heads(sequence, heads) * sequence * sequence * (4 * 4 + 1);
}

}  // namespace sluice::model
