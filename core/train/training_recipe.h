#pragma once
// The recipe of a run's training: its settings, its model and its text. Ranks compare it before
// anything is made, and a state is kept with those parts of it that decide what is learnt
// (core/session/recipe_history.h). The platform is none of it: it decides how long a step takes.
// A sharding that was planned for the platform is a part of the recipe.
//
// Thread contract: plain data and free functions; check_same_on_ranks() is the schedule's, and
// collective over all ranks.

#include <string>

#include "core/data/text_facts.h"
#include "core/model/model_shape.h"
#include "core/session/recipe_history.h"

namespace sluice::train {

class Ranks;

// `config` is a run's after planning, with scopes for the ranks' shards.
session::Recipe recipe_of(const settings::RunConfig& config, const model::ModelShape& shape,
                          const data::TextFacts& text);

// ErrorCode::config: `recipe` is that of another state than the one in `directory`. The text in
// `files` is looked at where it differs, to say how.
Status check_origin(const session::RecipeHistory& history, const session::Recipe& recipe,
                    const std::string& directory, const settings::RunFiles& files);

// ErrorCode::config on all ranks where one has something else than the first: what, and both.
Status check_same_on_ranks(Ranks& ranks, const session::Recipe& recipe);

}  // namespace sluice::train
