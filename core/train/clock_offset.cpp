#include "core/train/clock_offset.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/train/ranks.h"

namespace sluice::train {
namespace {

// The times that each rank tells: when it began this round, and when it had ended the one before.
enum Told : std::size_t { began, had_ended, told_count };

}  // namespace

Result<ClockOffset> measure_clock_offset(Ranks& ranks, const std::function<TimeNs()>& now_ns) {
  const auto own = told_count * static_cast<std::size_t>(ranks.rank());
  TimeNs least = std::numeric_limits<TimeNs>::min();
  TimeNs most = std::numeric_limits<TimeNs>::max();
  std::array<TimeNs, told_count> mine{};
  TimeNs began_before = 0;
  for (int round = 0; round <= kClockRounds; ++round) {
    mine[began] = now_ns();
    ASSIGN_OR_RETURN(const std::vector<TimeNs> all, ranks.gather_times(mine, "clocks"));
    // The first round has none before it to hear of, and the last is there to be heard of.
    if (round > 0) most = std::min(most, all[had_ended] - began_before);
    began_before = all[own + began];
    mine[had_ended] = now_ns();
    if (round < kClockRounds) least = std::max(least, all[began] - mine[had_ended]);
  }
  if (ranks.is_first()) return ClockOffset{.ts = mine[had_ended]};
  const TimeNs bound_ns = (most - least + 1) / 2;
  return ClockOffset{.ts = mine[had_ended], .offset_ns = least + bound_ns, .bound_ns = bound_ns};
}

}  // namespace sluice::train
