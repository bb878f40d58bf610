#include "core/session/recipe.h"

#include <iterator>

namespace sluice::session {

Recipe recipe_of_settings(const settings::RunConfig& config,
                          const std::function<Recipe(const std::string& key)>& of_file) {
  Recipe recipe;
  for (const settings::SettingInfo& info : settings::settings()) {
    if (info.decides == settings::Decides::own) continue;
    if (info.type == settings::SettingType::path) {
      std::ranges::move(of_file(info.key), std::back_inserter(recipe));
    } else {
      recipe.push_back({info.key, settings::value_of(config, info.key), info.decides});
    }
  }
  return recipe;
}

}  // namespace sluice::session
