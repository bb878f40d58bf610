#pragma once
// The transfers' share of the processors' time, as computing notices it: threads in lock step alone
// and beside reads and writes of all drives, in turns.
//
// The kernel's own account (/proc/stat) does not do: made at a timer's ticks it had a third of that
// on a machine where both were compared (docs/calibration.md). Nor do layers of a model: a
// processor changes its pace by more than this.
//
// Thread contract: one call at a time; computing has threads of its own meanwhile.

#include <span>

#include "core/calibrate/drive_load.h"
#include "core/calibrate/fit.h"

namespace sluice::calibrate {

struct TollOptions {
  int thread_count = 1;  // that compute
  int pair_count = 15;
  double seconds = 0.8;                    // of computing, each time
  std::int64_t inflight_bytes = 16 << 20;  // each way of each drive
};

Result<Toll> measure_toll(DriveLoad& load, std::span<const TestFile* const> files,
                          const TollOptions& options);

}  // namespace sluice::calibrate
