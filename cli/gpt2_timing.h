#pragma once
// Forward and backward of GPT-2 models, timed for `sluice calibrate`.
//
// Thread contract: one call at a time; libtorch takes threads of its own.

#include <optional>
#include <string>

#include "core/calibrate/calibration.h"

namespace sluice::cli {

struct Gpt2Timing {
  std::string model_path;  // empty: two shapes of our own, one wide, one narrow
  int thread_count = 0;    // 0: all cores
  calibrate::Effort effort = calibrate::Effort::thorough;
};

// Errors of the model file.
Result<calibrate::ComputeTimer> gpt2_timer(const Gpt2Timing& timing);

}  // namespace sluice::cli
