#pragma once
// One pass of the collector: records out of the rings, rows into the database. It knows nothing of
// threads; collector.cpp calls it from its own.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/collect/collector.h"

namespace sluice::collect {

class Collector::Drain {
 public:
  Drain(record::Recorder& recorder, std::unique_ptr<rundb::Writer> writer,
        std::size_t batch_record_count);

  Status write_facts(const RunFacts& facts);

  // Takes at least what the rings held at the call, a batch at a time. After the first error it
  // only discards and counts; the error is returned each time.
  Status pass();
  // The last pass, the last counts; closes the file.
  Status finish();

 private:
  void write_batch();
  void map_new_names();
  void to_rows();
  std::vector<rundb::StatRow> losses_since_written(std::uint64_t dropped) const;
  std::uint64_t dropped_count() const;

  record::Recorder& recorder_;
  const std::unique_ptr<rundb::Writer> writer_;
  const std::size_t batch_record_count_;

  std::vector<record::Record> records_;  // of the batch at hand; reused
  rundb::Batch batch_;                   // the same as rows; reused
  // The database's ids, by the recorder's.
  std::vector<std::int64_t> string_ids_;
  std::vector<std::int64_t> track_ids_;

  std::uint64_t dropped_count_written_ = 0;   // of the rings' counts, what stands in the file
  std::uint64_t unwritten_record_count_ = 0;  // drained and lost since the error
  Status status_;
};

}  // namespace sluice::collect
