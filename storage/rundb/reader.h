#pragma once
// Reads a run database, finished or live: a read-only connection that never blocks the writer.
//
// Reader has what is known of a run, and its steps. Four more ask the same file through it:
// CatalogReader (catalog_reader.h) for what ids stand for, SpanReader (span_reader.h) for what
// happened in a stretch of time, TimelineReader (timeline_reader.h) for what a timeline is drawn
// from, Query (query.h) for SQL of one's own.
//
// Each call sees the batches committed when it was made. Calls between snapshot() and the end of
// what it returns all see the same ones.
//
// Thread contract: one thread at a time, with those that ask through it; readers in other threads
// open their own.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

namespace detail {
class ReadConnection;  // keeps SQLite out of this header
}

struct SpanTotals {
  std::string name;
  std::int64_t count = 0;
  TimeNs dur_total = 0;
  TimeNs dur_mean = 0;
  TimeNs dur_max = 0;
  std::int64_t bytes = 0;
  std::int64_t padding_bytes = 0;
};

struct LinkTotals {
  std::string link;
  Direction direction = Direction::read;
  std::int64_t bytes = 0;  // of the whole run
  std::int64_t padding_bytes = 0;
  double bytes_per_step_mean = 0;  // over the steps that ended
};

class Reader {
 public:
  // Refuses, with what to do: a missing file (not_found), a foreign or damaged one, or one whose
  // tables and views are not Sluice's own (corrupt), one of a newer Sluice (unsupported; says
  // which). A row with a time, size or id that no run has is refused by the call that meets it
  // (corrupt; detail/row_bounds.h).
  static Result<std::unique_ptr<Reader>> open(const std::string& path);
  ~Reader();

  // Ends when destroyed. Hold it briefly: while it lives, the writer's log can only grow.
  class Snapshot {
   public:
    explicit Snapshot(Reader& reader) : reader_(&reader) {}
    Snapshot(Snapshot&& other) noexcept : reader_(std::exchange(other.reader_, nullptr)) {}
    Snapshot& operator=(Snapshot&&) = delete;
    ~Snapshot() {
      if (reader_ != nullptr) reader_->end_snapshot();
    }

   private:
    Reader* reader_;
  };
  Result<Snapshot> snapshot();

  Result<std::vector<MetaRow>> meta();
  Result<std::vector<StepRow>> steps();
  Result<std::vector<StepRow>> steps_after(std::int64_t step_id);
  // In order of steps.
  Result<std::vector<ValidationRow>> validations();
  // When the run, or after a resume its last stretch, began; 0 if that is not known.
  Result<TimeNs> stretch_begin();
  // In the order in which they were taken; none of a run of one rank.
  Result<std::vector<ClockOffsetRow>> clock_offsets();
  Result<std::vector<ModeRow>> modes();  // in order of steps; none of a run that says nothing
  Result<std::vector<KnobRow>> knobs();
  Result<std::vector<KnobChangeRow>> knob_changes();  // in order of steps
  // By steps; none of a run whose clock is not the emulated one.
  Result<std::vector<LatenessRow>> lateness();
  // The verdicts of this step and later ones, by step, the largest share first. Steps may lack
  // them: whoever records a run writes them when it ends.
  Result<std::vector<VerdictRow>> verdicts(std::int64_t first_step);
  Result<std::vector<StatRow>> stats();
  // Stats that say the record is not whole; empty: nothing was lost.
  Result<std::vector<StatRow>> losses();
  Result<std::vector<SpanTotals>> span_totals();  // the longest total first
  Result<std::vector<LinkTotals>> link_totals();

 private:
  friend class CatalogReader;
  friend class SampleReader;
  friend class SpanReader;
  friend class TimelineReader;
  friend class Query;
  friend class RecordTail;
  explicit Reader(std::unique_ptr<detail::ReadConnection> file);
  void end_snapshot();

  std::unique_ptr<detail::ReadConnection> file_;
};

}  // namespace sluice::rundb
