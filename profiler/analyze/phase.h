#pragma once
// The parts that a step's time divides into, in their order: view step_phase of a run database
// (docs/rundb_schema.md).
//
// Thread contract: constants.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/colour.h"

namespace sluice::analyze {

enum class Phase : std::uint8_t { forward, backward, update, count_ };
inline constexpr std::size_t kPhaseCount = static_cast<std::size_t>(Phase::count_);
constexpr std::size_t index_of(Phase phase) { return static_cast<std::size_t>(phase); }

struct PhaseInfo {
  std::string_view name;  // of its column in step_phase, without "_dur"
  ThemedColour colour;
};
inline constexpr std::array<PhaseInfo, kPhaseCount> kPhases = {{
    {"forward", in_both_themes(palette::kForward)},
    {"backward", in_both_themes(palette::kBackward)},
    {"update", in_both_themes(palette::kUpdate)},
}};
constexpr const PhaseInfo& phase_info(Phase phase) { return kPhases[index_of(phase)]; }

}  // namespace sluice::analyze
