#pragma once
// The processor samples of a run, where it was sampled (profiler/sample).
//
// Thread contract: that of its reader (storage/rundb/reader.h), which lives longer.

#include <vector>

#include "base/status.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

// Between the two are all times that a row may have.
inline constexpr TimeNs kBeforeAllSamples = -(TimeNs{1} << 60);
inline constexpr TimeNs kBehindAllSamples = TimeNs{1} << 60;

class SampleReader {
 public:
  explicit SampleReader(Reader& reader) : file_(reader.file_.get()) {}

  // To be asked first: without its tables the questions below are errors. ErrorCode::corrupt: the
  // tables are not as Sluice makes them.
  Result<bool> has_samples();

  Result<std::vector<SampledThreadRow>> threads();
  Result<std::vector<SampledFunctionRow>> functions();
  Result<std::vector<CallRow>> calls();  // by id; a caller comes before those that it calls
  // No index: each reads its whole table. Samples in [begin, end), in the order in which they were
  // written.
  Result<std::vector<CallSampleRow>> samples_between(TimeNs begin, TimeNs end);
  // Stretches that lie in it in whole or in part.
  Result<std::vector<ProcessorTimeRow>> times_between(TimeNs begin, TimeNs end);

 private:
  detail::ReadConnection* file_;
};

}  // namespace sluice::rundb
