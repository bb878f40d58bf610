#pragma once
// Forward and backward of models, timed layer by layer: what `sluice calibrate` hands to measure().
//
// Thread contract: free functions. The timer they make is called by one thread at a time; it
// computes on a thread of its own, and the models' library takes more.

#include <chrono>
#include <vector>

#include "core/calibrate/calibration.h"
#include "core/model/model_factory.h"

namespace sluice::calibrate {

// A model and the tokens of its passes: `batch` rows of `sequence`.
struct TimedCase {
  model::ModelShape shape;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
};

// Two cases of one model: a batch that fills the machine about as 4 x 256 tokens of GPT-2 124M do
// (4 to 64 rows), and a quarter of it.
std::vector<TimedCase> timed_cases(const model::ModelShape& shape);

struct LayerTiming {
  std::vector<TimedCase> cases;  // with Effort::quick the first two
  int thread_count = 0;          // 0: all processors
  Effort effort = Effort::thorough;
  // As between two layers of a run that waits for its drives.
  std::chrono::milliseconds idle{400};
};

// Times a few blocks and the head of each case, which stand for the whole model. Its errors are
// those of the model.
ComputeTimer layer_timer(const model::ModelFactory& factory, const LayerTiming& timing);

}  // namespace sluice::calibrate
