#pragma once
// Reads a run database, finished or live: a read-only connection that never blocks the writer.
//
// Each call sees the batches committed when it was made. Calls between snapshot() and the end of
// what it returns all see the same ones.
//
// Thread contract: one thread at a time; readers in other threads open their own.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "storage/rundb/lod.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

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

struct NamedSpan {
  SpanRow row = {};
  std::string name = {};
};

// What a track is drawn from in a window: all of its spans where they are few, else the bins of a
// level and the spans that are long there.
struct TrackView {
  static constexpr int kAllSpans = -1;
  int level = kAllSpans;
  std::vector<SpanRow> spans = {};  // with kAllSpans, in order of their begin
  std::vector<LodRow> bins = {};    // otherwise: storage/rundb/lod.h
  std::vector<LongSpanRow> long_spans = {};
};

// A table or a view.
struct TableInfo {
  std::string name;
  bool is_view = false;
  std::vector<std::string> columns;
};

// An answer as text, NULL as "NULL".
struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
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
  Result<std::vector<StepRow>> last_steps(std::int64_t count);
  // When the run, or after a resume its last stretch, began; 0 if that is not known.
  Result<TimeNs> stretch_begin();
  Result<std::vector<std::pair<std::int64_t, std::string>>> strings();  // by id
  Result<std::vector<TrackRow>> tracks();
  Result<std::vector<LinkRow>> links();
  Result<std::vector<DeviceRow>> devices();
  Result<std::vector<TrackLinkRow>> track_links();
  Result<std::vector<StageRow>> stages();
  Result<std::vector<ModeRow>> modes();  // in order of steps; none of a run that says nothing
  Result<std::vector<KnobRow>> knobs();
  Result<std::vector<KnobChangeRow>> knob_changes();  // in order of steps
  // Of this step and later ones, by step, the largest share first. Steps may lack them: whoever
  // records a run writes them when it ends.
  Result<std::vector<VerdictRow>> verdicts(std::int64_t first_step);
  // That were under way at some time from `begin` to `end`, both included, in order of their begin.
  Result<std::vector<SpanRow>> spans_between(TimeNs begin, TimeNs end);
  // The same for whoever keeps them otherwise, in order of their ids.
  Status each_span_between(TimeNs begin, TimeNs end,
                           const std::function<void(const SpanRow&)>& use_span);
  // Those with these ids, both included, that began from `begin` to before `end`.
  Status each_span_of_ids(std::int64_t first_id, std::int64_t last_id, TimeNs begin, TimeNs end,
                          const std::function<void(const SpanRow&)>& use_span);
  // The same as spans_between(), of one track.
  Result<std::vector<SpanRow>> spans_of_track(std::int64_t track_id, TimeNs begin, TimeNs end);
  // From `begin` to `end` on so many columns of a screen. Reads about as much as is drawn.
  Result<TrackView> view_of_track(std::int64_t track_id, TimeNs begin, TimeNs end, int columns);
  // What a track is drawn from at a level, from `begin` to `end`: storage/rundb/lod.h.
  Result<std::vector<LodRow>> lod(std::int64_t track_id, int level, TimeNs begin, TimeNs end);
  // Bins of all tracks, in one go; those of a track in order of time.
  Result<std::vector<LodRow>> lod_of_all_tracks(int level, TimeNs begin, TimeNs end);
  Result<std::vector<LongSpanRow>> long_spans(std::int64_t track_id, int level, TimeNs begin,
                                              TimeNs end);
  // Samples from `begin` to `end`, by track and time, each track's with the last one before them.
  // Counters have no index: this reads all of them.
  Result<std::vector<CounterRow>> counters_between(TimeNs begin, TimeNs end);
  // Into those spans, and into some that stand beside them.
  Result<std::vector<FlowRow>> flows_between(TimeNs begin, TimeNs end);
  // Those without failure that ended in (after, until].
  Result<std::vector<NamedSpan>> spans_ended(TimeNs after, TimeNs until);
  Result<std::vector<SpanTotals>> span_totals();  // the longest total first
  Result<std::vector<LinkTotals>> link_totals();
  Result<std::vector<StatRow>> stats();
  // Stats that say the record is not whole; empty: nothing was lost.
  Result<std::vector<StatRow>> losses();

  // Those of Sluice, by name; what others have added to the file is not among them.
  Result<std::vector<TableInfo>> tables();
  // Any one statement; the connection cannot write.
  Result<TextTable> query(const std::string& sql);
  // Each row of any one statement as it comes, so that no answer is too large; an error of
  // `use_row` ends it.
  Status each_row(const std::string& sql,
                  const std::function<Status(std::span<const Cell>)>& use_row);
  // The same for a text that is asked again and again, with other parameters ?1, ?2, ...: it is
  // kept, ready to run, as those of the calls above are.
  Status each_row_with(std::string_view sql, std::initializer_list<std::int64_t> parameters,
                       const std::function<Status(std::span<const Cell>)>& use_row);

 private:
  struct Impl;  // keeps SQLite out of this header
  explicit Reader(std::unique_ptr<Impl> impl);
  void end_snapshot();

  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::rundb
