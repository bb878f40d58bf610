#include "core/data/token_values.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace sluice::data {
namespace {

// Words of a block, on the stack; enough for vector instructions.
constexpr std::size_t kBlockWords = 1024;

// Block by block: the largest word of a block says whether one of it has to be looked for.
template <typename Word>
std::optional<OutsideToken> first_outside_of(std::span<const std::byte> bytes,
                                             std::uint64_t vocabulary) {
  std::array<Word, kBlockWords> block;
  const std::size_t count = bytes.size() / sizeof(Word);
  for (std::size_t first = 0; first < count; first += kBlockWords) {
    const auto words = std::span(block).first(std::min(kBlockWords, count - first));
    std::memcpy(words.data(), &bytes[first * sizeof(Word)], words.size_bytes());
    Word largest = 0;
    for (const Word word : words) largest = std::max(largest, word);
    if (largest < vocabulary) continue;
    const auto at = std::ranges::find_if(words, [&](Word word) { return word >= vocabulary; });
    return OutsideToken{first + static_cast<std::size_t>(at - words.begin()), *at};
  }
  return std::nullopt;
}

template <typename Word>
void widen(std::span<const std::byte> bytes, std::span<std::int32_t> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Word word;
    std::memcpy(&word, &bytes[i * sizeof word], sizeof word);
    tokens[i] = static_cast<std::int32_t>(word);
  }
}

}  // namespace

std::optional<OutsideToken> first_outside(std::span<const std::byte> bytes,
                                          std::int64_t bytes_per_token, std::int64_t vocabulary) {
  const auto limit = static_cast<std::uint64_t>(vocabulary);
  if (bytes_per_token == 1) return first_outside_of<std::uint8_t>(bytes, limit);
  if (bytes_per_token == 2) return first_outside_of<std::uint16_t>(bytes, limit);
  return first_outside_of<std::uint32_t>(bytes, limit);
}

void widen_tokens(std::span<const std::byte> bytes, std::int64_t bytes_per_token,
                  std::span<std::int32_t> tokens) {
  CHECK_EQ(std::ssize(bytes), std::ssize(tokens) * bytes_per_token);
  if (bytes_per_token == 1) return widen<std::uint8_t>(bytes, tokens);
  if (bytes_per_token == 2) return widen<std::uint16_t>(bytes, tokens);
  widen<std::uint32_t>(bytes, tokens);
}

}  // namespace sluice::data
