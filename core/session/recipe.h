#pragma once
// All that a run's numbers follow from: settings, and facts of its model and its data, as texts.
// Which settings are in it stands in their table (settings::Decides).
//
// Thread contract: plain data.

#include <functional>
#include <string>
#include <vector>

#include "core/settings/run_config.h"

namespace sluice::session {

struct Fact {
  std::string key;  // a setting's, or "model.heads"
  std::string value;
  settings::Decides decides = settings::Decides::numbers;
};
// In the order in which the first difference is to be told.
using Recipe = std::vector<Fact>;

// The facts that settings alone give; for a setting that names a file, `of_file` gives the facts
// that stand in it.
Recipe recipe_of_settings(const settings::RunConfig& config,
                          const std::function<Recipe(const std::string& key)>& of_file);

}  // namespace sluice::session
