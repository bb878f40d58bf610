#pragma once
// The parts of a sharded step that run beside computing.
//
// Thread contract: plain data.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::shard {

// Each alone changes no byte and no result.
enum class Overlap : std::uint8_t {
  gather_forward,   // the next layer's parameters, beside a layer's forward
  gather_backward,  // the same in backward, and gradients scattered beside it
  keep_gathered,    // backward keeps what its forward, computed anew, was gathered for
  reduce_backward,  // gradients of a layer or bucket, as soon as backward has them
  share_forward,    // updated parameters, beside the next step's forward
};
inline constexpr std::size_t kOverlapCount = 5;
inline constexpr std::array<std::string_view, kOverlapCount> kOverlapNames = {
    "gather_forward", "gather_backward", "keep_gathered", "reduce_backward", "share_forward"};

// None: no overlap has this name.
constexpr std::optional<Overlap> overlap_named(std::string_view name) {
  for (std::size_t i = 0; i < kOverlapCount; ++i) {
    if (kOverlapNames[i] == name) return static_cast<Overlap>(i);
  }
  return std::nullopt;
}

class Overlaps {
 public:
  static constexpr Overlaps all() { return Overlaps(~std::uint32_t{0}); }
  static constexpr Overlaps none() { return Overlaps(0); }
  constexpr bool has(Overlap overlap) const { return (bits_ & bit(overlap)) != 0; }
  constexpr Overlaps with(Overlap overlap) const { return Overlaps(bits_ | bit(overlap)); }
  constexpr Overlaps without(Overlap overlap) const { return Overlaps(bits_ & ~bit(overlap)); }

 private:
  constexpr explicit Overlaps(std::uint32_t bits) : bits_(bits) {}
  static constexpr std::uint32_t bit(Overlap overlap) {
    return std::uint32_t{1} << static_cast<unsigned>(overlap);
  }
  std::uint32_t bits_;
};

}  // namespace sluice::shard
