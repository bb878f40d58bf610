#pragma once
// The events of activations that the schedule tells its sinks, besides transfers: how long forward
// or backward waited for them, and how many bytes of them are alive where.
//
// Thread contract: plain data.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "base/units.h"

namespace sluice::stages {

// The awaited event: enough of what earlier layers keep is written, or a block is back.
enum class ActivationWait : std::uint8_t { room, block, count_ };
inline constexpr std::size_t kActivationWaitCount =
    static_cast<std::size_t>(ActivationWait::count_);
constexpr std::size_t index_of(ActivationWait why) { return static_cast<std::size_t>(why); }

// Where bytes of activations are.
enum class ActivationTier : std::uint8_t { accelerator, host, drives, count_ };
inline constexpr std::size_t kActivationTierCount =
    static_cast<std::size_t>(ActivationTier::count_);
constexpr std::size_t index_of(ActivationTier tier) { return static_cast<std::size_t>(tier); }

// Forward or backward of a layer could have begun at `from_ns` and could not go on before `to_ns`.
struct ActivationWaited {
  ActivationWait why = ActivationWait::room;
  LayerId layer = kNoLayer;
  std::int32_t step = -1;
  TimeNs from_ns = 0;
  TimeNs to_ns = 0;
};

}  // namespace sluice::stages
