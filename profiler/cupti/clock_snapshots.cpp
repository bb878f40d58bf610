#include "profiler/cupti/clock_snapshots.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "base/clock.h"

namespace sluice::cupti {
namespace {

constexpr int kReadingCount = 5;
// NTP slews a clock by at most 500 parts in a million; what moves further was set. A millisecond
// besides, for a reading that was interrupted.
constexpr double kSlewMax = 500e-6;
constexpr TimeNs kReadingErrorNs = 1'000'000;
constexpr TimeNs kNearNs = TimeNs{3600} * 1'000'000'000;

bool is_set_between(const ClockSnapshot& a, const ClockSnapshot& b) {
  const TimeNs passed = b.monotonic_ts - a.monotonic_ts;
  const TimeNs moved = (b.realtime_ts - a.realtime_ts) - passed;
  const auto slewed_max = static_cast<TimeNs>(kSlewMax * static_cast<double>(passed));
  return std::abs(moved) > slewed_max + kReadingErrorNs;
}

TimeNs from_one(const ClockSnapshot& snapshot, TimeNs realtime_ts) {
  return snapshot.monotonic_ts + (realtime_ts - snapshot.realtime_ts);
}

TimeNs on_the_line(const ClockSnapshot& a, const ClockSnapshot& b, TimeNs realtime_ts) {
  const TimeNs into = realtime_ts - a.realtime_ts;
  // The drift and not the time is scaled, so that doubles lose nothing.
  const double drift =
      static_cast<double>((b.monotonic_ts - a.monotonic_ts) - (b.realtime_ts - a.realtime_ts));
  const double share =
      static_cast<double>(into) / static_cast<double>(b.realtime_ts - a.realtime_ts);
  return a.monotonic_ts + into + static_cast<TimeNs>(drift * share);
}

}  // namespace

TimeNs realtime_now_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return TimeNs{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

ClockSnapshot take_clock_snapshot() {
  ClockSnapshot best;
  for (int i = 0; i < kReadingCount; ++i) {
    const TimeNs before = monotonic_now_ns();
    const TimeNs realtime = realtime_now_ns();
    const TimeNs after = monotonic_now_ns();
    if (i > 0 && after - before >= best.uncertainty_ns) continue;
    best = {.monotonic_ts = before + (after - before) / 2,
            .realtime_ts = realtime,
            .uncertainty_ns = after - before};
  }
  return best;
}

void ClockSnapshots::add(const ClockSnapshot& snapshot) {
  if (!snapshots_.empty() && is_set_between(snapshots_.back(), snapshot)) clock_set_count_ += 1;
  snapshots_.push_back(snapshot);
  if (snapshots_.size() > count_max_) {
    snapshots_.pop_front();
    forgotten_count_ += 1;
  }
}

std::vector<ClockSnapshot> ClockSnapshots::since(std::size_t from) const {
  const std::size_t first = std::max(from, forgotten_count_) - forgotten_count_;
  if (first >= snapshots_.size()) return {};
  return {snapshots_.begin() + static_cast<std::ptrdiff_t>(first), snapshots_.end()};
}

TimeNs ClockSnapshots::monotonic_from(TimeNs realtime_ts) const {
  CHECK(!snapshots_.empty());
  if (realtime_ts >= snapshots_.back().realtime_ts) {
    return from_one(snapshots_.back(), realtime_ts);
  }
  // From the newest, where records are. Where the clock was set back, the newest that fits.
  for (std::size_t i = snapshots_.size() - 1; i > 0; --i) {
    const ClockSnapshot& a = snapshots_[i - 1];
    const ClockSnapshot& b = snapshots_[i];
    if (realtime_ts < a.realtime_ts || realtime_ts >= b.realtime_ts) continue;
    if (!is_set_between(a, b)) return on_the_line(a, b, realtime_ts);
    const bool first_is_nearer = realtime_ts - a.realtime_ts < b.realtime_ts - realtime_ts;
    return from_one(first_is_nearer ? a : b, realtime_ts);
  }
  return from_one(snapshots_.front(), realtime_ts);
}

bool ClockSnapshots::is_near(TimeNs realtime_ts) const {
  if (snapshots_.empty()) return false;
  const auto [first, last] =
      std::minmax(snapshots_.front().realtime_ts, snapshots_.back().realtime_ts);
  return realtime_ts > first - kNearNs && realtime_ts < last + kNearNs;
}

}  // namespace sluice::cupti
