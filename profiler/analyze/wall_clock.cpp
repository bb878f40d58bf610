#include "profiler/analyze/wall_clock.h"

#include "storage/rundb/query.h"

namespace sluice::analyze {
namespace {

std::int64_t integer(const rundb::Cell& cell) {
  const auto* value = std::get_if<std::int64_t>(&cell);
  return value == nullptr ? 0 : *value;
}

}  // namespace

Result<WallClock> WallClock::of_run(rundb::Reader& reader) {
  std::vector<rundb::ClockRow> snapshots;
  RETURN_IF_ERROR(rundb::Query(reader).each_row(
      "SELECT ts, realtime_ts FROM clock_snapshot WHERE clock = 'monotonic' ORDER BY rowid",
      [&snapshots](std::span<const rundb::Cell> row) {
        snapshots.push_back({"monotonic", integer(row[0]), integer(row[1])});
        return ok_status();
      }));
  return WallClock(std::move(snapshots));
}

TimeNs WallClock::realtime_of(TimeNs ts) {
  if (snapshots_.empty()) return ts;
  const auto begin = [this](std::size_t stretch) { return snapshots_[stretch].ts; };
  // A clock that went back has begun anew. One that goes on is in the next stretch once it is past
  // that one's begin, unless that one begins a clock anew.
  if (ts < last_ts_ && ts < begin(stretch_) && stretch_ + 1 < snapshots_.size()) stretch_ += 1;
  while (stretch_ + 1 < snapshots_.size() && begin(stretch_ + 1) >= begin(stretch_) &&
         begin(stretch_ + 1) <= ts) {
    stretch_ += 1;
  }
  last_ts_ = ts;
  const rundb::ClockRow& snapshot = snapshots_[stretch_];
  return static_cast<TimeNs>(static_cast<std::uint64_t>(snapshot.realtime_ts) +
                             static_cast<std::uint64_t>(ts) -
                             static_cast<std::uint64_t>(snapshot.ts));
}

}  // namespace sluice::analyze
