#pragma once
// How a run's state came about: of a resume the change of sharding that it found, of a new state
// its initial values, which are those of a folder's weights or of the seed, and the optimizer's
// arrays, which are those of a folder or zeros.
//
// Thread contract: plain data; whoever fills calls from any number of threads.

#include <memory>

#include "core/offload/fill_initial.h"
#include "core/session/recipe.h"
#include "core/train/reshard.h"

namespace sluice::plan {
struct RunPlan;
}
namespace sluice::weights {
class AdapterCheckpoint;
class Checkpoint;
class OptimizerCheckpoint;
}  // namespace sluice::weights

namespace sluice::train {

struct RunOrigin {
  Resharded resharded;
  std::optional<StateFormat> format_before = {};  // that the state had, where it was another one
  std::shared_ptr<const weights::Checkpoint> weights;  // null: the seed's values, or a resume
  std::shared_ptr<const weights::AdapterCheckpoint> adapter;  // null: new ones, none, or a resume
  // The folder of the model that adapters are trained on (docs/lora.md); null: there are none.
  std::shared_ptr<const weights::Checkpoint> base;
  std::shared_ptr<const weights::OptimizerCheckpoint> moments;  // null: zeros, or a resume

  // Errors: those of the folders that the run's model and its optimizer_state are.
  static Result<RunOrigin> of_new_state(const plan::RunPlan& plan);

  // What ranks begin with is to be the same.
  std::vector<session::Fact> facts() const;
  // Updates that the optimizer has made before the first step.
  std::int64_t optimizer_step() const;
  // The values of this rank's part. `plan` outlives it.
  offload::FillInitial fill(const plan::RunPlan& plan) const;

 private:
  Status find_adapter(const plan::RunPlan& plan);
};

}  // namespace sluice::train
