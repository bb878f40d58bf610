#pragma once
// Who a run reports to, and who may ask something of it between two steps.
//
// Thread contract: all on the schedule's thread, between steps.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "core/settings/run_config.h"
#include "storage/state/snapshot.h"

namespace sluice::session {

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

// The loss of the text that is held out, with the weights of a step.
struct ValidationReport {
  std::int64_t step = 0;  // behind it; 1 = the first
  TimeNs ts = 0;          // when it was known
  double loss = 0;        // mean over the tokens; of a model that classifies, over the records
  std::int64_t tokens = 0;
  std::optional<double> accuracy = {};  // of a model that classifies: the share of right answers
};

// A commit that is kept as files of its own.
struct KeptSnapshot {
  std::string path;  // the folder: a state_dir to resume from
  state::SavedSnapshot saved;
};

// Knobs that somebody wants changed while the run is live.
struct AskedChange {
  std::int64_t id = 0;                // the asker's own
  std::vector<std::string> settings;  // "key=value"
  std::string who;
};

// Told how the run goes.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_step(const StepReport& /*report*/) {}
  virtual void on_validation(const ValidationReport& /*report*/) {}
  // Within what may take minutes between two steps: `done` of `count` of it.
  virtual void on_work(const char* /*what*/, std::int64_t /*done*/, std::int64_t /*count*/) {}
  virtual void on_snapshot(const Result<KeptSnapshot>& /*kept*/) {}
  // Before the first step that has the new values; `step` counts from 0, as in the run database.
  // `asked` is null for what the settings or `changes` of train() planned. What several ask for the
  // same step is put in force at once and told one by one, with what each of them has changed.
  virtual void on_knobs_changed(std::int64_t /*step*/, TimeNs /*ts*/,
                                std::span<const settings::KnobChange> /*changes*/,
                                const AskedChange* /*asked*/) {}
  // Nothing has changed.
  virtual void on_change_refused(std::int64_t /*step*/, TimeNs /*ts*/, const AskedChange& /*asked*/,
                                 const Error& /*why*/) {}
  // `later`, for the same step, turns all of its knobs: it never comes into force.
  virtual void on_change_superseded(const AskedChange& /*asked*/, const AskedChange& /*later*/) {}
};

// Asks something of the run.
class RunRequests {
 public:
  virtual ~RunRequests() = default;
  // Hands over the changes asked for since the last call; taken over before the next step, together
  // if they can be: each as a whole or not at all, and of a knob that several turn the last one.
  virtual std::vector<AskedChange> take_changes() { return {}; }
  // The last commit is to be kept (TrainingRun::save_snapshot); until on_snapshot() says how it
  // went.
  virtual bool wants_snapshot() { return false; }
  // After the step under way. Asked again within what is only for people (validation, the sample),
  // which is then left out.
  virtual bool wants_stop() { return false; }
};

struct RunHooks {
  std::vector<RunObserver*> observers;
  std::vector<RunRequests*> requests;
};

}  // namespace sluice::session
