#include "gui/data/counter_store.h"

#include <algorithm>
#include <cmath>

#include "gui/data/cells.h"
#include "storage/rundb/query.h"

namespace sluice::gui {

void CounterChunk::add(TimeNs sample_ts, double value) {
  low = ts.empty() ? value : std::min(low, value);
  high = ts.empty() ? value : std::max(high, value);
  ts.push_back(sample_ts);
  values.push_back(value);
}

void CounterSamples::add(TimeNs ts, double value) {
  if (chunks_.empty() || chunks_.back()->ts.size() == kChunkSamples)
    chunks_.push_back(std::make_shared<CounterChunk>());
  chunks_.back()->add(ts, value);
  low_ = count_ == 0 ? value : std::min(low_, value);
  high_ = count_ == 0 ? value : std::max(high_, value);
  sum_ += value;
  count_ += 1;
}

std::shared_ptr<const CounterSamples> CounterSamples::snapshot() const {
  auto copy = std::make_shared<CounterSamples>(*this);
  if (!is_empty()) copy->chunks_.back() = std::make_shared<CounterChunk>(*chunks_.back());
  return copy;
}

std::vector<CounterColumn> CounterSamples::columns(TimeNs begin, TimeNs end,
                                                   TimeNs width_ns) const {
  std::vector<CounterColumn> columns;
  TimeNs until = begin;  // of the column that is being filled
  const auto put = [&](TimeNs ts, double low, double high, double last) {
    if (columns.empty() || ts >= until) {
      columns.push_back({ts, low, high, last});
      until = std::max(ts, begin) + width_ns;
      return;
    }
    CounterColumn& column = columns.back();
    column = {column.ts, std::min(column.low, low), std::max(column.high, high), last};
  };
  const auto first_ts = [](const std::shared_ptr<CounterChunk>& chunk) {
    return chunk->ts.front();
  };
  auto at = std::ranges::upper_bound(chunks_, begin, {}, first_ts);
  if (at != chunks_.begin()) --at;
  for (bool is_first = true; at != chunks_.end(); ++at, is_first = false) {
    const CounterChunk& chunk = **at;
    if (chunk.ts.front() > end) break;
    if (!is_first && chunk.ts.back() < until && chunk.ts.back() <= end) {
      put(chunk.ts.front(), chunk.low, chunk.high, chunk.values.back());
      continue;
    }
    std::size_t i = 0;
    if (is_first) {
      const auto after = std::ranges::upper_bound(chunk.ts, begin) - chunk.ts.begin();
      i = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, after - 1));
    }
    for (; i < chunk.ts.size() && chunk.ts[i] <= end; ++i)
      put(chunk.ts[i], chunk.values[i], chunk.values[i], chunk.values[i]);
  }
  return columns;
}

Result<bool> CounterStore::update(rundb::Reader& reader) {
  const std::int64_t room = kCounterSamplesMax - count_;
  if (room <= 0) {
    is_cut_ = true;
    return false;
  }
  const std::int64_t before = count_;
  RETURN_IF_ERROR(rundb::Query(reader).each_row_with(
      "SELECT rowid, track_id, ts, value FROM counter WHERE rowid > ?1 ORDER BY rowid LIMIT ?2",
      {last_row_, room}, [this](std::span<const rundb::Cell> row) {
        last_row_ = integer_of(row[0]);
        count_ += 1;
        const double value = number_of(row[3]);
        CounterSamples& samples = by_track_[integer_of(row[1])];
        const TimeNs ts = integer_of(row[2]);
        // A value that is no number is a gap, and so is one that went back in time after a resume.
        if (std::isfinite(value) && (samples.is_empty() || ts >= samples.last_ts()))
          samples.add(ts, value);
        return ok_status();
      }));
  return count_ > before;
}

std::shared_ptr<const Counters> CounterStore::counters() const {
  auto made = std::make_shared<Counters>();
  made->is_cut = is_cut_;
  for (const auto& [track, samples] : by_track_) made->by_track[track] = samples.snapshot();
  return made;
}

}  // namespace sluice::gui
