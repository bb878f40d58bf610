#pragma once
// The samples of several processes as those of one: their threads, functions and calls under ids of
// the merged record, behind those of the processes before (storage/rundb/sample_reader.h).
//
// Thread contract: one thread at a time. Memory: the samples of one process.

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/rows.h"

namespace sluice::report::detail {

class MergedSamples {
 public:
  // `append` writes a batch, and leaves it empty.
  using Append = std::function<Status(rundb::Batch&)>;
  explicit MergedSamples(Append append) : append_(std::move(append)) {}

  // Nothing of a process that was not sampled.
  Status add(rundb::Reader& reader);

 private:
  Append append_;
  // The last of the processes before.
  std::int64_t thread_ = 0;
  std::int64_t function_ = 0;
  std::int64_t call_ = 0;
};

}  // namespace sluice::report::detail
