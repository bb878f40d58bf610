#pragma once
// A run whose numbers have gone bad: when that ends it, and what its owner can do then.
//
// The step that fails is not the cause: weights that give no finite loss were made by the steps
// before. So the advice follows what is committed, and a resume is proposed only where it has other
// weights than those that have just failed.
//
// Thread contract: plain data and free functions; one thread a SkippedSteps.

#include <cstdint>
#include <string>

#include "base/status.h"
#include "core/session/run_observer.h"
#include "core/settings/run_config.h"

namespace sluice::train {

// How a run stands when it is given up.
struct DivergedRun {
  std::string why = {};  // no sentence of its own: "the gradients of step 2 are not finite"
  double loss = 0;       // of the last step
  ParameterKind precision = ParameterKind::bf16;
  std::int64_t weights_step = 0;    // the step that made the weights of the last one; 0: the first
  std::int64_t committed_step = 0;  // as late as that, or later: the weights are committed
  std::string snapshot = {};        // of weights before those; "": there is none
};

// ErrorCode::diverged, with what to do.
Error diverged(const DivergedRun& run);

// The newest snapshot in `output` of fewer than `steps` steps (TrainingRun::save_snapshot), or "".
std::string newest_snapshot_before(const std::string& output, std::int64_t steps);

// Steps that were skipped for overflow. One changes nothing but the loss scale, so where that can
// fall no further, or where the loss, which has no scale in it, is not finite, the next step
// differs by its text alone; after some of these in a row the run has come to its end.
class SkippedSteps {
 public:
  SkippedSteps(const settings::RunConfig& config, std::int64_t first_step);

  void note(const session::StepReport& step);
  std::int64_t count() const { return count_; }
  // As many in a row as end the run, and why; "": not so many.
  std::string why_over() const;
  // The last step whose update was applied; that from which the run began where none was.
  std::int64_t applied_step() const { return applied_step_; }

 private:
  const settings::RunConfig& config_;
  std::int64_t count_ = 0;
  std::int64_t hopeless_in_a_row_ = 0;
  std::int64_t applied_step_;
  double loss_ = 0;
  double loss_scale_ = 1;
};

}  // namespace sluice::train
