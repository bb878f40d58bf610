#pragma once
// The model of a recorded run, as plans of the run's likes need it. A program that computes its
// gradients itself (core/session) has no model file: then its tensors are in the record, and what
// they cost is what the program was recorded to take.
//
// Thread contract: plain data and free functions.

#include <string>
#include <vector>

#include "base/status.h"
#include "core/model/model_shape.h"
#include "core/tune/recorded_steps.h"

namespace sluice::plan {
struct RunPlan;
}
namespace sluice::platform {
struct Platform;
}
namespace sluice::settings {
struct RunConfig;
}

namespace sluice::tune {

// What a program was recorded to take in a step, by layer.
struct ProgramCosts {
  std::vector<TimeNs> forward_ns;
  std::vector<TimeNs> backward_ns;
};

struct RecordedModel {
  RecordedModel() = default;
  RecordedModel(model::ModelShape of_file) : shape(std::move(of_file)) {}

  model::ModelShape shape;
  model::FlatLayout tensors;  // of a program of its own; no layers: it has a model file
  ProgramCosts costs;         // the same; empty: not known yet

  bool is_of_program() const { return !tensors.layers.empty(); }
  std::int64_t parameter_count() const;
  // Errors: those of plan::plan_run(), and of a program settings that do not go with it.
  Result<plan::RunPlan> plan(const settings::RunConfig& config,
                             const platform::Platform& platform) const;
};

// By the key `tensors` of a record's meta (core/session/session_settings.h). ErrorCode::config: it
// is not readable.
Result<RecordedModel> model_of_program(const std::string& tensors,
                                       const settings::RunConfig& config);

// The mean of the middle half of the steps. All that a program does before its backward, in the
// last layer's forward: a program waits for all parameters first. ErrorCode::config: it recorded
// no forward or no backward.
Result<ProgramCosts> costs_of_program(const RecordedSteps& steps, std::int32_t layer_count);

}  // namespace sluice::tune
