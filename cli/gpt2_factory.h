#pragma once
// The model of `sluice train`: core/model/gpt2, from a run's settings.
//
// Thread contract: as ModelFactory.

#include "core/train/model_factory.h"

namespace sluice::cli {

train::ModelFactory gpt2_factory();

}  // namespace sluice::cli
