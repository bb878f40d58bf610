#pragma once
// The optimizer state of a run on its drives, with what is kept beside it: the recipe that it was
// made with, the residual of error feedback, snapshots.
//
// Thread contract: the schedule's thread, between steps.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stops.h"
#include "core/offload/residual_file.h"
#include "core/session/recipe_history.h"
#include "core/session/run_observer.h"
#include "core/session/start_from.h"
#include "storage/state/state_store.h"

namespace sluice::plan {
struct PlannedKnobs;
struct RunPlan;
}  // namespace sluice::plan

namespace sluice::session {

class RunState {
 public:
  // `plan` is the run's, which outlives it, and is in force as it is. `history`: what a state that
  // is there was made with; none: a new state, or one without a record of it.
  RunState(const plan::RunPlan& plan, std::optional<RecipeHistory> history)
      : plan_(plan), history_(std::move(history)) {}

  // Its files, empty. What stands in the way of them is an error, or with `anew`, where it is a
  // state that nobody has open, goes.
  Status create(bool anew = false);
  // At its last commit. `moved`: its folder was made by a reshard, and has no recipe yet.
  Status open(bool moved);
  // Opened anew, once `how` has brought it to another commit (storage/state/return_to.h).
  Status go_back(const std::function<Status(const state::StateStore::Options&)>& how);
  // Whether it is one that these settings can go on with. ErrorCode::config: the first difference.
  Status check_found() const;
  // Devices that the run has no longer leave it, and the drives' room is reserved. `recipe`: of
  // this run, compared with that of the steps before.
  Status take_over(const Recipe& recipe);

  state::StateStore& store() const { return *store_; }
  // The last committed step.
  std::int64_t step() const { return store_->committed().position.step; }
  state::StateIdentity identity() const;
  std::vector<std::string> files() const;  // one a device
  Status make_room(const plan::PlannedKnobs& planned);

  // Values other than those of the steps before, from step() on.
  const std::vector<settings::KnobChange>& recipe_changes() const { return recipe_changes_; }
  // Before the first commit: no state that holds something is without.
  Status begin_recipe(const Recipe& recipe);
  // `tells`: a state that has no recipe is worth a warning here.
  Status go_on_with_recipe(const Recipe& recipe, bool tells);
  // Other settings are in force from the next step on.
  Status keep_recipe(const Recipe& recipe);

  // The residual as it is now, for a resume that goes on to the bit.
  Status keep_residual(const offload::ResidualPlace& residual) const;
  // A resume; with zeros and a warning where the run was killed, or `drops_residual_of` names other
  // ranks, whose residual is not handed on.
  Status load_residual(const offload::ResidualPlace& residual,
                       const std::string& drops_residual_of) const;
  // The file of a state that a new one replaces.
  void remove_residual() const;
  // A new state has none to go on with.
  Status begin_residual() const;

  // The last commit stays as it is until it is released, with its residual. On any error the run is
  // as it was.
  Result<state::CommitId> keep(const std::string& keeper, const offload::ResidualPlace& residual);

  // The last commit as OUTPUT/snapshots/step-NNNNNN, with recipe and residual. On any error the run
  // is as it was.
  Result<KeptSnapshot> save_snapshot(const offload::ResidualPlace& residual, const Stops& stops);
  // The same in another folder, which is not there yet.
  Result<KeptSnapshot> save_snapshot(const std::string& folder,
                                     const offload::ResidualPlace& residual, const Stops& stops);

 private:
  state::StateStore::Options options() const;
  std::string residual_path() const;
  std::string kept_residual_path(const state::CommitId& id) const;
  Status mark_residual_gone() const;
  Status remove() const;

  const plan::RunPlan& plan_;
  std::optional<RecipeHistory> history_;
  std::vector<settings::KnobChange> recipe_changes_;
  std::unique_ptr<state::StateStore> store_;
};

// Makes the folder and those above it. ErrorCode::io, with what to do.
Status make_folder(const std::string& path);
// The folder that a file is to lie in.
Status make_folder_of(const std::string& path);

}  // namespace sluice::session
