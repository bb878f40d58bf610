#pragma once
// Some steps of a run, chosen on the command line: `--steps A..B` or `--last N`.
//
// Thread contract: plain data; free functions.

#include <cstdint>
#include <string>

#include "profiler/report/run_part.h"

namespace sluice::cli {

struct StepChoice {
  std::string steps;      // "A..B" or "A", counted from 1; empty: not given
  std::int64_t last = 0;  // 0: not given
};

// All of the run where nothing was chosen. ErrorCode::config: no such range, or the run has not all
// of it.
Result<report::RunPart> chosen_part(rundb::Reader& reader, const StepChoice& choice);

}  // namespace sluice::cli
