#pragma once
// Keeps the spans around what is looked at: a live run that is followed is read from where the last
// read ended, and a nearer look at the same stretch reads nothing.
//
// Thread contract: one thread at a time.

#include <vector>

#include "base/status.h"
#include "gui/data/span_index.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {

class SpanCache {
 public:
  // The spans that `index` knows and that were under way at some time from `begin` to `end`, both
  // included, in order of their begin. Valid until the next call.
  Result<const std::vector<rundb::SpanRow>*> between(rundb::Reader& reader, const SpanIndex& index,
                                                     TimeNs begin, TimeNs end);
  std::int64_t read_count() const { return read_count_; }  // rows, so far

 private:
  bool covers(const SpanIndex& index, TimeNs begin, TimeNs end) const;
  Status add_new(rundb::Reader& reader, std::int64_t last_id);

  std::vector<rundb::SpanRow> rows_;
  bool has_rows_ = false;
  TimeNs begin_ = 0;
  TimeNs end_ = 0;  // the largest time there is: all that begins behind `begin_`
  std::int64_t last_id_ = 0;
  std::int64_t read_count_ = 0;
};

}  // namespace sluice::gui
