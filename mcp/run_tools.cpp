#include <algorithm>
#include <array>

#include "core/control/live_change.h"
#include "mcp/tool_groups.h"
#include "profiler/analyze/advice.h"
#include "profiler/answers/comparison_json.h"
#include "profiler/answers/run_json.h"
#include "storage/rundb/query.h"

namespace sluice::mcp {
namespace {

using analyze::Outcome;
using answers::RunAnswer;

constexpr std::int64_t kLastSteps = 5;  // that an overview has
// So many runs may be asked in a listing: one that hangs answers nothing.
constexpr std::chrono::milliseconds kListenAnswer{200};
// Facts of the run that say what it is; the rest, as the texts of its model, is SQL's to fetch.
constexpr std::array kFacts = {"name",      "parameters", "machine", "started_utc", "model",
                               "method",    "pipeline",   "devices", "buffers",     "batch",
                               "sequence",  "precision",  "clock",   "record",      "density",
                               "optimizer", "state_dir"};

Result<RunAnswer> ask(const Arguments& arguments, const Call& call, std::int64_t shares = 0) {
  ASSIGN_OR_RETURN(const std::string path, call.runs.resolve(arguments.text("run")));
  return answers::ask_run({.databases = {path}, .steps_with_shares = shares, .stops = call.stops});
}

std::int64_t id_of_last(const RunAnswer& run) { return run.steps.back().id; }

// What the operations of a run say, or why they say nothing.
Answered answered_of(const RunAnswer& run) {
  Answered answered;
  answered.steps = run.analysis.steps;
  if (!run.analysis.has_spans()) {
    answered.outcome = Outcome::could_not_look;
    answered.why = run.analysis.why_unknown;
    return answered;
  }
  answered.why =
      fmt::format("{} steps looked at, of {}", run.analysis.steps.size(), run.analysis.step_count);
  return answered;
}

Json listed_run(const std::string& database, const Call& call) {
  Json row;
  row["run"] = database;
  const auto opened = rundb::Reader::open(database);
  if (!opened.ok()) {
    row["could_not_look"] = opened.error().message();
    return row;
  }
  rundb::Query(**opened).end_if(call.stops);
  const auto meta = (*opened)->meta();
  const auto steps = (*opened)->steps();
  if (!meta.ok() || !steps.ok()) {
    row["could_not_look"] = (meta.ok() ? steps.error() : meta.error()).message();
    return row;
  }
  for (const rundb::MetaRow& fact : *meta) {
    if (fact.key == "name" || fact.key == "started_utc") row[fact.key] = fact.value;
  }
  row["steps"] = steps->size();
  row["is_live"] = control::connect_to_run(database, kListenAnswer).ok();
  return row;
}

Result<Answered> list_runs(const Arguments& /*arguments*/, const Call& call) {
  const RunFolders::Listed listed = call.runs.list(call.stops);
  Answered answered;
  Json& rows = answered.data["runs"] = Json::array();
  for (const std::string& database : listed.databases) {
    if (call.stops()) break;
    rows.push_back(listed_run(database, call));
  }
  if (const auto left = static_cast<std::int64_t>(listed.databases.size() - rows.size()); left > 0)
    answered.left_out.push_back({"/runs", left, "a longer timeout_ms, or their paths"});
  answered.outcome = listed.databases.empty() ? Outcome::nothing_found : Outcome::answer;
  answered.why = fmt::format("{} run databases{}", listed.databases.size(),
                             listed.is_whole ? "" : ", and more in folders not looked into");
  return answered;
}

Result<Answered> overview(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const RunAnswer run, ask(arguments, call, kLastSteps));
  Answered answered;
  answered.steps = run.analysis.steps;
  answered.why = fmt::format("{} steps", run.steps.size());
  if (run.steps.empty() && run.spans.empty()) {
    answered.outcome = Outcome::nothing_found;
    answered.why = "no step has ended, and no operation is in the record";
  }
  answered.heart = {"verdict", "findings", "answers"};
  Json all = answers::to_json(run);
  Json& facts = answered.data["meta"] = Json::object();
  for (const char* fact : kFacts) {
    if (const auto found = all["meta"].find(fact); found != all["meta"].end()) facts[fact] = *found;
  }
  const auto facts_left = static_cast<std::int64_t>(all["meta"].size() - facts.size());
  Json last = Json::array();
  const std::size_t count = all["steps"].size();
  const std::size_t first = count - std::min<std::size_t>(count, kLastSteps);
  for (std::size_t i = first; i < count; ++i) last.push_back(all["steps"][i]);
  all["step_count"] = count;
  all["median_step_ns"] = run.steps.empty() ? Json() : Json(run.median_step_ns());
  all["last_steps"] = std::move(last);
  all.erase("meta");
  all.erase("steps");
  // The answer first: what is cut comes last.
  for (const char* key : {"mode", "step_count", "median_step_ns", "verdict"}) {
    answered.data[key] = std::move(all[key]);
    all.erase(key);
  }
  for (auto& [key, value] : all.items()) answered.data[key] = std::move(value);
  if (facts_left > 0)
    answered.left_out.push_back({"/meta", facts_left, "query_sql: SELECT key, value FROM meta"});
  if (first > 0)
    answered.left_out.push_back(
        {"/last_steps", static_cast<std::int64_t>(first), "query_sql: SELECT * FROM step"});
  return answered;
}

Result<Answered> links(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const RunAnswer run, ask(arguments, call));
  Answered answered = answered_of(run);
  Json all = answers::to_json(run);
  answered.data["links"] = std::move(all["links"]);
  Json& loads = answered.data["load"] = Json::array();
  for (const analyze::LinkLoad& load : run.analysis.links) {
    loads.push_back({{"link", load.name},
                     {"direction", answers::direction_name(load.direction)},
                     {"is_shared", load.is_shared},
                     {"bytes", load.bytes},
                     {"bytes_per_s", load.bytes_per_s},
                     {"bytes_per_s_max", load.bytes_per_s_max},
                     {"share", load.share},
                     {"busy_ns", load.busy_ns}});
  }
  if (run.links.empty() && answered.outcome == Outcome::answer) {
    answered.outcome = Outcome::nothing_found;
    answered.why = "no link is known to have moved bytes";
  }
  return answered;
}

Result<Answered> causes(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const RunAnswer run, ask(arguments, call));
  Answered answered = answered_of(run);
  answered.data["step_ns"] = run.analysis.dur;
  std::vector<std::size_t> largest_first;
  for (std::size_t c = 0; c < analyze::kCauseCount && run.analysis.has_spans(); ++c) {
    if (run.analysis.share[c] > 0) largest_first.push_back(c);
  }
  std::ranges::stable_sort(largest_first, std::greater<>(),
                           [&](std::size_t c) { return run.analysis.share[c]; });
  Json& rows = answered.data["causes"] = Json::array();
  for (const std::size_t c : largest_first) {
    const auto cause = static_cast<analyze::Cause>(c);
    Json row = {{"cause", analyze::cause_name(cause)},
                {"shown_as", analyze::cause_label(cause)},
                {"share", run.analysis.share[c]},
                {"ns", run.analysis.share[c] * static_cast<double>(run.analysis.dur)}};
    if (run.analysis.step_of_most[c]) row["most_in_step"] = *run.analysis.step_of_most[c] + 1;
    rows.push_back(std::move(row));
  }
  Json& remarks = answered.data["remarks"] = Json::array();
  for (const analyze::Remark& remark : analyze::remarks(run.analysis))
    remarks.push_back(remark.text);
  return answered;
}

Result<Answered> stretches(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const RunAnswer run, ask(arguments, call));
  Answered answered;
  answered.data["stretches"] = answers::stretches_json(run.stretches);
  answered.data["knob_changes"] = answers::knob_changes_json(run.info.knob_changes);
  if (run.steps.empty()) {
    answered.outcome = Outcome::could_not_look;
    answered.why = "no step has ended";
    return answered;
  }
  for (const analyze::Stretch& stretch : run.stretches)
    answered.steps.push_back(stretch.first_step);
  answered.outcome = run.stretches.empty() ? Outcome::nothing_found : Outcome::answer;
  answered.why = fmt::format("{} stretches of other settings, up to step {}", run.stretches.size(),
                             id_of_last(run) + 1);
  return answered;
}

Result<Answered> compare(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string a, call.runs.resolve(arguments.text("a")));
  ASSIGN_OR_RETURN(const std::string b, call.runs.resolve(arguments.text("b")));
  ASSIGN_OR_RETURN(const analyze::Comparison comparison, analyze::compare_runs(a, b, call.stops));
  Answered answered;
  answered.data = answers::to_json(comparison);
  answered.why = fmt::format("{} and {} steps", comparison.steps_a, comparison.steps_b);
  if (!comparison.comparability.is_comparable()) {
    answered.outcome = Outcome::could_not_look;
    answered.why = "the runs cannot be compared: see comparability";
  }
  return answered;
}

}  // namespace

std::vector<Tool> run_tools() {
  return {
      {"list_runs", Effect::reads, "The run databases that this server may read.", {}, list_runs},
      {"overview",
       Effect::reads,
       "All that is known of a run: its mode, why a step takes as long as it does, links, "
       "stretches "
       "of other settings, what each analysis found or could not look for, losses of the record. "
       "Steps are counted from 1, times are nanoseconds.",
       {run_parameter()},
       overview},
      {"links",
       Effect::reads,
       "Bytes over each link, and how full the links were in the steps looked at.",
       {run_parameter()},
       links},
      {"causes",
       Effect::reads,
       "What a step's time goes into, by cause, along its critical path; the largest share first.",
       {run_parameter()},
       causes},
      {"stretches",
       Effect::reads,
       "Stretches of steps between changes of knobs: how long a step took in each, and who changed "
       "what.",
       {run_parameter()},
       stretches},
      {"compare",
       Effect::reads,
       "Two runs side by side: medians, their noise, settings that differ, whether the runs can be "
       "compared at all.",
       {{"a", Parameter::Type::text, "the run to compare with", true},
        {"b", Parameter::Type::text, "the run that is compared", true}},
       compare},
  };
}

}  // namespace sluice::mcp
