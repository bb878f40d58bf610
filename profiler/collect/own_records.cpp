#include "profiler/collect/own_records.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace sluice::collect {

OwnRecords::OwnRecords(record::Recorder& recorder, bool records_itself)
    : recorder_(recorder), records_itself_(records_itself) {
  track_ = recorder.add_track(record::kNoTrack, "recorder", "recorder");
  share_track_ = recorder.add_track(track_, "counter", "recorder: share of a processor");
  if (records_itself) {
    const record::TrackId host = recorder.add_track(record::kNoTrack, "host", "host");
    resident_track_ = recorder.add_track(host, "counter", "resident memory (bytes)");
  }
  collect_name_ = recorder.intern("collect");
  (void)recorder.take_level_changes();  // of the time before this recording
  add_instant(fmt::format("level {}", record::level_name(recorder.level())), monotonic_now_ns());
}

// Written with the next batch.
void OwnRecords::note_pass(TimeNs begin_ts) {
  const record::Level level = recorder_.level();
  if (!records_itself_ || level < record::Level::transfers) return;
  const TimeNs now_ts = monotonic_now_ns();
  record::SpanRecord span;
  span.name = collect_name_;
  span.track = track_;
  span.submit_ts = span.ts = begin_ts;
  span.dur = now_ts - begin_ts;
  spans_.push_back(span);
  const std::int64_t resident_bytes =
      level >= record::Level::all ? process_memory_.resident_bytes() : -1;
  if (resident_bytes < 0) return;
  counters_.push_back(
      {.track = resident_track_, .ts = now_ts, .value = static_cast<double>(resident_bytes)});
}

void OwnRecords::take_news() {
  for (const record::LevelChange& change : recorder_.take_level_changes()) {
    add_instant(fmt::format("level {} (from {}, by {})", record::level_name(change.to),
                            record::level_name(change.from), change.who),
                change.ts);
    has_news_ = true;
  }
  for (const record::Note& note : recorder_.take_notes()) {
    add_instant(note.text, note.ts);
    has_news_ = true;
  }
}

void OwnRecords::note_share(double share, TimeNs ts) {
  if (recorder_.level() < record::Level::all || has_share_) return;
  counters_.push_back({.track = share_track_, .ts = ts, .value = share});
  has_share_ = true;
}

void OwnRecords::clear() {
  spans_.clear();
  counters_.clear();
  has_share_ = false;
  has_news_ = false;
}

void OwnRecords::add_instant(const std::string& text, TimeNs ts) {
  if (!records_itself_) return;
  record::SpanRecord instant;
  instant.name = recorder_.intern(text);
  instant.track = track_;
  instant.submit_ts = instant.ts = ts;
  spans_.push_back(instant);
}

}  // namespace sluice::collect
