#include "gui/views/group_summary.h"

#include <algorithm>

namespace sluice::gui {
namespace {

// Adds up one track, whose columns are full at 1, and then goes to the next.
class ColumnSums {
 public:
  ColumnSums(TimeNs begin, TimeNs end, std::size_t count)
      : begin_(static_cast<double>(begin)),
        columns_a_ns_(static_cast<double>(count) / static_cast<double>(end - begin)),
        columns_(count),
        of_track_(count, 0),
        most_(count, 0) {}

  void add(const Box& box) {
    const auto last = static_cast<double>(columns_.size());
    const double from = std::clamp(column_of(box.ts), 0.0, last);
    const double to = std::clamp(column_of(box.end_ts), 0.0, last);
    const auto length = static_cast<double>(std::max<TimeNs>(1, box.end_ts - box.ts));
    const double full = std::min(1.0, static_cast<double>(box.busy_ns) / length);
    for (auto c = static_cast<std::size_t>(from); c < columns_.size(); ++c) {
      const auto left = static_cast<double>(c);
      if (left >= to) break;
      const double part = full * (std::min(to, left + 1) - std::max(from, left));
      of_track_[c] += static_cast<float>(part);
      if (static_cast<float>(part) <= most_[c]) continue;
      most_[c] = static_cast<float>(part);
      columns_[c].name_id = box.name_id;
    }
  }

  void end_track() {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      columns_[c].busy_tracks += std::min(1.0F, of_track_[c]);
      of_track_[c] = 0;
    }
  }

  std::vector<BusyColumn> take() { return std::move(columns_); }

 private:
  double column_of(TimeNs ts) const { return (static_cast<double>(ts) - begin_) * columns_a_ns_; }

  double begin_;
  double columns_a_ns_;
  std::vector<BusyColumn> columns_;
  std::vector<float> of_track_;
  std::vector<float> most_;  // of one box
};

}  // namespace

std::vector<BusyColumn> busy_columns(const TimelineWindow& window,
                                     std::span<const std::int64_t> track_ids, TimeNs begin,
                                     TimeNs end, std::size_t count) {
  if (count == 0 || end <= begin) return {};
  ColumnSums sums(begin, end, count);
  for (const std::int64_t id : track_ids) {
    const TrackBoxes* track = window.of_track(id);
    if (track == nullptr) continue;
    for (const Box& box : track->near(begin, end)) sums.add(box);
    sums.end_track();
  }
  return sums.take();
}

}  // namespace sluice::gui
