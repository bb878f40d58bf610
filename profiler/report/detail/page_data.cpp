#include "profiler/report/detail/page_data.h"

#include <algorithm>
#include <array>

#include "profiler/report/detail/analysis_json.h"
#include "profiler/report/detail/curves.h"
#include "profiler/report/detail/timeline.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

// Keys of `meta` that say what ran where, in the order in which they are shown; the others are
// settings.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kFacts = {{
    {"parameters", "Parameters"},
    {"platform_name", "Platform"},
    {"machine", "Recorded on"},
    {"host_name", "Host"},
    {"started_utc", "Started (UTC)"},
    {"model", "Model"},
    {"platform", "Platform file"},
    {"output", "Output"},
    {"sluice_version", "Sluice"},
    {"written_by", "Database by"},
}};
// Shown elsewhere, or too long to show.
constexpr std::array<std::string_view, 7> kNotSettings = {
    "name", "mode", "processors", "changes", "model_text", "platform_text", "sqlite_version"};

Json facts_json(const analyze::RunInfo& info) {
  Json rows = Json::array();
  for (const auto& [key, title] : kFacts) {
    const std::string value = info.meta_value(key);
    if (!value.empty()) rows.push_back({title, value});
  }
  return rows;
}

Json settings_json(const analyze::RunInfo& info) {
  Json rows = Json::array();
  for (const rundb::MetaRow& row : info.meta) {
    const bool is_fact =
        std::ranges::any_of(kFacts, [&](const auto& f) { return f.first == row.key; });
    if (is_fact || std::ranges::find(kNotSettings, row.key) != kNotSettings.end()) continue;
    rows.push_back({row.key, row.value});
  }
  return rows;
}

Json losses_json(const std::vector<rundb::StatRow>& losses) {
  Json rows = Json::array();
  for (const rundb::StatRow& loss : losses) {
    rows.push_back({{"name", loss.name}, {"value", loss.value}, {"description", loss.description}});
  }
  return rows;
}

Json changes_json(const std::vector<analyze::KnobChange>& changes) {
  Json rows = Json::array();
  for (const analyze::KnobChange& change : changes) rows.push_back({change.step, change.text});
  return rows;
}

bool is_stand_in(const std::string& mode) {
  return mode.find("EMULATED") != std::string::npos || mode.find("SIMULATED") != std::string::npos;
}

}  // namespace

Result<PageData> page_data(rundb::Reader& reader) {
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader.snapshot());
  ASSIGN_OR_RETURN(const analyze::RunInfo info, analyze::load_run_info(reader));
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, reader.steps());
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> losses, reader.losses());
  ASSIGN_OR_RETURN(const analyze::RunAnalysis analysis, analyze::analyze_run(reader, info));
  const std::string mode = info.meta_value("mode");
  const std::string name = info.meta_value("name");

  PageData data;
  data.title = name.empty() ? "Run" : name;
  data.json["name"] = data.title;
  data.json["mode"] = mode.empty() ? "the database does not say in which mode it ran" : mode;
  data.json["is_stand_in"] = is_stand_in(mode);
  data.json["is_simulated"] = info.meta_value("clock") == "simulated";
  data.json["time_scale"] = info.time_scale();
  data.json["step_count"] = steps.size();
  data.json["losses"] = losses_json(losses);
  data.json["changes"] = changes_json(info.knob_changes());
  data.json["verdict"] = verdict_json(analysis);
  data.json["links"] = links_json(analysis);
  data.json["devices"] = devices_json(analysis, info);
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> with_operations,
                   analyze::steps_with_operations(reader, steps));
  data.json["curves"] = curves_json(steps);
  ASSIGN_OR_RETURN(data.json["phases"], phases_json(reader, steps));
  ASSIGN_OR_RETURN(data.json["timeline"],
                   timeline_json(reader, info, chosen_steps(with_operations)));
  data.json["timeline"]["left_out_steps"] = steps.size() - with_operations.size();
  data.json["facts"] = facts_json(info);
  data.json["settings"] = settings_json(info);
  return data;
}

}  // namespace sluice::report::detail
