#pragma once
// The report of an emulated clock (clocks.h).
//
// Thread contract: plain data.

#include <array>
#include <cstdint>

#include "base/units.h"
#include "core/stages/stage.h"

namespace sluice::runtime {

// How well the emulated clock kept to the model, in one stage or in all.
struct EmulationReport {
  std::int64_t operation_count = 0;
  // Ended later than modelled by > 1 % of their time and > 50 us, or when the model's time was
  // beyond what 64 bits count.
  std::int64_t late_count = 0;
  TimeNs worst_late_ns = 0;
  TimeNs modelled_ns = 0;  // the time that the model gives them, summed
  // By how much longer the late ones took, summed. A kernel that is late since the one before it on
  // its compute unit was is not counted for that, so a queue's sum is what its last one is late.
  TimeNs late_ns = 0;
};

using EmulationReports = std::array<EmulationReport, stages::kStageCount>;

}  // namespace sluice::runtime
