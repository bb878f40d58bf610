#pragma once
// A model of random parameters that takes steps only to be timed.
//
// Thread contract: as TrainableModel.

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/calibrate/layer_timing.h"

namespace sluice::calibrate {

// Blocks are alike: a few are timed, and stand for all.
inline constexpr std::int64_t kTimedBlocks = 3;

// Seconds of each layer, of one step.
struct StepSeconds {
  std::vector<double> forward;
  std::vector<double> backward;
};

class TimedModel {
 public:
  // Has at most kTimedBlocks of the shape's blocks; of two stacks one block each.
  static Result<std::unique_ptr<TimedModel>> make(const model::ModelFactory& factory,
                                                  const TimedCase& of, int thread_count);

  Result<StepSeconds> step();
  std::int32_t first_block() const { return first_block_; }
  // Seconds of one layer's forward after a pause; the layers below it went before the pause, so
  // what it reads is there.
  Result<double> forward_after(std::chrono::milliseconds idle, LayerId layer);

 private:
  TimedModel(const TimedCase& of, const model::ModelShape& shape);
  Status set_batch();
  std::int32_t layer_count() const { return built_.model->layout().layer_count(); }

  const std::int64_t batch_;
  const std::int64_t sequence_;
  std::int32_t first_block_ = 1;
  std::int64_t target_sequence_ = 0;  // of a decoder, or 1 of a classifier
  bool has_decoder_ = false;
  std::vector<std::int32_t> classes_;  // of a classifier's windows
  std::vector<std::uint16_t> parameters_;
  std::vector<std::uint16_t> gradient_;
  std::vector<std::int32_t> tokens_;
  model::BuiltModel built_;
};

}  // namespace sluice::calibrate
