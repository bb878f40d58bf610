#pragma once
// `mpirun -n N sluice calibrate --ranks`: collectives among these ranks, into a platform file.
//
// Thread contract: main thread, on every rank.

#include <string>

#include "base/status.h"
#include "core/calibrate/platform_text.h"

namespace sluice::cli {

struct RankCalibration {
  std::string platform;  // a platform file, which is read on rank 0 alone
  double seconds_max = 60;
  calibrate::IfThere if_there = calibrate::IfThere::refuse;  // where it has a cluster already
  bool json = false;
};

// Rank 0 speaks for all. What fails on one rank ends all.
Status calibrate_ranks(const RankCalibration& arguments);

}  // namespace sluice::cli
