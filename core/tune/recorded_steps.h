#pragma once
// Steps as they were recorded, or simulated: when each operation ran. What can be read off such
// times in the same way for both, so that the two can be compared.
//
// An operation belongs to the step in which it ends: with pipeline=nbuffer the last writes of a
// step end in the next.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "core/platform/platform.h"
#include "core/simulate/simulated_step.h"
#include "core/stages/stage.h"

namespace sluice::tune {

// How kernels of one processor shared it.
enum class KernelOrder : std::uint8_t {
  in_turn,  // one at a time, as an engine runs them by the simulated and the emulated clock
  at_once,  // side by side: by the real clock, and by any where engines share one processor
};

struct OperationTimes {
  stages::Stage stage = stages::Stage::update;
  DeviceId device = kNoDevice;
  LayerId layer = kNoLayer;
  SubgroupId subgroup = kNoSubgroup;
  // A kernel in_turn starts when it is asked for, and then waits; one at_once when it ran.
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
  std::int64_t size_bytes = 0;                                // with padding; 0 for kernels
  platform::Direction direction = platform::Direction::read;  // of a transfer
};

// Steps in order of time, and the operations that end in them.
struct RecordedSteps {
  std::vector<simulate::StepTimes> steps;
  std::vector<OperationTimes> operations;
  KernelOrder kernel_order = KernelOrder::in_turn;
};

// Drops the operations that end outside of all steps.
void keep_those_of_steps(RecordedSteps& recorded);

// The half of the steps, and at least two, whose lengths are nearest the median: what a step takes
// when nothing else comes in its way. Their operations stay.
RecordedSteps middle_half(const RecordedSteps& recorded);

// The phases of each step, as StepOutcome divides it: forward ends with its last layer and begins
// when the last parameters have come in it, backward ends when the last gradient is where it was
// sent; the rest of the step is the update.
std::vector<simulate::ByPhase> phase_seconds(const RecordedSteps& recorded);

// Whether a device meanwhile moved bytes the other way, too.
enum class Traffic : std::uint8_t { one_way, both_ways };

// The time of a device's transfers of one stage: that in which at least one was under way, which
// is the time in which the links had something to do. Time with traffic both ways is kept apart,
// since only the other tells what a drive that does one thing at a time gives in one direction. A
// transfer's bytes are spread evenly over its time. What an update reads, state or gradient, takes
// the same way, in an order that says nothing of the links: both count as state_read.
//
// Transfers that cross shared links only (parameters_up) count for all devices together, as
// kNoDevice: each alone is fast or slow as the others happen to send at the same time or not.
struct TransferUse {
  double busy_seconds = 0;
  double size_bytes = 0;

  double seconds_per_byte() const { return busy_seconds / size_bytes; }
};
using TransferKey = std::tuple<DeviceId, stages::Stage, Traffic>;
std::map<TransferKey, TransferUse> transfer_uses(const RecordedSteps& recorded);

// For kernels that share a processor: the part of its time that each took; together they take the
// time in which any ran. in_turn: from the end of the one before it on its compute unit, of which
// the processor has `units`. at_once: an equal share of each moment with those that ran in it.
std::vector<double> own_seconds(std::span<const OperationTimes> kernels, KernelOrder order,
                                std::int32_t units = 1);

}  // namespace sluice::tune
