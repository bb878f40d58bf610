#pragma once
// A copy of a run database that follows the original: rows with the same ids, in a file that every
// reader opens. What comes from the other end may be anybody's, so each row is within the bounds
// of storage/rundb/detail/tables.h before it is written, and the file within a size. A turn is one
// transaction, together with the cursor, so a copy that was killed goes on where it was.
//
// The cursor stands in table `followed` of the copy, which no reader reads.
//
// Thread contract: one thread at a time. It has the writer's lock, so that the copy is being
// recorded (storage/rundb/recording_now.h) for as long as it is followed.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "storage/rundb/copied_rows.h"

namespace sluice::rundb {

class CopyWriter {
 public:
  // A new copy; what lies there, if it is a copy, goes. Errors: config where something else lies
  // there, and those of Writer::create.
  static Result<std::unique_ptr<CopyWriter>> create(const std::string& path,
                                                    std::int64_t size_bytes_max);
  // Goes on with a copy. Errors: config where the file is a run database and no copy.
  static Result<std::unique_ptr<CopyWriter>> open(const std::string& path,
                                                  std::int64_t size_bytes_max);
  ~CopyWriter();  // closes; an error is lost, so call close()

  const std::string& path() const;
  // What the copy has.
  const CopyCursor& cursor() const;

  // All of the turn or, with an error, nothing: corrupt (rows that no run has), config (the copy
  // would be larger than was allowed), and what SQLite says.
  Status write(std::span<const CopiedPiece> pieces, const CopyCursor& cursor);

  // Leaves one self-contained file.
  Status close();

 private:
  struct Impl;  // keeps SQLite out of this header
  explicit CopyWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::rundb
