#pragma once
// One pass of the collector: records out of the rings, rows into the database. It knows nothing of
// threads; collector.cpp calls it from its own.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/collect/batch_rows.h"
#include "profiler/collect/collector.h"
#include "profiler/collect/cost_watch.h"
#include "profiler/collect/database_ids.h"
#include "profiler/collect/loss_rows.h"
#include "profiler/collect/own_records.h"
#include "profiler/collect/side_rows.h"

namespace sluice::collect {

class Collector::Drain {
 public:
  Drain(record::Recorder& recorder, std::unique_ptr<rundb::Writer> writer,
        std::size_t batch_record_count, bool records_itself);

  Status write_facts(const RunFacts& facts);
  // More of them; an error stops the recording, as that of a batch does.
  void declare(const RunFacts& facts);
  void attach(const record::SideRecorder& side) { sides_.attach(side); }  // from any thread

  // Rows for the next batch besides those of the rings: changes of knobs, verdicts.
  void add(rundb::Batch&& rows);

  // Takes at least what the rings held at the call, a batch at a time. After the first error it
  // only discards and counts; the error is returned each time.
  Status pass();
  // The cost of the passes since the last call that asked, as a share of one processor. Lowers the
  // recording level by one where that is too much, and says so in the database.
  void watch_cost(const CollectorOptions& options);
  std::uint64_t unwritten_count() const { return losses_.unwritten_count(); }  // from any thread
  // The last pass, the last counts; closes the file.
  Status finish();

 private:
  Status write_rows_of(const RunFacts& facts);
  void take_all();
  bool has_added() const;
  void write_batch();
  void to_rows();
  void take_added(rundb::Batch& batch);

  record::Recorder& recorder_;
  const std::unique_ptr<rundb::Writer> writer_;
  const std::size_t batch_record_count_;

  // The batch at hand; reused.
  std::vector<record::Record> records_;  // never grows beyond what is reserved
  std::vector<DrainedRecords> drained_;  // parts of records_
  rundb::Batch added_;                   // by add(), not yet written

  DatabaseIds ids_;
  BatchRows rows_;
  OwnRecords own_;
  CostWatch cost_;
  LossRows losses_;
  SideRows sides_;

  std::uint64_t batch_count_ = 0;
  Status status_;
};

}  // namespace sluice::collect
