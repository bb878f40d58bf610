#include "profiler/analyze/comparison.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "profiler/analyze/answers.h"
#include "profiler/analyze/lateness.h"
#include "profiler/analyze/phase.h"
#include "profiler/analyze/trend.h"
#include "storage/rundb/query.h"

namespace sluice::analyze {
namespace {

using Series = std::map<std::string, std::vector<double>>;  // by key, a value a step

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

Status add_query(rundb::Reader& reader, const std::string& sql, double factor, Series& series) {
  ASSIGN_OR_RETURN(const rundb::TextTable table, rundb::Query(reader).text_table(sql));
  for (const auto& row : table.rows) {
    if (const auto value = number(row[1])) series[row[0]].push_back(*value * factor);
  }
  return ok_status();
}

struct ReadRun {
  Series series;
  std::map<std::int64_t, double> losses;  // by step
  std::size_t skipped_count = 0;          // steps, for overflow
  std::size_t step_count = 0;
  std::map<std::string, std::string> meta;
  std::vector<rundb::KnobChangeRow> changes;
  std::vector<rundb::StatRow> lost;  // what the record lacks
  std::string late;                  // Lateness::words()
  Answer losses_of_record;
  rundb::Completeness rows;
};

Status add_operations(rundb::Reader& reader, std::int64_t first_step, Series& series) {
  const std::string from = fmt::format(" WHERE step_id >= {}", first_step);
  for (const PhaseInfo& phase : kPhases) {
    RETURN_IF_ERROR(
        add_query(reader, fmt::format("SELECT '{0}', {0}_dur FROM step_phase", phase.name) + from,
                  1e-9, series));
  }
  // The bytes that all links of a kind moved in a step.
  return add_query(
      reader,
      "SELECT CASE WHEN instr(link, '.') > 0 THEN substr(link, instr(link, '.') + 1) ELSE link END "
      "|| '_' || direction AS key, sum(bytes + padding_bytes) FROM link_bytes" +
          from + " GROUP BY step_id, key",
      1, series);
}

Result<ReadRun> read_run(const std::string& path, const Stops& stops) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(path));
  if (stops) rundb::Query(*reader).end_if(stops);
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader->snapshot());
  ReadRun run;
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, reader->steps());
  if (steps.empty()) {
    return make_error(ErrorCode::config, "{}: no step has ended in it: nothing to compare", path);
  }
  const std::size_t first = steps.size() > kSettlingSteps ? kSettlingSteps : 0;
  for (std::size_t i = first; i < steps.size(); ++i) {
    run.series["step_time"].push_back(static_cast<double>(steps[i].dur) / 1e9);
    run.series["tokens_per_s"].push_back(static_cast<double>(steps[i].tokens) * 1e9 /
                                         static_cast<double>(std::max<TimeNs>(1, steps[i].dur)));
  }
  run.step_count = steps.size();
  for (const rundb::StepRow& step : steps) {
    if (!std::isnan(step.loss)) run.losses[step.id] = step.loss;
    run.skipped_count += step.skipped ? 1 : 0;
  }
  ASSIGN_OR_RETURN(run.rows, rundb::completeness_of(*reader));
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> stats, reader->stats());
  run.losses_of_record = losses_answer(stats, run.rows);
  // Some of the operations would be taken for all.
  if (run.rows.operations_missing == 0) {
    RETURN_IF_ERROR(add_operations(*reader, steps[first].id, run.series));
  }
  ASSIGN_OR_RETURN(const std::vector<rundb::MetaRow> meta, reader->meta());
  for (const rundb::MetaRow& row : meta) run.meta[row.key] = row.value;
  ASSIGN_OR_RETURN(run.changes, reader->knob_changes());
  ASSIGN_OR_RETURN(run.lost, reader->losses());
  ASSIGN_OR_RETURN(const RunInfo info, load_run_info(*reader));
  ASSIGN_OR_RETURN(const Lateness lateness, lateness_of(*reader, info));
  run.late = lateness.words();
  return run;
}

std::string unit_of(const std::string& key) {
  if (key.ends_with("_read") || key.ends_with("_write")) return "B";
  return key == "loss" || key == "tokens_per_s" ? "" : "s";
}

// In the order in which people ask, then the links.
std::vector<std::string> ordered_keys(const Series& series) {
  std::vector<std::string> keys = {"step_time", "forward", "backward",
                                   "update",    "loss",    "tokens_per_s"};
  for (const auto& [key, values] : series) {
    if (std::ranges::count(keys, key) == 0) keys.push_back(key);
  }
  std::erase_if(keys, [&](const std::string& key) { return !series.contains(key); });
  return keys;
}

// The loss of the last step that both have: a run that went on for longer is not better for that.
void add_loss(ReadRun& a, ReadRun& b) {
  for (auto of_a = a.losses.rbegin(); of_a != a.losses.rend(); ++of_a) {
    const auto of_b = b.losses.find(of_a->first);
    if (of_b == b.losses.end()) continue;
    a.series["loss"] = {of_a->second};
    b.series["loss"] = {of_b->second};
    return;
  }
}

std::string change_text(const rundb::KnobChangeRow& change) {
  return fmt::format("{}={} from step {}", change.knob, change.new_value, change.step_id + 1);
}

// The settings of a run, and the changes while it ran.
std::map<std::string, std::string> settings_of(const ReadRun& run) {
  std::map<std::string, std::string> settings = run.meta;
  for (const rundb::KnobChangeRow& change : run.changes) {
    std::string& text = settings["changes"];
    text += (text.empty() ? "" : ", ") + change_text(change);
  }
  return settings;
}

// The facts that a run had for all of its steps: a knob that was turned is not as it began.
std::map<std::string, std::string> facts_of(const ReadRun& run) {
  std::map<std::string, std::string> facts = run.meta;
  for (const rundb::KnobChangeRow& change : run.changes) {
    const auto fact = facts.find(change.knob);
    if (fact == facts.end()) continue;
    fact->second += fmt::format(", {} from step {}", change.new_value, change.step_id + 1);
  }
  return facts;
}

// The cautions about the figures of a run that can be compared all the same.
void add_cautions(const char* name, const ReadRun& run, std::vector<std::string>& cautions) {
  constexpr std::size_t kNoiseFrom = 3;  // steps: fewer do not tell how much they scatter
  const std::size_t steps = run.series.at("step_time").size();
  const auto clock = run.meta.find("clock");
  if (steps < kNoiseFrom && (clock == run.meta.end() || clock->second != "simulated")) {
    cautions.push_back(
        fmt::format("{} has {} to compare: too few to know its noise, so no difference is beyond "
                    "it for certain.",
                    name, steps == 1 ? "one step" : fmt::format("{} steps", steps)));
  }
  if (!run.changes.empty()) {
    const rundb::KnobChangeRow& last = run.changes.back();
    cautions.push_back(
        fmt::format("{} was changed while it ran (last: {}): its medians are of the "
                    "steps before and after.",
                    name, change_text(last)));
  }
  if (!run.late.empty()) cautions.push_back(fmt::format("{}: {}", name, run.late));
  if (run.skipped_count > 0) {
    cautions.push_back(fmt::format(
        "{} skipped {} of its {} steps for overflow: these update nothing and take less "
        "time for it.",
        name, run.skipped_count, run.step_count));
  }
  for (const rundb::StatRow& loss : run.lost) {
    cautions.push_back(
        fmt::format("{} lacks records ({}: {}): its bytes and operations may be too "
                    "few.",
                    name, loss.name, loss.value));
  }
}

// Facts of one recording that say nothing about the other.
bool is_of_one_run(const std::string& key) {
  static const std::set<std::string> kKeys = {"started_utc",     "output",           "state_dir",
                                              "model_text",      "platform_text",    "db",
                                              "host_memory_cap", "host_memory_limit"};
  return kKeys.contains(key);
}

using Settings = std::map<std::string, std::string>;

std::vector<SettingDifference> differences(const Settings& a, const Settings& b) {
  std::set<std::string> keys;
  for (const auto& [key, value] : a) keys.insert(key);
  for (const auto& [key, value] : b) keys.insert(key);
  const auto value = [](const Settings& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string("-") : found->second;
  };
  std::vector<SettingDifference> all;
  for (const std::string& key : keys) {
    const SettingDifference difference{key, value(a, key), value(b, key)};
    if (!is_of_one_run(key) && difference.a != difference.b) all.push_back(difference);
  }
  return all;
}

// Rows that only one of the two has are in no table, so they are named here.
Answer rows_answer(const ReadRun& a, const ReadRun& b, std::size_t compared) {
  std::string lacking;
  const auto add = [&lacking](const char* who, const ReadRun& lacks, const ReadRun& has) {
    std::string keys;
    for (const auto& [key, values] : has.series) {
      if (!lacks.series.contains(key)) keys += (keys.empty() ? "" : ", ") + key;
    }
    if (keys.empty()) return;
    lacking += fmt::format("{}{} has no {}", lacking.empty() ? "" : "; ", who, keys);
  };
  add("A", a, b);
  add("B", b, a);
  if (!a.series.contains("forward") && !b.series.contains("forward")) {
    lacking += fmt::format("{}neither has operations to tell phases and links by",
                           lacking.empty() ? "" : "; ");
  }
  if (!lacking.empty()) return {"phases and links", Outcome::could_not_look, lacking};
  return {"phases and links", Outcome::answer, fmt::format("{} rows", compared)};
}

// A median of fewer says nothing of its own error; simulated steps have none.
Answer noise_answer(const ReadRun& a, const ReadRun& b) {
  constexpr std::size_t kFewest = 3;
  std::string few;
  for (const auto& [who, run] : {std::pair{"A", &a}, std::pair{"B", &b}}) {
    const auto clock = run->meta.find("clock");
    const std::size_t steps = run->series.at("step_time").size();
    if (steps >= kFewest || (clock != run->meta.end() && clock->second == "simulated")) continue;
    few += fmt::format("{}{} has {} step{}", few.empty() ? "" : ", ", who, steps,
                       steps == 1 ? "" : "s");
  }
  if (few.empty()) return {"noise", Outcome::answer, "of the steps of each"};
  return {"noise", Outcome::could_not_look, fmt::format("{}; it takes {}", few, kFewest)};
}

Answer differences_answer(const ReadRun& a, const ReadRun& b, std::size_t different) {
  const std::string of = "settings that differ";
  if (a.meta.empty() || b.meta.empty()) {
    return {of, Outcome::could_not_look,
            fmt::format("table meta of {} has no rows", a.meta.empty() ? "A" : "B")};
  }
  if (different > 0) return {of, Outcome::answer, fmt::format("{}", different)};
  return {of, Outcome::nothing_found, fmt::format("{} compared", a.meta.size())};
}

std::vector<Answer> answers(const ReadRun& a, const ReadRun& b, const Comparison& comparison) {
  std::vector<Answer> all = {a.losses_of_record, b.losses_of_record};
  all[0].of += " of A";
  all[1].of += " of B";
  all.push_back(rows_answer(a, b, comparison.figures.size()));
  all.push_back(noise_answer(a, b));
  all.push_back(differences_answer(a, b, comparison.differences.size()));
  return all;
}

}  // namespace

bool ComparedFigure::is_more_than_noise() const { return std::abs(b - a) > noise; }
double ComparedFigure::noise_share() const { return a == 0 ? 0 : noise / std::abs(a); }
bool ComparedFigure::is_better() const { return key == "tokens_per_s" ? b > a : b < a; }

const ComparedFigure* Comparison::figure(std::string_view key) const {
  const auto found = std::ranges::find(figures, key, &ComparedFigure::key);
  return found == figures.end() ? nullptr : &*found;
}

Result<Comparison> compare_runs(const std::string& database_a, const std::string& database_b,
                                const Stops& stops) {
  ASSIGN_OR_RETURN(ReadRun a, read_run(database_a, stops));
  ASSIGN_OR_RETURN(ReadRun b, read_run(database_b, stops));
  add_loss(a, b);
  Comparison comparison;
  comparison.comparability = comparability_of(facts_of(a), facts_of(b));
  add_cautions("A", a, comparison.comparability.cautions);
  add_cautions("B", b, comparison.comparability.cautions);
  comparison.steps_a = a.series.at("step_time").size();
  comparison.steps_b = b.series.at("step_time").size();
  for (const std::string& key : ordered_keys(a.series)) {
    const auto in_b = b.series.find(key);
    if (in_b == b.series.end()) continue;
    const std::vector<double>& values_a = a.series.at(key);
    comparison.figures.push_back({key, unit_of(key), median_of(values_a), median_of(in_b->second),
                                  noise_of_difference(values_a, in_b->second)});
  }
  comparison.differences = differences(settings_of(a), settings_of(b));
  comparison.answers = answers(a, b, comparison);
  return comparison;
}

}  // namespace sluice::analyze
