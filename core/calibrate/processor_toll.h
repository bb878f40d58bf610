#pragma once
// What transfers take of the processor's time, as computing notices it: layers of a model alone and
// beside reads and writes of all drives, in turns, since a processor may change its pace in
// between.
//
// Thread contract: one call at a time; computing has a thread of its own meanwhile.

#include <functional>
#include <span>

#include "core/calibrate/drive_load.h"
#include "core/calibrate/fit.h"

namespace sluice::calibrate {

struct TollOptions {
  int pair_count = 15;
  double seconds = 0.8;                    // of computing, each time
  std::int64_t inflight_bytes = 16 << 20;  // each way of each drive
};

// `pass_seconds` computes for at least so long, and returns how long one pass over its layers took.
Result<Toll> measure_toll(DriveLoad& load, std::span<const TestFile* const> files,
                          const std::function<Result<double>(double)>& pass_seconds,
                          const TollOptions& options);

}  // namespace sluice::calibrate
