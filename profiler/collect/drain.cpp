#include "profiler/collect/drain.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::collect {
namespace {

using record::Record;
using record::RecordKind;

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

template <typename Id>
std::int64_t mapped(const std::vector<std::int64_t>& ids, Id id) {
  const auto index = static_cast<std::size_t>(id);
  CHECK_LT(index, ids.size());  // a record with a name or track that its recorder never gave out
  return ids[index];
}

}  // namespace

Collector::Drain::Drain(record::Recorder& recorder, std::unique_ptr<rundb::Writer> writer,
                        std::size_t batch_record_count)
    : recorder_(recorder), writer_(std::move(writer)), batch_record_count_(batch_record_count) {
  CHECK_GT(batch_record_count, 0u);
  records_.reserve(batch_record_count);
}

Status Collector::Drain::write_facts(const RunFacts& facts) {
  map_new_names();
  rundb::Facts rows{.meta = facts.meta,
                    .devices = facts.devices,
                    .links = facts.links,
                    .track_links = {},
                    .subgroups = facts.subgroups};
  for (const TrackLink& crossing : facts.track_links)
    rows.track_links.push_back(
        {mapped(track_ids_, crossing.track), crossing.link_id, crossing.direction});
  RETURN_IF_ERROR(writer_->write_facts(rows));
  // Zero losses are written, too: no row would not say that nobody counted.
  write_batch();
  return status_;
}

Status Collector::Drain::pass() {
  for (record::Ring* ring : recorder_.rings()) {
    // At most one ringful: a producer that never pauses can neither keep a pass from ending nor
    // keep the other rings waiting.
    std::size_t left = ring->capacity();
    while (left > 0) {
      const std::size_t room = batch_record_count_ - records_.size();
      const std::size_t taken = ring->drain(records_, std::min(left, room));
      if (taken == 0) break;
      left -= taken;
      if (records_.size() == batch_record_count_) write_batch();
    }
  }
  // Losses show in a live file even when nothing else comes through.
  if (!records_.empty() || dropped_count() != dropped_count_written_) write_batch();
  return status_;
}

// Leaves records_ empty, written or counted as lost.
void Collector::Drain::write_batch() {
  if (status_.ok()) {
    // After the records were taken: a record's name and track were added before it was pushed.
    map_new_names();
    to_rows();
    const std::uint64_t dropped = dropped_count();
    batch_.stats = losses_since_written(dropped);
    status_ = writer_->append(batch_);
    if (status_.ok()) dropped_count_written_ = dropped;
  }
  if (!status_.ok()) {
    recorder_.set_level(record::Level::off);
    unwritten_record_count_ += records_.size();
  }
  records_.clear();
}

void Collector::Drain::to_rows() {
  batch_.steps.clear();
  batch_.spans.clear();
  batch_.counters.clear();
  for (const Record& record : records_) {
    switch (record.kind()) {
      case RecordKind::step:
        batch_.steps.push_back(row_from(record.step));
        break;
      case RecordKind::span:
        batch_.spans.push_back(row_from(record.span, mapped(track_ids_, record.span.track),
                                        mapped(string_ids_, record.span.name)));
        break;
      case RecordKind::counter:
        batch_.counters.push_back(
            {mapped(track_ids_, record.counter.track), record.counter.ts, record.counter.value});
        break;
    }
  }
}

void Collector::Drain::map_new_names() {
  for (const std::string& name : recorder_.names_since(string_ids_.size()))
    string_ids_.push_back(writer_->string_id(name));
  for (const record::Track& track : recorder_.tracks_since(track_ids_.size())) {
    std::optional<std::int64_t> parent_id;
    if (track.parent != record::kNoTrack) parent_id = mapped(track_ids_, track.parent);
    track_ids_.push_back(writer_->track_id(parent_id, track.kind, track.name));
  }
}

// What to add to the counts in the file.
std::vector<rundb::StatRow> Collector::Drain::losses_since_written(std::uint64_t dropped) const {
  return {{"records_dropped_ring_full", rundb::Severity::loss,
           static_cast<std::int64_t>(dropped - dropped_count_written_),
           "records dropped because their thread's ring was full: the collector did not drain it "
           "in time; use larger rings, a lower recording level or a shorter flush interval"},
          {"records_lost_write_failed", rundb::Severity::loss,
           static_cast<std::int64_t>(unwritten_record_count_),
           "records that were recorded but could not be written; stat recording_stopped says why"}};
}

std::uint64_t Collector::Drain::dropped_count() const {
  std::uint64_t count = 0;
  for (const record::Ring* ring : recorder_.rings()) count += ring->dropped_count();
  return count;
}

Status Collector::Drain::finish() {
  (void)pass();  // its error is kept, and is what close returns
  const Status closed = writer_->close(losses_since_written(dropped_count()));
  if (status_.ok()) status_ = closed;
  return status_;
}

}  // namespace sluice::collect
