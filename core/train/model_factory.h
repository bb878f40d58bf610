#pragma once
// Who makes the model of a run. The command line passes core/model/gpt2; tests pass arithmetic that
// needs no libtorch.
//
// Thread contract: make() and memory() from the thread that opens the run.

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/memory_item.h"
#include "core/model/model_shape.h"
#include "core/model/trainable_model.h"
#include "core/settings/run_config.h"

namespace sluice::train {

struct BuiltModel {
  std::unique_ptr<model::TrainableModel> model;
  std::function<Result<std::string>(const settings::SampleConfig&)> sample;  // may be empty
};

struct ModelFactory {
  std::function<Result<BuiltModel>(const model::ModelShape&, const settings::RunConfig&,
                                   std::span<std::uint16_t> parameters)>
      make;
  // What the model takes besides the 16-bit parameters while it computes.
  std::function<MemoryItems(const model::ModelShape&, const settings::RunConfig&)> memory;
};

}  // namespace sluice::train
