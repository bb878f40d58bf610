#pragma once
// A whole run: steps until done, stopped or failed, with validation between and text at the end.
//
// Thread contract: the thread that opened the run.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/train/training_run.h"

namespace sluice::train {

struct StepReport {
  std::int64_t step = 0;  // 1 = the first
  std::int64_t steps = 0;
  double loss = 0;
  double grad_norm = 0;
  double lr = 0;
  double loss_scale = 1;
  bool skipped = false;
  std::int64_t tokens = 0;
  TimeNs forward_ns = 0;
  TimeNs backward_ns = 0;
  TimeNs update_ns = 0;  // with the commit
  TimeNs total_ns = 0;
};

// Knobs that somebody wants changed while the run goes on.
struct AskedChange {
  std::int64_t id = 0;                // the asker's own
  std::vector<std::string> settings;  // "key=value"
  std::string who;
};

// Told how the run goes, and asked what is to change. All on the schedule's thread, between steps.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepReport& report) = 0;
  virtual void on_validation(std::int64_t step, double loss) = 0;
  virtual bool should_stop() = 0;  // after this step
  // What was asked for since the last call; taken over before the next step, each as a whole or not
  // at all.
  virtual std::vector<AskedChange> asked_changes() { return {}; }
  // Whether the state of the last commit is to be kept (TrainingRun::save_snapshot), and what
  // became of that.
  virtual bool snapshot_is_asked() { return false; }
  virtual void on_snapshot(const Result<KeptSnapshot>& /*kept*/) {}
  // Before the first step that has the new values; `step` counts from 0, as in the run database.
  // `asked` is null for what the settings or `changes` of train() planned.
  virtual void on_knobs_changed(std::int64_t /*step*/, TimeNs /*ts*/,
                                std::span<const settings::KnobChange> /*changes*/,
                                const AskedChange* /*asked*/) {}
  // Nothing has changed.
  virtual void on_change_refused(std::int64_t /*step*/, TimeNs /*ts*/, const AskedChange& /*asked*/,
                                 const Error& /*why*/) {}
};

struct TrainReport {
  std::int64_t first_step = 0;  // steps already done when this run began
  std::int64_t last_step = 0;
  bool stopped = false;        // by should_stop()
  bool knobs_changed = false;  // between its steps: the means are of different settings
  std::vector<double> losses;  // one a step of this run
  std::optional<double> validation_loss;
  std::optional<std::string> sample;
  double forward_seconds = 0;  // means a step
  double backward_seconds = 0;
  double update_seconds = 0;
  double total_seconds = 0;
  std::vector<runtime::LinkBytes> link_bytes;  // sums over the steps, in order of platform().links
};

// Knobs that change once so many steps are committed.
struct PlannedChange {
  std::int64_t step = 0;
  std::vector<std::string> settings;  // "key=value"
};

// Trains until config.schedule.steps are committed. A failure leaves the last commit intact.
Result<TrainReport> train(TrainingRun& run, TrainObserver& observer,
                          std::span<const PlannedChange> changes = {});

}  // namespace sluice::train
