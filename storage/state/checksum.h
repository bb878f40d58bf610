#pragma once
// XXH3-64, the checksum of state extents and gradients. Checksummer gives, over any division of the
// bytes, what checksum() gives of the whole.
//
// Thread contract: one thread an object.

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::state {

std::uint64_t checksum(std::span<const std::byte> bytes);

class Checksummer {
 public:
  Checksummer();
  void add(std::span<const std::byte> bytes);
  std::uint64_t digest() const;

 private:
  // Holds the library's state in place, so that checksumming takes no memory.
  alignas(64) std::byte state_[576];
};

}  // namespace sluice::state
