#pragma once
// The settings that make a step shortest: the answer, for whoever prints it.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/answers/json.h"

namespace sluice::tune {
class MachineTuning;
struct TunedMachine;
}  // namespace sluice::tune

namespace sluice::answers {

// A search, and what became of its result.
struct TuningAnswer {
  const tune::MachineTuning& tuning;
  std::string written_platform = {};                    // the file it went to; empty: none
  bool applies = false;                                 // the proposal goes to a live run
  std::optional<std::int64_t> applied_after_step = {};  // none: nothing was to be changed
};

// {fit (of a recorded run), simulated, model, platform, seconds, changes, evaluations,
// combinations, applied_after_step (where it applies)}
Json tuning_json(const TuningAnswer& answer, const tune::TunedMachine& tuned);

// {fit, simulated, model, platform, rows}: a row for each number of devices.
Json devices_json(const TuningAnswer& answer, std::span<const tune::TunedMachine> machines);

}  // namespace sluice::answers
