#include "profiler/report/detail/page_data.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/words.h"
#include "profiler/analyze/answers.h"
#include "profiler/analyze/fact_keys.h"
#include "profiler/analyze/sampled_time.h"
#include "profiler/analyze/step_explanation.h"
#include "profiler/answers/explanation_json.h"
#include "profiler/answers/record_json.h"
#include "profiler/answers/samples_json.h"
#include "profiler/report/detail/analysis_json.h"
#include "profiler/report/detail/curves.h"
#include "profiler/report/detail/run_json.h"
#include "profiler/report/detail/timeline.h"
#include "storage/rundb/sample_reader.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

Json facts_json(const analyze::RunInfo& info) {
  Json rows = Json::array();
  for (const auto& [key, title] : analyze::kFactKeys) {
    const std::string value = info.meta_value(key);
    if (!value.empty()) rows.push_back({title, value});
  }
  return rows;
}

Json settings_json(const analyze::RunInfo& info) {
  Json rows = Json::array();
  for (const rundb::MetaRow& row : info.meta) {
    const bool is_fact =
        std::ranges::any_of(analyze::kFactKeys, [&](const auto& f) { return f.first == row.key; });
    if (is_fact || std::ranges::find(analyze::kNotSettings, row.key) != analyze::kNotSettings.end())
      continue;
    rows.push_back({row.key, row.value});
  }
  return rows;
}

// One for each step of the timeline, in its order.
Result<Json> explanations_json(rundb::Reader& reader, const analyze::RunInfo& info,
                               const std::vector<rundb::StepRow>& steps, const Json& shown) {
  std::vector<analyze::StepRange> ranges;
  for (const Json& step : shown) {
    const auto id = step["step"].get<std::int64_t>();
    ranges.push_back({id, id});
  }
  Json rows = Json::array();
  if (ranges.empty()) return rows;
  ASSIGN_OR_RETURN(const std::vector<analyze::StepExplanation> explained,
                   analyze::explain_each(reader, info, steps, ranges));
  for (const analyze::StepExplanation& one : explained) rows.push_back(answers::to_json(one));
  return rows;
}

// None: the run was not sampled. Samples that cannot be read leave the rest of the page.
Json samples_json(rundb::Reader& reader, const analyze::RunInfo& info,
                  const std::vector<rundb::StepRow>& steps) {
  const Result<bool> has_samples = rundb::SampleReader(reader).has_samples();
  if (has_samples.ok() && !*has_samples) return Json();
  Result<analyze::SampledTime> time = analyze::sampled_time(reader, info, steps, std::nullopt);
  if (!time.ok()) time = analyze::SampledTime{.why_none = time.error().message()};
  return answers::to_json(*time);
}

}  // namespace

Result<PageData> page_data(rundb::Reader& reader, const Predict& predict) {
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader.snapshot());
  ASSIGN_OR_RETURN(const analyze::RunInfo info, analyze::load_run_info(reader));
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, reader.steps());
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> losses, reader.losses());
  ASSIGN_OR_RETURN(const analyze::RunAnalysis analysis, analyze::analyze_run(reader, info));
  const std::string mode = info.mode.line();
  const std::string name = info.meta_value("name");

  PageData data;
  data.title = name.empty() ? "Run" : name;
  data.json["name"] = data.title;
  data.json["mode"] = mode.empty() ? "the database does not say in which mode it ran" : mode;
  data.json["is_stand_in"] = !info.mode.stand_ins.empty();
  data.json["is_simulated"] = info.meta_value("clock") == "simulated";
  data.json["clock"] = info.meta_value("clock");
  data.json["time_scale"] = info.time_scale();
  data.json["clock_note"] = info.clock_note();
  data.json["step_count"] = steps.size();
  data.json["words"] = {
      {"why", words::kWhy}, {"of_limit", words::kOfLimit}, {"when_active", words::kWhenActive}};
  data.json["losses"] = answers::losses_json(losses);
  data.json["changes"] = changes_json(info.knob_changes);
  data.json["losses_words"] = analyze::losses_sentence(analysis.answers.front());
  data.json["is_whole"] = analysis.answers.front().outcome == analyze::Outcome::nothing_found;
  data.json["verdict"] = verdict_json(analysis);
  std::vector<analyze::Answer> all_answers = analysis.answers;
  if (predict) {
    const analyze::PredictedChanges predicted = predict();
    all_answers.push_back(analyze::turn_next_answer(predicted));
    data.json["next"] = next_json(predicted);
  }
  data.json["answers"] = answers::answers_json(all_answers);
  data.json["looked"] = looked_json(all_answers);
  ASSIGN_OR_RETURN(const std::vector<analyze::Stretch> stretches,
                   analyze::stretches_of(reader, info, steps));
  data.json["stretches"] = answers::stretches_json(stretches);
  data.json["parameters"] = info.meta_number("parameters", 0);
  data.json["doubts"] = answers::doubts_json(analysis);
  data.json["late_speed_ups"] =
      analyze::late_speed_up_words(stretches, "*", analysis.lateness.needed_time_scale);
  data.json["links"] = links_json(analysis);
  data.json["devices"] = devices_json(analysis, info);
  data.json["samples"] = samples_json(reader, info, steps);
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> with_operations,
                   analyze::steps_with_operations(reader, steps));
  ASSIGN_OR_RETURN(const std::vector<rundb::ValidationRow> validations, reader.validations());
  data.json["curves"] = curves_json(steps, validations);
  ASSIGN_OR_RETURN(data.json["phases"],
                   phases_json(reader, info, steps, analyze::sentence_of(analysis.why_unknown)));
  ASSIGN_OR_RETURN(data.json["timeline"],
                   timeline_json(reader, info, chosen_steps(with_operations),
                                 analyze::sentence_of(analysis.why_unknown)));
  data.json["timeline"]["left_out_steps"] = steps.size() - with_operations.size();
  ASSIGN_OR_RETURN(data.json["timeline"]["explanations"],
                   explanations_json(reader, info, steps, data.json["timeline"]["steps"]));
  data.json["colours"] = colours_json({&info});
  data.json["facts"] = facts_json(info);
  data.json["settings"] = settings_json(info);
  return data;
}

}  // namespace sluice::report::detail
