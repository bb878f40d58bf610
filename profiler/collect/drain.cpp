#include "profiler/collect/drain.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "storage/rundb/sample_rows.h"

namespace sluice::collect {

Collector::Drain::Drain(record::Recorder& recorder, std::unique_ptr<rundb::Writer> writer,
                        std::size_t batch_record_count, bool records_itself)
    : recorder_(recorder),
      writer_(std::move(writer)),
      batch_record_count_(batch_record_count),
      ids_(recorder, *writer_),
      rows_(ids_),
      own_(recorder, records_itself),
      cost_(monotonic_now_ns()),
      losses_(recorder) {
  CHECK_GT(batch_record_count, 0u);
  records_.reserve(batch_record_count);
}

Status Collector::Drain::write_rows_of(const RunFacts& facts) {
  rundb::Facts rows{.meta = facts.meta,
                    .devices = facts.devices,
                    .links = facts.links,
                    .stages = {},
                    .subgroups = facts.subgroups,
                    .knobs = facts.knobs};
  ids_.add_new_names();
  for (const StageFacts& stage : facts.stages) {
    rows.stages.push_back(stage.row);
    rows.stages.back().name_id = ids_.of(stage.name);
  }
  return writer_->write_facts(rows);
}

void Collector::Drain::declare(const RunFacts& facts) {
  if (status_.ok()) status_ = write_rows_of(facts);
}

Status Collector::Drain::write_facts(const RunFacts& facts) {
  // Before the first track: the file knows a track by its links.
  RETURN_IF_ERROR(write_rows_of(facts));
  // Zero losses are written, too: no row would not say that nobody counted.
  write_batch();
  return status_;
}

void Collector::Drain::add(rundb::Batch&& rows) {
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(added_.knob_changes, rows.knob_changes);
  append(added_.verdicts, rows.verdicts);
  append(added_.modes, rows.modes);
  append(added_.clock_offsets, rows.clock_offsets);
  append(added_.lateness, rows.lateness);
  append(added_.validations, rows.validations);
  // There is no end to them, and after an error nothing is written.
  if (status_.ok()) rundb::move_behind(added_.samples, std::move(rows.samples));
}

bool Collector::Drain::has_added() const {
  return !added_.knob_changes.empty() || !added_.verdicts.empty() || !added_.modes.empty() ||
         !added_.clock_offsets.empty() || !added_.lateness.empty() || !added_.validations.empty() ||
         !added_.samples.is_empty();
}

void Collector::Drain::take_added(rundb::Batch& batch) {
  batch.knob_changes = std::exchange(added_.knob_changes, {});
  batch.verdicts = std::exchange(added_.verdicts, {});
  batch.modes = std::exchange(added_.modes, {});
  batch.clock_offsets = std::exchange(added_.clock_offsets, {});
  batch.lateness = std::exchange(added_.lateness, {});
  batch.validations = std::exchange(added_.validations, {});
  batch.samples = std::exchange(added_.samples, {});
}

Status Collector::Drain::pass() {
  const TimeNs begin_ts = monotonic_now_ns();
  cost_.begin_pass();
  const std::uint64_t batches_before = batch_count_;
  own_.take_news();
  take_all();
  // A span of an idle pass would make the next pass write it, for ever.
  if (batch_count_ > batches_before) own_.note_pass(begin_ts);
  cost_.end_pass();
  return status_;
}

void Collector::Drain::watch_cost(const CollectorOptions& options) {
  const TimeNs now_ts = monotonic_now_ns();
  const std::optional<double> share =
      cost_.look(now_ts, std::chrono::nanoseconds(options.cost_watch).count());
  if (!share) return;
  own_.note_share(*share, now_ts);
  const record::Level level = recorder_.level();
  if (!cost_.is_too_much(*share, options.cost_share_max) || level <= record::Level::steps) return;
  cost_.forget();
  recorder_.set_level(static_cast<record::Level>(static_cast<int>(level) - 1), "collector");
  losses_.note_lowered();
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
      drained_.push_back({ring->index(), rows_.note_drained(ring->index(), taken),
                          std::span(records_).subspan(begin)});
      if (records_.size() == batch_record_count_) write_batch();
    }
  }
  // Losses show in a live file even when nothing else comes through, and so does a change of level.
  const bool sides_have_news = sides_.ask();
  const bool has_news = sides_have_news || losses_.ask() || own_.has_news() || has_added();
  if (!records_.empty() || has_news) write_batch();
}

// Leaves records_ empty, written or counted as lost.
void Collector::Drain::write_batch() {
  if (status_.ok()) {
    // After the records were taken: a record's name and track were added before it was pushed.
    ids_.add_new_names_and_tracks();
    to_rows();
    rundb::Batch& batch = rows_.batch();
    losses_.ask();
    batch.stats = losses_.rows(batch_count_ == 0);
    batch.clocks.clear();
    sides_.add_to(batch.stats, batch.clocks);
    status_ = writer_->append(batch);
    if (status_.ok()) {
      losses_.written();
      sides_.written();
    }
    batch_count_ += 1;
  }
  if (!status_.ok()) {
    recorder_.set_level(record::Level::off, "collector");
    losses_.note_unwritten(records_.size());
  }
  records_.clear();
  drained_.clear();
}

void Collector::Drain::to_rows() {
  rows_.clear();
  for (const DrainedRecords& drained : drained_) rows_.add(drained);
  rows_.add(own_);
  own_.clear();
  rows_.finish(writer_->next_span_id());
  take_added(rows_.batch());
}

Status Collector::Drain::finish() {
  (void)pass();  // its error is kept, and is what close returns
  // The pass's records of itself have no next batch to come with.
  if (!own_.is_empty()) write_batch();
  losses_.ask();
  const Status closed = writer_->close(losses_.rows(batch_count_ == 0));
  if (status_.ok()) status_ = closed;
  return status_;
}

}  // namespace sluice::collect
