#pragma once
// The options that a run's settings ask of its model.
//
// Thread contract: free functions.

#include "core/model/lora.h"
#include "core/model/model_factory.h"
#include "core/settings/run_config.h"

namespace sluice::plan {

model::ModelOptions model_options(const settings::RunConfig& config);

// The adapters that are trained, if any.
model::LoraChoice lora_choice(const settings::RunConfig& config);

// For the text at the end of a run.
model::SampleOptions sample_options(const settings::RunConfig& config);

}  // namespace sluice::plan
