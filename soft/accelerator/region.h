#pragma once
// The memory of one device: one file in memory, mapped twice. What tensors show cannot be touched;
// what kernels use can. Freed bytes are 0xFF, which is NaN in each floating point format, and so
// are those that were never used.
//
// Thread contract: accelerator.h's lock guards take() and give(); addresses are fixed for good.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace sluice::soft_accelerator {

class Region {
 public:
  // Throws c10::Error where the system has no address room left.
  explicit Region(std::int64_t cap_bytes);
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // First fit, so that little of the file is ever there; nothing where no gap is large enough.
  std::optional<std::int64_t> take(std::int64_t bytes);
  void give(std::int64_t offset, std::int64_t bytes);

  char* shown(std::int64_t offset) const { return shown_ + offset; }
  bool has(const void* address) const {
    const auto* const byte = static_cast<const char*>(address);
    return byte >= shown_ && byte < shown_ + size_;
  }
  // Where a kernel finds what a tensor shows.
  char* usable(const void* shown) const {
    return usable_ + (static_cast<const char*>(shown) - shown_);
  }
  std::int64_t offset_of(const void* shown) const {
    return static_cast<const char*>(shown) - shown_;
  }
  bool has_usable(const void* address) const {
    const auto* const byte = static_cast<const char*>(address);
    return byte >= usable_ && byte < usable_ + size_;
  }

 private:
  std::int64_t size_;
  char* shown_;
  char* usable_;
  std::map<std::int64_t, std::int64_t> gaps_;  // bytes by offset
  std::int64_t first_fresh_ = 0;               // from here on, nothing was used yet
};

}  // namespace sluice::soft_accelerator
