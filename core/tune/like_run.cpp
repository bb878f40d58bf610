#include "core/tune/like_run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/free_path.h"
#include "storage/rundb/reader.h"

namespace sluice::tune {
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

Result<std::map<std::string, std::string>> recorded_values(rundb::Reader& reader) {
  std::map<std::string, std::string> values;
  ASSIGN_OR_RETURN(const std::vector<rundb::MetaRow> meta, reader.meta());
  for (const rundb::MetaRow& row : meta) values[row.key] = row.value;
  return values;
}

// The folder of the run: that of its run.db, without the folder of a rank in it; of a database that
// was told to be elsewhere what the record calls its output.
fs::path folder_of_run(const fs::path& database, const std::map<std::string, std::string>& values) {
  fs::path folder = database.parent_path();
  if (database.filename() != "run.db") {
    const auto told = [&](const char* key) {
      const auto value = values.find(key);
      return value == values.end() ? std::string() : value->second;
    };
    folder = found_from(started_in(database, told("db")), told("output"));
  }
  if (folder.empty()) folder = fs::absolute(database).parent_path();
  return folder.filename().string().starts_with("rank-") ? folder.parent_path() : folder;
}

}  // namespace

bool says_output(const std::vector<std::string>& overrides) {
  return std::ranges::any_of(overrides,
                             [](const std::string& text) { return text.starts_with("output="); });
}

Result<std::string> output_beside(const std::string& database) {
  auto reader = rundb::Reader::open(database);
  if (!reader.ok()) return reader.error();
  ASSIGN_OR_RETURN(const auto values, recorded_values(**reader));
  const auto clock = values.find("clock");
  if (clock != values.end() && clock->second == "simulated") return std::string();
  const fs::path folder = folder_of_run(database, values);
  return free_path(folder.parent_path(), without_number(folder.filename().string())).string();
}

Result<std::vector<std::string>> settings_like(const std::string& database) {
  auto reader = rundb::Reader::open(database);
  if (!reader.ok()) return reader.error();
  ASSIGN_OR_RETURN(auto values, recorded_values(**reader));
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

}  // namespace sluice::tune
