#pragma once
// How a communicator works; the same on all ranks.
//
// Thread contract: plain data.

#include <cstdint>

#include "base/units.h"

namespace sluice::collective {

// Whether ranks compare what they ask for before its bytes move: a small exchange a call.
enum class CallChecks : std::uint8_t { off, on };

struct CommunicatorOptions {
  // A message (not a call) that has not ended for so long fails, and names who did not join.
  TimeNs patience_ns = 60'000'000'000;
  // Received at once; the room of a group for what is to be summed. Measured: bench/collective.
  std::int64_t message_bytes = std::int64_t{4} << 20;
  CallChecks checks = CallChecks::off;
};

}  // namespace sluice::collective
