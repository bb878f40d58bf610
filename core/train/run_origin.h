#pragma once
// How a run's state came about: of a resume the change of sharding that it found, of a new state
// its initial values, which are those of a folder's weights or of the seed.
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
class Checkpoint;
}

namespace sluice::train {

struct RunOrigin {
  Resharded resharded;
  std::shared_ptr<const weights::Checkpoint> weights;  // null: the seed's values, or a resume

  // Errors: those of the folder that the run's model is.
  static Result<RunOrigin> of_new_state(const plan::RunPlan& plan);

  // What ranks begin with is to be the same.
  session::Fact fact() const;
  // The values of this rank's part. `plan` outlives it.
  offload::FillInitial fill(const plan::RunPlan& plan) const;
};

}  // namespace sluice::train
