#include "profiler/report/detail/comparison_data.h"

#include <algorithm>
#include <memory>

#include "profiler/analyze/cause_pairs.h"
#include "profiler/analyze/comparison.h"
#include "profiler/analyze/comparison_words.h"
#include "profiler/analyze/fact_keys.h"
#include "profiler/analyze/run_analysis.h"
#include "profiler/answers/comparison_json.h"
#include "profiler/report/detail/analysis_json.h"
#include "profiler/report/detail/curves.h"
#include "profiler/report/detail/run_json.h"
#include "profiler/report/detail/step_pairs.h"
#include "profiler/report/detail/timeline.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPlusMinus = "\u00b1";

struct ReadRun {
  std::string path;
  rundb::Reader* reader = nullptr;
  analyze::RunInfo info;
  analyze::RunAnalysis analysis;
  std::vector<rundb::StepRow> steps;
  std::vector<rundb::StepRow> steps_with_operations;

  std::string name() const {
    const std::string named = info.meta_value("name");
    return named.empty() ? "Run" : named;
  }
};

Result<ReadRun> read_run(rundb::Reader& reader, const std::string& path) {
  ReadRun run;
  run.path = path;
  run.reader = &reader;
  ASSIGN_OR_RETURN(run.info, analyze::load_run_info(reader));
  ASSIGN_OR_RETURN(run.analysis, analyze::analyze_run(reader, run.info));
  ASSIGN_OR_RETURN(run.steps, reader.steps());
  ASSIGN_OR_RETURN(run.steps_with_operations, analyze::steps_with_operations(reader, run.steps));
  return run;
}

Json comparability_json(const analyze::Comparability& comparability) {
  Json json = answers::to_json(comparability);
  json["words"] = analyze::incomparable_words(comparability);
  json["same_words"] = analyze::listed(comparability.same);
  json["unknown_words"] = analyze::listed(comparability.unknown);
  return json;
}

Json figures_json(const analyze::Comparison& comparison) {
  Json rows = Json::array();
  for (const analyze::ComparedFigure& figure : comparison.figures) {
    Json row = answers::to_json(figure);
    row["key"] = figure.key;
    row["unit"] = figure.unit;
    row["noise_share"] = figure.noise_share();
    row["is_better"] = figure.is_better();
    row["judgement"] = analyze::judgement_of(figure, kPlusMinus);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json causes_json(const std::vector<analyze::CausePair>& causes) {
  Json rows = Json::array();
  for (const analyze::CausePair& pair : causes) {
    rows.push_back(
        {{"cause", analyze::cause_label(pair.cause)}, {"a_ns", pair.a_ns}, {"b_ns", pair.b_ns}});
  }
  return rows;
}

// Title, what A has, what B has.
Json facts_json(const ReadRun& a, const ReadRun& b) {
  Json rows = Json::array();
  for (const auto& [key, title] : analyze::kFactKeys) {
    const std::string of_a = a.info.meta_value(key);
    const std::string of_b = b.info.meta_value(key);
    if (!of_a.empty() || !of_b.empty()) rows.push_back({title, of_a, of_b});
  }
  return rows;
}

// The changes of both runs, each with its letter before what changed.
Json all_changes_json(const ReadRun& a, const ReadRun& b) {
  std::vector<Json> rows;
  for (const auto& [letter, run] : {std::pair("A", &a), std::pair("B", &b)}) {
    for (Json row : changes_json(run->info.knob_changes)) {
      row[1] = fmt::format("{}: {}", letter, row[1].get<std::string>());
      rows.push_back(std::move(row));
    }
  }
  std::ranges::stable_sort(rows, {}, [](const Json& row) { return row[0].get<std::int64_t>(); });
  return rows;
}

Result<Json> run_json(const ReadRun& run, const std::vector<ChosenStep>& chosen) {
  const std::string mode = run.info.mode.line();
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> losses, run.reader->losses());
  ASSIGN_OR_RETURN(const std::vector<rundb::ValidationRow> validations, run.reader->validations());
  Json json = {{"path", run.path},
               {"name", run.name()},
               {"mode", mode.empty() ? "the database does not say in which mode it ran" : mode},
               {"is_stand_in", !run.info.mode.stand_ins.empty()},
               {"is_simulated", run.info.meta_value("clock") == "simulated"},
               {"time_scale", run.info.time_scale()},
               {"clock_note", run.info.clock_note()},
               {"step_count", run.steps.size()},
               {"losses", answers::losses_json(losses)},
               {"curves", curves_json(run.steps, validations)}};
  ASSIGN_OR_RETURN(json["timeline"], timeline_json(*run.reader, run.info, chosen,
                                                   analyze::sentence_of(run.analysis.why_unknown),
                                                   Counters::left_out));
  return json;
}

std::string title_of(const ReadRun& a, const ReadRun& b) {
  return a.name() == b.name() ? a.name() + ": two runs compared"
                              : fmt::format("{} and {} compared", a.name(), b.name());
}

}  // namespace

Result<PageData> comparison_data(const std::string& database_a, const std::string& database_b) {
  ASSIGN_OR_RETURN(const analyze::Comparison comparison,
                   analyze::compare_runs(database_a, database_b));
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader_a, rundb::Reader::open(database_a));
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader_b, rundb::Reader::open(database_b));
  // Each is of one moment, of a live run too.
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot_a, reader_a->snapshot());
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot_b, reader_b->snapshot());
  ASSIGN_OR_RETURN(const ReadRun a, read_run(*reader_a, database_a));
  ASSIGN_OR_RETURN(const ReadRun b, read_run(*reader_b, database_b));
  std::vector<ChosenStep> chosen_a;
  std::vector<ChosenStep> chosen_b;
  for (const StepPair& pair : paired_steps(a.steps_with_operations, b.steps_with_operations)) {
    chosen_a.push_back({pair.a, pair.why});
    chosen_b.push_back({pair.b, pair.why});
  }
  const analyze::ComparisonWords words = analyze::words_of(comparison, kPlusMinus);
  PageData data;
  data.title = title_of(a, b);
  data.json["title"] = data.title;
  data.json["comparability"] = comparability_json(comparison.comparability);
  data.json["headline"] = words.headline;
  data.json["where"] = words.where;
  data.json["steps_a"] = comparison.steps_a;
  data.json["steps_b"] = comparison.steps_b;
  data.json["figures"] = figures_json(comparison);
  data.json["causes"] = causes_json(analyze::cause_pairs(a.analysis, b.analysis, comparison));
  data.json["differences"] = answers::differences_json(comparison.differences);
  data.json["facts"] = facts_json(a, b);
  data.json["changes"] = all_changes_json(a, b);
  data.json["colours"] = colours_json({&a.info, &b.info});
  data.json["looked"] = looked_json(comparison.answers);
  ASSIGN_OR_RETURN(data.json["a"], run_json(a, chosen_a));
  ASSIGN_OR_RETURN(data.json["b"], run_json(b, chosen_b));
  return data;
}

}  // namespace sluice::report::detail
