#pragma once
// The spans of a run, or of a part of it, in order of their begin, a window of time at a time:
// however long the run was, no more than a few batches of it are in memory.
//
// Thread contract: one thread at a time.

#include <vector>

#include "base/status.h"
#include "profiler/report/run_part.h"
#include "storage/rundb/reader.h"

namespace sluice::report::detail {

class SpanStream {
 public:
  // A window holds about that many spans. The reader outlives what is returned.
  static Result<SpanStream> open(rundb::Reader& reader, const RunPart& part,
                                 std::int64_t window_spans = 1 << 16);

  // The next window's spans, by begin and id; false: there is no further one. It may be empty.
  Result<bool> next(std::vector<rundb::SpanRow>& spans);
  // The share of all spans to be read that next() has read.
  double share_done() const;

 private:
  struct Run {
    std::int64_t first_id = 0;
    std::int64_t last_id = 0;
    TimeNs ts = 0;
    TimeNs end_ts = 0;
    std::int64_t count() const { return last_id - first_id + 1; }
  };
  SpanStream(rundb::Reader& reader, const RunPart& part, std::int64_t window_spans)
      : reader_(&reader), part_(part), window_spans_(window_spans) {}
  Status read(std::int64_t first_id, std::int64_t last_id, TimeNs end_ts,
              std::vector<rundb::SpanRow>& spans);

  rundb::Reader* reader_;
  RunPart part_;
  std::int64_t window_spans_;
  std::vector<Run> runs_;       // by their begin
  std::size_t next_run_ = 0;    // the first that has not begun
  std::vector<Run> begun_;      // that may hold more
  TimeNs window_begin_ts_ = 0;  // where the next window begins
  std::int64_t read_count_ = 0;
  std::int64_t all_count_ = 0;
};

}  // namespace sluice::report::detail
