#include "core/train/run_start.h"

#include "core/model/model_shape.h"
#include "core/train/training_recipe.h"
#include "core/weights/model_folder.h"
#include "storage/state/state_store.h"

namespace sluice::train {

using session::StartFrom;

Status check_model(const settings::RunFiles& files) {
  ASSIGN_OR_RETURN(const model::ModelShape shape, weights::load_shape(files.model));
  return model::check_trainable(shape);
}

state::TrainingPosition first_position(const settings::RunConfig& config) {
  state::TrainingPosition position;
  position.seed = static_cast<std::uint64_t>(config.schedule.seed);
  const bool is_scaled = config.arithmetic.precision == ParameterKind::fp16;
  position.loss_scale = is_scaled ? config.loss_scale.initial : 1.0;
  return position;
}

// A state kept by another number of ranks can be resumed (it is resharded); a new run must not
// overwrite it.
Status check_start(const settings::RunFiles& files, StartFrom start, bool is_only_rank) {
  const std::string& directory = files.state_directory;
  if (start == StartFrom::last_commit && state::StateStore::exists(directory)) return ok_status();
  const settings::StatePlaces& places = files.state_places;
  const std::string of_others = is_only_rank ? places.of_rank(0) : places.alone;
  const bool is_there = state::StateStore::exists(of_others);
  if (start == StartFrom::new_state && is_there) {
    return make_error(ErrorCode::config,
                      "{}: there is the state of a run of {}: go on from it with --resume, or move "
                      "it away, or choose another output",
                      of_others, is_only_rank ? "several ranks" : "one rank");
  }
  if (start == StartFrom::new_state || is_there) return ok_status();
  if (!is_only_rank && state::StateStore::exists(places.of_rank(0))) return ok_status();
  return make_error(ErrorCode::not_found,
                    "there is no state in {} to go on from; leave out --resume to begin",
                    directory);
}

// Other ranks may have kept the state; what it was made with is the same for all of them.
Result<std::optional<session::RecipeHistory>> found_history(const settings::RunFiles& files,
                                                            const session::Recipe& recipe) {
  for (const std::string& place :
       {files.state_directory, files.state_places.alone, files.state_places.of_rank(0)}) {
    if (!state::StateStore::exists(place)) continue;
    ASSIGN_OR_RETURN(std::optional<session::RecipeHistory> history,
                     session::RecipeHistory::load(place));
    if (!history) continue;
    RETURN_IF_ERROR(check_origin(*history, recipe, place, files));
    return history;
  }
  return std::optional<session::RecipeHistory>();
}

}  // namespace sluice::train
