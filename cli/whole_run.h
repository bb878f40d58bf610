#pragma once
// A run that a command reads as one database, though it may have one a rank: those are merged into
// a file that is gone with the object.
//
// Thread contract: main thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/report/merged_file.h"
#include "storage/rundb/reader.h"

namespace sluice::cli {

class WholeRun {
 public:
  // `path`: a database, or the folder of a run of several ranks. Draws a line while it merges.
  static Result<WholeRun> open(const std::string& path);

  rundb::Reader& reader() { return *reader_; }
  // The one that predictions are asked of: the run's own, or rank 0's.
  const std::string& own_database() const { return databases_.front(); }

 private:
  WholeRun() = default;

  std::vector<std::string> databases_;  // of the ranks; else one
  std::optional<report::MergedFile> merged_;
  std::unique_ptr<rundb::Reader> reader_;  // closed before its file goes
};

}  // namespace sluice::cli
