#pragma once
// The records of a stretch of a run: spans, their causes, samples of counters.
//
// Thread contract: that of its reader (storage/rundb/reader.h), which lives longer.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

struct NamedSpan {
  SpanRow row = {};
  std::string name = {};
};

class SpanReader {
 public:
  using UseSpan = std::function<void(const SpanRow&)>;

  explicit SpanReader(Reader& reader) : file_(reader.file_.get()) {}

  // That were under way at some time from `begin` to `end`, both included, in order of their begin.
  Result<std::vector<SpanRow>> spans_between(TimeNs begin, TimeNs end);
  // The same for whoever keeps them otherwise, in order of their ids.
  Status each_span_between(TimeNs begin, TimeNs end, const UseSpan& use_span);
  // Those with these ids, both included, that began from `begin` to before `end`.
  Status each_span_of_ids(std::int64_t first_id, std::int64_t last_id, TimeNs begin, TimeNs end,
                          const UseSpan& use_span);
  // Those with these ids, both included.
  Status each_span_of_ids(std::int64_t first_id, std::int64_t last_id, const UseSpan& use_span);
  // Those without failure that ended in (after, until].
  Result<std::vector<NamedSpan>> spans_ended(TimeNs after, TimeNs until);

  // Into those spans, and into some that stand beside them.
  Result<std::vector<FlowRow>> flows_between(TimeNs begin, TimeNs end);
  // The causes of a span, and its effects; at most `count_max`. Effects are looked for among the
  // spans with ids from `first_id` to `last_id`: table flow is ordered by effect.
  Result<std::vector<SpanRow>> causes_of(std::int64_t span_id, std::int64_t count_max);
  Result<std::vector<SpanRow>> effects_of(std::int64_t span_id, std::int64_t first_id,
                                          std::int64_t last_id, std::int64_t count_max);

  // Samples from `begin` to `end`, by track and time, each track's with the last one before them.
  // Counters have no index: this reads all of them.
  Result<std::vector<CounterRow>> counters_between(TimeNs begin, TimeNs end);

 private:
  detail::ReadConnection* file_;
};

}  // namespace sluice::rundb
