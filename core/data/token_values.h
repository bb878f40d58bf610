#pragma once
// Tokens as they lie in a file (1, 2 or 4 bytes each, unsigned, little-endian) and as numbers.
//
// Thread contract: free functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice::data {

struct OutsideToken {
  std::size_t index = 0;  // in the bytes that were looked at
  std::uint32_t value = 0;
};

// The first token that is not below `vocabulary`. `bytes` holds whole tokens.
std::optional<OutsideToken> first_outside(std::span<const std::byte> bytes,
                                          std::int64_t bytes_per_token, std::int64_t vocabulary);

// `tokens` has as many as `bytes`, each below 2^31.
void widen_tokens(std::span<const std::byte> bytes, std::int64_t bytes_per_token,
                  std::span<std::int32_t> tokens);

}  // namespace sluice::data
