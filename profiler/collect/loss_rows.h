#pragma once
// The recording's own losses, as rows of table stat, which add to the counts in the file.
//
// Thread contract: unwritten_count() from any thread, the rest from one at a time.

#include <atomic>
#include <cstdint>
#include <vector>

#include "profiler/record/recorder.h"
#include "storage/rundb/rows.h"

namespace sluice::collect {

class LossRows {
 public:
  // The recorder lives longer.
  explicit LossRows(const record::Recorder& recorder) : recorder_(recorder) {}

  void note_lowered() { lowered_count_ += 1; }  // the recording level
  void note_unwritten(std::uint64_t count) { unwritten_count_ += count; }
  std::uint64_t unwritten_count() const { return unwritten_count_; }

  // Counts what the rings dropped; true: there is something to write.
  bool ask();
  // The additions to the counts in the file, as asked last; zeros only in the first batch, so that
  // there is a row. It stays to be added until written() is called.
  std::vector<rundb::StatRow> rows(bool is_first) const;
  void written();

 private:
  const record::Recorder& recorder_;
  std::uint64_t dropped_count_ = 0;                // by the rings
  std::uint64_t dropped_count_written_ = 0;        // of them, what stands in the file
  std::int64_t lowered_count_ = 0;                 // not yet written
  std::atomic<std::uint64_t> unwritten_count_{0};  // records that were drained after an error
};

}  // namespace sluice::collect
