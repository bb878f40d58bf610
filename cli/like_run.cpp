#include "cli/like_run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "cli/exit_code.h"
#include "storage/rundb/reader.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

// Where a run writes: a new one writes elsewhere.
constexpr std::array<std::string_view, 3> kOwnPlaces = {"output", "state_dir", "db"};
constexpr std::array<std::string_view, 4> kInputs = {"model", "platform", "text", "xclbin"};

// The folder from which the run's relative paths lead: the record says `db` as it was told, and
// the database is where that led. Empty: it was told from the root.
fs::path started_in(const fs::path& database, const std::string& told) {
  const fs::path relative = fs::path(told).lexically_normal();
  if (told.empty() || relative.is_absolute()) return {};
  fs::path folder = fs::absolute(database).lexically_normal();
  for (auto part = relative.end(); part != relative.begin();) {
    if (*--part != folder.filename()) return {};  // the database was moved
    folder = folder.parent_path();
  }
  return folder;
}

std::string found_from(const fs::path& folder, const std::string& path) {
  if (path.empty() || folder.empty() || fs::path(path).is_absolute()) return path;
  return (folder / path).lexically_normal().string();
}

}  // namespace

Result<std::vector<std::string>> settings_like(const std::string& database) {
  auto reader = rundb::Reader::open(database);
  if (!reader.ok()) return wrong_database(reader.error());
  std::map<std::string, std::string> values;
  ASSIGN_OR_RETURN(const std::vector<rundb::MetaRow> meta, (*reader)->meta());
  for (const rundb::MetaRow& row : meta) values[row.key] = row.value;
  const fs::path folder = started_in(database, values["db"]);
  ASSIGN_OR_RETURN(const std::vector<rundb::KnobChangeRow> changes, (*reader)->knob_changes());
  for (const rundb::KnobChangeRow& change : changes) values[change.knob] = change.new_value;
  if (values["model"].empty() || values["platform"].empty()) {
    return make_error(ErrorCode::config,
                      "{}: its record names no model and platform, so it was not begun by `sluice "
                      "train` or `sluice simulate`, and no run like it can be",
                      database);
  }
  std::vector<std::string> settings;
  for (const settings::SettingInfo& info : settings::settings()) {
    const auto value = values.find(info.key);
    if (value == values.end() || std::ranges::count(kOwnPlaces, info.key) > 0) continue;
    // Said, it might be called a setting of another optimizer.
    if (value->second == info.default_value && info.other_defaults.empty()) continue;
    // A simulated run had the emulated clock's settings.
    if (info.key == "clock" && value->second == "simulated") continue;
    const bool is_input = std::ranges::count(kInputs, info.key) > 0;
    settings.push_back(info.key + "=" +
                       (is_input ? found_from(folder, value->second) : value->second));
  }
  return settings;
}

Result<settings::RunConfig> config_like(const std::string& database,
                                        const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(std::vector<std::string> settings, settings_like(database));
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  return settings::parse_run_config("", database, settings);
}

}  // namespace sluice::cli
