#include "core/offload/split_pieces.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace sluice::offload {

SplitPieces::SplitPieces(const state::Geometry& geometry, std::span<std::byte> bounce,
                         std::int64_t bounce_bytes)
    : geometry_(geometry), bounce_(bounce) {
  const StoredArrays stored = geometry.stored();
  // A page gathers in front of what is encoded, and another is begun behind it.
  const std::int64_t room_bytes = bounce_bytes - 2 * kPageBytes * stored.count;
  const auto width = static_cast<std::int64_t>(
      std::ceil(stored.bytes_per_element() + 4.0 * stored.decoded_count()));
  element_count_ = round_down(room_bytes / width, kBlockElements);
  CHECK_GT(element_count_, 0);
  std::int64_t begin_bytes = element_count_ * 4 * stored.decoded_count();
  for (std::int32_t v = 0; v < stored.count; ++v) {
    parts_[static_cast<std::size_t>(v)].begin_bytes = begin_bytes;
    begin_bytes += round_up(geometry.array_bytes(v, element_count_), kPageBytes) + kPageBytes;
  }
  CHECK_LE(begin_bytes, bounce_bytes);
}

std::span<std::byte> SplitPieces::bytes_of(const Part& part) const {
  if (bounce_.empty()) return {};
  return bounce_.subspan(static_cast<std::size_t>(part.begin_bytes));
}

// Behind what has gathered.
StoredSpan SplitPieces::stored(std::int64_t count) {
  StoredSpan stored{geometry_.stored(), {}, count};
  for (std::int32_t v = 0; v < stored.arrays.count; ++v) {
    const auto at = static_cast<std::size_t>(v);
    stored.data[at] = bytes_of(parts_[at]).data() + parts_[at].filled_bytes;
  }
  return stored;
}

Result<std::span<const std::byte>> SplitPieces::make(const FillInitial& fill,
                                                     std::int64_t flat_first, std::int64_t count) {
  std::array<std::span<const float>, kMaxStoredArrays> values;
  const std::int32_t value_count = geometry_.stored().decoded_count();
  for (std::int32_t v = 0; v < value_count; ++v) {
    const std::span<float> of_variable(
        reinterpret_cast<float*>(bounce_.data()) + v * element_count_,
        static_cast<std::size_t>(count));
    std::ranges::fill(of_variable, 0.0F);
    RETURN_IF_ERROR(fill(v, flat_first, of_variable));
    values[static_cast<std::size_t>(v)] = of_variable;
  }
  const StoredSpan made = stored(count);
  encode(std::span(values).first(static_cast<std::size_t>(value_count)), CodeRounding::nearest(),
         flat_first, made);
  std::array<std::span<const std::byte>, kMaxStoredArrays> bytes;
  for (std::int32_t v = 0; v < made.arrays.count; ++v) {
    const auto at = static_cast<std::size_t>(v);
    bytes[at] = {made.data[at], static_cast<std::size_t>(geometry_.array_bytes(v, count))};
    parts_[at].checksummer.add(bytes[at]);
  }
  return bytes[0];
}

void SplitPieces::on_made(std::int64_t count) {
  for (std::int32_t v = 0; v < geometry_.variable_count; ++v) {
    parts_[static_cast<std::size_t>(v)].filled_bytes += geometry_.array_bytes(v, count);
  }
}

csd::HostTransfer SplitPieces::pages(std::int32_t variable, bool is_last) {
  const Part& part = parts_[static_cast<std::size_t>(variable)];
  const std::span<std::byte> bytes = bytes_of(part);
  const std::int64_t size_bytes =
      is_last ? part.filled_bytes : round_down(part.filled_bytes, kPageBytes);
  if (!bytes.empty()) {
    std::memset(
        bytes.data() + size_bytes, 0,
        static_cast<std::size_t>(is_last ? round_up(size_bytes, kPageBytes) - size_bytes : 0));
  }
  return {part.written_bytes, bytes, size_bytes};
}

void SplitPieces::on_written(std::int32_t variable, const csd::HostTransfer& transfer) {
  Part& part = parts_[static_cast<std::size_t>(variable)];
  part.written_bytes += transfer.size_bytes;
  part.filled_bytes -= transfer.size_bytes;
  const std::span<std::byte> bytes = bytes_of(part);
  if (bytes.empty()) return;
  std::memmove(bytes.data(), bytes.data() + transfer.size_bytes,
               static_cast<std::size_t>(part.filled_bytes));
}

csd::UpdatedChecksums SplitPieces::checksums() const {
  csd::UpdatedChecksums sums{};
  for (std::int32_t v = 0; v < geometry_.variable_count; ++v) {
    const auto at = static_cast<std::size_t>(v);
    sums[at] = parts_[at].checksummer.digest();
  }
  return sums;
}

}  // namespace sluice::offload
