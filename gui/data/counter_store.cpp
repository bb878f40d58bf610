#include "gui/data/counter_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gui/data/cells.h"

namespace sluice::gui {

double CounterSamples::mean() const {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Result<bool> CounterStore::update(rundb::Reader& reader) {
  const std::int64_t room = kCounterSamplesMax - count_;
  if (room <= 0) {
    is_cut_ = true;
    return false;
  }
  const std::int64_t before = count_;
  RETURN_IF_ERROR(reader.each_row(
      fmt::format("SELECT rowid, track_id, ts, value FROM counter WHERE rowid > {} ORDER BY rowid "
                  "LIMIT {}",
                  last_row_, room),
      [this](std::span<const rundb::Cell> row) {
        last_row_ = integer_of(row[0]);
        count_ += 1;
        const double value = number_of(row[3]);
        CounterSamples& samples = by_track_[integer_of(row[1])];
        const TimeNs ts = integer_of(row[2]);
        // What is no number is a gap, and so is what went back in time after a resume.
        if (!std::isfinite(value) || (!samples.ts.empty() && ts < samples.ts.back()))
          return ok_status();
        samples.low = samples.ts.empty() ? value : std::min(samples.low, value);
        samples.high = samples.ts.empty() ? value : std::max(samples.high, value);
        samples.ts.push_back(ts);
        samples.values.push_back(value);
        return ok_status();
      }));
  return count_ > before;
}

std::shared_ptr<const Counters> CounterStore::counters() const {
  auto made = std::make_shared<Counters>();
  made->is_cut = is_cut_;
  for (const auto& [track, samples] : by_track_)
    made->by_track[track] = std::make_shared<const CounterSamples>(samples);
  return made;
}

}  // namespace sluice::gui
