#include "cli/train_arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

#include "cli/exit_code.h"
#include "core/tune/like_run.h"
#include "core/weights/kept_model.h"

namespace sluice::cli {
namespace {

// Three scopes are a setting each; a word is that of all three.
std::vector<std::string> sharding_settings(const std::string& sharding) {
  constexpr std::array kKeys = {"shard_parameters", "shard_gradients", "shard_state"};
  std::vector<std::string> scopes;
  for (std::size_t begin = 0; begin <= sharding.size();) {
    const std::size_t end = std::min(sharding.find(',', begin), sharding.size());
    scopes.push_back(sharding.substr(begin, end - begin));
    begin = end + 1;
  }
  if (scopes.size() != kKeys.size()) scopes.assign(kKeys.size(), sharding);
  std::vector<std::string> settings;
  for (std::size_t k = 0; k < kKeys.size(); ++k) {
    settings.push_back(std::string(kKeys[k]) + "=" + scopes[k]);
  }
  return settings;
}

Status choose_output(TrainArguments& arguments) {
  if (arguments.like.empty() || tune::says_output(arguments.overrides)) return ok_status();
  if (arguments.resume) {
    return make_error(ErrorCode::config,
                      "--like {} --resume: which run goes on? Name its folder with --set "
                      "output=FOLDER, or its run file in place of --like",
                      arguments.like);
  }
  ASSIGN_OR_RETURN(const std::string output, of_database(tune::output_beside(arguments.like)));
  if (!output.empty()) arguments.overrides.push_back("output=" + output);
  return ok_status();
}

// A state goes on with the model that it keeps where the model's own files are gone.
void find_kept_model(settings::RunFiles& files, std::vector<std::string>& warnings) {
  std::error_code error;
  if (std::filesystem::exists(files.model, error)) return;
  const std::optional<std::string> kept = weights::kept_model_file(files.output);
  if (!kept) return;
  warnings.push_back(
      fmt::format("model: {} is gone; the run goes on with what it kept, {}", files.model, *kept));
  files.model = *kept;
}

}  // namespace

Result<settings::RunConfig> config_of(TrainArguments& arguments) {
  RETURN_IF_ERROR(choose_output(arguments));
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.model.empty()) overrides.push_back("model=" + arguments.model);
  if (!arguments.database.empty()) overrides.push_back("db=" + arguments.database);
  if (!arguments.sharding.empty()) {
    for (const std::string& scope : sharding_settings(arguments.sharding)) {
      overrides.push_back(scope);
    }
  }
  if (arguments.steps > 0) overrides.push_back(fmt::format("steps={}", arguments.steps));
  Result<settings::RunConfig> config =
      arguments.like.empty() ? settings::load_run_config(arguments.run_path, overrides)
                             : of_database(tune::config_like(arguments.like, overrides));
  if (config.ok() && arguments.resume) find_kept_model(config->files, config->warnings);
  return config;
}

Result<std::vector<session::PlannedChange>> changes_of(const TrainArguments& arguments,
                                                       settings::RunConfig config) {
  std::vector<session::PlannedChange> changes;
  for (const std::string& text : arguments.changes) {
    const std::size_t colon = text.find(':');
    std::int64_t step = 0;
    const auto parsed =
        std::from_chars(text.data(), text.data() + std::min(colon, text.size()), step);
    if (colon == std::string::npos || parsed.ec != std::errc() ||
        parsed.ptr != text.data() + colon || step < 0) {
      return make_error(ErrorCode::config, "--at {}: expected STEP:key=value, as in 10:density=0.1",
                        text);
    }
    changes.push_back({step, {text.substr(colon + 1)}});
  }
  std::ranges::stable_sort(changes, {}, &session::PlannedChange::step);
  for (const session::PlannedChange& change : changes) {
    ASSIGN_OR_RETURN(
        config, settings::with_knobs(config, change.settings, fmt::format("--at {}", change.step)));
  }
  return changes;
}

}  // namespace sluice::cli
