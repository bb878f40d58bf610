#include "profiler/collect/drain.h"

#include <time.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "storage/rundb/loss_counts.h"

namespace sluice::collect {
namespace {

using record::Record;
using record::RecordKind;

// Looks at the cost in a row: one that is too high may be a moment in which a drive or the machine
// was busy.
constexpr int kOverToLower = 3;

static_assert(static_cast<int>(record::SpanStatus::ok) == static_cast<int>(rundb::SpanStatus::ok));
static_assert(static_cast<int>(record::SpanStatus::failed) ==
              static_cast<int>(rundb::SpanStatus::failed));
static_assert(static_cast<int>(record::SpanStatus::cancelled) ==
              static_cast<int>(rundb::SpanStatus::cancelled));

rundb::StepRow row_from(const record::StepRecord& step) {
  return {.id = step.step,
          .ts = step.ts,
          .dur = step.dur,
          .loss = step.loss,
          .grad_norm = step.grad_norm,
          .loss_scale = step.loss_scale,
          .lr = step.lr,
          .tokens = step.tokens,
          .skipped = step.skipped};
}

rundb::SpanRow row_from(const record::SpanRecord& span, std::int64_t track_id,
                        std::int64_t name_id) {
  return {.track_id = track_id,
          .name_id = name_id,
          .submit_ts = span.submit_ts,
          .ts = span.ts,
          .dur = span.dur,
          .step_id = span.step,
          .subgroup_id = span.subgroup,
          .device_id = span.device,
          .layer_id = span.layer,
          .bytes = span.bytes,
          .padding_bytes = span.padding_bytes,
          .status = static_cast<rundb::SpanStatus>(span.status)};
}

TimeNs thread_cpu_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return TimeNs{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

template <typename Id>
std::int64_t mapped(const std::vector<std::int64_t>& ids, Id id) {
  const auto index = static_cast<std::size_t>(id);
  CHECK_LT(index, ids.size());  // a record with a name or track that its recorder never gave out
  return ids[index];
}

}  // namespace

Collector::Drain::Drain(record::Recorder& recorder, std::unique_ptr<rundb::Writer> writer,
                        std::size_t batch_record_count, bool records_itself)
    : recorder_(recorder),
      writer_(std::move(writer)),
      batch_record_count_(batch_record_count),
      records_itself_(records_itself) {
  CHECK_GT(batch_record_count, 0u);
  records_.reserve(batch_record_count);
  own_track_ = recorder.add_track(record::kNoTrack, "recorder", "recorder");
  share_track_ = recorder.add_track(own_track_, "counter", "recorder: share of a processor");
  if (records_itself) {
    const record::TrackId host = recorder.add_track(record::kNoTrack, "host", "host");
    resident_track_ = recorder.add_track(host, "counter", "resident memory (bytes)");
  }
  collect_name_ = recorder.intern("collect");
  watched_ts_ = monotonic_now_ns();
  (void)recorder.take_level_changes();  // of the time before this recording
  add_level_instant(fmt::format("level {}", record::level_name(recorder.level())), watched_ts_);
}

Status Collector::Drain::write_facts(const RunFacts& facts) {
  rundb::Facts rows{.meta = facts.meta,
                    .devices = facts.devices,
                    .links = facts.links,
                    .stages = {},
                    .subgroups = facts.subgroups,
                    .knobs = facts.knobs};
  map_new_strings();
  for (const StageFacts& stage : facts.stages) {
    rows.stages.push_back(stage.row);
    rows.stages.back().name_id = mapped(string_ids_, stage.name);
  }
  // Before the first track: the file knows a track by its links.
  RETURN_IF_ERROR(writer_->write_facts(rows));
  // Zero losses are written, too: no row would not say that nobody counted.
  write_batch();
  return status_;
}

void Collector::Drain::add(const rundb::Batch& rows) {
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(added_.knob_changes, rows.knob_changes);
  append(added_.verdicts, rows.verdicts);
  append(added_.modes, rows.modes);
  append(added_.clock_offsets, rows.clock_offsets);
  append(added_.lateness, rows.lateness);
  append(added_.validations, rows.validations);
}

Status Collector::Drain::pass() {
  const TimeNs begin_ts = monotonic_now_ns();
  const TimeNs begin_cpu = thread_cpu_ns();
  const std::uint64_t batches_before = batch_count_;
  note_levels();
  take_all();
  // A span of an idle pass would make the next pass write it, for ever.
  if (records_itself_ && batch_count_ > batches_before) note_pass(begin_ts);
  cost_ns_ += thread_cpu_ns() - begin_cpu;
  return status_;
}

// Written with the next batch.
void Collector::Drain::note_pass(TimeNs begin_ts) {
  const record::Level level = recorder_.level();
  if (level < record::Level::transfers) return;
  const TimeNs now_ts = monotonic_now_ns();
  record::SpanRecord span;
  span.name = collect_name_;
  span.track = own_track_;
  span.submit_ts = span.ts = begin_ts;
  span.dur = now_ts - begin_ts;
  own_spans_.push_back(span);
  const std::int64_t resident_bytes =
      level >= record::Level::all ? process_memory_.resident_bytes() : -1;
  if (resident_bytes < 0) return;
  own_counters_.push_back(
      {.track = resident_track_, .ts = now_ts, .value = static_cast<double>(resident_bytes)});
}

// At every level, `off` too: a file says when what was recorded.
void Collector::Drain::note_levels() {
  for (const record::LevelChange& change : recorder_.take_level_changes()) {
    add_level_instant(fmt::format("level {} (from {}, by {})", record::level_name(change.to),
                                  record::level_name(change.from), change.who),
                      change.ts);
    level_changed_ = true;
  }
}

void Collector::Drain::add_level_instant(const std::string& text, TimeNs ts) {
  if (!records_itself_) return;
  record::SpanRecord instant;
  instant.name = recorder_.intern(text);
  instant.track = own_track_;
  instant.submit_ts = instant.ts = ts;
  own_spans_.push_back(instant);
}

void Collector::Drain::watch_cost(const CollectorOptions& options) {
  const TimeNs now_ts = monotonic_now_ns();
  const TimeNs dur = now_ts - watched_ts_;
  if (dur <= 0 || dur < std::chrono::nanoseconds(options.cost_watch).count()) return;
  const double share = static_cast<double>(cost_ns_) / static_cast<double>(dur);
  watched_ts_ = now_ts;
  cost_ns_ = 0;
  const record::Level level = recorder_.level();
  // While nothing else is recorded nothing is written, so samples would pile up.
  if (level >= record::Level::all && !share_waits_) {
    own_counters_.push_back({.track = share_track_, .ts = now_ts, .value = share});
    share_waits_ = true;
  }
  over_count_ = share > options.cost_share_max ? over_count_ + 1 : 0;
  if (over_count_ < kOverToLower || level <= record::Level::steps) return;
  over_count_ = 0;
  recorder_.set_level(static_cast<record::Level>(static_cast<int>(level) - 1), "collector");
  lowered_count_ += 1;
}

void Collector::Drain::take_all() {
  for (record::Ring* ring : recorder_.rings()) {
    // At most one ringful: a producer that never pauses can neither keep a pass from ending nor
    // keep the other rings waiting.
    std::size_t left = ring->capacity();
    while (left > 0) {
      const std::size_t room = batch_record_count_ - records_.size();
      const std::size_t begin = records_.size();
      const std::size_t taken = ring->drain(records_, std::min(left, room));
      if (taken == 0) break;
      left -= taken;
      if (taken_count_.size() <= ring->index()) taken_count_.resize(ring->index() + 1);
      taken_.push_back({ring->index(), taken_count_[ring->index()], begin});
      taken_count_[ring->index()] += taken;
      if (records_.size() == batch_record_count_) write_batch();
    }
  }
  // Losses show in a live file even when nothing else comes through, and so does a change of level.
  const bool has_news = sides_.ask() || dropped_count() != dropped_count_written_ ||
                        lowered_count_ > 0 || level_changed_ || !added_.knob_changes.empty() ||
                        !added_.verdicts.empty() || !added_.modes.empty() ||
                        !added_.clock_offsets.empty() || !added_.lateness.empty() ||
                        !added_.validations.empty();
  if (!records_.empty() || has_news) write_batch();
}

// Leaves records_ empty, written or counted as lost.
void Collector::Drain::write_batch() {
  if (status_.ok()) {
    // After the records were taken: a record's name and track were added before it was pushed.
    map_new_names();
    to_rows();
    const std::uint64_t dropped = dropped_count();
    batch_.stats = losses_since_written(dropped);
    batch_.clocks.clear();
    sides_.add_to(batch_.stats, batch_.clocks);
    status_ = writer_->append(batch_);
    if (status_.ok()) {
      dropped_count_written_ = dropped;
      lowered_count_ = 0;
      level_changed_ = false;
      sides_.written();
    }
    batch_count_ += 1;
  }
  if (!status_.ok()) {
    recorder_.set_level(record::Level::off, "collector");
    unwritten_record_count_ += records_.size();
  }
  records_.clear();
  taken_.clear();
}

void Collector::Drain::to_rows() {
  batch_.steps.clear();
  batch_.spans.clear();
  batch_.counters.clear();
  span_refs_.clear();
  flows_.clear();
  for (std::size_t t = 0; t < taken_.size(); ++t) {
    const Taken& taken = taken_[t];
    const std::size_t end = t + 1 < taken_.size() ? taken_[t + 1].begin : records_.size();
    for (std::size_t i = taken.begin; i < end; ++i) {
      const Record& record = records_[i];
      switch (record.kind()) {
        case RecordKind::step:
          batch_.steps.push_back(row_from(record.step));
          break;
        case RecordKind::span:
          batch_.spans.push_back(row_from(record.span, mapped(track_ids_, record.span.track),
                                          mapped(string_ids_, record.span.name)));
          span_refs_.push_back(
              record::span_ref(taken.ring, taken.first_number + (i - taken.begin)));
          break;
        case RecordKind::counter:
          batch_.counters.push_back(
              {mapped(track_ids_, record.counter.track), record.counter.ts, record.counter.value});
          break;
        case RecordKind::flow:
          flows_.push_back(record.flow);
          break;
      }
    }
  }
  batch_.knob_changes = std::exchange(added_.knob_changes, {});
  batch_.verdicts = std::exchange(added_.verdicts, {});
  batch_.modes = std::exchange(added_.modes, {});
  batch_.clock_offsets = std::exchange(added_.clock_offsets, {});
  batch_.lateness = std::exchange(added_.lateness, {});
  batch_.validations = std::exchange(added_.validations, {});
  add_own_rows();
  number_spans();
  add_flows();
}

void Collector::Drain::add_own_rows() {
  for (const record::SpanRecord& span : own_spans_) {
    batch_.spans.push_back(
        row_from(span, mapped(track_ids_, span.track), mapped(string_ids_, span.name)));
    span_refs_.push_back(record::kNoSpan);
  }
  for (const record::CounterRecord& counter : own_counters_) {
    batch_.counters.push_back({mapped(track_ids_, counter.track), counter.ts, counter.value});
  }
  own_spans_.clear();
  own_counters_.clear();
  share_waits_ = false;
}

// Spans of a track stand side by side, by time, so that a reader finds them by table span_run.
void Collector::Drain::number_spans() {
  order_spans();
  std::int64_t id = writer_->next_span_id();
  sorted_spans_.clear();
  for (const SpanPlace& place : order_) {
    sorted_spans_.push_back(batch_.spans[place.index]);
    sorted_spans_.back().id = id;
    if (const record::SpanRef ref = span_refs_[place.index]; ref != record::kNoSpan)
      rows_of_ring(record::ring_of(ref))[record::number_of(ref) % kRememberedRows] = id;
    ++id;
  }
  batch_.spans.swap(sorted_spans_);
}

// By track, which takes a count of each; then by time, which most are in already.
void Collector::Drain::order_spans() {
  const auto track_of = [](const rundb::SpanRow& span) {
    return static_cast<std::size_t>(span.track_id);
  };
  track_begins_.assign(static_cast<std::size_t>(last_track_id_) + 2, 0);
  for (const rundb::SpanRow& span : batch_.spans) ++track_begins_[track_of(span)];
  std::partial_sum(track_begins_.begin(), track_begins_.end(), track_begins_.begin());
  // Those were the ends. From the last span to the first, each end moves to its track's begin.
  order_.resize(batch_.spans.size());
  for (std::size_t i = batch_.spans.size(); i-- > 0;)
    order_[--track_begins_[track_of(batch_.spans[i])]] = {batch_.spans[i].ts, i};
  for (std::size_t t = 0; t + 1 < track_begins_.size(); ++t) {
    const std::span track =
        std::span(order_).subspan(track_begins_[t], track_begins_[t + 1] - track_begins_[t]);
    if (!std::ranges::is_sorted(track)) std::ranges::sort(track);
  }
}

std::vector<std::int64_t>& Collector::Drain::rows_of_ring(std::uint32_t ring) {
  if (rows_.size() <= ring) rows_.resize(ring + 1);
  if (rows_[ring].empty()) rows_[ring].assign(kRememberedRows, 0);
  return rows_[ring];
}

void Collector::Drain::add_flows() {
  batch_.flows.clear();
  for (const record::FlowRecord& flow : flows_) {
    const rundb::FlowRow row{row_of(flow.from), row_of(flow.to)};
    // One end may have been dropped by a full ring, which counted it.
    if (row.from_span != 0 && row.to_span != 0) batch_.flows.push_back(row);
  }
}

// 0: it was dropped, or drained too long ago.
std::int64_t Collector::Drain::row_of(record::SpanRef ref) const {
  const std::uint32_t ring = record::ring_of(ref);
  if (ref == record::kNoSpan || ring >= rows_.size() || rows_[ring].empty()) return 0;
  const std::uint64_t number = record::number_of(ref);
  const std::uint64_t taken = taken_count_[ring];
  if (number >= taken || taken - number > kRememberedRows) return 0;
  return rows_[ring][number % kRememberedRows];
}

void Collector::Drain::map_new_strings() {
  for (const std::string& name : recorder_.names_since(string_ids_.size()))
    string_ids_.push_back(writer_->string_id(name));
}

void Collector::Drain::map_new_names() {
  map_new_strings();
  for (const record::Track& track : recorder_.tracks_since(track_ids_.size())) {
    std::optional<std::int64_t> parent_id;
    if (track.parent != record::kNoTrack) parent_id = mapped(track_ids_, track.parent);
    links_of_track_.clear();
    for (const record::TrackLink& link : track.links) {
      links_of_track_.push_back({link.link_id, link.direction == record::LinkDirection::read
                                                   ? rundb::Direction::read
                                                   : rundb::Direction::write});
    }
    track_ids_.push_back(writer_->track_id(parent_id, track.kind, track.name, links_of_track_));
    last_track_id_ = std::max(last_track_id_, track_ids_.back());
  }
}

// What to add to the counts in the file. The first batch brings zeros, too, so that there is a row.
std::vector<rundb::StatRow> Collector::Drain::losses_since_written(std::uint64_t dropped) const {
  std::vector<rundb::StatRow> losses{
      {std::string(rundb::kRecordsDropped), rundb::Severity::loss,
       static_cast<std::int64_t>(dropped - dropped_count_written_),
       "records dropped because their thread's ring was full: the collector did not drain it "
       "in time; use larger rings, a lower recording level or a shorter flush interval"},
      {std::string(rundb::kLevelLowered), rundb::Severity::loss, lowered_count_,
       "times that the recorder lowered its level by one because it took more of a processor than "
       "it may; instants on track recorder say when"},
      {std::string(rundb::kRecordsUnwritten), rundb::Severity::loss,
       static_cast<std::int64_t>(unwritten_record_count_.load()),
       "records that were recorded but could not be written; stat recording_stopped says why"}};
  if (batch_count_ > 0)
    std::erase_if(losses, [](const rundb::StatRow& row) { return row.value == 0; });
  return losses;
}

std::uint64_t Collector::Drain::dropped_count() const {
  std::uint64_t count = 0;
  for (const record::Ring* ring : recorder_.rings()) count += ring->dropped_count();
  return count;
}

Status Collector::Drain::finish() {
  (void)pass();  // its error is kept, and is what close returns
  // What the pass says of itself has no next batch to come with.
  if (!own_spans_.empty() || !own_counters_.empty()) write_batch();
  const Status closed = writer_->close(losses_since_written(dropped_count()));
  if (status_.ok()) status_ = closed;
  return status_;
}

}  // namespace sluice::collect
