#include "core/data/token_marks.h"

#include <bit>

namespace sluice::data {
namespace {

constexpr unsigned kMarkBits = 8 / kMarksPerByte;
constexpr unsigned kMarkMask = kLearnt | kDocumentBegins;
constexpr unsigned kAllLearnt = 0b01010101;

}  // namespace

void unpack_marks(std::span<const std::byte> packed, std::int64_t first,
                  std::span<std::uint8_t> marks) {
  std::int64_t number = first;
  for (std::uint8_t& mark : marks) {
    const auto byte =
        std::to_integer<unsigned>(packed[static_cast<std::size_t>(number / kMarksPerByte)]);
    const auto place = static_cast<unsigned>(number % kMarksPerByte);
    mark = static_cast<std::uint8_t>(byte >> (kMarkBits * place) & kMarkMask);
    ++number;
  }
}

std::int64_t learnt_count(std::span<const std::byte> packed) {
  std::int64_t count = 0;
  for (const std::byte byte : packed) {
    count += std::popcount(std::to_integer<unsigned>(byte) & kAllLearnt);
  }
  return count;
}

bool is_rest_clear(std::byte last, std::int64_t token_count) {
  const auto used = static_cast<unsigned>(token_count % kMarksPerByte);
  return used == 0 || std::to_integer<unsigned>(last) >> (kMarkBits * used) == 0;
}

}  // namespace sluice::data
