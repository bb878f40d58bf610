#pragma once
// One pass of the collector: records out of the rings, rows into the database. It knows nothing of
// threads; collector.cpp calls it from its own.
//
// Thread contract: one thread at a time.

#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "profiler/collect/collector.h"
#include "profiler/collect/process_memory.h"
#include "profiler/collect/side_rows.h"

namespace sluice::collect {

class Collector::Drain {
 public:
  Drain(record::Recorder& recorder, std::unique_ptr<rundb::Writer> writer,
        std::size_t batch_record_count, bool records_itself);

  Status write_facts(const RunFacts& facts);
  void attach(const record::SideRecorder& side) { sides_.attach(side); }  // from any thread

  // Rows for the next batch besides those of the rings: changes of knobs, verdicts.
  void add(const rundb::Batch& rows);

  // Takes at least what the rings held at the call, a batch at a time. After the first error it
  // only discards and counts; the error is returned each time.
  Status pass();
  // What passes have cost since the last call that asked, as a share of one processor. Lowers the
  // recording level by one where that is too much, and says so in the database.
  void watch_cost(const CollectorOptions& options);
  std::uint64_t unwritten_count() const { return unwritten_record_count_; }  // from any thread
  // The last pass, the last counts; closes the file.
  Status finish();

 private:
  // Where in records_ what was taken from one ring at once begins, and its number there.
  struct Taken {
    std::uint32_t ring;
    std::uint64_t first_number;
    std::size_t begin;
  };

  // By which a batch's spans of one track are sorted.
  struct SpanPlace {
    TimeNs ts;
    std::size_t index;  // in batch_.spans
    auto operator<=>(const SpanPlace&) const = default;
  };

  void note_pass(TimeNs begin_ts);
  void take_all();
  void write_batch();
  void map_new_strings();
  void map_new_names();
  void to_rows();
  void add_own_rows();
  void note_levels();
  void add_level_instant(const std::string& text, TimeNs ts);
  void number_spans();
  void order_spans();
  void add_flows();
  std::int64_t row_of(record::SpanRef ref) const;
  std::vector<std::int64_t>& rows_of_ring(std::uint32_t ring);
  std::vector<rundb::StatRow> losses_since_written(std::uint64_t dropped) const;
  std::uint64_t dropped_count() const;

  record::Recorder& recorder_;
  const std::unique_ptr<rundb::Writer> writer_;
  const std::size_t batch_record_count_;
  const bool records_itself_;

  std::vector<record::Record> records_;  // of the batch at hand; reused
  std::vector<Taken> taken_;
  std::vector<std::uint64_t> taken_count_;  // by ring: records drained since the start
  rundb::Batch batch_;                      // the same as rows; reused
  rundb::Batch added_;                      // by add(), not yet written
  std::vector<record::SpanRef> span_refs_;  // of batch_.spans
  std::vector<SpanPlace> order_;            // of spans, as they are written; reused
  std::vector<std::size_t> track_begins_;   // in order_, by track_id; reused
  std::vector<rundb::SpanRow> sorted_spans_;
  std::vector<record::FlowRecord> flows_;
  // By ring, rows of its latest records: of number n at n % kRememberedRows; 0: no span. A flow
  // refers to spans of the same step or the one before it.
  static constexpr std::uint64_t kRememberedRows = 1 << 17;
  std::vector<std::vector<std::int64_t>> rows_;

  // The recorder's own track: a span each pass that wrote something, an instant where a level
  // begins, a counter of the processor time that it takes.
  record::TrackId own_track_;
  record::TrackId share_track_;
  record::TrackId resident_track_;
  ProcessMemory process_memory_;
  record::NameId collect_name_;
  std::vector<record::SpanRecord> own_spans_;  // not yet written
  std::vector<record::CounterRecord> own_counters_;
  bool share_waits_ = false;    // a sample of the share is among them
  bool level_changed_ = false;  // and is not yet written
  TimeNs cost_ns_ = 0;          // since watched_ts_
  TimeNs watched_ts_ = 0;
  int over_count_ = 0;              // watches in a row in which that was too much
  std::int64_t lowered_count_ = 0;  // not yet written
  SideRows sides_;
  // The database's ids, by the recorder's.
  std::vector<std::int64_t> string_ids_;
  std::vector<std::int64_t> track_ids_;
  std::vector<rundb::TrackLink> links_of_track_;  // reused
  std::int64_t last_track_id_ = 0;

  std::uint64_t batch_count_ = 0;
  std::uint64_t dropped_count_written_ = 0;  // of the rings' counts, what stands in the file
  std::atomic<std::uint64_t> unwritten_record_count_{0};  // drained and lost since the error
  Status status_;
};

}  // namespace sluice::collect
