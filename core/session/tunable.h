#pragma once
// A live run as whoever changes its knobs sees it: the control socket (live_control.h) and the
// schedule of changes (knob_changes.h).
//
// Thread contract: the schedule's thread, between steps.

#include "base/status.h"
#include "base/units.h"

namespace sluice::plan {
struct LivePlan;
struct PlannedKnobs;
}  // namespace sluice::plan
namespace sluice::settings {
struct RunConfig;
}

namespace sluice::session {

class Tunable {
 public:
  virtual ~Tunable() = default;

  // The ground that a change is planned from: plan::plan_knobs(live_plan(), wanted).
  virtual plan::LivePlan live_plan() const = 0;
  virtual TimeNs now_ns() = 0;
  // Settles the last step, and commits what is not committed yet.
  virtual Status commit() = 0;
  // Reserves the drives' room for a change, so that a lack of it is known before anything moves. A
  // refusal leaves the run as it was.
  virtual Status make_room(const plan::PlannedKnobs& planned) = 0;
  // Carries the change out, on the same state, clock, model and data, between two steps that are
  // committed. An error ends the run.
  virtual Status apply(const plan::PlannedKnobs& planned) = 0;
  // Records with the state the settings that are in force from the next step on.
  virtual Status keep_recipe(const settings::RunConfig& in_force) = 0;
  // By all ranks of the run: what one of them cannot do takes place on none.
  virtual Status agreed(const Status& mine) = 0;
};

}  // namespace sluice::session
