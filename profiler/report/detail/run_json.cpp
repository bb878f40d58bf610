#include "profiler/report/detail/run_json.h"

#include <map>

#include "base/colour.h"
#include "profiler/analyze/phase.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

// {"dark": "#4fb286", "light": "#4fb286"}: for both themes of the page.
Json colour_json(ThemedColour colour) {
  return {{"dark", colour_text(colour.dark)}, {"light", colour_text(colour.light)}};
}

// By the name of a stage, in the order of the run's table.
void add_stage_colours(const analyze::RunInfo& info, Json& colours) {
  std::map<std::int64_t, const rundb::StageRow*> in_order;
  for (const auto& [name_id, stage] : info.stages) in_order[name_id] = &stage;
  for (const auto& [name_id, stage] : in_order) {
    const auto name = info.strings.find(name_id);
    if (name == info.strings.end() || colours.contains(name->second)) continue;
    colours[name->second] =
        colour_json(in_both_themes(parse_colour(stage->colour).value_or(palette::kUnknown)));
  }
}

}  // namespace

Json colours_json(std::initializer_list<const analyze::RunInfo*> runs) {
  Json stages = Json::object();
  for (const analyze::RunInfo* info : runs) add_stage_colours(*info, stages);
  Json causes = Json::object();
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    const auto cause = static_cast<analyze::Cause>(c);
    causes[std::string(analyze::cause_label(cause))] = colour_json(analyze::cause_colour(cause));
  }
  Json phases = Json::object();
  for (const analyze::PhaseInfo& phase : analyze::kPhases)
    phases[std::string(phase.name)] = colour_json(phase.colour);
  return {{"stages", std::move(stages)},
          {"causes", std::move(causes)},
          {"phases", std::move(phases)},
          {"unknown", colour_json(in_both_themes(palette::kUnknown))}};
}

Json changes_json(const std::vector<rundb::KnobChangeRow>& changes) {
  Json rows = Json::array();
  for (const rundb::KnobChangeRow& change : changes) {
    rows.push_back({change.step_id,
                    fmt::format("{} {} \u2192 {}", change.knob, change.old_value, change.new_value),
                    change.who});
  }
  return rows;
}

}  // namespace sluice::report::detail
