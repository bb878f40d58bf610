#pragma once
// What a run trains with: all that its numbers follow from, the order of its text, and what its
// ranks do with one another. Ranks compare it before anything is made, and a state is kept with
// those parts of it that decide what is learnt (recipe_history.h). The platform is none of it: it
// decides how long a step takes. What follows from it, a sharding that was planned for it, is.
//
// Which settings are in it stands in their table (settings::Decides).
//
// Thread contract: plain data and free functions; check_same_on_ranks() is the schedule's, and
// collective over all ranks.

#include <string>
#include <vector>

#include "core/data/text_facts.h"
#include "core/model/model_shape.h"
#include "core/settings/run_config.h"
#include "core/train/ranks.h"

namespace sluice::train {

struct Fact {
  std::string key;  // a setting's, or "model.heads"
  std::string value;
  settings::Decides decides = settings::Decides::numbers;
};
// In the order in which the first difference is to be told.
using Recipe = std::vector<Fact>;

// `config` is a run's after planning, with scopes for the ranks' shards.
Recipe recipe_of(const settings::RunConfig& config, const model::ModelShape& shape,
                 const data::TextFacts& text);

// ErrorCode::config on all ranks where one has something else than the first: what, and both.
Status check_same_on_ranks(Ranks& ranks, const Recipe& recipe);

}  // namespace sluice::train
