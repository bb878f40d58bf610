#pragma once
// A whole run: steps until done, stopped or failed, with validation between and text at the end.
//
// Thread contract: the thread that opened the run.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/byte_counters.h"
#include "core/session/knob_schedule.h"
#include "core/session/run_observer.h"

namespace sluice::session {
struct RunHooks;
}

namespace sluice::train {

class TrainingRun;

struct TrainReport {
  std::int64_t first_step = 0;  // steps already done when this run began
  std::int64_t last_step = 0;
  bool stopped = false;            // because somebody asked for it
  bool knobs_changed = false;      // between its steps: the means are of different settings
  std::vector<double> losses;      // one a step of this run
  std::int64_t skipped_count = 0;  // of them, for overflow
  double loss_scale = 1;           // of the next step
  std::optional<session::ValidationReport> validation;  // the last one
  std::optional<std::string> sample;
  std::vector<std::string> left_out;  // of what is only for people, since somebody asked to stop
  double forward_seconds = 0;         // means a step
  double backward_seconds = 0;
  double update_seconds = 0;
  double total_seconds = 0;
  // overlap=exact: subgroups that were updated before their step's decision, and those of them that
  // it refuted; sums over the steps.
  std::int64_t ahead_count = 0;
  std::int64_t refuted_count = 0;
  std::int64_t refuted_step_count = 0;  // steps with any
  // overlap=local: subgroups that were clipped by their own norm, a sum over the steps.
  std::int64_t clipped_count = 0;
  std::int64_t clipped_step_count = 0;         // steps with any
  std::vector<runtime::LinkBytes> link_bytes;  // sums over the steps, in order of platform().links

  // The loss of the last weights: of a validation behind the last step, or of that step.
  double last_loss() const;
  // False: it is not finite, and further steps change nothing of that.
  bool can_go_on() const;
};

// Trains until config.schedule.steps are committed. A failure leaves the last commit intact.
Result<TrainReport> train(TrainingRun& run, const session::RunHooks& hooks,
                          std::span<const session::PlannedChange> changes = {});

}  // namespace sluice::train
