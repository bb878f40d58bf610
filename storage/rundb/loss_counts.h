#pragma once
// Counts in table `stat` that each recording has from its first batch on, zeros too: where one has
// no row, nobody knows whether something was lost.
//
// Thread contract: constants.

#include <array>
#include <string_view>

namespace sluice::rundb {

inline constexpr std::string_view kRecordsDropped = "records_dropped_ring_full";
inline constexpr std::string_view kLevelLowered = "recording_level_lowered";
inline constexpr std::string_view kRecordsUnwritten = "records_lost_write_failed";
inline constexpr std::array kLossCounts = {kRecordsDropped, kLevelLowered, kRecordsUnwritten};

}  // namespace sluice::rundb
