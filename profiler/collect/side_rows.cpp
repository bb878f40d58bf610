#include "profiler/collect/side_rows.h"

namespace sluice::collect {
namespace {

bool is_news(const std::vector<record::SideCount>& written, std::size_t i,
             const record::SideCount& count) {
  return i >= written.size() || written[i].value != count.value ||
         written[i].is_loss != count.is_loss;
}

}  // namespace

void SideRows::attach(const record::SideRecorder& recorder) {
  MutexLock lock(mutex_);
  sides_.push_back({.recorder = &recorder});
}

bool SideRows::ask() {
  MutexLock lock(mutex_);
  bool has_news = false;
  for (Side& side : sides_) {
    side.counts = side.recorder->side_counts();
    for (std::size_t i = 0; i < side.counts.size(); ++i) {
      has_news = has_news || is_news(side.written, i, side.counts[i]);
    }
    const auto readings = side.recorder->clock_readings_since(side.readings_asked);
    side.readings_asked += readings.size();
    side.readings.insert(side.readings.end(), readings.begin(), readings.end());
    has_news = has_news || !readings.empty();
  }
  return has_news;
}

void SideRows::add_to(std::vector<rundb::StatRow>& stats,
                      std::vector<rundb::ClockRow>& clocks) const {
  MutexLock lock(mutex_);
  for (const Side& side : sides_) {
    for (std::size_t i = 0; i < side.counts.size(); ++i) {
      const record::SideCount& count = side.counts[i];
      if (!is_news(side.written, i, count)) continue;
      const std::int64_t before = i < side.written.size() ? side.written[i].value : 0;
      stats.push_back({count.name, count.is_loss ? rundb::Severity::loss : rundb::Severity::info,
                       count.value - before, count.description});
    }
    for (const record::ClockReading& reading : side.readings) {
      clocks.push_back({side.recorder->clock_name(), reading.ts, reading.realtime_ts});
    }
  }
}

void SideRows::written() {
  MutexLock lock(mutex_);
  for (Side& side : sides_) {
    side.written = side.counts;
    side.readings.clear();
  }
}

}  // namespace sluice::collect
