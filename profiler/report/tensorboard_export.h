#pragma once
// A run's curves as an event file of TensorBoard: a scalar for each figure of each step, each
// validation, and the shares of a step's causes. docs/recording.md has the names.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/report/output.h"
#include "profiler/report/run_part.h"
#include "storage/rundb/reader.h"

namespace sluice::report {

struct TensorboardCounts {
  std::string file;  // its path
  std::int64_t steps = 0;
  std::int64_t scalars = 0;
  // Figures that no step has, as the loss of a simulated run: they have no curve.
  std::vector<std::string> absent = {};
};

// `folder` as export_csv() takes it. The file in it has one name for one run, so that an export
// over another one replaces it: TensorBoard shows all files of a folder as one run.
Result<TensorboardCounts> export_tensorboard(rundb::Reader& reader, const std::string& folder,
                                             IfExists if_exists, const RunPart& part,
                                             const OnProgress& on_progress);

}  // namespace sluice::report
