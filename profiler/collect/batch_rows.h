#pragma once
// The records of a batch as rows: names and tracks by the database's ids, the spans of a track side
// by side and in order of time, so that a reader finds them by table span_run, flows between them.
//
// Thread contract: one thread at a time.

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "profiler/collect/database_ids.h"
#include "profiler/collect/own_records.h"
#include "profiler/collect/span_ids.h"
#include "profiler/record/record.h"
#include "storage/rundb/rows.h"

namespace sluice::collect {

// The records that were taken from one ring at once.
struct DrainedRecords {
  std::uint32_t ring;
  std::uint64_t first_number;  // of the first one, among all of that ring
  std::span<const record::Record> records;
};

class BatchRows {
 public:
  // `ids` lives longer, and has those of all records that are added.
  explicit BatchRows(const DatabaseIds& ids) : ids_(ids) {}

  // Counts for first_number: called in the order in which records are drained.
  std::uint64_t note_drained(std::uint32_t ring, std::uint64_t count) {
    return span_ids_.note_drained(ring, count);
  }

  // Nothing of the batch before stays.
  void clear();
  void add(const DrainedRecords& drained);
  void add(const OwnRecords& own);
  // After all were added: spans get their order and their ids, from `first_id` on.
  void finish(std::int64_t first_id);

  rundb::Batch& batch() { return batch_; }

 private:
  // By which spans of one track are sorted.
  struct SpanPlace {
    TimeNs ts;
    std::size_t index;  // in batch_.spans
    auto operator<=>(const SpanPlace&) const = default;
  };

  void order_spans();
  void number_spans(std::int64_t first_id);
  void add_flows();

  const DatabaseIds& ids_;
  SpanIds span_ids_;
  // All of them are reused from batch to batch.
  rundb::Batch batch_;
  std::vector<record::SpanRef> span_refs_;  // of batch_.spans, before they are ordered
  std::vector<record::FlowRecord> flows_;
  std::vector<SpanPlace> order_;           // of spans, as they are written
  std::vector<std::size_t> track_begins_;  // in order_, by the track's id
  std::vector<rundb::SpanRow> ordered_spans_;
};

}  // namespace sluice::collect
