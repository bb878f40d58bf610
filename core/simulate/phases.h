#pragma once
// How a step divides into phases. train::StepOutcome has the instants; everybody who adds up by
// phase, while a step is simulated or from recorded operations, divides it here. (The view
// step_phase of the run database does the same in SQL.)
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace sluice::train {
struct StepOutcome;
}

namespace sluice::simulate {

enum class Phase : std::uint8_t { forward, backward, update };
inline constexpr std::size_t kPhaseCount = 3;
const char* phase_name(Phase phase);

using ByPhase = std::array<double, kPhaseCount>;

// The phases of a step that is over.
ByPhase phase_seconds(const train::StepOutcome& outcome);

// A step in stretches of time, as far as it has come: the update of the step before, where that is
// still running (nbuffer); forward; backward; the step's own update.
class Stretches {
 public:
  // `outcome` is filled in as the step goes; its parameters_up_ns is not asked.
  // `parameters_up_ns`: since when all parameters are up, if they are.
  Stretches(const train::StepOutcome& outcome, bool parameters_are_up, TimeNs parameters_up_ns);

  // The one that has begun last.
  Phase now() const { return kPhases[current_]; }
  // How much of an interval that ends now lies in each phase: shares of 1. What lies before the
  // step is in none; an interval without length is in the phase of now().
  ByPhase parts(TimeNs from, TimeNs to) const;

 private:
  static constexpr std::size_t kCount = 4;
  static constexpr std::array<Phase, kCount> kPhases = {Phase::update, Phase::forward,
                                                        Phase::backward, Phase::update};
  std::array<TimeNs, kCount> begins_ns_;  // up to current_
  std::size_t current_;
};

}  // namespace sluice::simulate
