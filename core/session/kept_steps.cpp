// What a program asks of a session's state between two steps: a commit, and steps that are kept.

#include "core/offload/assembly.h"
#include "core/session/note_box.h"
#include "core/session/open_run.h"
#include "core/session/run_state.h"
#include "core/session/session_schedule.h"

namespace sluice::session {
namespace {

StepId step_id(const state::CommitId& id) { return {id.step, id.version}; }

}  // namespace

Result<StepId> Session::Schedule::commit_step() {
  StepId id;
  RETURN_IF_ERROR(between("a commit", [&](OpenRun& run) {
    id = step_id(state::last_commit_of(run.state().store()));
    return ok_status();
  }));
  return id;
}

Result<StepId> Session::Schedule::keep(const std::string& keeper) {
  StepId id;
  RETURN_IF_ERROR(between("keeping a step", [&](OpenRun& run) -> Status {
    ASSIGN_OR_RETURN(const state::CommitId kept, run.state().keep(keeper, residual_of(run)));
    id = step_id(kept);
    return ok_status();
  }));
  return id;
}

Status Session::Schedule::release(const StepId& id) {
  return between("the release of a step",
                 [&](OpenRun& run) { return run.state().store().release({id.step, id.version}); });
}

Result<std::vector<KeptStep>> Session::Schedule::kept() {
  std::vector<KeptStep> kept;
  RETURN_IF_ERROR(between("the list of kept steps", [&](OpenRun& run) {
    for (const state::KeptCommit& commit : run.state().store().kept()) {
      kept.push_back({step_id(commit.id), commit.keeper});
    }
    return ok_status();
  }));
  return kept;
}

}  // namespace sluice::session
