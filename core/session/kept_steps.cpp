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

Status Session::Schedule::ask_between(const char* what, const std::function<Status()>& action) {
  return ask({.kind = Note::Kind::between, .action = &action, .what = what});
}

Result<StepId> Session::Schedule::commit_step() {
  StepId id;
  RETURN_IF_ERROR(ask_between("a commit", [&] {
    id = step_id(state::last_commit_of(run_->state().store()));
    return ok_status();
  }));
  return id;
}

Result<StepId> Session::Schedule::keep(const std::string& keeper) {
  StepId id;
  RETURN_IF_ERROR(ask_between("keeping a step", [&]() -> Status {
    ASSIGN_OR_RETURN(const state::CommitId kept, run_->state().keep(keeper, residual_of(*run_)));
    id = step_id(kept);
    return ok_status();
  }));
  return id;
}

Status Session::Schedule::release(const StepId& id) {
  return ask_between("the release of a step",
                     [&] { return run_->state().store().release({id.step, id.version}); });
}

Result<std::vector<KeptStep>> Session::Schedule::kept() {
  std::vector<KeptStep> kept;
  RETURN_IF_ERROR(ask_between("the list of kept steps", [&] {
    for (const state::KeptCommit& commit : run_->state().store().kept()) {
      kept.push_back({step_id(commit.id), commit.keeper});
    }
    return ok_status();
  }));
  return kept;
}

}  // namespace sluice::session
