#pragma once
// What a run database has that a copy of it has not, turn by turn: the rows that came since a
// cursor. A turn is read in one snapshot, which ends before the caller sends anything, so that no
// slow line keeps the log of the run's writer from being folded in.
//
// Thread contract: that of its reader, which lives longer.

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "storage/rundb/copied_rows.h"
#include "storage/rundb/reader.h"

namespace sluice::rundb {

struct CopyTurn {
  bool begins_anew = false;  // the copy drops what it has: it is of another recording, or a resume
                             // took steps back
  std::vector<CopiedPiece> pieces = {};
  CopyCursor cursor = {};       // of a copy that has taken them
  std::int64_t spans_left = 0;  // behind the cursor
  bool has_more = false;        // the next turn needs not wait
  bool is_empty() const { return pieces.empty() && !begins_anew; }
};

class RecordTail {
 public:
  explicit RecordTail(Reader& reader, std::int64_t rows_max = 1 << 16)
      : reader_(reader), rows_max_(rows_max) {}

  // At most `rows_max` rows of each table that grows, with the flows into its spans. `since` may be
  // anything: a cursor that no copy of this file can have begins anew. Errors: those of Reader.
  Result<CopyTurn> next(const CopyCursor& since);

 private:
  Reader& reader_;
  std::int64_t rows_max_;
  // After the turn before: a file that has not changed is not read again.
  std::int64_t version_ = -1;  // SQLite's, of the file
  CopyCursor cursor_;
  bool had_more_ = true;
};

}  // namespace sluice::rundb
