#include "storage/io/detail/registered_buffers.h"

#include <algorithm>
#include <cstdint>

namespace sluice::io::detail {
namespace {

constexpr std::size_t kPieceBytesMax = std::size_t{1} << 30;

std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

RegisteredBuffers::RegisteredBuffers(std::span<const std::span<std::byte>> buffers) {
  for (std::span<std::byte> rest : buffers) {
    while (!rest.empty()) {
      const std::size_t piece_bytes = std::min(rest.size(), kPieceBytesMax);
      pieces_.push_back({.iov_base = rest.data(), .iov_len = piece_bytes});
      rest = rest.subspan(piece_bytes);
    }
  }
  std::sort(pieces_.begin(), pieces_.end(), [](const iovec& a, const iovec& b) {
    return address(a.iov_base) < address(b.iov_base);
  });
}

std::optional<int> RegisteredBuffers::find(const std::byte* data, std::size_t size_bytes) const {
  const auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), address(data),
      [](std::uintptr_t wanted, const iovec& piece) { return wanted < address(piece.iov_base); });
  if (after == pieces_.begin()) return std::nullopt;
  const iovec& piece = *(after - 1);
  if (address(data) + size_bytes > address(piece.iov_base) + piece.iov_len) return std::nullopt;
  return static_cast<int>(after - 1 - pieces_.begin());
}

}  // namespace sluice::io::detail
