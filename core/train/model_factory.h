#pragma once
// Who makes the model of a run. The command line passes core/model/gpt2; tests pass arithmetic that
// needs no libtorch.
//
// Thread contract: make() and memory() from the thread that opens the run.

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/model/model_shape.h"
#include "core/model/trainable_model.h"
#include "core/train/run_config.h"

namespace sluice::train {

// Upper bounds, in bytes of resident memory, of what computing takes besides the flat parameters.
struct ModelMemory {
  std::int64_t library_bytes = 0;
  std::int64_t activation_bytes = 0;
  std::int64_t temporary_bytes = 0;
  std::int64_t tied_gradient_bytes = 0;
};

struct BuiltModel {
  std::unique_ptr<model::TrainableModel> model;
  std::function<Result<std::string>(const SampleConfig&)> sample;  // may be empty
};

struct ModelFactory {
  std::function<Result<BuiltModel>(const model::ModelShape&, const RunConfig&,
                                   std::span<std::uint16_t> parameters)>
      make;
  std::function<ModelMemory(const model::ModelShape&, const RunConfig&)> memory;
};

}  // namespace sluice::train
