#pragma once
// A run in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
// docs/recording.md says what becomes what.
//
// Thread contract: free functions.

#include <cstdint>

#include "base/status.h"
#include "profiler/report/output.h"
#include "profiler/report/run_part.h"
#include "storage/rundb/reader.h"

namespace sluice::report {

struct ChromeTraceCounts {
  std::int64_t spans = 0;
  std::int64_t flows = 0;
  // Flows whose cause began too long before: only the places of the last half million spans are
  // remembered. A cause outside of a part that was asked for is not missed.
  std::int64_t flows_left_out = 0;
};

// Memory does not grow with the run. The file is not closed.
Result<ChromeTraceCounts> write_chrome_trace(rundb::Reader& reader, OutputFile& file,
                                             const RunPart& part, const OnProgress& on_progress);

}  // namespace sluice::report
