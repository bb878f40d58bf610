#include "core/session/run_state.h"

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "core/optimizer/split_update.h"
#include "core/plan/drive_room.h"
#include "core/plan/knob_change.h"
#include "storage/state/replacement.h"

namespace sluice::session {
namespace {

namespace fs = std::filesystem;

}  // namespace

Status make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return ok_status();
  return make_error(ErrorCode::io,
                    "cannot make the folder {}: {}; choose another with --set output=", path,
                    error.message());
}

Status make_folder_of(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (!error) return ok_status();
  return make_error(ErrorCode::io, "cannot make the folder {}: {}", folder.string(),
                    error.message());
}

state::StateIdentity RunState::identity() const {
  state::StateIdentity identity;
  identity.model_name = plan_.shape.name;
  identity.model_fingerprint = plan_.layout.fingerprint();
  const optimizer::RuleInfo& rule = optimizer::rule_info(plan_.config.update.rule);
  identity.optimizer = rule.name;
  identity.variable_names =
      optimizer::stored_names(plan_.config.update.rule, plan_.config.offload.state_format);
  identity.share = plan_.share.share;
  return identity;
}

state::StateStore::Options RunState::options() const {
  return {plan_.config.files.state_directory, plan_.config.storage.durability,
          plan_.config.storage.caching};
}

Status RunState::remove() const {
  const auto found = state::StateStore::open(options());  // locked, until it is gone
  if (!found.ok() && found.error().code() == ErrorCode::busy) return found.error();
  return state::remove_state(options());
}

Status RunState::create(bool anew) {
  if (anew) RETURN_IF_ERROR(remove());
  RETURN_IF_ERROR(make_folder(options().directory));
  ASSIGN_OR_RETURN(
      store_, state::StateStore::create(options(), identity(), plan_.geometry, plan_.device_map));
  return ok_status();
}

Status RunState::open(bool moved) {
  if (moved && history_) RETURN_IF_ERROR(history_->save(options()));
  ASSIGN_OR_RETURN(store_, state::StateStore::open(options()));
  return ok_status();
}

Status RunState::go_back(const std::function<Status(const state::StateStore::Options&)>& how) {
  store_.reset();
  RETURN_IF_ERROR(how(options()));
  return open(false);
}

Status RunState::check_found() const {
  const std::string& directory = plan_.config.files.state_directory;
  state::StateIdentity of_run = identity();
  // Tensors have the name of their folder, and a folder may be moved, or be a copy.
  if (plan_.is_of_tensors()) of_run.model_name = store_->identity().model_name;
  RETURN_IF_ERROR(state::check_identity(of_run, store_->identity(), directory));
  const state::Geometry found = store_->layout().geometry();
  state::Geometry wanted = plan_.geometry;
  wanted.device_count = std::max(wanted.device_count, found.device_count);  // fewer can leave
  RETURN_IF_ERROR(state::check_geometry(wanted, found, directory));
  const std::uint64_t seed = store_->committed().position.seed;
  if (seed == static_cast<std::uint64_t>(plan_.config.schedule.seed)) return ok_status();
  return make_error(ErrorCode::config,
                    "{} was begun with seed={} and this run has seed={}: the order of the text "
                    "would change",
                    directory, seed, plan_.config.schedule.seed);
}

Status RunState::take_over(const Recipe& recipe) {
  if (history_) recipe_changes_ = history_->changes(recipe, step());
  if (plan_.geometry.device_count < store_->layout().geometry().device_count) {
    store_.reset();
    RETURN_IF_ERROR(state::StateStore::remove_devices(options(), plan_.geometry.device_count));
    RETURN_IF_ERROR(open(false));
  }
  // A subgroup that lies elsewhere than the settings say moves there with the first step.
  RETURN_IF_ERROR(plan::check_drive_room(plan_, files()));
  return store_->reserve(plan_.device_map);
}

std::vector<std::string> RunState::files() const {
  std::vector<std::string> paths;
  for (std::int32_t d = 0; d < plan_.geometry.device_count; ++d) {
    paths.push_back(store_->file(DeviceId{d}).path());
  }
  return paths;
}

Status RunState::make_room(const plan::PlannedKnobs& planned) {
  RETURN_IF_ERROR(plan::check_drive_room(planned.run, files(), &plan_));
  return store_->reserve(planned.run.device_map);
}

Status RunState::begin_recipe(const Recipe& recipe) {
  history_ = RecipeHistory::from(recipe, 0);
  return history_->save(options());
}

Status RunState::go_on_with_recipe(const Recipe& recipe, bool tells) {
  if (history_) return keep_recipe(recipe);
  if (tells) {
    log_warning(fmt::format(
        "{}: nothing is recorded of the text and the settings that it was made with, so they are "
        "not compared with this run's; from step {} on they are recorded",
        plan_.config.files.state_directory, step() + 1));
  }
  history_ = RecipeHistory::from(recipe, step());
  return history_->save(options());
}

Status RunState::keep_recipe(const Recipe& recipe) {
  const bool has_changed = history_->go_on(recipe, step());
  return has_changed ? history_->save(options()) : ok_status();
}

std::string RunState::residual_path() const {
  return (fs::path(plan_.config.files.state_directory) / offload::kResidualFileName).string();
}

// A kill after this step is noticed: the file is of an earlier one then.
Status RunState::mark_residual_gone() const {
  return offload::save_residual(residual_path(), step(), offload::ResidualPlace{});
}

Status RunState::keep_residual(const offload::ResidualPlace& residual) const {
  if (plan_.options.has_feedback()) {
    return offload::save_residual(residual_path(), step(), residual);
  }
  // The file, if there is one, is of earlier steps: after this one nothing is left to send.
  std::error_code error;
  return fs::exists(residual_path(), error) ? mark_residual_gone() : ok_status();
}

void RunState::remove_residual() const {
  std::error_code ignored;
  fs::remove(residual_path(), ignored);
}

Status RunState::begin_residual() const {
  return plan_.options.has_feedback() ? mark_residual_gone() : ok_status();
}

Status RunState::load_residual(const offload::ResidualPlace& residual,
                               const std::string& drops_residual_of) const {
  if (!plan_.options.has_feedback()) return ok_status();
  if (!drops_residual_of.empty()) {
    log_warning(fmt::format(
        "the state was kept by other ranks, {}, and their residual of error feedback is not handed "
        "on: it begins with zeros after step {}, so the losses are not those of a run that went "
        "through with the same ranks",
        drops_residual_of, step()));
  }
  // A kept step has its own. The other file may be of a run that went on from there, or that came
  // to a step of the same number in another way.
  const std::string kept = kept_residual_path(state::last_commit_of(*store_));
  std::error_code ignored;
  const std::string& path = fs::exists(kept, ignored) ? kept : residual_path();
  ASSIGN_OR_RETURN(const bool loaded, offload::load_residual(path, step(), residual));
  if (!loaded) {
    log_warning(fmt::format(
        "there is no residual of step {} (the run was killed): error feedback begins with zeros, "
        "so the losses are not those of a run that went through",
        step()));
  }
  std::error_code error;
  return fs::exists(residual_path(), error) ? ok_status() : mark_residual_gone();
}

std::string RunState::kept_residual_path(const state::CommitId& id) const {
  return state::path_beside_kept(options().directory, id, ".residual.slc");
}

// The residual first: a commit that is kept has it.
Result<state::CommitId> RunState::keep(const std::string& keeper,
                                       const offload::ResidualPlace& residual) {
  if (plan_.options.has_feedback()) {
    const std::string path = kept_residual_path(state::last_commit_of(*store_));
    RETURN_IF_ERROR(make_folder_of(path));
    RETURN_IF_ERROR(offload::save_residual(path, step(), residual));
  }
  return store_->keep(keeper);
}

Result<KeptSnapshot> RunState::save_snapshot(const offload::ResidualPlace& residual,
                                             const Stops& stops) {
  const fs::path folder =
      fs::path(plan_.config.files.output) / "snapshots" / fmt::format("step-{:06}", step());
  return save_snapshot(folder.string(), residual, stops);
}

Result<KeptSnapshot> RunState::save_snapshot(const std::string& folder,
                                             const offload::ResidualPlace& residual,
                                             const Stops& stops) {
  KeptSnapshot kept;
  kept.path = folder;
  RETURN_IF_ERROR(make_folder(fs::path(kept.path).parent_path().string()));
  const auto add = [&](const std::string& under_way) -> Status {
    state::StateStore::Options there = options();
    there.directory = under_way;
    if (history_) RETURN_IF_ERROR(history_->save(there));
    if (!plan_.options.has_feedback()) return ok_status();
    return offload::save_residual((fs::path(under_way) / offload::kResidualFileName).string(),
                                  step(), residual);
  };
  ASSIGN_OR_RETURN(kept.saved, state::save_snapshot(*store_,
                                                    {kept.path, plan_.config.storage.durability,
                                                     plan_.config.storage.caching},
                                                    add, stops));
  return kept;
}

}  // namespace sluice::session
