#pragma once
// Whether there is what a run is to begin from: a model that can be trained, and no state, or one
// that goes with its settings; and where a new one begins.
//
// Thread contract: free functions.

#include <optional>

#include "core/session/recipe_history.h"
#include "core/session/start_from.h"
#include "storage/state/commit_record.h"

namespace sluice::train {

// To be checked before planning: a model that cannot be trained is refused for that reason, and not
// for a later one.
Status check_model(const settings::RunFiles& files);

// Before the first step.
state::TrainingPosition first_position(const settings::RunConfig& config);

// Errors: ErrorCode::config where a new state would stand beside that of another number of ranks,
// ErrorCode::not_found where there is none to go on from.
Status check_start(const settings::RunFiles& files, session::StartFrom start, bool is_only_rank);

// The recipe that the state to go on from was made with, by whatever number of ranks; none: it has
// no record. ErrorCode::config: with another origin than `recipe`.
Result<std::optional<session::RecipeHistory>> found_history(const settings::RunFiles& files,
                                                            const session::Recipe& recipe);

}  // namespace sluice::train
