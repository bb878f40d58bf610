#pragma once
// Which rows a run database once had and has no more: each operation got the next id when it was
// written, and tables span_run and span_batch say which ids stand in the file; steps are numbered,
// too. What was never written is counted in table `stat` (Reader::losses) and is no matter of this.
//
// Thread contract: a free function that uses its reader.

#include <cstdint>
#include <string>

#include "base/status.h"
#include "storage/rundb/reader.h"

namespace sluice::rundb {

struct Completeness {
  std::int64_t operations_recorded = 0;  // as far as any of the three tables knows
  std::int64_t operations_missing =
      0;  // of them: not in table span, or not found through its index
  // Without rows in table step: gaps in their numbers that table stat does not know of, and those
  // that only operations name. Numbers with more gaps than steps are the caller's own: not counted.
  std::int64_t steps_missing = 0;
  bool are_rows_counted = true;  // false: too many; the index alone was looked at

  bool is_whole() const { return operations_missing == 0 && steps_missing == 0; }
  // "3 000 of 38 383 operations, 9 steps": what has no rows; "" if all is there.
  std::string missing_words() const;
};

// Counting the rows of a table reads all its pages: of a file with more operations than these only
// the index is looked at.
inline constexpr std::int64_t kCountedSpansMax = 5'000'000;

Result<Completeness> completeness_of(Reader& reader, std::int64_t counted_max = kCountedSpansMax);

}  // namespace sluice::rundb
